"""Energy of an element: waveforms read, operands of each format, what is simulated and told."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from slipstick.asic.saif import Activity, Recording
from slipstick.asic.vcd import read_vcd
from slipstick.errors import TargetError
from slipstick.studies.price_list import measures as price_measures
from slipstick.studies.price_list import power as price_power
from slipstick.studies.price_list.kinds import KINDS
from slipstick.studies.price_list.list import measurements
from slipstick.studies.price_list.operands import operands

WAVEFORM = """$timescale 1 fs $end
$scope module bench $end
$scope module top $end
$var wire 1 ! clk $end
$var wire 2 " pair $end
$var wire 2 " alias $end
$var wire 1 # $signal $end
$scope module inner $end
$var wire 1 % deep $end
$upscope $end
$upscope $end
$scope module other $end
$var wire 1 & foreign $end
$upscope $end
$upscope $end
$enddefinitions $end
#0
$dumpvars
0!
b0 "
0#
x%
1&
$end
#10
1!
b11 "
#15
1%
0%
#20
0!
#30
1!
b1 "
1#
#40
0!
"""


def test_changes_and_shares_of_time_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.vcd"
    path.write_text(WAVEFORM)
    found = read_vcd(path, "bench.top")
    assert found.cycles == 2
    assert found.of("pair", 0) == found.of("alias", 0) == Activity(0.5, 0.75)
    assert found.of("pair", 1) == Activity(1.0, 0.5)
    assert found.of("$signal", 0) == Activity(0.5, 0.25)
    # up and down within an instant is no change
    assert found.of("inner.deep", 0) == Activity(0.0, 0.0)
    assert found.of("foreign", 0) is None and found.of("other.foreign", 0) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$var wire nonsense", "cannot be read"),
        (WAVEFORM.replace("clk", "clock"), "must hold a cycle of bench.top.clk"),
        ("", "must hold a cycle of bench.top.clk"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_waveform(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "a.vcd"
    if text is not None:
        path.write_text(text)
    with pytest.raises(TargetError, match=message):
        read_vcd(path, "bench.top")


def test_operands_are_the_same_numbers_in_each_format() -> None:
    int8, int8_weights = operands(KINDS["int8 plain"], 200, 8)
    # as bytes
    activations = (int8.astype(int) ^ 128) / 255
    weights = (int8_weights.astype(int) ^ 128) - 128
    assert 0.4 < (activations == 0).mean() < 0.6 and activations.max() <= 1
    for name in ("lns1+3+4", "lns1+4+4", "lns1+3+4 log sums"):
        kind = KINDS[name]
        lns = kind.log_format
        words, stored = operands(kind, 200, 8)
        if kind.sums == "log":
            sign, exponent = lns.from_word(words.astype(int))
            assert not sign.any()
            offset = lns.from_word(stored.astype(int))[1] - exponent.max()
            assert offset.max() < 1 << lns.fraction_bits + 2
            zero = exponent == lns.zero
        else:
            magnitude = words.astype(int) & lns.largest_code
            np.testing.assert_allclose(
                np.exp2((magnitude - lns.largest_code) / 2**lns.fraction_bits)[activations > 0.1],
                activations[activations > 0.1],
                rtol=0.05,
            )
            negative = stored.astype(int) >> lns.exponent_bits & 1
            assert negative.tolist() == (weights < 0).tolist()
            zero = magnitude == 0
        # a narrow range cuts small ones
        assert (zero == (activations == 0)).mean() > 0.85
    mixed, _ = operands(KINDS["int8 x lns1+3+1"], 200, 8)
    signed = (int8.astype(int) ^ 128) - 128
    np.testing.assert_array_equal(mixed.astype(int) & 255, np.abs(signed))


def test_power_of_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Recording] = []

    def implement(*arguments: Any, **options: Any) -> Any:
        return SimpleNamespace(mapping=None, timing=SimpleNamespace(period_ns=0.5))

    def cell_power(mapping: Any, recording: Recording, period: float) -> Any:
        given.append(recording)
        return SimpleNamespace(dynamic_mw=64.0, leakage_mw=0.16, matched=9, sources=10)

    monkeypatch.setattr(price_measures, "implement", implement)
    monkeypatch.setattr(price_measures, "find_pdk", lambda name: name)
    monkeypatch.setattr(price_power, "cell_power", cell_power)
    found = price_power.power(KINDS["lns1+2+2"], tmp_path)
    assert (found["mac_pj"], found["leakage_uw"], found["period_ns"]) == (2.0, 10.0, 0.5)
    assert (found["activity_matched"], found["activity_sources"]) == (9, 10)
    (recording,) = given
    assert recording.cycles == found["cycles"] >= price_power.CYCLES
    # a weight is loaded once, activations go on changing, and reach the sums
    loaded = [recording.of("element_3.captured", bit) for bit in range(6)]
    assert all(each is not None and each.changes <= 1 / 500 for each in loaded)
    for name in ("activations_3", "element_3.activations_out", "sums"):
        activity = recording.of(name, 1)
        assert activity is not None and activity.changes > 0.1


def test_power_is_measured_of_all_but_packed_elements() -> None:
    names = {each.name for each in measurements("power")}
    assert names == set(KINDS) - {"int8 packed"}
