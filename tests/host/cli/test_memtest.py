"""``slipstick memtest``: its table and JSON, exit statuses, and what it refuses."""

import json
import re
from collections.abc import Callable

import numpy as np
import pytest
from faulty_dram import faulty_device
from slipstick.cli import memtest
from slipstick.devices.link import LinkDevice, LinkError
from slipstick.devices.model import ModelDevice
from slipstick.targets import TARGETS
from slipstick_rtl.config import Configuration

TARGET = "ulx3s-12f-sdram"
ARGUMENTS = ("memtest", "--device", f"model:{TARGET}", "--wait", 0, "--bytes", 65536)
PARTS = ["data lines", "address lines", "random pattern", "its inverse"]


def test_a_sound_memory(slipstick) -> None:
    status, out, err = slipstick(*ARGUMENTS, "--json")
    assert status == 0 and not err and out.count("\n") == 1
    result = json.loads(out)
    assert [entry["name"] for entry in result["tests"]] == PARTS
    assert all(entry["passed"] and entry["detail"] for entry in result["tests"])
    assert not any(entry["faults"] for entry in result["tests"])
    assert result["passed"] is True
    assert (result["device"], result["target"]) == (f"model:{TARGET}", TARGET)
    assert (result["dram"], result["bytes"]) == ("MT48LC16M16", 1 << 25)
    assert (result["covered_bytes"], result["wait_seconds"]) == (65536, 0)
    # a model has no clock
    for name in ("read_mb_per_s", "write_mb_per_s", "peak_mb_per_s", "read_share_of_peak"):
        assert result[name] is None
    status, out, err = slipstick(*ARGUMENTS)
    assert status == 0 and not err
    assert all(name in out for name in PARTS) and out.count("passed") == 4
    assert "the device counts no cycles" in out and "32 MiB" in out


def test_the_target_may_stand_in_either_place(slipstick) -> None:
    arguments = ("memtest", "-d", "model", "-t", "colorlight-5a75b-sdram", "--wait", 0)
    status, out, _ = slipstick(*arguments, "--bytes", 8, "--json")
    assert status == 0 and json.loads(out)["dram"] == "M12L16161A"


def test_the_whole_memory_is_the_default(slipstick) -> None:
    arguments = ("memtest", "-d", "model:colorlight-5a75b-sdram", "--wait", 0.01, "--json")
    result = json.loads(slipstick(*arguments)[1])
    assert result["covered_bytes"] == result["bytes"] == 1 << 22
    assert result["tests"][2]["detail"] == "4,194,304 bytes kept for 0.01 s"


def opens(monkeypatch: pytest.MonkeyPatch, open_it: Callable[[Configuration], LinkDevice]) -> None:
    monkeypatch.setattr(memtest, "open_device", lambda name, configuration: open_it(configuration))


def test_faults_end_with_1(slipstick, monkeypatch: pytest.MonkeyPatch) -> None:
    def data(words: np.ndarray) -> np.ndarray:
        return words & ~np.uint16(1 << 5)

    opens(monkeypatch, lambda configuration: faulty_device(configuration, data=data)[0])
    status, out, err = slipstick(*ARGUMENTS, "--json")
    assert status == 1 and not err and out.count("\n") == 1
    result = json.loads(out)
    assert [entry["passed"] for entry in result["tests"]] == [False, True, False, False]
    assert result["tests"][0]["detail"] == "data bit 5 stuck at 0"
    assert result["passed"] is False and result["read_mb_per_s"] is None
    faults = result["tests"][2]["faults"]
    assert len(faults) == 8 and faults[0]["data_bits"] == [5] and not faults[0]["right_again"]
    differing = int(faults[0]["expected"], 16) ^ int(faults[0]["found"], 16)
    assert differing and not differing & ~(0x20 * 0x0001_0001_0001_0001)
    status, out, err = slipstick(*ARGUMENTS)
    text = " ".join(out.split())
    assert status == 1 and not err
    assert text.count("FAULTY") == 3 and "data bit 5 stuck at 0" in text
    assert "at least 8 faulty blocks" in text and "the DRAM is faulty" in text
    # a line for each fault but the first
    assert len(re.findall(r"^its inverse: address 0x", out, re.MULTILINE)) == 7


