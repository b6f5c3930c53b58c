"""The price list: what is measured, the report, the errors, the table, the picture, bad input."""

import csv
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lns_networks import every_layer
from pretended_tools import SYNTHESIS, placement, pretend
from slipstick.asic.areas import BlockArea
from slipstick.asic.power import BlockPower
from slipstick.cli import app
from slipstick.data.inputs import Samples
from slipstick.errors import InputError
from slipstick.program import Program
from slipstick.studies.price_list import core as price_core
from slipstick.studies.price_list import list as price_list
from slipstick.studies.price_list import measures as price_measures
from slipstick.studies.price_list.errors import conversion_errors, errors, product_errors
from slipstick.studies.price_list.kinds import KINDS, Kind
from slipstick.studies.price_list.layouts import (
    LAYOUT_COLUMNS,
    layout_cells,
    layouts,
    worst_share,
)
from slipstick.studies.price_list.list import Measurement, PriceReport, measurements, wanted
from slipstick.studies.price_list.picture import draw_prices
from slipstick.studies.price_list.table import (
    COLUMNS,
    CORE_COLUMNS,
    accuracies,
    cells,
    core_cells,
    rows,
)
from slipstick.targets import find_target
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic
from slipstick_rtl.numbers.lns.formats import Lns

pytestmark = pytest.mark.borrows

