"""``slipstick compile`` for several boards: ``--pipeline``, ``--split`` and ``--boards``."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import console
from ..compiler.stages.choose import Choice, Single, choose, fastest_single
from ..compiler.stages.pipeline import PipelinePlan, Stage, plan_pipeline, whole_programs
from ..compiler.stages.split import SplitPlan, count_exchanges, moved_bytes, plan_split
from ..compiler.stages.staged_program import Division
from ..errors import InputError, ModelError
from ..frontends import load
from ..frontends.semantics import with_semantics
from ..graph import Graph
from ..loading import is_program
from ..program import Program
from ..program.slip_file import encode, write_file
from ..runtime.stages.board_time import BoardTime, batch_traffic, board_of
from ..runtime.stages.stage_files import SUFFIX, write_stages
from ..targets import find_target

_MOST_BOARDS = 64


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Arguments of the command line.

    Parameters
    ----------
    model : Path
    pipeline, split, boards : str, optional
        Names of targets, with commas between; one of the three is there.
    wire : str, optional
        Between the host and each board.
    semantics : str, optional
    output : Path, optional
    options : dict
        Of ``compile_graph``.
    """

    model: Path
    pipeline: str | None
    split: str | None
    boards: str | None
    wire: str | None
    semantics: str | None
    output: Path | None
    options: dict[str, Any]


def compile_for_boards(asked: Asked, *, json: bool) -> None:
    """Divides a network among boards, prints how, and writes the program of each board.

    Raises
    ------
    SlipstickError
        If a target is unknown, options do not go together, or the network cannot be divided.
    """
    option, names = _targets(asked)
    boards = [board_of(find_target(name), asked.wire) for name in names]
    if asked.output is not None and option == "--split":
        raise InputError(
            "--output is for one board or for --pipeline: the parts of a split network are"
            " compiled when a session opens device split:D1,D2,..."
        )
    graph = _graph(asked)
    with console.waiting(f"dividing {graph.name} among {len(boards)} boards"):
        found = _plan(option, graph, boards, asked.options)
    result = {
        "model": str(asked.model),
        "semantics": graph.semantics,
        **_entry(found),
        "output": _written(asked.output, found),
    }
    if json:
        console.print_json(result)
    else:
        _show(graph.name, result)


def _targets(asked: Asked) -> tuple[str, list[str]]:
    """The option that was given, and its targets."""
    ways = {"--pipeline": asked.pipeline, "--split": asked.split, "--boards": asked.boards}
    given = {option: text for option, text in ways.items() if text is not None}
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} do not go together: give one of them")
    ((option, text),) = given.items()
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise InputError(f"{option} must be targets with commas between, not {text!r}")
    if not 2 <= len(names) <= _MOST_BOARDS:
        raise InputError(f"{option} must be 2 to {_MOST_BOARDS} targets, not {len(names)}: {text}")
    return option, names


def _graph(asked: Asked) -> Graph:
    if is_program(asked.model):
        raise ModelError(f"{os.fspath(asked.model)} is a compiled program already, not a network")
    return with_semantics(load(asked.model), asked.semantics)


@dataclass(frozen=True)
class _Found:
    """The way that is taken, and what it is compared with."""

    way: PipelinePlan | SplitPlan | Single
    single: Single
    choice: Choice | None = None


def _plan(
    option: str, graph: Graph, boards: Sequence[BoardTime], options: dict[str, Any]
) -> _Found:
    if option == "--boards":
        choice = choose(graph, boards, options=options)
        ways = {Division.PIPELINE: choice.pipeline, Division.SPLIT: choice.split}
        chosen = None if choice.division is None else ways[choice.division]
        return _Found(chosen or choice.single, choice.single, choice)
    if option == "--split":
        split = plan_split(graph, boards, options=options)
        return _Found(split, fastest_single(boards, whole_programs(graph, boards, options)))
    pipeline = plan_pipeline(graph, boards, options=options)
    return _Found(pipeline, fastest_single(boards, pipeline.wholes))


