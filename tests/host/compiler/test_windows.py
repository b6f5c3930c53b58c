"""Convolutions of every window behind device layers: every layout of lanes is the definition."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from program_runner import run_program
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.kernels.dispatch import run_graph
from slipstick.program import Program
from slipstick.targets import find_target
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import INSTRUCTION_BITS, MATRIX_FIELDS, Opcode, opcode_of, unpack
from slipstick_rtl.link.protocol import Space

Sides = tuple[int, int]
TARGETS = ("sim-medium", "sim-small", "asic-4x4", "ulx3s-85f", "tang-nano-20k")


def _convolves(program: Program) -> list[dict[str, int]]:
    """The fields of every CONVOLVE."""
    (image,) = [image for image in program.images if image.space == Space.INSTRUCTIONS]
    size = INSTRUCTION_BITS // 8
    words = [image.data[at : at + size] for at in range(0, len(image.data), size)]
    return [unpack(MATRIX_FIELDS, word) for word in words if opcode_of(word) == Opcode.CONVOLVE]


def _window(
    sides: Sides, kernel: Sides, stride: Sides, dilation: Sides, *, same: bool
) -> tuple[tuple[int, ...], Sides]:
    """The padding of SAME or VALID, and the output's sides."""
    padding, made = [], []
    for side, taps, step, apart in zip(sides, kernel, stride, dilation, strict=True):
        span = (taps - 1) * apart + 1
        count = -(-side // step) if same else (side - span) // step + 1
        border = max((count - 1) * step + span - side, 0) if same else 0
        padding += [border // 2, border - border // 2]
        made.append(count)
    return tuple(padding), (made[0], made[1])


def _check(builder: NetworkBuilder, configuration: Configuration) -> Program:
    graph, image = builder.graph(), builder.images()
    expected = run_graph(graph, [image])
    program = compile_graph(graph, configuration)
    values = run_program(program, {"input": image})
    for name in graph.outputs:
        np.testing.assert_array_equal(values[name], expected[name])
    return program


def _device_layer(builder: NetworkBuilder, choice: str) -> None:
    """A layer that keeps the shape: the device writes what the next one reads."""
    match choice:
        case "add":
            source = builder.last
            other = builder.unary("tanh")
            builder.last = source
            builder.unary("logistic")
            builder.add(other)
        case "convolution":
            builder.same_conv2d(1, builder.shape()[3])
        case "function":
            builder.unary("logistic")


@pytest.mark.parametrize(
    ("shape", "kernel", "stride", "dilation", "same"),
    [
        # lanes that fill half of the last tile
        ((8, 6, 8), (2, 2), (1, 1), (1, 2), True),
        ((12, 14, 8), (1, 2), (1, 1), (2, 2), True),
        ((9, 8, 5), (2, 3), (3, 1), (2, 1), False),
        ((7, 16, 1), (4, 2), (1, 1), (1, 2), False),
        ((10, 12, 3), (3, 2), (2, 1), (1, 2), True),
        # tiles that have none
        ((6, 8, 24), (2, 2), (2, 1), (1, 2), True),
        # pictures of one row
        ((1, 8, 8), (2, 1), (1, 1), (1, 1), True),
        ((1, 8, 8), (1, 2), (1, 1), (1, 2), False),
        # tiles that they fill
        ((8, 8, 8), (3, 3), (1, 1), (1, 1), True),
    ],
)
def test_two_vectors_a_cycle_are_the_definition(
    shape: tuple[int, int, int], kernel: Sides, stride: Sides, dilation: Sides, same: bool
) -> None:
    builder = NetworkBuilder(3, *shape)
    _device_layer(builder, "add")
    padding, sides = _window(shape[:2], kernel, stride, dilation, same=same)
    builder.conv2d(11, kernel, stride=stride, dilation=dilation, padding=padding, sides=sides)
    program = _check(builder, find_target("sim-medium").configuration)
    assert any(fields["pairs"] for fields in _convolves(program))


_SIDES = st.tuples(st.integers(1, 12), st.integers(1, 17))
_SMALL, _ANY = (st.tuples(*[st.integers(1, most)] * 2) for most in (3, 7))
_STEPS = st.sampled_from([(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1)])


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1 << 30),
    sides=_SIDES,
    channels=st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 20, 24, 33]),
    kernel=st.one_of(_SMALL, _ANY),
    stride=_STEPS,
    dilation=_STEPS,
    same=st.booleans(),
    before=st.sampled_from(["add", "convolution", "function", "nothing"]),
    kind=st.sampled_from(["plain", "plain", "groups", "depthwise"]),
)
def test_every_window_behind_a_device_layer_is_the_definition(
    target: str,
    seed: int,
    sides: Sides,
    channels: int,
    kernel: Sides,
    stride: Sides,
    dilation: Sides,
    same: bool,
    before: str,
    kind: str,
) -> None:
    padding, made = _window(sides, kernel, stride, dilation, same=same)
    assume(min(made) >= 1)
    builder = NetworkBuilder(seed, *sides, channels)
    _device_layer(builder, before)
    draw = builder.rng
    groups = {"plain": 1, "depthwise": channels}.get(kind, 0) or int(
        draw.choice([count for count in range(1, channels + 1) if channels % count == 0])
    )
    filters = int(draw.integers(1, max(24 // groups, 1) + 1))
    builder.conv2d(
        groups * filters,
        kernel,
        groups,
        stride=stride,
        dilation=dilation,
        padding=padding,
        sides=made,
    )
    _check(builder, find_target(target).configuration)
