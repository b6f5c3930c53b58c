"""The trace of an inference: well-formed, in step with what was measured, and what is derived."""

import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slipstick.cli import app
from slipstick.errors import ProgramError
from slipstick.examples.digits import MODEL
from slipstick.loading import compile_file
from slipstick.profile.chrome_trace import MODELLED, Track, trace, write_trace
from slipstick.profile.executed import executed_runs
from slipstick.profile.measure import Benchmark, measure
from slipstick.profile.profiles import STREAMS, RunEvents, profile
from slipstick.profile.recorded_device import LinkTransfer
from slipstick.program.steps import RunStep

TARGET = "1x4x4"
Events = list[dict[str, Any]]


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return measure(compile_file(MODEL, TARGET))


def check_format(made: dict[str, Any]) -> dict[Track, Events]:
    """What the trace event format asks for; the complete events by track, in their order."""
    tracks = defaultdict(list)
    named = set()
    for event in made["traceEvents"]:
        assert {"ph", "ts", "pid", "tid", "name"} <= set(event)
        assert event["ts"] >= 0
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "thread_sort_index")
            if event["name"] == "thread_name":
                named.add(event["tid"])
        else:
            assert event["ph"] == "X" and event["dur"] >= 0 and event["name"]
            assert event["args"]["cycles"] == event["dur"]
            tracks[Track(event["tid"])].append(event)
    assert set(tracks) <= named
    for events in tracks.values():
        events.sort(key=lambda event: (event["ts"], event["dur"]))
        for one, other in itertools.pairwise(events):
            assert other["ts"] >= one["ts"] + one["dur"], (one, other)
    times = [event["ts"] for event in made["traceEvents"]]
    assert times == sorted(times)
    return tracks


def test_tracks_are_what_was_measured(benchmark: Benchmark, tmp_path: Path) -> None:
    path = tmp_path / "new" / "trace.json"
    write_trace(path, benchmark)
    made = json.loads(path.read_text())
    assert "1 clock cycle" in made["otherData"]["time"]
    tracks = check_format(made)
    program, (run,) = benchmark.program, benchmark.runs
    assert sum(event["dur"] for event in tracks[Track.LAYERS]) == benchmark.cycles
    assert sum(event["args"]["macs"] for event in tracks[Track.LAYERS]) == program.macs
    cycles = {line.layer.name: line.cycles for line in benchmark.layers if line.spans}
    assert {event["name"]: event["dur"] for event in tracks[Track.LAYERS]} == cycles
    for stream, track in zip(STREAMS, (Track.ARRAY, Track.POST_PROCESSOR), strict=True):
        starts = np.array([event["ts"] for event in tracks[track]])
        assert np.array_equal(np.diff(starts), np.diff(run.starts[stream]))
        landed = [event["args"]["results_landed_after"] for event in tracks[track]]
        assert landed == (run.completions[stream] - run.starts[stream]).tolist()
    upload, download = tracks[Track.LINK]
    assert (upload["name"], upload["ts"], upload["args"]["bytes"]) == ("upload", 0, 64)
    assert (download["name"], download["args"]["bytes"]) == ("download", 10)
    begin, end = (tracks[Track.LAYERS][at] for at in (0, -1))
    assert upload["dur"] <= begin["ts"] and end["ts"] + end["dur"] <= download["ts"]


def test_derived_tracks_lie_within_their_instructions(benchmark: Benchmark) -> None:
    tracks = check_format(trace(benchmark))
    windows, loads = tracks[Track.WINDOW_READER], tracks[Track.WEIGHT_LOAD]
    (run,) = executed_runs(benchmark.program)
    tiles = [instruction.fields["reduction_tiles"] for instruction in run.matrix]
    assert len(windows) == len(loads) == sum(tiles)
    assert sum(event["dur"] for event in windows) == sum(i.array_cycles for i in run.matrix)
    for load, window in zip(loads, windows, strict=True):
        assert load["args"]["derived"] == window["args"]["derived"] == MODELLED
        assert load["name"] == window["name"]
        assert load["ts"] + load["dur"] <= window["ts"]
    places = iter(windows)
    for event, count in zip(tracks[Track.ARRAY], tiles, strict=True):
        for window in itertools.islice(places, count):
            assert window["name"].startswith(f"{event['name']}, tile ")
            assert event["ts"] <= window["ts"]
            assert window["ts"] + window["dur"] <= event["ts"] + event["dur"]