ACCURACY = {
    "networks": [
        {
            "network": name,
            "int8_percent": 87.5,
            "formats": [{"format": "lns1+3+4", "accuracy_percent": percent}],
        }
        for name, percent in (("ResNet-8", 86.5), ("MNIST CNN", 98.25))
    ]
}


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        app(["study", "price-list", *arguments])
    return int(ended.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a folder to work in, with tools that pretend."""
    monkeypatch.chdir(tmp_path)
    broken = "print('Info: TRELLIS_COMB: 50000/24288   205%')\nsys.exit(1)"
    pretend(tmp_path / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=broken)
    return tmp_path


def measured(kind: str, **figures: Any) -> Measurement:
    """One that has been made."""
    return Measurement("element", kind, lambda folder: figures)


def test_there_is_a_row_for_every_width() -> None:
    for sums in ("linear", "log"):
        widths = {kind.bits for kind in KINDS.values() if kind.sums == sums}
        assert widths >= set(range(5, 12 if sums == "linear" else 17))
    assert [kind.name for kind in KINDS.values() if kind.lns is None] == [
        "int8 packed",
        "int8 plain",
        "int8 lut",
    ]


def test_products_err_as_every_pair_of_codes_does() -> None:
    for name in ("lns1+3+3", "lns1+4+2"):
        arithmetic = ArrayArithmetic(Lns.parse(name))
        lns = arithmetic.lns
        code = np.arange(1, lns.largest_code + 1)
        product = arithmetic.multiply(code[:, None], code[None, :]) * arithmetic.unit
        exact = code[:, None] + code[None, :]
        kept = product > 0
        error = np.abs(np.log2(product[kept]) * 2**lns.fraction_bits - exact[kept])
        found = product_errors(arithmetic)
        assert found["product_worst_ulp"] == pytest.approx(error.max(), abs=1e-3)
        assert found["product_mean_ulp"] == pytest.approx(error.mean(), abs=1e-3)
        share = 100 * (~kept).mean()
        assert found["products_cut_to_zero_percent"] == pytest.approx(share, abs=0.01)


def test_sums_err_as_documented() -> None:
    # docs/explanation/lns.md, and the requantiser's bound
    found = errors(KINDS["lns1+3+4 log sums"])
    assert found["sum_worst_ulp"] == 0.495 and found["product_worst_ulp"] == 0
    assert errors(KINDS["lns1+6+7 log sums"])["sum_worst_ulp"] == 0.765
    assert 0.5 < conversion_errors(ArrayArithmetic(Lns(3, 4)))["sum_worst_ulp"] < 0.61
    mixed = errors(KINDS["int8 x lns1+3+1"])
    assert mixed["sum_worst_ulp"] == mixed["products_cut_to_zero_percent"] == 0
    assert mixed["product_worst_ulp"] == round(1 - 2 * math.log2(1.375), 3)
    # three places are cut: of 1 times 2^1 and 2^2, 2 times 2^1, 3 times 2^1 nothing is left
    cut = errors(KINDS["int8 x lns1+4+0"])
    assert cut["products_cut_to_zero_percent"] == round(100 * 4 / (128 * 15), 2)
    with pytest.raises(TypeError, match="int8 lut has no logarithmic format"):
        errors(KINDS["int8 lut"])


def test_pieces_have_every_kind_of_element() -> None:
    for name, elements in {
        "int8 packed": 8,
        "lns1+3+4": 4,
        "int8 x lns1+3+1": 4,
        "lns1+4+6": 4,
    }.items():
        assert KINDS[name].column(4).elements == elements
    piece = KINDS["lns1+5+6 log sums"].array(4)
    assert piece.elements == 16 and len(piece.outputs) == 4
    for name in ("lns1+4+6", "int8 x lns1+3+1"):
        with pytest.raises(ValueError, match=f"no core has an array of {re.escape(name)}"):
            KINDS[name].array(4)


def test_a_column_is_synthesised_and_an_array_placed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = KINDS["lns1+2+2 log sums"]
    # three carries of two look-up tables each, of sixteen elements
    assert price_measures.element(kind, folder / "element")["lut"] == round(3 * 2 / 16, 2)
    overfull = price_measures.column(kind, folder / "column")
    assert overfull["does_not_fit"] == "50,000 of 24,288 TRELLIS_COMB"
    pretend(folder / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=placement(luts=321))
    found = price_measures.array(kind, folder / "array", side=2)
    assert (found["shape"], found["device"]) == ("2x2", "LFE5U-45F")
    assert (found["lut"], found["fmax_mhz"]) == (321, 104.26)
    unit = price_measures.unit(Lns(3, 4), folder / "unit", compensated=False)
    assert unit["own"]["lut"] == 6 and unit["device"] == "LFE5U-25F"


def test_an_element_in_standard_cells(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[str] = []

    def implement(rtlil: str, *arguments: Any, **options: Any) -> Any:
        given.append(rtlil)
        timing = SimpleNamespace(period_ns=1.2346)
        return SimpleNamespace(cell_area=1600.0, timing=timing)

    monkeypatch.setattr(price_measures, "implement", implement)
    monkeypatch.setattr(price_measures, "find_pdk", lambda name: name)
    found = price_measures.gates(KINDS["lns1+2+2"], folder)
    assert found == {"rows": 16, "pdk": "gscl45", "um2": 100.0, "period_ns": 1.235}
    # no FPGA's own cells
    assert "TRELLIS" not in given[0] and "LUT4" not in given[0]


def test_a_core_in_standard_cells(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are told by the names of blocks."""
    blocks = (
        BlockArea("", count=1, cell_area=100.0),
        BlockArea("matrix.array", count=1, cell_area=300.0),
        BlockArea("matrix.array.element_*_*", count=256, cell_area=25600.0, memory_area=7.0),
    )
    powers = (BlockPower("", 1.0), BlockPower("matrix.array.element_*_*", 3.0))
    cells_power = SimpleNamespace(
        blocks=powers, dynamic_mw=4.0, leakage_mw=0.5, matched=9, sources=10
    )

    def implement(rtlil: str, pdk: str, folder: Path) -> Any:
        timing = SimpleNamespace(period_ns=2.0)
        area = sum(block.cell_area for block in blocks)
        return SimpleNamespace(blocks=blocks, timing=timing, cell_area=area, memory_area=7.0)

    def energy(done: Any, program: Program, samples: Samples) -> Any:
        assert program.hardware.number_format == "lns1+2+2" and len(samples) == 1
        return SimpleNamespace(
            program=SimpleNamespace(macs=1000),
            cycles=500,
            seconds=1e-6,
            cells=cells_power,
            memories_uj=0.002,
            outputs=(0.25, 0.75),
        )

    monkeypatch.setattr(price_core, "implement", implement)
    monkeypatch.setattr(price_core, "find_pdk", lambda name: name)
    monkeypatch.setattr(price_core, "core_rtlil", lambda target: "")
    monkeypatch.setattr(price_core, "inference_energy", energy)
    x = np.zeros((1, 6, 6, 5), np.float32)
    network = every_layer("lns1+2+2")
    target = KINDS["lns1+2+2"].core_target
    assert target == "sim-lns1+2+2"
    found = price_core.core(find_target(target), network, Samples(x, ("x",)), folder / "core")
    assert (found["element_um2"], found["array_um2"], found["cells_um2"]) == (100, 25900, 26000)
    assert (found["element_pj"], found["cells_pj"], found["dynamic_uj"]) == (3.0, 4.0, 0.004)
    assert found["first_output"] == [0.25, 0.75]
    # twice as slow: twice the leakage
    assert price_core.slowest_seconds([found, {**found, "cycles": 1000}]) == pytest.approx(2e-6)
    assert price_core.inference_uj(found, 2e-6) == pytest.approx(0.004 + 0.002 + 0.001)


def test_cores_are_compared_at_the_slowest_ones_rate(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = PriceReport()
    figures = {
        "element_um2": 2000.0,
        "array_um2": 6e5,
        "cells_um2": 1e6,
        "memories_um2": 6e6,
        "period_ns": 2.0,
        "cycles": 50_000,
        "element_pj": 3.0,
        "array_pj": 5.0,
        "cells_pj": 8.0,
        "dynamic_uj": 90.0,
        "leakage_mw": 50.0,
        "memories_uj": 25.0,
    }
    narrow = {**figures, "element_um2": 1000.0, "period_ns": 1.0, "dynamic_uj": 60.0}
    for kind, own in (("int8 plain", figures), ("lns1+3+4", narrow)):
        report.record(Measurement("core", kind, lambda folder: {}), own)
    (folder / "lns_accuracy.json").write_text(json.dumps(ACCURACY))
    int8, lns = core_cells(rows(report, accuracies(folder)))
    assert len(int8) == len(lns) == len(CORE_COLUMNS)
    # both leak for 100 us
    assert (int8[10], lns[10]) == ("120.0", "90.0")
    assert int8[-4:] == ["1.00"] * 4 and lns[-4:] == ["0.50", "1.00", "1.00", "0.75"]
    assert lns[12] == "86.5"
    assert run() == 0
    # no heading is lost
    assert capsys.readouterr().out.count("core's") >= 2
    # nothing to compare with
    alone = PriceReport(folder / "alone.json")
    alone.record(Measurement("core", "lns1+3+4", lambda folder: {}), narrow)
    assert core_cells(rows(alone, {}))[0][-4:] == ["–"] * 4


def test_an_array_that_no_part_has_room_for_is_not_placed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"lut": 4000, "ff": 10, "dsp": 15, "bram": 0}
    monkeypatch.setattr(price_measures, "synthesise", lambda *arguments: found)
    measured = price_measures.array(KINDS["lns1+6+8 log sums"], folder, side=16)
    assert measured["device"] == "LFE5U-85F"
    assert measured["does_not_fit"] == "240 of 156 dsp"


def test_an_array_that_nearly_fills_a_part_goes_to_a_larger_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[str] = []
    for luts in (1900, 2000):
        found = {"lut": luts, "ff": 10, "dsp": 0, "bram": 0}
        monkeypatch.setattr(price_measures, "synthesise", lambda *arguments, f=found: f)
        monkeypatch.setattr(
            price_measures, "routed", lambda piece, part, folder: placed.append(part.device) or {}
        )
        # sixteen columns of it
        price_measures.array(KINDS["lns1+2+2 log sums"], folder, side=16)
    assert placed == ["LFE5U-45F", "LFE5U-85F"]


def test_only_what_is_missing_is_measured(folder: Path) -> None:
    report = PriceReport()
    report.record(measured("lns1+3+4", lut=80.0), {"lut": 80.0})
    names = ["int8 lut", "lns1+3+4"]
    todo = wanted(report, ["element", "array"], names, only_missing=True, side=8)
    keys = [each.key for each in todo]
    assert keys == ["element int8 lut", "array 8x8 int8 lut", "array 8x8 lns1+3+4"]
    assert todo[1].command.endswith("--measure array --kind 'int8 lut' --side 8")
    assert len(wanted(report, ["element"], names, only_missing=False)) == 2
    # arrays of formats that no core has are none
    assert "lns1+4+6" not in {each.name for each in measurements("array")}
    cores = {each.name for each in measurements("core")}
    assert {"int8 plain", "lns1+3+4"} < cores
    assert not cores & {"int8 lut", "lns1+4+6", "lns1+3+4 log sums"}


def test_measurements_of_two_processes_are_kept(folder: Path) -> None:
    first, second = PriceReport(), PriceReport()
    first.record(measured("lns1+3+4"), {"lut": 80.0})
    second.record(measured("int8 lut"), {"lut": 93.8})
    found = json.loads(price_list.REPORT.read_text())["measurements"]
    assert list(found) == ["element int8 lut", "element lns1+3+4"]
    entry = found["element int8 lut"]
    assert entry["command"] == "slipstick study price-list --measure element --kind 'int8 lut'"
    assert entry["date"].startswith("20") and entry["versions"]["yosys"] == "9.1-2"


def test_the_command_measures_shows_and_draws(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--measure", "errors", "--kind", "lns1+3+4", "--json") == 0
    (entry,) = [
        row for row in json.loads(capsys.readouterr().out)["rows"] if row["kind"] == "lns1+3+4"
    ]
    assert entry["errors"]["product_worst_ulp"] == 1.033 and entry["element"] == {}
    report = PriceReport()
    for kind, lut in (("lns1+3+4", 80.4), ("int8 lut", 93.8)):
        report.record(measured(kind), {"lut": lut, "ff": 92.1, "dsp": 0.0, "bram": 0.0})
    (folder / "reports" / "lns_accuracy.json").write_text(json.dumps(ACCURACY))
    page = folder / "docs" / "reference" / "price-list.md"
    plot = folder / "docs" / "images" / "prices.png"
    table = folder / "prices.csv"
    assert run("--plot", str(plot), "--markdown", str(page), "--csv", str(table)) == 0
    assert "lns1+3+4" in capsys.readouterr().out
    with open(table, newline="") as file:
        written = {row["kind"]: row for row in csv.DictReader(file)}
    assert list(written) == list(KINDS) and written["lns1+3+4"]["element lut"] == "80.4"
    assert written["lns1+4+6"]["element lut"] == ""
    assert plot.read_bytes().startswith(b"\x89PNG")
    text = page.read_text()
    assert "(../images/prices.png)" in text
    missing = "– | " * 9
    assert f"| lns1+3+4 | 8 | 80.4 | 92.1 | 0.0 | 0.0 | {missing}1.03 / 0.07 |" in text
    assert "| 86.5 | 98.25 |" in text


def test_cells_tell_what_is_missing_from_what_there_is_not(folder: Path) -> None:
    report = PriceReport()
    array = Measurement("array", "lns1+6+8 log sums", lambda folder: {})
    report.record(array, {"device": "LFE5U-85F", "does_not_fit": "240 of 156 dsp"})
    found = {row.kind.name: cells(row) for row in rows(report, accuracies(folder))}
    assert all(len(row) == len(COLUMNS) for row in found.values())
    place = COLUMNS.index("16x16 LUT")
    assert found["lns1+3+4"][place] == "–" and found["lns1+4+6"][place] == "none"
    assert found["lns1+6+8 log sums"][place] == "too large: 240 of 156 dsp"
    assert found["int8 lut"][COLUMNS.index("sum, ulp")] == "exact"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--measure", "weight"), "--measure must be one of errors, element, column, gates, power"),
        (("--kind", "lns1+9+9"), "--kind must be one of"),
        (("--measure", "array", "--kind", "lns1+4+6"), "not 'lns1+4+6'"),
        (("--side", "1"), "--side must be at least 2, not 1"),
        (("--plot", "prices.jpg"), "--plot must be a .png file, not prices.jpg"),
        (("--plot", "prices.png"), "needs an element with its area and its accuracy"),
        (("--report", "broken.json"), "broken.json is not a report of prices"),
    ],
)
def test_bad_input_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    (folder / "broken.json").write_text("[]")
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1 and message in captured.err