def test_without_sound_data_lines_nothing_is_said_of_addresses(
    slipstick, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens(
        monkeypatch,
        lambda configuration: faulty_device(configuration, data=np.zeros_like)[0],
    )
    status, out, _ = slipstick(*ARGUMENTS)
    assert status == 1 and "not judged: only 0 data bits are sound" in out


def test_an_interrupt_ends_with_130(slipstick, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = list[bool]()

    class Interrupted(ModelDevice):
        def read(self, address: int, count: int) -> bytes:
            raise KeyboardInterrupt

        def close(self) -> None:
            closed.append(True)

    opens(monkeypatch, Interrupted)
    status, out, err = slipstick(*ARGUMENTS)
    assert (status, out, closed) == (130, "", [True]) and "Traceback" not in err


def test_a_device_that_is_lost_is_one_sentence(slipstick, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost(ModelDevice):
        def read(self, address: int, count: int) -> bytes:
            raise LinkError("DISCONNECTED", "the connection to /dev/ttyUSB0 is lost")

    opens(monkeypatch, Lost)
    status, out, err = slipstick(*ARGUMENTS, "--json")
    assert (status, out) == (2, "")
    assert err == "slipstick: DISCONNECTED: the connection to /dev/ttyUSB0 is lost\n"


MODEL = ("-d", f"model:{TARGET}")
BAD = {
    "no target": ((), "target sim-medium has no DRAM: give a --target that has one, "),
    "no DRAM": (("-t", "sim-small"), f"target sim-small has no DRAM: .*, {TARGET}, "),
    "no DRAM of a device": (("-d", "model:1x8x8"), "target 1x8x8 has no DRAM"),
    "unknown target": (("-t", "tiny"), "target must be one of .* not 'tiny'"),
    "other target": ((*MODEL, "-t", "ulx3s-25f-sdram"), "compile for target"),
    "unknown device": (("-d", "abacus", "-t", TARGET), "device must be one of .* not 'abacus'"),
    "no port": (("-d", "serial:/dev/none", "-t", TARGET), "there is no port /dev/none"),
    "negative wait": ((*MODEL, "--wait", -1), r"--wait must be within 0\.\.3600 seconds, not -1"),
    "endless wait": ((*MODEL, "--wait", "inf"), r"--wait must be within 0\.\.3600 .*, not inf"),
    "no time": ((*MODEL, "--wait", "nan"), r"--wait must be within 0\.\.3600 seconds, not nan"),
    "not a number": ((*MODEL, "--wait", "long"), "'--wait'"),
    "no bytes": ((*MODEL, "--bytes", 0), r"--bytes must be a multiple of 8 within .*, not 0"),
    "half a word": ((*MODEL, "--bytes", 12), r"--bytes must be a multiple of 8 .*, not 12"),
    "too many": ((*MODEL, "--bytes", 1 << 26), r"within 8\.\.33554432 .*, not 67108864"),
    "take": ((*MODEL, "--take"), "--take is for boards on Ethernet, udp:, not model"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(slipstick, case: str) -> None:
    arguments, message = BAD[case]
    for extra in ((), ("--json",)):
        status, out, err = slipstick("memtest", *arguments, *extra)
        assert status == 2 and not out
        assert err.startswith("slipstick: ") and err.count("\n") == 1
        assert re.search(message, err), err


def test_every_target_with_dram_is_named(slipstick) -> None:
    (named,) = re.findall(r"has one, (.*)\n", slipstick("memtest")[2])
    assert named.split(", ") == [name for name, each in TARGETS.items() if each.configuration.dram]
