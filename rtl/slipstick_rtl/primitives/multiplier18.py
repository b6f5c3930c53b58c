"""A multiplier of 18 x 18 bits with its registers: a DSP block where the chip has one like it."""

from typing import Any

from amaranth.hdl import ClockSignal, Const, Instance, Module, Shape, ShapeLike, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .stages import Stages, busy_member

OPERAND_BITS = 18


def is_ecp5(platform: Any) -> bool:
    """Tells whether ``platform`` is a platform whose ``device`` is a Lattice ECP5."""
    return str(getattr(platform, "device", "")).startswith("LFE5U")


class Multiplier18(wiring.Component):
    """a x b, exact, one product a cycle, never stalling; no reset.

    On ECP5 it is one MULT18X18D with operand, pipeline and output registers on: nothing but wires
    lies between the block and the registers around it, and inside it the clock may be well above
    200 MHz. Yosys packs no registers into the block, and its inferred product takes 4 ns more. Four
    neighbouring blocks share four clock enables, so these have none. On other chips it is a ``*``
    between the same registers.

    Parameters
    ----------
    a, b : ShapeLike
        Of the operands: at most 18 bits signed, 17 unsigned.

    Members
    -------
    a, b : In
    p : Out
        The product's shape, ``latency`` cycles later.

    Raises
    ------
    ValueError
        If an operand does not fit.
    """

    a: Signal
    b: Signal
    p: Signal

    latency = 3
    """Cycles: operands, pipeline, output."""

    def __init__(self, *, a: ShapeLike, b: ShapeLike, silicon: int = 0) -> None:
        self._silicon = silicon
        shapes = {"a": Shape.cast(a), "b": Shape.cast(b)}
        for name, shape in shapes.items():
            if shape.width + (not shape.signed) > OPERAND_BITS:
                raise ValueError(
                    f"operand {name} must have at most {OPERAND_BITS} bits signed or"
                    f" {OPERAND_BITS - 1} unsigned, not {shape!r}"
                )
        width = shapes["a"].width + shapes["b"].width
        product = Shape(width, signed=shapes["a"].signed or shapes["b"].signed)
        super().__init__(
            {
                "a": In(shapes["a"]),
                "b": In(shapes["b"]),
                "p": Out(product),
                **busy_member(self.latency, silicon=silicon),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        if is_ecp5(platform):
            self._instantiate(m)
            return m
        a, b = Signal.like(self.a, reset_less=True), Signal.like(self.b, reset_less=True)
        product = Signal.like(self.p, reset_less=True)
        output = Signal.like(self.p, reset_less=True)
        stages = Stages.of(self, silicon=self._silicon)
        with stages.at(m, 0):
            m.d.sync += [a.eq(self.a), b.eq(self.b)]
        with stages.at(m, 1):
            m.d.sync += product.eq(a * b)
        with stages.at(m, 2):
            m.d.sync += output.eq(product)
        m.d.comb += self.p.eq(output)
        return m

    def _instantiate(self, m: Module) -> None:
        """The block, both operands in the highest bits of its signed ones.

        Place and route ties the operand bits that are left open to 0 within the block; bits above
        a sign would have to be wired to it. The other ports that are left open are without effect:
        the third operand, and clocks, enables and resets that no register names. Wires that
        bring them constants can make a chip unroutable.
        """
        ports: dict[str, Any] = {"i_CE0": Const(1), "i_RST0": Const(0)}
        left_open = 0
        for name, operand in (("A", self.a), ("B", self.b)):
            low = OPERAND_BITS - len(operand) - (not operand.shape().signed)
            ports |= {f"i_{name}{low + k}": operand[k] for k in range(len(operand))}
            left_open += low
        ports |= {f"o_P{left_open + k}": self.p[k] for k in range(len(self.p))}
        parameters: dict[str, str] = {}
        for register in ("INPUTA", "INPUTB", "PIPELINE", "OUTPUT"):
            for kind in ("CLK", "CE", "RST"):
                parameters[f"p_REG_{register}_{kind}"] = f"{kind}0"
        m.submodules.block = Instance(
            "MULT18X18D",
            i_CLK0=ClockSignal(),
            # operands from the ports, not from a neighbour's shift register
            i_SOURCEA=Const(0),
            i_SOURCEB=Const(0),
            i_SIGNEDA=Const(1),
            i_SIGNEDB=Const(1),
            # not by the chip's global reset either
            p_GSR="DISABLED",
            p_RESETMODE="SYNC",
            **parameters,
            **ports,
        )
