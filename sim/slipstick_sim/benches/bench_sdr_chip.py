"""The model of an SDR SDRAM sees each rule that is broken, and only that."""

from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl.dram.chips import MT48LC16M16

from ..dram.sdr_chip import SdrModel, cells_verilog
from ..dram.violation import Violation
from .drivers.streams import start
from .registry import Bench

_HERTZ = 100_000_000
_MODE = MT48LC16M16.cas_latency(_HERTZ) << 4
_ALL = 1 << 10

_LEVELS = {
    "active": (0, 1, 1),
    "read": (1, 0, 1),
    "write": (1, 0, 0),
    "precharge": (0, 1, 0),
    "refresh": (0, 0, 1),
    "mode": (0, 0, 0),
}

Step = tuple[str, int, int, int]
"""A command, its bank and address, and cycles until the next one."""

_BEGIN: tuple[Step, ...] = (
    ("precharge", 0, _ALL, 2),
    ("refresh", 0, 0, 7),
    ("refresh", 0, 0, 7),
    ("mode", 0, _MODE, 3),
)
# at 100 MHz: tRCD 2, tRP 2, tRAS 5, tRC 7, tRFC 7, tRRD 2, tWR 2 cycles
_GOOD: tuple[Step, ...] = (
    ("active", 0, 5, 2),
    ("active", 1, 6, 2),
    ("write", 0, 3, 1),
    ("read", 1, 3, 1),
    ("read", 0, 3 | _ALL, 8),
    ("active", 0, 9, 2),
    ("write", 0, 4, 3),
    ("precharge", 0, 0, 1),
    ("precharge", 1, 0, 2),
    ("refresh", 0, 0, 7),
    ("active", 3, 9, 2),
)

CASES: dict[str, tuple[tuple[Step, ...], Violation]] = {
    "good": ((*_BEGIN, *_GOOD), Violation.NONE),
    "used at once": ((("active", 0, 0, 2),), Violation.NOT_INITIALISED),
    "refreshed before all banks are closed": (
        (("refresh", 0, 0, 7),),
        Violation.NOT_INITIALISED,
    ),
    "one refresh only": (
        (_BEGIN[0], _BEGIN[1], ("mode", 0, _MODE, 3)),
        Violation.NOT_INITIALISED,
    ),
    "bursts of two": ((*_BEGIN[:3], ("mode", 0, _MODE | 1, 3)), Violation.MODE),
    "another latency": ((*_BEGIN[:3], ("mode", 0, 0x70, 3)), Violation.MODE),
    "opened twice": (
        (*_BEGIN, ("active", 0, 1, 8), ("active", 0, 1, 2)),
        Violation.OPEN,
    ),
    "refreshed while open": ((*_BEGIN, ("active", 0, 1, 8), ("refresh", 0, 0, 7)), Violation.OPEN),
    "read while closed": ((*_BEGIN, ("read", 2, 1, 2)), Violation.CLOSED),
    "read after its own precharge": (
        (*_BEGIN, ("active", 0, 1, 2), ("read", 0, _ALL, 1), ("read", 0, 0, 1)),
        Violation.CLOSED,
    ),
    "tRCD": ((*_BEGIN, ("active", 0, 1, 1), ("read", 0, 0, 1)), Violation.T_RCD),
    "tRAS": ((*_BEGIN, ("active", 0, 1, 4), ("precharge", 0, 0, 1)), Violation.T_RAS),
    "tRP": (
        (*_BEGIN, ("active", 0, 1, 9), ("precharge", 0, 0, 1), ("active", 0, 2, 1)),
        Violation.T_RP,
    ),
    "tRP before a refresh": (
        (*_BEGIN, ("active", 0, 1, 9), ("precharge", 0, 0, 1), ("refresh", 0, 0, 1)),
        Violation.T_RP,
    ),
    "tRP after its own precharge": (
        (*_BEGIN, ("active", 0, 1, 9), ("read", 0, _ALL, 1), ("active", 0, 2, 1)),
        Violation.OPEN,
    ),
    "tRC, and tRP": (
        (*_BEGIN, ("active", 0, 1, 5), ("precharge", 0, 0, 1), ("active", 0, 2, 1)),
        Violation.T_RC,
    ),
    "tRFC": ((*_BEGIN, ("refresh", 0, 0, 6), ("active", 0, 0, 1)), Violation.T_RFC),
    "tRRD": ((*_BEGIN, ("active", 0, 1, 1), ("active", 1, 1, 1)), Violation.T_RRD),
    "tWR": (
        (*_BEGIN, ("active", 0, 1, 8), ("write", 0, 0, 1), ("precharge", 0, 0, 1)),
        Violation.T_WR,
    ),
    "never refreshed": (
        (*_BEGIN, ("active", 0, 1, 9), ("precharge", 0, 0, 8_000)),
        Violation.REFRESH_LATE,
    ),
}


