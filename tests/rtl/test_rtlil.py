"""RTLIL is what Amaranth writes, whatever memories hold."""

import importlib

import pytest
from amaranth.hdl import Module, Shape, signed, unsigned
from amaranth.lib.memory import Memory
from slipstick_rtl import rtlil
from slipstick_rtl.accelerator import Accelerator
from slipstick_rtl.config import Configuration


def _original(gateware: object, **options: object) -> str:
    return importlib.import_module("amaranth.back.rtlil").convert(
        gateware, emit_src=False, **options
    )


def _memory(shape: Shape, depth: int, init: list[int]) -> Module:
    m = Module()
    m.submodules.memory = memory = Memory(shape=shape, depth=depth, init=init)
    memory.write_port()
    memory.read_port()
    return m


@pytest.mark.parametrize(
    ("shape", "depth", "init"),
    [
        (unsigned(7), 5, []),
        (unsigned(7), 5, [1, 127, 0, 64]),
        (signed(9), 4, [-1, -256, 255]),
        (unsigned(1), 1, [1]),
        (unsigned(40), 3, [(1 << 40) - 1]),
        (unsigned(0), 3, []),
        (unsigned(8), 0, []),
    ],
)
def test_a_memory(shape: Shape, depth: int, init: list[int]) -> None:
    written = rtlil.convert(_memory(shape, depth, init), ports=[])
    assert written == _original(_memory(shape, depth, init), ports=[])
    assert "$meminit_v2" in written


@pytest.mark.thorough
def test_a_core() -> None:
    configuration = Configuration(pixels=1, rows=4, columns=4, lanes=4)
    core = Accelerator(configuration=configuration)
    assert rtlil.convert(core, name="core") == _original(core, name="core")


def test_amaranth_stays_as_it_is() -> None:
    emitter = importlib.import_module("amaranth.back.rtlil").ModuleEmitter
    before = emitter.emit_memory
    rtlil.convert(_memory(unsigned(3), 2, [1]), ports=[])
    assert emitter.emit_memory is before