def test_runs_follow_on_each_other() -> None:
    benchmark = measure(compile_file(MODEL, TARGET, inspect=True))
    assert len(benchmark.runs) > 1
    tracks = check_format(trace(benchmark))
    assert sum(event["dur"] for event in tracks[Track.LAYERS]) == benchmark.cycles
    assert sum(event["args"]["macs"] for event in tracks[Track.LAYERS]) == benchmark.program.macs
    last = max(event["ts"] + event["dur"] for events in tracks.values() for event in events)
    assert last > benchmark.cycles + sum(event["dur"] for event in tracks[Track.LINK][:-1])


def test_a_compact_engine_has_only_measured_tracks() -> None:
    program = compile_file(MODEL, "icebreaker")
    (step,) = (step for step in program.steps if isinstance(step, RunStep))
    starts, ends = (
        {
            stream: first + 10 * np.arange(count)
            for stream, count in zip(STREAMS, step.instructions, strict=True)
        }
        for first in (5, 15)
    )
    run = RunEvents(max(int(times[-1]) for times in ends.values()) + 1, starts, ends, 100)
    transfer = LinkTransfer(kind="upload", bytes=64, start=30, end=94)
    lines = tuple(profile(program, [run]))
    made = trace(Benchmark(program, run.cycles, lines, None, (run,), (transfer,)))
    tracks = check_format(made)
    assert set(tracks) == set(Track) - {Track.WEIGHT_LOAD, Track.WINDOW_READER}
    (upload,) = tracks[Track.LINK]
    assert (upload["ts"], upload["dur"]) == (0, 64)
    assert tracks[Track.LAYERS][0]["ts"] == 70


def test_instructions_are_those_of_the_steps() -> None:
    for target in (TARGET, "ulx3s-12f", "tang-nano-9k"):
        program = compile_file(MODEL, target)
        runs = [step for step in program.steps if isinstance(step, RunStep)]
        for step, run in zip(runs, executed_runs(program), strict=True):
            assert (len(run.matrix), len(run.post)) == step.instructions
        for layer, record in enumerate(program.layers):
            own = [i for run in executed_runs(program) for i in run.matrix if i.layer == layer]
            slots = sum(i.array_cycles for i in own) * program.hardware.macs_per_cycle
            assert (slots >= record.macs) if own else record.macs == 0


def test_instructions_of_other_steps_are_refused() -> None:
    program = compile_file(MODEL, TARGET)
    steps = []
    for step in program.steps:
        if isinstance(step, RunStep):
            step = RunStep(step.pcs, (step.owners[0][1:], *step.owners[1:]))
        steps.append(step)
    object.__setattr__(program, "steps", tuple(steps))
    with pytest.raises(ProgramError, match=r"stream at word \d+ must hold the \d+ instructions"):
        executed_runs(program)


def test_command_writes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"--trace": tmp_path / "trace.json", "--roofline": tmp_path / "roofline.png"}
    arguments = ["bench", str(MODEL), "--target", TARGET, "--json"]
    for option, path in files.items():
        arguments += [option, str(path)]
    with pytest.raises(SystemExit) as ended:
        app(arguments, prog_name="slipstick")
    result = json.loads(capsys.readouterr().out)
    assert not ended.value.code
    assert (result["trace"], result["roofline"]) == tuple(map(str, files.values()))
    check_format(json.loads(files["--trace"].read_text()))
    assert files["--roofline"].read_bytes().startswith(b"\x89PNG")
