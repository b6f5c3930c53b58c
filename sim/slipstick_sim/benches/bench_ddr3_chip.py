"""The model of DDR3 sees each rule that is broken, and only that."""

from collections.abc import Iterable
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles, RisingEdge
from slipstick_rtl.dram.ddr3 import PHASES
from slipstick_rtl.dram.ddr3_initialiser import mode_registers

from ..dram.ddr3_chip import Ddr3Model, ddr3_cells_verilog
from ..dram.ddr3_reads import window
from ..dram.violation import Ddr3Violation as Rule
from .bench_ddr3_initialiser import WINDOWS, ddr3_settings
from .drivers.streams import pack, start
from .registry import Bench

SETTINGS = ddr3_settings(75)
_MODES = mode_registers(SETTINGS.chip, SETTINGS.chip_hertz)
_ALL = 1 << 10

_LEVELS = {
    "active": (0, 1, 1),
    "read": (1, 0, 1),
    "write": (1, 0, 0),
    "precharge": (0, 1, 0),
    "refresh": (0, 0, 1),
    "mode": (0, 0, 0),
    "calibrate": (1, 1, 0),
}

Step = tuple[str, int, int, int]
"""A command, its bank and address, and cycles of the chip's clock until the next one."""

_BEGIN: tuple[Step, ...] = (
    ("mode", 2, _MODES[2], 4),
    ("mode", 3, _MODES[3], 4),
    ("mode", 1, _MODES[1], 4),
    ("mode", 0, _MODES[0], 12),
    ("calibrate", 0, _ALL, 512),
)
# at 150 MHz: tRCD 3, tRP 3, tRAS 6, tRC 8, tRFC 39, tRRD 4, tFAW 6, tWR 3, tWTR 4, tRTP 4 cycles;
# READs are in even cycles, which begin with 0, and WRITEs are in odd ones
_GOOD: tuple[Step, ...] = (
    ("active", 0, 5, 4),
    ("active", 1, 6, 5),
    ("write", 0, 8, 13),
    ("read", 1, 8, 4),
    ("read", 1, 16, 7),
    ("write", 1, 0, 4),
    ("write", 0, 0, 12),
    ("precharge", 0, 0, 1),
    ("precharge", 1, 0, 3),
    ("refresh", 0, 0, 39),
    ("active", 7, 32767, 4),
    ("active", 6, 31, 11),
    ("precharge", 0, _ALL, 3),
    ("calibrate", 0, 0, 64),
    ("active", 7, 0, 4),
)
_OPEN: Step = ("active", 0, 1, 4)


def _case(*steps: Step, rule: Rule) -> tuple[tuple[Step, ...], Rule]:
    return (*_BEGIN, *steps), rule


CASES: dict[str, tuple[tuple[Step, ...], Rule]] = {
    "good": _case(*_GOOD, rule=Rule.NONE),
    "used at once": ((("active", 0, 0, 2),), Rule.NOT_INITIALISED),
    "modes in another order": ((_BEGIN[1], _BEGIN[0]), Rule.NOT_INITIALISED),
    "no calibration": ((*_BEGIN[:4], ("active", 0, 0, 2)), Rule.NOT_INITIALISED),
    "another latency": ((*_BEGIN[:3], ("mode", 0, _MODES[0] ^ 0x10, 12)), Rule.MODE),
    "tMRD": ((("mode", 2, _MODES[2], 3), _BEGIN[1]), Rule.T_MOD),
    "tMOD": ((*_BEGIN[:3], ("mode", 0, _MODES[0], 11), _BEGIN[4]), Rule.T_MOD),
    "tZQinit": ((*_BEGIN[:4], ("calibrate", 0, _ALL, 511), _OPEN), Rule.T_ZQ),
    "tZQCS": _case(("calibrate", 0, 0, 63), _OPEN, rule=Rule.T_ZQ),
    "opened twice": _case(("active", 0, 1, 9), _OPEN, rule=Rule.OPEN),
    "refreshed while open": _case(("active", 0, 1, 9), ("refresh", 0, 0, 39), rule=Rule.OPEN),
    "read while closed": _case(("read", 2, 0, 2), rule=Rule.CLOSED),
    "tRCD": _case(("refresh", 0, 0, 40), ("active", 0, 1, 2), ("read", 0, 0, 1), rule=Rule.T_RCD),
    "tRAS": _case(("active", 0, 1, 5), ("precharge", 0, 0, 1), rule=Rule.T_RAS),
    "tRP": _case(("active", 0, 1, 9), ("precharge", 0, 0, 2), _OPEN, rule=Rule.T_RP),
    "tRP before a refresh": _case(
        ("active", 0, 1, 9), ("precharge", 0, _ALL, 2), ("refresh", 0, 0, 39), rule=Rule.T_RP
    ),
    "tRC, and tRP": _case(
        ("active", 0, 1, 6), ("precharge", 0, 0, 1), ("active", 0, 2, 1), rule=Rule.T_RC
    ),
    "tRFC": _case(("refresh", 0, 0, 38), _OPEN, rule=Rule.T_RFC),
    "tRRD": _case(("active", 0, 1, 3), ("active", 1, 1, 1), rule=Rule.T_RRD),
    "tCCD": _case(("active", 0, 1, 4), ("read", 0, 0, 2), ("read", 0, 8, 2), rule=Rule.T_CCD),
    "tRTP": _case(("active", 0, 1, 8), ("read", 0, 0, 3), ("precharge", 0, 0, 1), rule=Rule.T_RTP),
    "tWR": _case(("active", 0, 1, 5), ("write", 0, 0, 11), ("precharge", 0, 0, 1), rule=Rule.T_WR),
    "tWTR of another bank": _case(
        ("active", 0, 1, 4),
        ("active", 1, 1, 5),
        ("write", 0, 0, 11),
        ("read", 1, 0, 1),
        rule=Rule.T_WTR,
    ),
    "tRTW": _case(_OPEN, ("read", 0, 0, 5), ("write", 0, 0, 1), rule=Rule.T_RTW),
    "WRITE in the phase of READ": _case(_OPEN, ("write", 0, 0, 1), rule=Rule.PHASE),
    "PRECHARGE of its own": _case(_OPEN, ("read", 0, _ALL, 2), rule=Rule.AUTO_PRECHARGE),
    "a row in the middle": _case(("active", 0, 16000, 4), rule=Rule.ROW_NOT_HELD),
    "never refreshed": _case(
        ("active", 0, 1, 8), ("precharge", 0, 0, 12_000), rule=Rule.REFRESH_LATE
    ),
}


