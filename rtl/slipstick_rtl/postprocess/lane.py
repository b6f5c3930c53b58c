"""One lane of the post engine: taps or an accumulator in, a result out."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..isa import FACTOR_BITS
from ..primitives.stages import Stages, busy_member
from .multiplier import VALUE_BITS
from .requantization import instruction_fields, parameter_fields, requantizer
from .requantizer import Requantizer
from .table import ENTRY_BITS, Table
from .training_requantizer import TrainingRequantizer

_NOTING = ("noting", "forgetting")

TAP_SHIFT = 19
"""Places by which a MAP's ``shift_taps`` shifts bytes to the left."""

_CONTROL = data.StructLayout(
    {
        "shifted": 1,  # at the byte: it is shifted
        "absent": 1,  # a cycle later: the tap is no byte but an entry, an accumulator or a product
        "inverted": 1,  # likewise: taps are subtracted, for the greatest
        "looked_up": 1,  # two cycles later: it is an entry
        "valid": 1,  # three cycles later, as the rest: there is a tap
        "alone": 1,  # it takes the place of those before
        "compared": 1,  # ... if it is greater
        "subtracted": 1,  # "inverted", of the same tap
    }
)
"""Control bits that every lane has for a tap, each in the cycle in which it is used."""

_CONTROL_DELAYS = {
    "shifted": 0,
    "absent": 1,
    "inverted": 1,
    "looked_up": Table.latency,
    "valid": Table.latency + 1,
    "alone": Table.latency + 1,
    "compared": Table.latency + 1,
    "subtracted": Table.latency + 1,
}
"""Cycles from a tap's byte to its use of each."""

_PRODUCT_CONTROL = {
    "factor": 1,  # with "looked_up": its entry is a factor
    "multiplied": 1,  # likewise: the product is the tap
}


def lane_control(configuration: Configuration) -> data.StructLayout:
    """Lays out a lane's control bits for a tap, each in the cycle in which it is used."""
    products = _PRODUCT_CONTROL if configuration.products else {}
    return data.StructLayout({**_CONTROL.members, **products})


def control_delays(configuration: Configuration) -> dict[str, int]:
    """Cycles from a tap's byte to its use of each part of ``lane_control``."""
    products = _PRODUCT_CONTROL if configuration.products else ()
    return _CONTROL_DELAYS | dict.fromkeys(products, Table.latency)