def make() -> SdrModel:
    """The model of a chip."""
    return SdrModel(chip=MT48LC16M16, hertz=_HERTZ)


def _others(rtlil: str) -> str:
    return cells_verilog(MT48LC16M16)


BENCH = Bench(name="bench_sdr_chip", component=make, test_module=__name__, others=_others)


async def _execute(dut: Any, steps: tuple[Step, ...], cke: int = 1) -> None:
    dut.pins__cke.value = cke
    for name, bank, address, wait in steps:
        pins = (dut.pins__ras_n, dut.pins__cas_n, dut.pins__we_n)
        for pin, level in zip(pins, _LEVELS[name], strict=True):
            pin.value = level
        dut.pins__cs_n.value = 0
        dut.pins__bank.value = bank
        dut.pins__address.value = address
        dut.pins__data_oe.value = int(name == "write")
        dut.pins__data_o.value = 0x1234 + address
        await RisingEdge(dut.clk)
        dut.pins__cs_n.value = 1
        dut.pins__data_oe.value = 0
        await ClockCycles(dut.clk, wait - 1)


async def _begin(dut: Any) -> None:
    for name in ("cke", "data_oe", "mask", "bank", "address"):
        getattr(dut, f"pins__{name}").value = 0
    for name in ("cs_n", "ras_n", "cas_n", "we_n"):
        getattr(dut, f"pins__{name}").value = 1
    await start(dut)
    await ClockCycles(dut.clk, 5)


@cocotb.test()
@cocotb.parametrize(case=list(CASES))
async def sees(dut: Any, case: str) -> None:
    steps, expected = CASES[case]
    await _begin(dut)
    await _execute(dut, steps)
    await ClockCycles(dut.clk, 5)
    assert Violation(int(dut.violation.value)) is expected


@cocotb.test()
async def sees_two_drivers(dut: Any) -> None:
    await _begin(dut)
    await _execute(dut, (*_BEGIN, ("active", 0, 1, 3), ("read", 0, 0, 1)))
    dut.pins__data_oe.value = 1
    await ClockCycles(dut.clk, 6)
    assert Violation(int(dut.violation.value)) is Violation.CONTENTION


@cocotb.test()
async def sees_a_stopped_clock(dut: Any) -> None:
    await _begin(dut)
    await _execute(dut, _BEGIN[:1], cke=0)
    await ClockCycles(dut.clk, 5)
    assert Violation(int(dut.violation.value)) is Violation.CKE


@cocotb.test()
async def reads_what_was_written(dut: Any) -> None:
    """The data come CAS latency and two registers after the command."""
    await _begin(dut)
    await _execute(dut, (*_BEGIN, ("active", 2, 1, 3), ("write", 2, 7, 4), ("read", 2, 7, 1)))
    latency = MT48LC16M16.cas_latency(_HERTZ) + 2
    await ClockCycles(dut.clk, latency - 1)
    await RisingEdge(dut.clk)
    assert int(dut.pins__data_i.value) == 0x1234 + 7
    assert Violation(int(dut.violation.value)) is Violation.NONE