def make() -> Ddr3Model:
    """The model of a chip."""
    return Ddr3Model(settings=SETTINGS)


def _others(rtlil: str) -> str:
    return ddr3_cells_verilog(SETTINGS)


BENCH = Bench(
    name="bench_ddr3_chip",
    component=make,
    test_module=__name__,
    others=_others,
    optimisation="-O0",
)


async def _execute(dut: Any, steps: Iterable[Step]) -> None:
    """Gives the commands, of which the first is in the first phase."""
    phase = 0
    for name, bank, address, wait in steps:
        pins = f"pins__phase{phase}__"
        for pin, level in zip(("ras_n", "cas_n", "we_n"), _LEVELS[name], strict=True):
            getattr(dut, pins + pin).value = level
        getattr(dut, pins + "bank").value = bank
        getattr(dut, pins + "address").value = address
        dut.pins__read.value = int(name == "read")
        dut.pins__write.value = int(name == "write")
        cycles, phase = divmod(phase + wait, PHASES)
        if cycles:
            await RisingEdge(dut.clk)
            _rest(dut)
            await ClockCycles(dut.clk, cycles - 1)
    await RisingEdge(dut.clk)
    _rest(dut)


def _rest(dut: Any) -> None:
    """No command in any phase."""
    for phase in range(PHASES):
        for pin in ("ras_n", "cas_n", "we_n"):
            getattr(dut, f"pins__phase{phase}__{pin}").value = 1
    dut.pins__read.value = dut.pins__write.value = 0


async def _begin(dut: Any, *, reset_n: int = 1) -> None:
    """Wakes the chip, whose bytes are right at the PHY's first delay and slip."""
    _rest(dut)
    for name in ("cke", "odt", "mask", "written"):
        getattr(dut, f"pins__{name}").value = 0
    for name in ("select", "delay_reset", "delay_next", "slip_reset", "slip_next", "clear"):
        getattr(dut, f"pins__delays__{name}").value = 0
    dut.windows.value = pack(WINDOWS, dict(enumerate([window()] * SETTINGS.chip.groups)))
    dut.pins__reset_n.value = reset_n
    await start(dut)
    await ClockCycles(dut.clk, 5)
    dut.pins__cke.value = 1
    await ClockCycles(dut.clk, 50)


def _check(dut: Any, rule: Rule) -> None:
    assert Rule(int(dut.violation.value)) is rule


@cocotb.test()
@cocotb.parametrize(case=list(CASES))
async def sees(dut: Any, case: str) -> None:
    steps, expected = CASES[case]
    await _begin(dut)
    await _execute(dut, steps)
    await ClockCycles(dut.clk, 5)
    _check(dut, expected)


@cocotb.test()
async def sees_a_command_too_early(dut: Any) -> None:
    """tXPR."""
    await _begin(dut)
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    await ClockCycles(dut.clk, 10)
    await _execute(dut, _BEGIN)
    _check(dut, Rule.T_XPR)


@cocotb.test()
async def sees_a_chip_in_reset(dut: Any) -> None:
    await _begin(dut, reset_n=0)
    await RisingEdge(dut.clk)
    _check(dut, Rule.CKE)


@cocotb.test()
async def sees_a_clock_that_stops(dut: Any) -> None:
    await _begin(dut)
    await _execute(dut, _BEGIN)
    dut.pins__cke.value = 0
    await ClockCycles(dut.clk, 3)
    _check(dut, Rule.CKE)


@cocotb.test()
async def reads_what_was_written(dut: Any) -> None:
    """Whole words and single bytes, with the latencies that LiteDRAM counts on."""
    await _begin(dut)
    await _execute(dut, (*_BEGIN, ("active", 2, 1, 5)))
    # the wait for the end of ``_execute`` is a cycle
    word, changed = 0x0123456789ABCDEF_FEDCBA9876543210, 0xAA << 72
    for written, mask in ((word, 0), (changed, 0xFFFF ^ 1 << 9)):
        await _execute(dut, (("precharge", 5, 0, 1), ("write", 2, 24, 1)))
        await ClockCycles(dut.clk, SETTINGS.write_latency - 2)
        dut.pins__written.value, dut.pins__mask.value = written, mask
        await RisingEdge(dut.clk)
        dut.pins__written.value, dut.pins__mask.value = 0, 0xFFFF
        await ClockCycles(dut.clk, 10)
    await _execute(dut, (("read", 2, 24, 1),))
    await ClockCycles(dut.clk, SETTINGS.read_latency - 1)
    await RisingEdge(dut.clk)
    assert int(dut.pins__read_data.value) == word & ~(0xFF << 72) | changed
    _check(dut, Rule.NONE)
