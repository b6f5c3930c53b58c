"""A step of training: masters less the pseudo-stochastically rounded sums of their gradient."""

from amaranth.hdl import Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..primitives.carry_sum import Operand, carry_sum
from ..primitives.delay import delay
from ..primitives.delay_memory import long_delay
from .transfer import SHIFT_BITS

LARGEST_MASTER = 32639
"""Magnitude of a master and of a step: the largest that rounds to a weight of 127."""

_STEP_BITS = LARGEST_MASTER.bit_length()
_MAGNITUDE_BITS = 31
_FRACTION_BITS = 16
"""Dropped bits at most that are the fraction, and as many that are chance."""
MASTER_PLACES = 8
"""Bits of a master below those of its weight."""

_MAGNITUDE_CYCLES = 2
_SCALE_CYCLES = 2
_ROUND_CYCLES = 2
_STEP_CYCLES = 1
_UPDATE_CYCLES = 3


class UpdateArithmetic(wiring.Component):
    """Computes ``master - psr(sum, shift)``, one per cycle, ``latency`` cycles later.

    ``psr`` divides a magnitude by 2^shift. The upper half of the dropped bits, the *fraction*, is
    compared with the lower half, which stands for a random number, *chance*; if ``shift`` is odd a
    0 is appended to chance. The magnitude is rounded up if the fraction is greater. So a first
    shifter drops ``shift // 2`` bits, below which the fraction lies, and a second one the
    fraction's. Step and result saturate at ``LARGEST_MASTER``. The golden model is
    ``slipstick_sim.golden.training.update``.

    Members
    -------
    shift : In
        0..31; with more, masters only saturate. It holds while sums are under way, and from two
        cycles before the first.
    sum : In(signed(32))
        Magnitudes up to 2^31 - 1.
    master : In(signed(16))
    updated : Out(signed(16))
        Within +-LARGEST_MASTER.
    """

    shift: Signal
    sum: Signal
    master: Signal
    updated: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "shift": In(SHIFT_BITS),
                "sum": In(signed(32)),
                "master": In(signed(16)),
                "updated": Out(signed(16)),
            }
        )

    @property
    def latency(self) -> int:
        """Cycles from a sum and its master to the master updated."""
        return self._step_latency + _UPDATE_CYCLES

    @property
    def _step_latency(self) -> int:
        return _MAGNITUDE_CYCLES + _SCALE_CYCLES + _ROUND_CYCLES + _STEP_CYCLES

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # per instruction: bits that the fraction and chance have, and a 1 for each of them
        width, mask = Signal(range(_FRACTION_BITS + 1)), Signal(_FRACTION_BITS)
        m.d.sync += [
            width.eq(self.shift[1:5] + self.shift[0]),
            mask.eq(~(Const(-1, _FRACTION_BITS) << width)),
        ]
        magnitude, negative = self._magnitude(m, platform)
        scaled, no_chance = self._scale(m, magnitude, mask)
        quotient, up, large = self._round(m, platform, scaled, no_chance, width, mask)
        waiting = _SCALE_CYCLES + _ROUND_CYCLES
        positive = ~delay(m, negative, waiting, "negative", reset_less=True)
        # the largest step, or more; comparisons in full would each cost a carry chain
        saturates = large | quotient[MASTER_PLACES - 1 :].all() | (quotient == LARGEST_MASTER)
        step, flips, one = Signal(_STEP_BITS), Signal(), Signal()
        m.d.sync += [
            step.eq(Mux(saturates, LARGEST_MASTER, quotient)),
            # less step and up, or plus: -(step + up) = ~step + ~up
            flips.eq(positive),
            one.eq((up & ~saturates) ^ positive),
        ]
        self._update(m, platform, Operand(step, flip=flips), one)
        return m

    def _magnitude(self, m: Module, platform: object) -> tuple[Signal, Signal]:
        """Magnitude and sign; 0 if nothing is learned."""
        value = Signal(signed(32), reset_less=True)
        negative = Signal(reset_less=True)
        magnitude = Signal(_MAGNITUDE_BITS, reset_less=True)
        sign, zero = value[-1], Operand(Const(0, 1))
        flipped = Operand(value[:_MAGNITUDE_BITS], flip=sign)
        made = carry_sum(
            m, platform, "made", zero, flipped, width=_MAGNITUDE_BITS, ones=(sign, Const(1, 1))
        )
        m.d.sync += [
            value.eq(Mux(self.shift[-1], 0, self.sum)),
            magnitude.eq(made),
            negative.eq(sign),
        ]
        return magnitude, negative

    def _scale(self, m: Module, magnitude: Signal, mask: Signal) -> tuple[Signal, Signal]:
        """The magnitude from the fraction on, and the complement of chance."""
        part = Signal(_MAGNITUDE_BITS, reset_less=True)
        scaled = Signal(_MAGNITUDE_BITS, reset_less=True)
        no_chance = Signal(_FRACTION_BITS, reset_less=True)
        chance = Mux(self.shift[0], magnitude << 1, magnitude) & mask
        m.d.sync += [
            part.eq(_shifted(magnitude, self.shift[1:3], 1)),
            scaled.eq(_shifted(part, self.shift[3:5], 4)),
            no_chance.eq(~chance),
        ]
        return scaled, delay(m, no_chance, _SCALE_CYCLES - 1, "no_chance", reset_less=True)

    def _round(
        self,
        m: Module,
        platform: object,
        scaled: Signal,
        no_chance: Signal,
        width: Signal,
        mask: Signal,
    ) -> tuple[Signal, Signal, Signal]:
        """Quotient, whether it is rounded up, and whether it has more bits than a step."""
        # a step's bits lie at width and above: with 16, which is shift 31, there are none
        rest = Signal(_STEP_BITS + 3, reset_less=True)
        quotient = Signal(_STEP_BITS, reset_less=True)
        up, large = Signal(reset_less=True), Signal(reset_less=True)
        # fraction + ~chance passes 16 bits if the fraction is greater
        compared = carry_sum(
            m,
            platform,
            "compared",
            Operand(scaled[:_FRACTION_BITS], mask=mask),
            Operand(no_chance),
            width=_FRACTION_BITS + 1,
        )
        above = scaled[_STEP_BITS:] & ~mask
        m.d.sync += [
            rest.eq(_shifted(scaled, width[2:4], 4)),
            quotient.eq(Mux(width[-1], 0, _shifted(rest, width[:2], 1))),
            up.eq(compared[-1]),
            large.eq(above.any()),
        ]
        late = _ROUND_CYCLES - 1
        return quotient, delay(m, up, late, "up"), delay(m, large, late, "large")

    def _update(self, m: Module, platform: object, step: Operand, one: Signal) -> None:
        """Takes the step off the master, and saturates."""
        late = long_delay(m, self.master, self._step_latency, "master").as_signed()
        difference = Signal(signed(17), reset_less=True)
        kept, rounded = Signal(signed(16), reset_less=True), Signal(signed(10), reset_less=True)
        edge = Signal(reset_less=True)
        total = carry_sum(
            m, platform, "total", Operand(late), step, width=17, ones=(one, Const(1, 1))
        )
        # beyond +-127 as a weight, or -32640, whose weight is -127: less than two comparisons
        negative, high, low = (
            rounded[-1],
            rounded[MASTER_PLACES - 1 : -1],
            rounded[: MASTER_PLACES - 1],
        )
        above = ~negative & high.any()
        below = negative & ~(high.all() & low.any())
        m.d.sync += [
            difference.eq(total),
            rounded.eq(difference[MASTER_PLACES:].as_signed() + difference[MASTER_PLACES - 1]),
            kept.eq(difference),
            edge.eq(difference == -LARGEST_MASTER - 1),
            self.updated.eq(Mux(above, LARGEST_MASTER, Mux(below | edge, -LARGEST_MASTER, kept))),
        ]


def _shifted(value: Value, places: Value, unit: int) -> Value:
    """``value >> places * unit``, of two bits of places."""
    once, twice = value >> unit, value >> 2 * unit
    return Mux(places[1], Mux(places[0], value >> 3 * unit, twice), Mux(places[0], once, value))