def test_a_broken_report_of_accuracies_is_named(folder: Path) -> None:
    (folder / "lns_accuracy.json").write_text("{}")
    with pytest.raises(InputError, match=r"lns_accuracy\.json is not a report of accuracies"):
        accuracies(folder)


def test_an_element_beside_others_is_named_with_its_blocks(folder: Path) -> None:
    report = PriceReport()
    report.record(measured("int8 packed"), {"lut": 34.0, "dsp": 0.5, "bram": 0.0})
    (folder / "lns_accuracy.json").write_text(json.dumps(ACCURACY))
    found = rows(report, accuracies(folder))
    draw_prices(folder / "one.png", found)
    one = (folder / "one.png").stat().st_size
    assert one > 10_000
    gates = Measurement("gates", "int8 packed", lambda folder: {})
    report.record(gates, {"um2": 900.0, "period_ns": 1.0})
    draw_prices(folder / "two.png", rows(report, accuracies(folder)))
    assert (folder / "two.png").stat().st_size > one


def test_kinds_of_a_core_are_told() -> None:
    assert KINDS["lns1+3+4"].in_core and KINDS["int8 lut"].in_core
    assert not Kind("wide", 9, "linear", Lns(4, 4)).in_core
    assert not KINDS["lns1+3+4 log sums"].in_core
    assert not KINDS["int8 x lns1+3+1"].in_core


