"""The window reader: vectors of R input bytes for P pixels, for any convolution, from memory."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, ShapeLike, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..config import Configuration
from ..memory.activation_memory import WINDOW_READ_LATENCY
from ..primitives.delay import delay
from ..primitives.resting import registered, where
from .lane_table import SWAP_CYCLES, LaneTable
from .rotator import Rotator


class WindowGather(wiring.Component):
    """One pixel's R bytes: addresses, rotation into banks and back, padding.

    Lane r's address is the window's plus the lane's offset. All of them lie in different banks,
    as each is congruent to lane 0's plus r modulo B: so one rotation brings addresses to banks,
    and its inverse brings bytes to lanes. Banks of no lane are given any row, and not used.

    Parameters
    ----------
    rows, banks : int
        R and B, a power of two from R up.
    address_bits : int
    lanes : data.ArrayLayout
        Of the lane table.
    silicon : int
        1: rows are added up only where they change.

    Members
    -------
    lanes, base, y, x : In
        The tile's lanes, the window's address and coordinates; ``base`` and ``x`` once for each
        half of the lanes.
    rows_change : In
        With ``silicon``: ``y`` or the lanes are not those of the cycle before.
    height, width, padding : In
        Of the input; they change with the lanes.
    bank_rows, bank_bytes : Out, In
        The memory's port.
    o : Out
        [R] bytes, ``latency`` cycles after the inputs.
    """

    lanes: data.View
    base: Signal
    y: Signal
    x: Signal
    rows_change: Signal
    height: Signal
    width: Signal
    padding: Signal
    bank_rows: data.View
    bank_bytes: data.View
    o: data.View

    def __init__(
        self,
        *,
        rows: int,
        banks: int,
        address_bits: int,
        lanes: data.ArrayLayout,
        silicon: int = 0,
    ) -> None:
        self._rows, self._address_bits, self._silicon = rows, address_bits, silicon
        self._bank_bits = exact_log2(banks)
        self._row_bits = address_bits - self._bank_bits
        super().__init__(
            {
                "lanes": In(lanes),
                "base": In(data.ArrayLayout(address_bits, 2)),
                "y": In(signed(16)),
                "x": In(data.ArrayLayout(signed(16), 2)),
                **({"rows_change": In(1)} if silicon else {}),
                "height": In(16),
                "width": In(16),
                "padding": In(signed(8)),
                "bank_rows": Out(data.ArrayLayout(self._row_bits, banks)),
                "bank_bytes": In(data.ArrayLayout(8, banks)),
                "o": Out(data.ArrayLayout(signed(8), rows)),
            }
        )
        self._to_banks = Rotator(width=self._row_bits, count=banks, right=True)
        self._to_lanes = Rotator(width=8, count=banks)

    @property
    def latency(self) -> int:
        """Addresses, rotation, memory, rotation, padding."""
        return 1 + self._memory_cycles + Rotator.LATENCY + 1

    @property
    def _memory_cycles(self) -> int:
        return Rotator.LATENCY + WINDOW_READ_LATENCY

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.to_banks = to_banks = self._to_banks
        m.submodules.to_lanes = to_lanes = self._to_lanes
        renewed = self.rows_change if self._silicon else None
        height = registered(m, self.height, renewed, "height_0")
        width = registered(m, self.width, renewed, "width_0")
        padding = delay(m, self.padding, self.latency - 1, "padding", reset_less=True)
        amount = Signal(self._bank_bits)
        for r in range(self._rows):
            lane, half = self.lanes[r], 2 * r // self._rows
            address = Signal(self._address_bits, name=f"address_{r}", reset_less=True)
            # below zero wraps to beyond any height: one comparison serves both ends
            y = Signal(16, name=f"y_{r}", reset_less=True)
            x = Signal(16, name=f"x_{r}", reset_less=True)
            rows_inside, columns_inside, inside = (
                Signal(name=f"{name}_{r}", reset_less=True)
                for name in ("rows_inside", "columns_inside", "inside")
            )
            m.d.sync += address.eq(self.base[half] + lane.offset)
            with where(m, renewed):
                m.d.sync += y.eq(self.y + lane.y)
            m.d.sync += [
                x.eq(self.x[half] + lane.x),
                rows_inside.eq(y < height),
                columns_inside.eq(x < width),
                inside.eq(rows_inside & columns_inside),
            ]
            m.d.comb += to_banks.i[r].eq(address[self._bank_bits :])
            if r == 0:
                m.d.comb += amount.eq(address[: self._bank_bits])
            arrived = delay(m, inside, self.latency - 4, f"inside_{r}_late", reset_less=True)
            byte = Value.cast(to_lanes.o[r]).as_signed()
            chosen = Mux(arrived, byte, padding)
            m.d.comb += self.o[r].eq(delay(m, chosen, 1, f"o_{r}", reset_less=True))
        m.d.comb += [
            to_banks.amount.eq(amount),
            self.bank_rows.eq(to_banks.o),
            to_lanes.i.eq(self.bank_bytes),
            to_lanes.amount.eq(delay(m, amount, self._memory_cycles, "amount", reset_less=True)),
        ]
        return m


class WindowReader(wiring.Component):
    """The lane table and a gather unit for each of P pixels, or one for two windows of half as
    many lanes.

    Parameters
    ----------
    configuration : Configuration
    address_bits : int

    Members
    -------
    table : LaneTable's ports are reached through the attribute ``table``.
    base, x, y : In
        As the pixel counter gives them.
    height, width, padding : In
    bank_rows, bank_bytes : Out, In
        [P][B], the activation memory's port A.
    o : Out
        [P][R] operands, ``latency`` cycles after ``base``.
    """

    base: data.View
    y: Signal
    x: data.View
    height: Signal
    width: Signal
    padding: Signal
    bank_rows: data.View
    bank_bytes: data.View
    o: data.View

    def __init__(self, *, configuration: Configuration, address_bits: int) -> None:
        c = configuration
        row_bits = address_bits - exact_log2(c.banks)
        self._windows, self._silicon = c.windows, c.silicon
        self.table = LaneTable(configuration=c, address_bits=address_bits)
        self._gathers = [
            WindowGather(
                rows=c.rows,
                banks=c.banks,
                address_bits=address_bits,
                lanes=self.table.lanes.shape(),
                silicon=c.silicon,
            )
            for _ in range(c.pixels)
        ]

        def grid(word: ShapeLike, count: int) -> data.ArrayLayout:
            return data.ArrayLayout(data.ArrayLayout(word, count), c.pixels)

        super().__init__(
            {
                "base": In(data.ArrayLayout(address_bits, c.windows)),
                "y": In(signed(16)),
                "x": In(data.ArrayLayout(signed(16), c.windows)),
                "height": In(16),
                "width": In(16),
                "padding": In(signed(8)),
                "bank_rows": Out(grid(row_bits, c.banks)),
                "bank_bytes": In(grid(8, c.banks)),
                "o": Out(grid(signed(8), c.rows)),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a window's address to its bytes."""
        return SWAP_CYCLES - 1 + self._gathers[0].latency

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.table = self.table
        # the second half of a gather unit's lanes has a window of its own
        pair = int(len(self._gathers) < self._windows)

        def late(value: Any, name: str) -> Any:
            return delay(m, value, SWAP_CYCLES - 1, name, reset_less=True)

        # in silicon what is the same for a whole tile is taken with the tile only
        swap = delay(m, self.table.swap, 1, "swap") if self._silicon else None
        y = late(self.y, "y")
        height = registered(m, self.height, swap, "height_0")
        width = registered(m, self.width, swap, "width_0")
        padding = registered(m, self.padding, swap, "padding_0")
        windows = range(self._windows)
        bases = [late(self.base[k], f"base_{k}") for k in windows]
        columns = [late(self.x[k], f"x_{k}") for k in windows]
        last = windows[-1]
        rows_change: Value = Const(0, 1)
        if self._silicon:
            swapped = delay(m, swap, SWAP_CYCLES - 1, "swapped")
            rows_change = swapped | delay(m, self.y != y, SWAP_CYCLES - 1, "moved")
        for p, gather in enumerate(self._gathers):
            m.submodules[f"gather_{p}"] = gather
            m.d.comb += [
                gather.lanes.eq(self.table.lanes),
                *(gather.base[half].eq(bases[min(p + half * pair, last)]) for half in range(2)),
                gather.y.eq(y),
                *(gather.x[half].eq(columns[min(p + half * pair, last)]) for half in range(2)),
                gather.height.eq(height),
                gather.width.eq(width),
                gather.padding.eq(padding),
                *([gather.rows_change.eq(rows_change)] if self._silicon else []),
                self.bank_rows[p].eq(gather.bank_rows),
                gather.bank_bytes.eq(self.bank_bytes[p]),
                self.o[p].eq(gather.o),
            ]
        return m
