"""``slipstick explore``: sweeps, the Pareto front, its picture, and bad options."""

import csv
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from slipstick.cli import explore as explore_module
from slipstick.errors import InputError
from slipstick.examples.digits import MODEL
from slipstick.explore.explorer import Cost, Point, dominates, split_front
from slipstick.explore.plot import draw_front
from slipstick.explore.sweeps import MOST, make_configurations, swept_fields
from slipstick.fpga.area import Area
from slipstick.loading import compile_file
from slipstick.targets import TARGETS
from slipstick_rtl.config import Configuration
from slipstick_rtl.toplevel.registry import find_board

BASE = TARGETS["ulx3s-85f"].configuration
ULX3S_12F, ULX3S_85F = (find_board(f"ulx3s-{size}").part for size in ("12f", "85f"))
SMALL = ("--target", "ulx3s-25f", "--jobs", 2)


def point(lut: int, cycles: int, bram: int = 0, dsp: int = 0) -> Point:
    return Point(CONFIGURATION, Area(lut, 0, dsp, bram), (Cost(cycles, 1),))


CONFIGURATION = Configuration()
FEW = st.integers(1, 5)
TUPLES = st.tuples(FEW, FEW, FEW, FEW)


@given(st.lists(TUPLES, max_size=12))
def test_the_front_is_what_nothing_dominates(sizes: list[tuple[int, int, int, int]]) -> None:
    points = [point(*size) for size in sizes]
    front, dominated = split_front(points)
    assert sorted(map(id, [*front, *dominated])) == sorted(map(id, points))
    for one in front:
        assert not any(dominates(other, one) for other in points)
    for one in dominated:
        assert any(dominates(other, one) for other in front)
    areas, rates = [one.area.lut for one in front], [one.rate for one in front]
    assert areas == sorted(areas) and rates == sorted(rates)


@given(TUPLES, TUPLES)
def test_to_dominate_is_to_be_better_and_nowhere_worse(
    one: tuple[int, ...], other: tuple[int, ...]
) -> None:
    """Tuples of LUTs, cycles, block RAMs and DSP blocks, by which ties are decided."""
    nowhere_worse = one[0] <= other[0] and one[1] <= other[1]
    wanted = one[2:] < other[2:] if one[:2] == other[:2] else nowhere_worse
    assert dominates(point(*one), point(*other)) == wanted


def test_rates_are_averaged_geometrically() -> None:
    one = Point(Configuration(clock_hz=8_000), Area(1, 0, 0, 0), (Cost(2_000, 1), Cost(500, 1)))
    assert one.rates == (4.0, 16.0) and one.rate == pytest.approx(8.0)
    assert dataclasses.replace(one, costs=(), problem="too large").rate == 0.0


def test_a_sweep_of_a_small_network(slipstick, tmp_path: Path) -> None:
    picture = tmp_path / "new" / "front.png"
    options = ("--rows", "4,8", "--columns", "4, 8,8", "--lanes", "4,8", "--clock", 120)
    status, out, err = slipstick(
        "explore", MODEL, *SMALL, *options, "--weight-bytes", "4k,16K,1M", "-o", picture, "--json",
        "--csv", tmp_path / "csv" / "points.csv",
    )  # fmt: skip
    result = json.loads(out)
    assert status == 0 and not err and out.count("\n") == 1
    assert result["swept"]["weight_bytes"] == [4096, 16384, 1 << 20]
    assert (result["clock_mhz"], result["clock_is"], result["part"]) == (120, "given", "LFE5U-25F")
    # with 8 lanes 4 x 4, 4 x 8 and 8 x 4 are against the law
    assert result["skipped_count"] == len(result["skipped"]) == 3 * 3
    assert all(re.search("lanes must be at most", entry["law"]) for entry in result["skipped"])
    made = [*result["front"], *result["dominated"], *result["infeasible"]]
    assert len(made) == 5 * 3 == len({entry["fingerprint"] for entry in made})
    problems = [entry["problem"] for entry in result["infeasible"]]
    assert any(re.search("needs .* of 56 bram", problem) for problem in problems)
    assert any(re.search("digits.*: the weight memory must hold", problem) for problem in problems)
    fast = result["front"][-1]
    program = compile_file(MODEL, Configuration.from_dict(fast["configuration"]))
    (cost,) = fast["networks"]
    assert cost["predicted_cycles"] == program.predicted_cycles
    assert fast["inferences_per_second"] == pytest.approx(120e6 / program.predicted_cycles)
    assert 0 < cost["utilisation"] < 1
    check_csv_rows(tmp_path / "csv" / "points.csv", made)
    with Image.open(picture) as image:
        assert image.format == "PNG" and min(image.size) > 500
        colours = image.convert("RGB").getcolors(1 << 20)
    assert colours is not None and len(colours) > 50