def test_layouts_are_compared_with_gates_alone(folder: Path) -> None:
    assert layouts(folder) == [] and worst_share([], "area_um2", "area_um2") == "–"
    for kind, cells_um2, die, before, after in (
        ("lns1+2+2", 100.0, 130.0, 500.0, 400.0),
        ("int8", 200.0, 250.0, 400.0, 320.0),
    ):
        report = {
            "number_format": kind,
            "cell_area_before_layout_um2": cells_um2,
            "area_um2": die,
            "wire_length_um": 7300.0,
            "fmax_before_wires_mhz": before,
            "fmax_mhz": after,
        }
        (folder / f"layout-osu018-element-{kind}.json").write_text(json.dumps(report))
    (folder / "layout-osu035-element-int8.json").write_text("{}")
    found = layouts(folder)
    assert [each["number_format"] for each in found] == ["int8", "lns1+2+2"]
    first, second = layout_cells(found)
    assert len(first) == len(LAYOUT_COLUMNS) and first[-4:] == ["1.00"] * 4
    assert second == [
        *("lns1+2+2", "100", "130", "1.30", "7.3", "500", "400", "25%"),
        *("0.50", "0.52", "1.25", "1.25"),
    ]
    assert worst_share(found, "cell_area_before_layout_um2", "area_um2") == "4 %"
    assert worst_share(found, "fmax_before_wires_mhz", "fmax_mhz") == "0 %"
