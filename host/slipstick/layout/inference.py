"""Records what a block's ports do in an inference of the digits network, on the core's RTL."""

import itertools
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from ..asic.hierarchy import merge
from ..asic.implementation import TOP, core_rtlil
from ..asic.vcd import Variable, declarations
from ..errors import SlipstickError, TargetError
from ..examples.digits import BRIGHTEST, CODES_PER_LEVEL, MODEL, load_digits
from ..frontends.tflite import load_tflite
from ..loading import load_program
from ..program import Program
from ..session import InferenceSession
from ..targets import Target, find_target
from .blocks import Block
from .netlist import CLOCK, Port, has_pin

CORE = "asic-4x4"
"""The target whose core is simulated, with the block's number format and shape."""

NETWORK = "digits"
_SCALED_BY = 64
"""Images."""

_PLACES: Mapping[str, str] = {
    "element": "matrix.array.element_1_1",
    "array": "matrix.array",
    "lane": "post.lanes.lane_0.requantizer",
}
"""Places of the blocks of a kind in a core. An element is the second of its row and column."""


@dataclass(frozen=True)
class PortValues:
    """Values of a block's ports, a row per cycle.

    Parameters
    ----------
    network : str
    macs : int
        Of the inference that was recorded, in all elements of the core together.
    cycles : int
    inputs, outputs : mapping of array of int, shape (cycles,), by port
        Just before each edge of the clock, which is not among them.
    """

    network: str
    macs: int
    cycles: int
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]


def has_inference(block: Block) -> bool:
    """Tells whether a block is a part of a core, so that an inference shows its ports' values."""
    return block.kind in _PLACES


def record_inference(block: Block, ports: Mapping[str, Port], path: Path) -> PortValues:
    """Simulates the first held-out digit on the RTL of a small core that has the block in it.

    Parameters
    ----------
    block : Block
        One that ``has_inference``.
    ports : mapping of Port by name
        The gateware's.
    path : Path
        Of the waveform.

    Raises
    ------
    TargetError
        If no core has the block's shape, the network does not fit it, or the core has other ports.
    """
    shape = {"rows": 4, "columns": 4, **block.shape}
    tile = find_target(CORE).configuration
    path.parent.mkdir(parents=True, exist_ok=True)
    _, _, images, _ = load_digits()
    try:
        hardware = replace(tile, number_format=block.number_format, **shape)
        network = MODEL
        if hardware.logarithmic is not None:
            network = path.with_suffix(".onnx")
            network.write_bytes(_logarithmic(images, hardware.logarithmic, path.parent))
            images = _real(images)
        program = load_program(network, hardware)
    except (ValueError, SlipstickError) as error:
        raise TargetError(f"block {block.name}: no core to run the digits on: {error}") from None
    target, place = Target(CORE, "", hardware), _PLACES[block.kind]
    cycles = _simulate(target, program, images[:1], place, path)
    wanted = {name: port for name, port in ports.items() if any(map(has_pin, port.nets))}
    sizes = {name: len(port.nets) for name, port in wanted.items() if name != CLOCK}
    found = read_values(path, f"{TOP}.{_PLACES[block.kind]}", cycles, sizes)
    if missing := [name for name in sizes if name not in found]:
        raise TargetError(
            f"the core of {block.name} must have its port {missing[0]} of {sizes[missing[0]]} bits,"
            " and has no such signal"
        )
    of = {"input": dict[str, np.ndarray](), "output": dict[str, np.ndarray]()}
    for name, port in wanted.items():
        if name != CLOCK:
            of[port.direction][name] = found[name]
    return PortValues(NETWORK, program.macs, cycles, of["input"], of["output"])


def _real(images: np.ndarray) -> np.ndarray:
    """The numbers that the digits' codes stand for, channels before rows and columns."""
    levels = (images.astype(np.float32) + 128) / (CODES_PER_LEVEL * BRIGHTEST)
    return levels.transpose(0, 3, 1, 2)


def _logarithmic(images: np.ndarray, arithmetic: ArrayArithmetic, folder: Path) -> bytes:
    """The digits network in logarithmic codes, scaled by some of the images."""
    from ..quantize import FloatNetwork
    from ..quantize.dequantize import dequantized

    path = folder / "float.onnx"
    path.write_bytes(dequantized(load_tflite(MODEL)))
    return FloatNetwork(path).quantize_logarithmic(_real(images[:_SCALED_BY]), arithmetic)


def _simulate(target: Target, program: Program, image: np.ndarray, place: str, path: Path) -> int:
    """Records the signals of one instance; returns the cycles of the inference."""
    from slipstick_sim.verilated.build import waveform_library

    from ..devices.simulation import SimulationDevice

    gateware = merge(core_rtlil(target), TOP, initial_values=True)
    library = waveform_library(gateware.rtlil(), TOP)
    path.unlink(missing_ok=True)
    with closing(SimulationDevice(program.hardware, library)) as device:
        session = InferenceSession(program, device)
        with device.recording(path, f"{TOP}.{place}"):
            session.run(None, {program.inputs[0]: image})
        return session.last_cycles or 0


def read_values(
    path: Path, scope: str, cycles: int, sizes: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """Reads signals of a scope out of a VCD file with a cycle for its unit of time.

    Amaranth gives a number to a name that another signal of the module has, ports among them. So a
    signal is the one of its name and its bits, or else the only one that differs in such a number.

    Parameters
    ----------
    path : Path
    scope : str
    cycles : int
    sizes : mapping of int by name
        Bits of the signals that are wanted.

    Returns
    -------
    dict of array of int, shape (cycles,), by name
        Up to 63 bits; as Python's integers if there are more. What was not found is left out.
    """
    changes = dict[str, list[tuple[int, int]]]()
    with path.open(encoding="utf-8") as file:
        # around the design there is a scope of the simulator's
        declared = [each for each in declarations(file) if ".".join(each.scopes[1:]) == scope]
        codes = dict[str, list[str]]()
        for name, size in sizes.items():
            if (code := _code_of(name, size, declared)) is not None:
                codes.setdefault(code, []).append(name)
        now = 0
        for line in file:
            kind, text = line[:1], line.strip()
            if kind == "#":
                now = int(text[1:])
            elif kind in "01" and (code := text[1:]) in codes:
                changes.setdefault(code, []).append((now, int(kind)))
            elif kind == "b":
                value, code = text[1:].split()
                if code in codes:
                    changes.setdefault(code, []).append((now, int(value, 2)))
    found = dict[str, np.ndarray]()
    for code, names in codes.items():
        values = np.zeros(cycles, np.int64 if sizes[names[0]] < 64 else object)
        ends = [*changes.get(code, []), (cycles, 0)]
        for (time, value), (end, _) in itertools.pairwise(ends):
            values[time:end] = value
        found.update(dict.fromkeys(names, values))
    return found


def _code_of(name: str, size: int, declared: list[Variable]) -> str | None:
    """The code of a signal in a VCD file; None if there is none, or more than one."""
    numbered = re.compile(rf"{re.escape(name)}\$\d+")
    alike = [each for each in declared if each.bits == size]
    plain = {each.code for each in alike if each.name == name}
    others = {each.code for each in alike if numbered.fullmatch(each.name)}
    found = plain or others
    return found.pop() if len(found) == 1 else None
