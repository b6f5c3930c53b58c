"""``slipstick build``: seeds, missed clocks, and what the exit status says."""

import json
import re
from pathlib import Path

import pytest
from pretended_tools import (
    PACKING,
    SYNTHESIS,
    TARGET,
    placement,
    pretend,
    report_text,
)
from slipstick import targets
from slipstick.cli import app
from slipstick.fpga import build as flow

# the fastest seed is the third; the second fails
SEEDS = f"""
seed = int(arguments[arguments.index('--seed') + 1])
if seed == 2:
    print('ERROR: routing failed'); sys.exit(1)
text = {report_text(1234.5)!r}.replace('1234.5', str(90.0 + 5 * seed))
Path(arguments[arguments.index('--report') + 1]).write_text(text)
"""
NAMED_PACKING = "Path(arguments[-1]).write_text(arguments[1])"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        app(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture
def no_gateware(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves out what takes the most time."""
    monkeypatch.setattr(flow, "_generate", lambda *arguments: None)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(targets.TARGETS, "tiny", TARGET)
    return tmp_path


@pytest.mark.usefixtures("no_gateware")
def test_the_fastest_seed_is_kept(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(tiny / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=SEEDS, ECPPACK=NAMED_PACKING)
    assert run("build", "--target", "tiny", "--seeds", "3") == 0
    printed = capsys.readouterr().out
    assert "95.00" in printed and "105.00" in printed and "routing failed" in printed
    report = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert report["seed"] == 3 and report["fmax_mhz"] == 105.0
    assert [entry["seed"] for entry in report["seeds"]] == [1, 2, 3]
    assert "routing failed" in report["seeds"][1]["problem"]
    assert "--seeds 3" in report["command"]
    bitstream = tiny / "build" / "bitstreams" / "tiny" / "slipstick.bit"
    assert bitstream.read_text() == "seed_3/slipstick.config"
    # the next build begins with what reached the clock
    assert run("build", "--target", "tiny") == 0
    again = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert again["seed"] == 3 and "--seed 3" in again["command"]
    assert run("build", "--target", "tiny", "--clock", "50") == 0
    assert json.loads((tiny / "reports" / "build-tiny.json").read_text())["seed"] == 1


@pytest.mark.usefixtures("no_gateware")
def test_the_placer_is_that_of_the_report(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(tiny / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=SEEDS, ECPPACK=NAMED_PACKING)
    path = tiny / "reports" / "build-tiny.json"

    def placer(*words: str) -> str:
        assert run("build", "--target", "tiny", *words) == 0
        report = json.loads(path.read_text())
        log = tiny / "build" / "bitstreams" / "tiny" / f"seed_{report['seed']}"
        assert f"--placer {report['placer']}\n" in (log / "place_and_route.log").read_text()
        assert f"--placer {report['placer']} " in report["command"]
        return report["placer"]

    assert placer("--seed", "3") == "heap"
    assert placer("--seed", "3", "--placer", "static") == "static"
    assert placer() == "static"
    # a report that is older than the choice
    old = json.loads(path.read_text())
    del old["placer"]
    path.write_text(json.dumps(old))
    assert placer() == "heap"
    assert run("build", "--target", "tiny", "--placer", "random") == 2
    told = "the placer must be one of heap, static for ECP5, not random"
    assert told in " ".join(capsys.readouterr().err.split())
    assert run("build", "--target", "icebreaker", "--placer", "static") == 2
    told = "the placer must be left out for iCE40, not static"
    assert told in " ".join(capsys.readouterr().err.split())


# the third does not fit; of the others, 4 looks fastest and 2 next
ESTIMATES = f"""
seed = int(arguments[arguments.index('--seed') + 1])
if seed == 3:
    print('ERROR: no Bels'); sys.exit(1)
if '--no-route' in arguments:
    mhz = {{1: 60.5, 2: 70.25, 4: 80.0}}[seed]
    print("Info: Max frequency for clock   '$glbnet$usb': 48.5 MHz (PASS at 48.00 MHz)")
    print(f"Info: Max frequency for clock '$glbnet$clocking.clock': {{mhz}} MHz (FAIL at 105 MHz)")
    sys.exit()
if seed == 1:
    print('ERROR: must not be routed'); sys.exit(1)
text = {report_text(1234.5)!r}.replace('1234.5', str(130.0 - 5 * seed))
Path(arguments[arguments.index('--report') + 1]).write_text(text)
"""


@pytest.mark.usefixtures("no_gateware")
def test_only_the_placements_that_look_fastest_are_routed(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(
        tiny / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=ESTIMATES, ECPPACK=NAMED_PACKING
    )
    assert run("build", "--target", "tiny", "--seeds", "4", "--route", "2") == 0
    printed = capsys.readouterr().out
    assert "not routed" in printed and "70.25" in printed and "no Bels" in printed
    report = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert report["seed"] == 2 and report["fmax_mhz"] == 120.0
    assert [entry.get("estimate_mhz") for entry in report["seeds"]] == [60.5, 70.25, None, 80.0]
    assert [entry.get("fmax_mhz") for entry in report["seeds"]] == [None, 120.0, None, 110.0]
    assert "--seeds 4 --route 2" in report["command"]


# of another clock, 3 lacks much; of those that are routed, 2 is fastest but misses it
OTHER_CLOCK = f"""
seed = int(arguments[arguments.index('--seed') + 1])
core = {{1: 101.0, 2: 104.0, 3: 105.0}}[seed]
usb = {{1: 50.0, 2: 46.0, 3: 30.0}}[seed]
if '--no-route' in arguments:
    print(f"Info: Max frequency for clock '$glbnet$usb': {{usb}} MHz (PASS at 48.00 MHz)")
    print(f"Info: Max frequency for clock '$glbnet$clocking.clock': {{core}} MHz (FAIL at 105 MHz)")
    sys.exit()
if seed == 3:
    print('ERROR: must not be routed'); sys.exit(1)
text = {report_text(1234.5, other=4321.5)!r}
text = text.replace('1234.5', str(core)).replace('4321.5', str(usb))
Path(arguments[arguments.index('--report') + 1]).write_text(text)
"""


@pytest.mark.usefixtures("no_gateware")
def test_every_clock_counts_where_a_seed_is_chosen(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(
        tiny / "tools",
        monkeypatch,
        YOSYS=SYNTHESIS,
        NEXTPNR_ECP5=OTHER_CLOCK,
        ECPPACK=NAMED_PACKING,
    )
    assert run("build", "--target", "tiny", "--seeds", "3", "--route", "2") == 0
    report = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert report["seed"] == 1 and report["fmax_mhz"] == 101.0 and report["meets_clock"]
    assert report["seeds"][1]["missed_clocks"] == ["$glbnet$usb reaches 46.0 of 48.0 MHz"]


@pytest.mark.usefixtures("no_gateware")
def test_a_placement_without_an_estimate_is_a_failure(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(tiny / "tools", monkeypatch, YOSYS=SYNTHESIS, ECPPACK=NAMED_PACKING)
    assert run("build", "--target", "tiny", "--seeds", "2", "--route", "1") == 2
    assert "seed_1/place.log has no line with the clock" in capsys.readouterr().err


@pytest.mark.usefixtures("no_gateware")
@pytest.mark.parametrize(
    ("placing", "message"),
    [
        (placement(98.7), "tiny MISSES ITS CLOCK.* the core's reaches 98.7 of 100 MHz; try more"),
        (placement(other=47.0), "MISSES ITS CLOCK.*usb reaches 47.0 of 48.0 MHz; try more"),
    ],
)
def test_a_missed_clock_is_an_error_that_leaves_its_report(
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    placing: str,
    message: str,
) -> None:
    pretend(tiny / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=placing, ECPPACK=PACKING)
    assert run("build", "--target", "tiny") == 1
    assert re.search(message, capsys.readouterr().err)
    report = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert report["meets_clock"] is False


def test_seed_and_seeds_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("build", "--seed", "1", "--seeds", "2") == 2
    assert "--seed and --seeds must not be given together" in capsys.readouterr().err
    assert run("build", "--route", "2") == 2
    assert "--route needs --seeds" in capsys.readouterr().err
    assert run("build", "--seeds", "2", "--route", "0") == 2
    assert "--route must be at least 1, not 0" in capsys.readouterr().err
    assert run("build", "--seeds", "0") == 2
    assert "--seeds must be at least 1, not 0" in capsys.readouterr().err


def reaching(megahertz: dict[str, float]) -> str:
    """Place and route that reaches, asked for a clock, what is said of it; 77 MHz if nothing is."""
    return f"""
asked = arguments[arguments.index('--freq') + 1]
reached = {megahertz!r}.get(asked, 77.0)
text = {report_text(1234.5)!r}.replace('1234.5', str(reached))
Path(arguments[arguments.index('--report') + 1]).write_text(text)
"""


@pytest.mark.usefixtures("no_gateware")
@pytest.mark.parametrize(
    ("reached", "tried", "kept"),
    [
        # 118.69 less 1 % is 117.5, of 25 MHz; that is reached, and the next is not
        ({"105": 118.69, "123.375": 125.5, "129.063": 110.0}, [100, 117.5, 122.916667], 117.5),
        # what is missed is followed by what it reached, if that is faster than what there is
        ({"105": 118.69, "123.375": 110.0, "113.75": 111.0}, [100, 117.5, 108.333333], 108.333333),
        ({"105": 118.69, "123.375": 95.0}, [100, 117.5], 100),
        ({"105": 118.69, "123.375": 118.0, "122.5": 118.0}, [100, 117.5, 116.666667], 116.666667),
        # the first one may miss its clock, or the reserve
        ({"105": 95.0, "98.438": 94.75}, [100, 93.75], 93.75),
        ({"105": 100.5, "103.359": 101.0}, [100, 98.4375], 98.4375),
    ],
)
def test_the_fastest_clock_is_built_for(
    tiny: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    reached: dict[str, float],
    tried: list[float],
    kept: float,
) -> None:
    pretend(
        tiny / "tools",
        monkeypatch,
        YOSYS=SYNTHESIS,
        NEXTPNR_ECP5=reaching(reached),
        ECPPACK="Path(arguments[-1]).write_text(str(Path.cwd()))",
    )
    old = tiny / "build" / "bitstreams" / "tiny" / "clock_50"
    old.mkdir(parents=True)
    assert run("build", "--target", "tiny", "--clock", "fastest") == 0
    report = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert [entry["clock_mhz"] for entry in report["clocks"]] == tried
    assert report["clock_mhz"] == kept and report["meets_clock"]
    assert "--clock fastest" in report["command"]
    bitstream = tiny / "build" / "bitstreams" / "tiny" / "slipstick.bit"
    assert report["bitstream"] == str(bitstream.relative_to(tiny))
    assert bitstream.read_text().endswith(f"clock_{kept:g}")
    assert not (tiny / "build" / "bitstreams" / "tiny" / "clock_50").exists()
    assert f"{kept:g}" in capsys.readouterr().out


@pytest.mark.usefixtures("no_gateware")
def test_a_clock_that_is_never_reached_is_told(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # each build reaches less than the one before
    slower = f"""
asked = float(arguments[arguments.index('--freq') + 1])
text = {report_text(1234.5)!r}.replace('1234.5', str(asked * 0.9))
Path(arguments[arguments.index('--report') + 1]).write_text(text)
"""
    pretend(tiny / "tools", monkeypatch, YOSYS=SYNTHESIS, NEXTPNR_ECP5=slower, ECPPACK=PACKING)
    assert run("build", "--target", "tiny", "--clock", "fastest") == 1
    report = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert len(report["clocks"]) == 3 and not report["meets_clock"]
    assert "MISSES ITS CLOCK" in capsys.readouterr().err


@pytest.mark.usefixtures("no_gateware")
def test_a_clock_can_be_named(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(
        tiny / "tools",
        monkeypatch,
        YOSYS=SYNTHESIS,
        NEXTPNR_ECP5=reaching({"118.125": 113.0}),
        ECPPACK=PACKING,
    )
    assert run("build", "--target", "tiny", "--clock", "112.5") == 0
    report = json.loads((tiny / "reports" / "build-tiny.json").read_text())
    assert report["clock_mhz"] == 112.5 and report["fmax_mhz"] == 113.0
    assert "clocks" not in report and "--clock 112.5" in report["command"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--clock", "x"], "--clock must be a number of MHz, or fastest, not x"),
        (["--clock", "nan"], "--clock must be a number of MHz, or fastest, not nan"),
        (["--clock", "inf"], "--clock must be a number of MHz, or fastest, not inf"),
        (["--clock", "-5"], "--clock must be a number of MHz, or fastest, not -5"),
        (
            ["--clock", "111.11"],
            "ulx3s-25f: clock must be one that the PLL of ECP5 makes of 25 MHz, not 111.11 MHz:"
            " the nearest are 110.714 and 112.5 MHz",
        ),
        (
            ["--clock", "9.5", "--baud", "3000000"],
            "--baud: baud must be at most 2375000, a 4th of the clock, not 3000000",
        ),
        (
            ["--clock", "fastest", "--bare"],
            "--clock fastest is for a board's PLL: leave it out with --bare",
        ),
    ],
)
def test_clocks_that_cannot_be_built(slipstick, words: list[str], message: str) -> None:
    status, _, error = slipstick("build", "--target", "ulx3s-25f", *words)
    assert status == 2 and message in error
