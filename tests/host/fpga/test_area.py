"""The estimate of a configuration's area against the reports of place and route, and its fit."""

import dataclasses

import pytest
from slipstick.errors import TargetError
from slipstick.fpga import area_fit
from slipstick.fpga.area import FLIP_FLOPS, LUTS, Area, add_parts, count_parts, estimate
from slipstick.fpga.area_fit import EXPECTED, Sample, fit, held_out, main, samples
from slipstick.targets import TARGETS, Target
from slipstick_rtl.config import Configuration

BUILT = samples()


def test_every_part_has_its_numbers() -> None:
    parts = set(count_parts(Configuration()))
    assert parts == set(LUTS) == set(FLIP_FLOPS) == set(EXPECTED["lut"]) == set(EXPECTED["ff"])
    assert all(number > 0 for number in (*LUTS.values(), *FLIP_FLOPS.values()))


@pytest.mark.parametrize("sample", BUILT, ids=lambda sample: sample.name)
def test_reports_are_met(sample: Sample) -> None:
    """Blocks exactly; for the rest ``python -m slipstick.fpga.area`` shows what would be better."""
    estimated = estimate(sample.configuration)
    assert (estimated.dsp, estimated.bram) == (sample.reported.dsp, sample.reported.bram)
    assert estimated.lut == pytest.approx(sample.reported.lut, rel=0.05)
    assert estimated.ff == pytest.approx(sample.reported.ff, rel=0.05)


@pytest.mark.parametrize(
    "target",
    [
        target
        for target in TARGETS.values()
        if target.part and "LFE5U" in target.part.device and not target.configuration.logarithmic
    ],
    ids=lambda target: target.name,
)
def test_boards_have_room_for_their_own_targets(target: Target) -> None:
    estimated = estimate(target.configuration)
    assert target.part is not None
    assert estimated.dsp <= target.part.multipliers and estimated.bram <= target.part.block_rams
    assert estimated.lut < 0.9 * target.part.luts


def test_only_reports_of_this_hardware_count(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def last_build(fingerprint: str, target: str, *, link: str) -> dict[str, int] | None:
        assert link == "uart"
        asked.append(target)
        assert fingerprint == TARGETS[target].configuration.fingerprint
        return {"lut": 1, "ff": 2, "dsp": 3, "bram": 4} if target == "ulx3s-25f" else None

    monkeypatch.setattr(area_fit.reports, "last_build", last_build)
    (found,) = samples()
    assert found.name == "ulx3s-25f" and found.reported == Area(lut=1, ff=2, dsp=3, bram=4)
    assert "ulx3s-85f" in asked and "sim-small" not in asked and "icebreaker" not in asked


def _made_up(numbers: dict[str, float]) -> list[Sample]:
    """Reports of a gateware whose parts take exactly these numbers."""
    made = []
    for rows, columns, lanes in ((4, 4, 4), (8, 8, 4), (16, 8, 8), (16, 16, 8), (32, 16, 16)):
        for multiplier in ("plain", "lut"):
            configuration = Configuration(
                rows=rows, columns=columns, lanes=lanes, multiplier=multiplier
            )
            size = add_parts(configuration, numbers)
            made.append(Sample("made up", configuration, Area(size, size, 0, 0)))
    return made


def test_the_fit_finds_the_numbers() -> None:
    changed = {name: number * 1.2 for name, number in EXPECTED["lut"].items()}
    changed["lut"] = 90.0
    found = _made_up(changed)
    fitted = fit(found, "lut")
    for sample in found:
        assert add_parts(sample.configuration, fitted) == pytest.approx(
            sample.reported.lut, rel=0.01
        )
    assert fitted["lut"] == pytest.approx(90, rel=0.05)
    # what no report has an element of stays as it is expected
    assert fitted["packed"] == EXPECTED["lut"]["packed"]
    assert fit([], "ff") == EXPECTED["ff"]
    assert abs(held_out(found, found[-1], "lut")) < 0.05


def test_the_script_shows_errors_and_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(area_fit, "samples", lambda: _made_up(dict(LUTS)))
    assert main() == 0
    out = capsys.readouterr().out
    assert "LUT held out" in out and "+0.0%" in out and "gather" in out
    monkeypatch.setattr(area_fit, "samples", list)
    assert main() == 0
    assert "no report of place and route" in capsys.readouterr().out


def test_more_of_anything_takes_more() -> None:
    base = Configuration(rows=8, columns=8, lanes=4, activation_bytes=1 << 15)
    small = estimate(base)
    for change in ({"rows": 16}, {"columns": 16}, {"lanes": 8}, {"pixels": 2}):
        large = estimate(dataclasses.replace(base, **change))
        assert large.lut > small.lut and large.ff > small.ff and large.dsp > small.dsp, change
    for change in ({"activation_bytes": 1 << 16}, {"weight_bytes": 1 << 20}, {"pixels": 2}):
        assert estimate(dataclasses.replace(base, **change)).bram > small.bram, change
    cheap = estimate(dataclasses.replace(base, multiplier="lut"))
    assert cheap.dsp == small.dsp - 64 and cheap.lut > small.lut


def test_nothing_is_known_of_compact_engines() -> None:
    with pytest.raises(TargetError, match='"pipelined" only, not "compact"'):
        estimate(TARGETS["icebreaker"].configuration)
    with pytest.raises(TargetError, match='with number_format "int8" only, not "lns1.3.2"'):
        estimate(TARGETS["ulx3s-85f-lns6"].configuration)