def check_csv_rows(path: Path, made: list[dict]) -> None:
    """The CSV has the configurations of the JSON, in its order."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["fingerprint"] for row in rows] == [entry["fingerprint"] for entry in made]
    for row, entry in zip(rows, made, strict=True):
        assert row["result"] in ("front", "dominated", "infeasible")
        assert (row["problem"] or None) == entry["problem"]
        assert int(row["lut"]) == entry["lut"]
        assert int(row["weight_bytes"]) == entry["configuration"]["weight_bytes"]
        cycles = [str(network["predicted_cycles"]) for network in entry["networks"]]
        assert [row[f"{MODEL.stem} predicted_cycles"]] == (cycles or [""])


def test_tables_show_the_front_first(
    slipstick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    simulated = []

    def measure(program: object) -> SimpleNamespace:
        simulated.append(program)
        return SimpleNamespace(cycles=10_000)

    monkeypatch.setattr(explore_module, "measure", measure)
    options = ("--rows", "4,8,16,20", "--columns", 8, "--lanes", "4", "--simulate")
    status, out, err = slipstick("explore", MODEL, MODEL, *SMALL, *options)
    assert status == 0 and not err
    lines = out.splitlines()
    marks = [line.split("│")[1].strip() for line in lines if re.search("│ 1x(4|8|16)x8 .*│", line)]
    feasible = [mark for mark in marks if mark in ("front", "")]
    assert feasible == sorted(feasible, reverse=True) and feasible[0] == "front"
    assert len(simulated) == 2 * feasible.count("front")
    assert "RTL simulated" in out and "10,000" in out
    assert "1 cannot be made: rows must be a power of two, or three times one, not 20" in out
    assert (tmp_path / "build" / "explore.png").stat().st_size > 10_000


def test_where_nothing_fits_there_is_no_picture(slipstick, tmp_path: Path) -> None:
    picture = tmp_path / "front.png"
    arguments = ("explore", MODEL, "--weight-bytes", "4K", "--part", "LFE5U-12F", "-o", picture)
    status, out, err = slipstick(*arguments)
    assert status == 1 and not err and not picture.exists()
    assert "Infeasible on LFE5U-12F" in out and "of 28 dsp" in out
    assert json.loads(slipstick(*arguments, "--json")[1])["output"] is None


BAD = {
    "no network": (("none.tflite",), "none.tflite must be a file, but is not there"),
    "damaged": (("junk.tflite",), "junk.tflite must be a TFLite file"),
    "a program": (("junk.slip",), "junk.slip is a compiled program"),
    "no model": ((), "Missing argument"),
    "target": ((MODEL, "-t", "tiny"), "target must be one of .* not 'tiny'"),
    "engine": ((MODEL, "-t", "icebreaker"), "--target must have .* icebreaker has not"),
    "part": ((MODEL, "--part", "iCE40UP5K"), "--part must be one of LFE5U-12F, .* 'iCE40UP5K'"),
    "clock": ((MODEL, "--clock", "nan"), "--clock must be within 1..10000 MHz, not nan"),
    "stopped": ((MODEL, "--clock", "0"), "--clock must be within 1..10000 MHz, not 0"),
    "jobs": ((MODEL, "--jobs", 0), "--jobs must be at least 1, not 0"),
    "many jobs": ((MODEL, "-j", "many"), "'--jobs'"),
    "list": ((MODEL, "--rows", "4,,8"), "--rows must be a comma list of whole .* not '4,,8'"),
    "negative": ((MODEL, "--lanes", "-4"), "--lanes must be a comma list of whole .* not '-4'"),
    "names": ((MODEL, "--multiplier", "lut,"), "--multiplier must be a comma list of names not"),
    "unlawful": ((MODEL, "--rows", "5,7"), "none of 2 .* rows must be a power of two.* not 5"),
    "unknown name": ((MODEL, "--multiplier", "abacus"), "multiplier must be one of .* 'abacus'"),
    "field": ((MODEL, "--number-format", "int8"), "No such option: --number-format"),
    "too many": (
        (MODEL, *(item for name in ("rows", "columns", "lanes") for item in (
            f"--{name}", ",".join(map(str, range(17)))))),
        f"at most {MOST:,} configurations, not 4,913",
    ),
    "picture": ((MODEL, "-o", "front.svg"), "--output must be a .png file, not front.svg"),
    "folder": ((MODEL, "-o", "junk.slip/front.png"), "junk.slip"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_one_sentence(
    slipstick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "junk.tflite").write_bytes(b"hello world, no network")
    (tmp_path / "junk.slip").write_bytes(b"SLIP, but no program")
    arguments, message = BAD[case]
    status, out, err = slipstick("explore", *arguments)
    assert status == 2 and not out
    assert err.startswith("slipstick: ") and err.count("\n") == 1
    assert re.search(message, err), err


def test_fields_that_are_not_given_follow_the_array() -> None:
    values = {"rows": (4, 16), "columns": (8, 16)}
    made, skipped = make_configurations(BASE, values, ULX3S_85F)
    assert not skipped and [c.shape for c in made] == ["1x4x8", "1x4x16", "1x16x8", "1x16x16"]
    assert all(c.lanes == min(BASE.lanes, c.rows, c.columns) for c in made)
    assert all(c.weight_bytes == BASE.weight_bytes for c in made)
    # the base itself is left as it is
    own = {"rows": (BASE.rows,), "columns": (BASE.columns,)}
    assert make_configurations(BASE, own, ULX3S_85F) == ([BASE], [])
    (tiny,), _ = make_configurations(BASE, {"rows": (8,), "columns": (8,)}, ULX3S_12F)
    (large,), _ = make_configurations(BASE, {"rows": (8,), "columns": (8,)}, ULX3S_85F)
    assert tiny.element_multipliers <= large.element_multipliers


def test_what_is_given_is_not_changed() -> None:
    kinds = swept_fields()
    assert kinds["rows"] is int and kinds["multiplier"] is str and "engine" not in kinds
    values = {"lanes": (4, 64), "rows": (8,)}
    (made,), (skipped,) = make_configurations(BASE, values, ULX3S_85F)
    assert made.lanes == 4 and skipped.fields == {"lanes": 64, "rows": 8}
    assert make_configurations(BASE, {}, ULX3S_85F) == ([BASE], [])


def test_a_picture_needs_a_front(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least one configuration that is feasible"):
        draw_front(tmp_path / "no.png", [], [], [], title="", caption="")
    many = [point(1_000 + number, 10_000 - number) for number in range(99)]
    labels = [f"configuration {number}" for number in range(99)]
    draw_front(tmp_path / "many.png", many, [point(2_000, 90_000)], labels, title="", caption="")
    assert (tmp_path / "many.png").stat().st_size > 10_000


def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    sizes = ",".join(str(1 << power) for power in range(10, 18))
    # whoever runs the tests in the background may ignore interrupts, and what it starts does too
    command = ["env", "--default-signal=INT", sys.executable, "-m", "slipstick", "explore"]
    command += [str(MODEL), "--jobs", "2"]
    command += ["--rows", "4,8,16", "--columns", "4,8,16", "--activation-bytes", sizes]
    command += ["--accumulator-depth", "16,32,64,128,256,512,1024", "-o", str(tmp_path / "x.png")]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    try:
        # the workers and what keeps track of their semaphores
        while running.poll() is None and len(children.read_text().split()) < 3:
            time.sleep(0.05)
        signal_all = ["kill", "-INT", "--", f"-{running.pid}"]
        subprocess.run(signal_all, check=True)
        out, err = running.communicate(timeout=90)
    finally:
        if running.poll() is None:
            # a test that fails must leave neither processes nor pipes to the next one
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
    assert (running.returncode, out, err) == (128 + signal.SIGINT, "", "")