def _written(output: Path | None, found: _Found) -> list[str] | str | None:
    """Writes the programs; returns the files' names."""
    match found.way:
        case _ if output is None:
            return None
        case PipelinePlan(program=program):
            return [str(path) for path in write_stages(output, program)]
        case Single(program=program):
            write_file(output, encode(program))
            return str(output)
        case SplitPlan():
            raise InputError(
                "--output: to split the layers is fastest, and such parts cannot be files; give"
                " --pipeline or --target to have files of another way"
            )


def _entry(found: _Found) -> dict[str, Any]:
    way, single = found.way, found.single
    result: dict[str, Any] = {
        "one_board": {
            "target": single.board.name,
            "inferences_per_second": 1 / single.seconds,
            "predicted_cycles": single.program.predicted_cycles,
            "streamed": single.program.is_streamed,
            "wire": _wire(single.board),
        },
        "inferences_per_second": 1 / way.seconds,
        "speed_up": single.seconds / way.seconds,
    }
    match way:
        case PipelinePlan():
            result = {"division": "pipeline", **result, **_pipeline_entry(way)}
        case SplitPlan():
            result = {"division": "split", **result, **_split_entry(way)}
        case Single():
            result = {"division": "one board", **result}
    if found.choice is not None:
        result["ways"] = _ways(found.choice)
        result["why"] = _why(found.choice)
    return result


def _pipeline_entry(plan: PipelinePlan) -> dict[str, Any]:
    return {
        "latency_seconds": sum(stage.seconds for stage in plan.stages),
        "bytes_per_inference": sum(_moved(stage.program) for stage in plan.stages),
        "stages": [_stage_entry(number, stage) for number, stage in enumerate(plan.stages, 1)],
    }


def _moved(program: Program) -> float:
    traffic = batch_traffic(program)
    return traffic.loaded + traffic.uploaded + traffic.downloaded


def _stage_entry(number: int, stage: Stage) -> dict[str, Any]:
    program = stage.program
    hertz = program.hardware.clock_hz
    traffic = batch_traffic(program)
    layers = program.layers
    return {
        "stage": number,
        "target": stage.board.name,
        "fingerprint": program.fingerprint,
        "wire": _wire(stage.board),
        "layers": [layer.name for layer in layers],
        "host_layers": [layer.name for layer in layers if layer.where == "host"],
        "predicted_cycles": program.predicted_cycles,
        "core_seconds": program.predicted_cycles / hertz,
        "seconds": stage.seconds,
        "bound_by": "core" if stage.seconds <= 1.02 * program.predicted_cycles / hertz else "wire",
        "weight_bytes": stage.weights,
        "streamed": program.is_streamed,
        "received_bytes": stage.received,
        "sent_bytes": stage.sent,
        "loaded_bytes": traffic.loaded,
        "uploaded_bytes": traffic.uploaded,
        "downloaded_bytes": traffic.downloaded,
    }


def _split_entry(plan: SplitPlan) -> dict[str, Any]:
    return {
        "latency_seconds": plan.seconds,
        "core_seconds": plan.core_seconds,
        "bytes_per_inference": plan.moved_bytes,
        "exchanges": plan.exchanges,
        "divided_layers": list(plan.layers),
        "stages": [
            {
                "stage": number,
                "target": board.name,
                "fingerprint": program.fingerprint,
                "wire": _wire(board),
                "predicted_cycles": program.predicted_cycles,
                "weight_bytes": weights,
                "streamed": program.is_streamed,
                "exchanges": count_exchanges(program),
                "bytes_per_inference": moved_bytes(program),
            }
            for number, (board, program, weights) in enumerate(
                zip(plan.boards, plan.program.stages, plan.weights, strict=True), 1
            )
        ],
    }


def _ways(choice: Choice) -> list[dict[str, Any]]:
    plans = {
        "one board": choice.single,
        str(Division.PIPELINE): choice.pipeline,
        str(Division.SPLIT): choice.split,
    }
    refused = {str(way): reason for way, reason in choice.refused.items()}
    return [
        {
            "way": way,
            "inferences_per_second": None if plan is None else 1 / plan.seconds,
            "refused": refused.get(way),
        }
        for way, plan in plans.items()
    ]


