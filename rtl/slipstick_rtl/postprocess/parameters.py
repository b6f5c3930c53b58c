"""The parameter memory: bias, multiplier and shift of L channels a word."""

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..config import Configuration
from ..primitives.delay import delay
from .multiplier import FACTOR_BITS
from .requantizer import Requantizer
from .rounding_shifter import SHIFT_BITS

PARAMETER_WRITE = data.StructLayout({"enable": 1, "address": 16, "offset": 10, "data": 8})
"""A byte from the link: ``offset`` counts the bytes of a word of L x (i32, u32, u8)."""

_LANE_BYTES = 9
_FIELDS = {"bias": range(4), "multiplier": range(4, 8), "shift": range(8, 9)}
"""The bytes of each field within a lane's nine."""


class ParameterMemory(wiring.Component):
    """Three memories, one for each field, read when the requantiser needs the field.

    Members
    -------
    write : In(PARAMETER_WRITE)
        Lands three cycles later.
    address : In(range(parameter_words))
    bias : Out(32 x L)
        ``latency`` cycles after its address.
    multiplier : Out(31 x L)
        ``Requantizer.multiplier_delay`` cycles after the bias.
    shift : Out(6 x L)
        ``Requantizer.shift_delay`` cycles after the bias.
    """

    write: data.View
    address: Signal
    bias: data.View
    multiplier: data.View
    shift: data.View

    latency = 3
    """Cycles: the address on its way, block RAM and its output register."""

    def __init__(self, *, configuration: Configuration) -> None:
        self._lanes, self._words = configuration.lanes, configuration.parameter_words
        super().__init__(
            {
                "write": In(PARAMETER_WRITE),
                "address": In(range(self._words)),
                "bias": Out(data.ArrayLayout(unsigned(32), self._lanes)),
                "multiplier": Out(data.ArrayLayout(unsigned(FACTOR_BITS), self._lanes)),
                "shift": Out(data.ArrayLayout(unsigned(SHIFT_BITS), self._lanes)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        chosen = delay(m, self.write, 1, "write")
        write = delay(m, chosen, 1, "chosen_write")
        delays = {
            "bias": 0,
            "multiplier": Requantizer.multiplier_delay,
            "shift": Requantizer.shift_delay,
        }
        for name, places in _FIELDS.items():
            bits = 8 * len(places)
            memory = Memory(shape=bits * self._lanes, depth=self._words, init=[])
            m.submodules[name] = memory
            reading = delay(m, self.address, delays[name], f"{name}_address", reset_less=True)
            # from a register, as it goes to block RAMs all over the chip
            address = delay(m, reading, 1, f"{name}_port_address", reset_less=True)
            writer = memory.write_port(granularity=8)
            reader = memory.read_port()
            layout = data.ArrayLayout(bits, self._lanes)
            output = Signal(layout, name=f"{name}_output", reset_less=True)
            # likewise
            enables = Signal(len(writer.en), name=f"{name}_enables")
            m.d.sync += enables.eq(
                Cat(
                    chosen.enable & (chosen.offset == lane * _LANE_BYTES + place)
                    for lane in range(self._lanes)
                    for place in places
                )
            )
            m.d.comb += [
                writer.addr.eq(write.address[: len(address)]),
                writer.data.eq(write.data.replicate(len(writer.en))),
                writer.en.eq(enables),
                reader.en.eq(1),
                reader.addr.eq(address),
            ]
            m.d.sync += output.eq(reader.data)
            results = getattr(self, name)
            m.d.comb += [results[lane].eq(output[lane]) for lane in range(self._lanes)]
        return m
