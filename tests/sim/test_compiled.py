"""The compiled device's machinery, on a small core of known behaviour."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from slipstick.layout.inference import read_values
from slipstick_rtl.accelerator import EVENTS
from slipstick_rtl.config import Configuration
from slipstick_sim import toolchain
from slipstick_sim.verilated import (
    EVENT_NAMES,
    CompiledCore,
    CompiledTransport,
    SimulationError,
    accelerator_library,
    activity_library,
    build_library,
    serial_library,
    spi_library,
    waveform_library,
)
from slipstick_sim.verilated import build as compiled_build

START = 0xFF
RUN_CYCLES = 1000


class Inverter(wiring.Component):
    """Answers each byte with its inverse; START also begins a run of RUN_CYCLES."""

    i: stream.Interface
    o: stream.Interface
    running: Signal
    events: data.View

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(8)),
                "o": Out(stream.Signature(8)),
                "running": Out(1),
                "events": Out(EVENTS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left = Signal(range(RUN_CYCLES + 1), name="_left")
        started = Signal()
        take = self.i.valid & self.i.ready
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | self.o.ready),
            started.eq(take & (self.i.payload == START)),
            self.running.eq(left != 0),
            self.events.matrix_start.eq(started),
            self.events.post_done.eq(left == 1),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(take):
            m.d.sync += [self.o.payload.eq(~self.i.payload), self.o.valid.eq(1)]
        with m.If(started):
            m.d.sync += left.eq(RUN_CYCLES)
        with m.Elif(self.running):
            m.d.sync += left.eq(left - 1)
        return m


@pytest.fixture(scope="module")
def library() -> Path:
    return build_library(Inverter(), name="inverter")


@pytest.fixture
def core(library: Path) -> Iterator[CompiledCore]:
    with CompiledCore(library) as core:
        yield core


def test_bytes_go_through_one_a_cycle(core: CompiledCore) -> None:
    data = bytes(number * 37 % 255 for number in range(10_000))
    begin = core.cycles
    assert core.transact(data, len(data), 20_000) == bytes(~byte & 0xFF for byte in data)
    assert core.cycles - begin == len(data) + 1


def test_answers_are_kept_until_asked_for(core: CompiledCore) -> None:
    core.send(b"\x00\x01\x02", 10)
    core.run_cycles(5)
    assert core.available == 3
    assert core.receive(2, 0) == b"\xff\xfe"
    assert core.receive(5, 10) == b"\xfd"
    assert core.receive(0, 10) == b""


def test_what_does_not_come_is_told(core: CompiledCore) -> None:
    with pytest.raises(SimulationError, match="gave 1 of 2 bytes in 50 cycles"):
        core.transact(b"\x07", 2, 50)
    with pytest.raises(SimulationError, match="took 3 of 9 bytes in 3 cycles"):
        core.send(bytes(9), 3)


def test_a_run_is_waited_for_and_its_events_are_logged(core: CompiledCore) -> None:
    core.send(bytes([1, 2, START]), 10)
    sent = core.cycles - 1
    assert not core.wait_idle(RUN_CYCLES // 2)
    assert core.wait_idle(RUN_CYCLES)
    events = core.take_events()
    assert [EVENT_NAMES[kind] for kind in events["kind"]] == ["matrix_start", "post_done"]
    np.testing.assert_array_equal(events["cycle"], [sent, sent + RUN_CYCLES])
    assert core.take_events().size == 0


def test_reset_forgets(core: CompiledCore) -> None:
    core.send(bytes([START]), 10)
    core.reset()
    assert core.wait_idle(0)
    assert core.receive(1, 10) == b""


def test_activity_is_recorded_while_the_core_runs(tmp_path: Path) -> None:
    rtlil = toolchain.convert_to_rtlil(Inverter(), "inverter")
    with CompiledCore(activity_library(rtlil, "inverter")) as core:
        path = tmp_path / "activity.saif"
        with core.recording(path):
            core.run_cycles(50)
            core.transact(bytes([START]), 1, 10)
            assert core.wait_idle(2 * RUN_CYCLES)
            core.run_cycles(50)
        with pytest.raises(SimulationError, match="its library must be one that records, and"):
            with core.recording(path):
                pass
        with pytest.raises(SimulationError, match="cannot be written to .*no/a.saif: No such"):
            with core.recording(tmp_path / "no" / "a.saif"):
                pass
    text = path.read_text()
    # the first sample starts the clock of the recording, the last cycle ends it
    assert f"(DURATION {RUN_CYCLES - 1})" in text
    (changes,) = re.findall(r"\(_left\\\[0\\\] .*\(TC (\d+)\)\)", text)
    assert abs(int(changes) - RUN_CYCLES) <= 1


def test_values_are_recorded_while_the_core_runs(tmp_path: Path) -> None:
    rtlil = toolchain.convert_to_rtlil(Inverter(), "inverter")
    with CompiledCore(waveform_library(rtlil, "inverter")) as core:
        path = tmp_path / "values.vcd"
        with core.recording(path, "inverter"):
            core.transact(bytes([START]), 1, 10)
            assert core.wait_idle(2 * RUN_CYCLES)
    values = read_values(path, "inverter", RUN_CYCLES, {"_left": RUN_CYCLES.bit_length()})
    left = values["_left"]
    # a counter of the cycles that are left, which goes down by one in each
    np.testing.assert_array_equal(left[1:], left[1] - np.arange(RUN_CYCLES - 1))


def test_a_fast_library_records_nothing(core: CompiledCore, tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match="cannot be recorded"):
        with core.recording(tmp_path / "a.saif"):
            pass


def test_two_cores_are_apart(library: Path, core: CompiledCore) -> None:
    with CompiledCore(library) as other:
        core.send(bytes([START]), 10)
        assert other.wait_idle(0)
        assert not core.wait_idle(0)


def test_a_closed_core_says_so(library: Path) -> None:
    core = CompiledCore(library)
    core.close()
    core.close()
    with pytest.raises(SimulationError, match="closed"):
        core.run_cycles(1)


def test_the_transport_pauses_until_the_run_is_over(library: Path) -> None:
    transport = CompiledTransport(CompiledCore(library))
    transport.send(bytes([START, 1]))
    assert transport.receive(3, 1e-5) == b"\x00\xfe"
    before = transport.core.cycles
    transport.pause(0.0)
    assert 0 < transport.core.cycles - before <= RUN_CYCLES
    transport.close()
    with pytest.raises(ValueError, match="cycles_per_second must be positive, not 0"):
        CompiledTransport(CompiledCore(library), cycles_per_second=0)


def test_the_same_core_is_not_built_again(library: Path) -> None:
    begin = time.perf_counter()
    assert build_library(Inverter(), name="inverter") == library
    assert time.perf_counter() - begin < 2
    names = sorted(path.name for path in library.parent.iterdir())
    assert names == ["core.so", "core.so.sha256"]


def _cut(library: Path) -> None:
    library.write_bytes(library.read_bytes()[:5000])


def _flip(library: Path) -> None:
    data = bytearray(library.read_bytes())
    data[len(data) // 2] ^= 0x55
    library.write_bytes(data)


def _is_a_folder(library: Path) -> None:
    library.unlink()
    library.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        _flip,
        _is_a_folder,
        lambda library: library.write_bytes(b""),
        lambda library: library.unlink(),
        lambda library: toolchain.checksum_of(library).unlink(),
        lambda library: toolchain.checksum_of(library).write_bytes(b"\xff" * 64),
    ],
)
def test_a_damaged_library_is_built_anew(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], None],
) -> None:
    """The build itself only copies: what is tested is when it happens."""
    whole, builds = library.read_bytes(), list[Path]()

    def build(rtlil: str, name: str, part: Path, line: compiled_build.Line, others: object) -> None:
        builds.append(part)
        (part / library.name).write_bytes(whole)
        toolchain.write_checksum(part / library.name)

    monkeypatch.setattr(compiled_build, "_build", build)
    first = build_library(Inverter(), name="inverter", directory=tmp_path)
    damage(first)
    capsys.readouterr()
    assert build_library(Inverter(), name="inverter", directory=tmp_path) == first
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"slipstick: {first.parent} is damaged: building it anew"
    with CompiledCore(first) as core:
        assert core.transact(b"\x01", 1, 100) == b"\xfe"
    assert build_library(Inverter(), name="inverter", directory=tmp_path) == first
    assert len(builds) == 2 and not capsys.readouterr().err
    kept = sorted(path.suffix for path in first.parent.parent.iterdir())
    assert kept == ["", ".lock"]


def test_a_compilation_is_told_with_its_time(
    library: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line before, one after, into a pipe as well; none if the library is there."""

    def build(rtlil: str, name: str, part: Path, line: compiled_build.Line, others: object) -> None:
        (part / library.name).write_bytes(library.read_bytes())
        toolchain.write_checksum(part / library.name)

    monkeypatch.setattr(compiled_build, "_build", build)
    monkeypatch.setattr(toolchain, "convert_to_rtlil", lambda *arguments, **options: "rtlil")
    hardware = Configuration(rows=16, columns=16)
    first = accelerator_library(hardware, tmp_path, label="sim-medium (1x16x16)")
    before, after = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"slipstick: compiling the simulation of sim-medium \(1x16x16\), about \d+0 s"
        r" if two cores are free \.\.\.",
        before,
    )
    assert re.fullmatch(
        r"slipstick: compiled the simulation of sim-medium \(1x16x16\) in \d+ s", after
    )
    assert accelerator_library(hardware, tmp_path) == first
    assert not capsys.readouterr().err
    serial_library(hardware, directory=tmp_path)
    assert "the simulation of 1x16x16, about" in capsys.readouterr().err


def test_what_is_no_core_says_so(tmp_path: Path) -> None:
    compiler = toolchain.compiler()
    library = tmp_path / "other.so"
    toolchain.run_tool([compiler, "-shared", "-o", library, "-x", "c++", "-"], text="int x;")
    with pytest.raises(OSError, match="must be a compiled core, and lacks core_new"):
        CompiledCore(library)


def test_a_failed_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] || { echo no room left; exit 1; }\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(toolchain.ToolError, match="(?s)exit code 1.*no room left"):
        build_library(Inverter(), name="inverter", directory=tmp_path)
    assert not [path for path in tmp_path.rglob("inverter-*") if path.is_dir()]


def test_a_period_of_sck_must_be_long_enough() -> None:
    with pytest.raises(ValueError, match="divisor must be at least 4, not 3"):
        spi_library(Configuration(), 3)


def test_memories_of_zeros_are_left_out_of_the_verilog() -> None:
    cell = "  cell $meminit_v2 $1\n    connect \\DATA 4'{}\n  end\n"
    without_zeros = toolchain.without_zeros
    assert without_zeros(cell.format("0000")) == ""
    assert without_zeros(cell.format("0010")) == cell.format("0010")