def _why(choice: Choice) -> str:
    """Says in one sentence why a way was chosen."""
    single = choice.single
    rates = [
        f"{entry['way']} {entry['inferences_per_second']:,.1f}"
        for entry in _ways(choice)
        if entry["inferences_per_second"] is not None
    ]
    reasons = [f"predicted images per second: {', '.join(rates)}"]
    if single.program.is_streamed:
        loaded = batch_traffic(single.program).loaded
        reasons.append(f"one board has to load {loaded:,.0f} bytes per image of a batch")
    if choice.split is not None:
        reasons.append(
            f"a split moves {choice.split.moved_bytes:,} bytes in {choice.split.exchanges}"
            " exchanges per image, and computes nothing meanwhile"
        )
    reasons += [f"{way}: {reason}" for way, reason in choice.refused.items()]
    return "; ".join(reasons)


def _wire(board: object) -> str | None:
    wire = board.wire if isinstance(board, BoardTime) else None
    return None if wire is None else wire.name


_COLUMNS = {
    "stage": "right",
    "target": "left",
    "wire": "left",
    "layers": "right",
    "cycles": "right",
    "ms": "right",
    "bound by": "left",
    "weights, bytes": "right",
    "loaded per image": "right",
    "bytes in": "right",
    "bytes out": "right",
}
_SPLIT_COLUMNS = {
    "board": "right",
    "target": "left",
    "wire": "left",
    "cycles": "right",
    "weights, bytes": "right",
    "bytes moved": "right",
}
_NO_WIRE = "none: a byte per cycle"


def _show(name: str, result: dict[str, Any]) -> None:
    one = result["one_board"]
    alone = (
        f"one {one['target']} alone {'streams it' if one['streamed'] else 'holds it'} at"
        f" {one['inferences_per_second']:,.1f}"
    )
    rate, times = result["inferences_per_second"], result["speed_up"]
    if result["division"] == "pipeline":
        rows = [
            [
                stage["stage"],
                stage["target"],
                stage["wire"] or _NO_WIRE,
                len(stage["layers"]),
                stage["predicted_cycles"],
                f"{stage['seconds'] * 1e3:.3g}",
                stage["bound_by"],
                stage["weight_bytes"],
                round(stage["loaded_bytes"]),
                stage["received_bytes"],
                stage["sent_bytes"],
            ]
            for stage in result["stages"]
        ]
        console.print_table(
            f"{name} as a pipeline of {len(rows)} boards, predicted per image",
            _COLUMNS,
            rows,
            f"{rate:,.1f} images per second, {times:.2f} times as many as {alone};"
            f" {result['latency_seconds'] * 1e3:.3g} ms from the first stage to the last"
            f"{_host_layers(result['stages'])}",
        )
    elif result["division"] == "split":
        rows = [
            [
                stage["stage"],
                stage["target"],
                stage["wire"] or _NO_WIRE,
                stage["predicted_cycles"],
                stage["weight_bytes"],
                stage["bytes_per_inference"],
            ]
            for stage in result["stages"]
        ]
        console.print_table(
            f"{name} split over {len(rows)} boards, predicted per image",
            _SPLIT_COLUMNS,
            rows,
            f"{len(result['divided_layers'])} layers are divided; {result['exchanges']} exchanges"
            f" and {result['bytes_per_inference']:,} bytes moved per image;"
            f" {result['latency_seconds'] * 1e3:.3g} ms, {rate:,.1f} images per second,"
            f" {times:.2f} times as many as {alone}",
        )
    else:
        console.print_line(f"{name}: {alone} images per second")
    if "why" in result:
        console.print_line(f"Chosen: {result['division']}; {result['why']}")
    if isinstance(result["output"], list):
        console.print_line(
            f"Written to {', '.join(result['output'])}; run the {SUFFIX} file on device"
            f" pipeline:D1,D2,..."
        )
    elif result["output"] is not None:
        console.print_line(f"Written to {result['output']}")


def _host_layers(stages: Sequence[dict[str, Any]]) -> str:
    """Says which stages have layers of the host."""
    found = [f"{len(s['host_layers'])} in stage {s['stage']}" for s in stages if s["host_layers"]]
    return f"; layers that the host runs: {', '.join(found)}" if found else ""
