"""Gaussian logarithms of fine formats in hardware: pieces of G+, and G- by cotransformation."""

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ....primitives.delay import delay
from ....primitives.multiplier18 import OPERAND_BITS, Multiplier18
from .gaussian_log import Gaussian, read_table
from .gaussian_log_interpolated_model import GUARD_BITS, INTERCEPT_PLACES, InterpolatedGauss
from .gaussian_log_model import reach

LARGEST_FRACTION_BITS = OPERAND_BITS - 1 - GUARD_BITS
"""An unsigned operand of the multiplier is a place within an octave, F + GUARD_BITS bits."""


class PiecewisePlus(wiring.Component):
    """G+ in steps; never stalls.

    Members
    -------
    argument : In
        Steps.
    result : Out
        Steps, signed, ``latency`` cycles later; 0 beyond the last octave.

    Raises
    ------
    ValueError
        If the format has more than ``LARGEST_FRACTION_BITS``.
    """

    argument: Signal
    result: Signal

    latency = 3 + Multiplier18.latency
    """Cycles: a piece's address, its reading, its line."""

    def __init__(self, gauss: InterpolatedGauss, *, argument_bits: int) -> None:
        fraction_bits = gauss.lns.fraction_bits
        if fraction_bits > LARGEST_FRACTION_BITS:
            raise ValueError(
                f"hardware must have a logarithmic format of at most {LARGEST_FRACTION_BITS}"
                f" fraction bits, as its multipliers have {OPERAND_BITS} bits, not"
                f" {fraction_bits} ({gauss.lns.name})"
            )
        self._gauss = gauss
        super().__init__(
            {
                "argument": In(argument_bits),
                "result": Out(signed(gauss.step_bits + 2)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        gauss = self._gauss
        piece, rest, beyond = self._find(m)
        intercepts, falls = gauss.pieces
        intercept = read_table(m, intercepts, piece, "intercepts")
        fall = read_table(m, falls, piece, "falls")
        m.submodules.multiplier = multiplier = Multiplier18(
            a=unsigned(len(fall)), b=unsigned(gauss.step_bits)
        )
        late = Multiplier18.latency
        m.d.comb += [
            multiplier.a.eq(fall),
            multiplier.b.eq(delay(m, rest, 1, "rest", reset_less=True)),
        ]
        start = delay(m, intercept, late, "start", reset_less=True)
        none = delay(m, beyond, late + 1, "none", reset_less=True)
        shift = gauss.slope_places - INTERCEPT_PLACES
        line = ((start << shift) - multiplier.p) >> gauss.slope_places
        result = Signal.like(self.result, name="line", reset_less=True)
        m.d.sync += result.eq(Mux(none, 0, line))
        m.d.comb += self.result.eq(result)
        return m

    def _find(self, m: Module) -> tuple[Signal, Signal, Signal]:
        """A piece's number, the place within it, and whether there is none, a cycle later."""
        gauss = self._gauss
        octave, fraction = self.argument[gauss.step_bits :], self.argument[: gauss.step_bits]
        piece = Signal(range(int(gauss.bases[-1])), reset_less=True)
        rest = Signal(gauss.step_bits, reset_less=True)
        beyond = Signal(reset_less=True)
        m.d.sync += beyond.eq(octave >= gauss.octaves)
        with m.Switch(octave[1:]):
            for pair in range(-(-gauss.octaves // 2)):
                bits = int(gauss.piece_bits(2 * pair))
                # both octaves of a pair have as many pieces
                second = Mux(octave[0], 1 << bits, 0)
                with m.Case(pair):
                    m.d.sync += [
                        piece.eq(int(gauss.bases[2 * pair]) + second + _highest(fraction, bits)),
                        rest.eq(fraction[: gauss.step_bits - bits]),
                    ]
        return piece, rest, beyond


def _highest(value: Value, bits: int) -> Value:
    return value[len(value) - bits :] if bits else Const(0, 1)


class InterpolatedGaussian(Gaussian):
    """Reads G- of the distance's parts, makes the argument, and adds what pieces give."""

    latency = 2 + PiecewisePlus.latency + 1
    """Cycles: the tables of parts, the argument, G+, the rounded sum."""

    def __init__(self, gauss: InterpolatedGauss) -> None:
        self._gauss = gauss
        largest = (reach(gauss.lns) - 1 << GUARD_BITS) + int(gauss.parts[1].max())
        argument_bits = max(largest.bit_length(), gauss.step_bits + 2)
        self._plus = PiecewisePlus(gauss, argument_bits=argument_bits)
        super().__init__(gauss)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.plus = plus = self._plus
        width, split = (reach(self._gauss.lns) - 1).bit_length(), self._gauss.low_bits
        high, low = self.distance[split:width], self.distance[:split]
        of_high, of_low = (
            read_table(m, contents, part, name)
            for contents, part, name in zip(
                self._gauss.parts, (high, low), ("highs", "lows"), strict=True
            )
        )
        single = delay(m, ~(high.any() & low.any()), 1, "single")
        unlike = delay(m, self.unlike, 1, "unlike")
        far = delay(m, self.distance >= reach(self._gauss.lns), 1, "far")
        distance = delay(m, self.distance[:width], 1, "distance")
        joined = (distance[split:] << (split + GUARD_BITS)) - of_high + of_low
        fall = Signal(len(of_low) + 1, reset_less=True)
        nothing = Signal(reset_less=True)
        m.d.sync += [
            plus.argument.eq(Mux(unlike, joined, distance << GUARD_BITS)),
            fall.eq(Mux(unlike & ~far, of_high + Mux(single, of_low, 0), 0)),
            nothing.eq(far | (unlike & single)),
        ]
        late_fall = delay(m, fall, plus.latency, "late_fall", reset_less=True)
        without = delay(m, nothing, plus.latency, "without", reset_less=True)
        steps = Mux(without, 0, plus.result) - late_fall
        change = Signal.like(self.change, name="rounded", reset_less=True)
        m.d.sync += change.eq((steps + (1 << GUARD_BITS - 1)) >> GUARD_BITS)
        m.d.comb += self.change.eq(change)
        return m