class PostLane(wiring.Component):
    """Combination of the taps, requantisation; one tap or accumulator a cycle.

    Parameters
    ----------
    configuration : Configuration
        Of which the lane takes the number format.

    Members
    -------
    control : In(lane_control)
        Each part ``control_delays`` cycles after the byte.
    byte : In(signed(8))
        A tap of MAP.
    entry : In(signed(32))
        The table's for it, ``Table.latency`` cycles later.
    accumulator : In(signed(32))
        What DRAIN takes instead, ``accumulator_delay`` cycles after a byte; 0 for MAP.
    bias : In(signed(32))
        ``value_delay`` cycles after the result's last tap.
    multiplier, shift, rounding, zero_point, minimum, maximum, or others : In
        ``parameter_fields`` and ``instruction_fields`` of the requantiser, counted from the bias.
    result : Out(signed(8))
        ``latency`` cycles after the result's last tap.
    noting, forgetting : In(1)
        With ``training``: ``noting_delay`` cycles after the result's last tap.
    notes : Out(31)
        With ``training``: from the cycle after it on.
    busy : In(latency)
        With ``silicon``: a ``busy_member``.
    """

    control: data.View
    byte: Signal
    entry: Signal
    accumulator: Signal
    bias: Signal
    result: Signal
    notes: Signal
    busy: Signal

    accumulator_delay = Table.latency
    combine_delay = accumulator_delay + 1
    value_delay = combine_delay + 1
    noting_delay = value_delay + TrainingRequantizer.noting_delay
    latency = value_delay + Requantizer.latency

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = configuration
        parameters = parameter_fields(configuration)
        fields = instruction_fields(configuration)
        self._requantizer_inputs = (*parameters, *fields)
        notes: dict[str, wiring.Member] = {}
        if configuration.training:
            self._requantizer_inputs += _NOTING
            notes = dict.fromkeys(_NOTING, In(1)) | {"notes": Out(VALUE_BITS - 1)}
        super().__init__(
            {
                "control": In(lane_control(configuration)),
                "byte": In(signed(8)),
                "entry": In(signed(ENTRY_BITS)),
                "accumulator": In(signed(VALUE_BITS)),
                "bias": In(signed(VALUE_BITS)),
                **{
                    name: In(field.used_bits)
                    for name, field in parameters.items()
                    if name != "bias"
                },
                **{name: In(field.shape) for name, field in fields.items()},
                "result": Out(signed(8)),
                **notes,
                **busy_member(self.latency, silicon=configuration.silicon),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        self._stages = stages = Stages.of(self, silicon=self._configuration.silicon)
        m.submodules.requantizer = lane_requantizer = requantizer(self._configuration)
        stages.lead(m, lane_requantizer, self.value_delay)
        control = self.control
        # a tap that is subtracted comes inverted; one LUT a bit chooses among the three sources
        tap = Signal(signed(VALUE_BITS), reset_less=True)
        looked_up = Mux(control.looked_up, self.entry, 0)
        taken = looked_up ^ self._spread_byte(m) ^ self.accumulator
        if self._configuration.products:
            taken ^= self._multiply(m)
        with stages.at(m, self.accumulator_delay):
            m.d.sync += tap.eq(taken)
        m.d.comb += [
            lane_requantizer.value.eq(self._combine(m, tap)),
            *(
                getattr(lane_requantizer, name).eq(getattr(self, name))
                for name in self._requantizer_inputs
            ),
            self.result.eq(lane_requantizer.result),
        ]
        if isinstance(lane_requantizer, TrainingRequantizer):
            m.d.comb += self.notes.eq(lane_requantizer.notes)
        return m

    def _multiply(self, m: Module) -> Value:
        """The product of the last two factors where it is the tap, 0 elsewhere."""
        factors = [Signal(signed(FACTOR_BITS), name=f"factor_{k}", reset_less=True) for k in (0, 1)]
        with m.If(self.control.factor):
            m.d.sync += [factors[1].eq(self.entry), factors[0].eq(factors[1])]
        product = Signal(signed(2 * FACTOR_BITS))
        m.d.comb += product.eq(factors[0] * factors[1])
        return Mux(self.control.multiplied, product[:VALUE_BITS], 0)

    def _spread_byte(self, m: Module) -> Value:
        """The byte as a word, shifted, 0 if the tap is none, inverted; ``Table.latency`` later."""
        control, byte, sign = self.control, self.byte.as_unsigned(), self.byte[-1]
        between = TAP_SHIFT - len(byte)
        above = VALUE_BITS - TAP_SHIFT - len(byte)
        parts = {
            "low": Mux(control.shifted, 0, byte),
            "middle": sign & ~control.shifted,
            "high": Mux(control.shifted, byte, sign.replicate(len(byte))),
            "sign": sign,
        }
        stored: dict[str, Value] = {}
        for name, part in parts.items():
            spread = self._stages.delay(m, part, 0, 1, name)
            gated = Mux(control.absent, 0, spread) ^ control.inverted.replicate(len(spread))
            stored[name] = self._stages.delay(m, gated, 1, 1, f"{name}_tap")
        low, middle, high, sign = stored.values()
        return Cat(low, middle.replicate(between), high, sign.replicate(above))

    def _combine(self, m: Module, tap: Signal) -> Value:
        """Sum of the taps, or the greatest: one adder for the sum and for the comparison."""
        control = self.control
        value = Signal(signed(VALUE_BITS), reset_less=True)
        total = Signal(signed(VALUE_BITS + 2))
        # the lowest place makes the carry that completes a subtraction
        carry = control.subtracted
        m.d.comb += total.eq(Cat(carry, value).as_signed() + Cat(carry, tap).as_signed())
        kept = control.compared & ~total[-1]
        with m.If(control.valid & ~kept):
            m.d.sync += value.eq(
                Mux(control.alone, tap ^ carry.replicate(VALUE_BITS), total[1 : VALUE_BITS + 1])
            )
        return value
