"""Every kernel's results depend on values alone: not on strides, transposes or the batch's size."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from slipstick import kernels
from slipstick.graph import Graph, Node, Quantization, Tensor
from slipstick.kernels.dispatch import kernels_of

Shape = tuple[int, ...]
PICTURE, FLAT, ROWS = (1, 7, 6, 24), (1, 96), (1, 9, 40)
SAMPLES = 5


@dataclass(frozen=True, kw_only=True)
class Case:
    """A node: the shapes of its activations and constants, and its output's.

    ``constants`` are weights and the like as (shape, type); type "like" is that of the activations.
    """

    inputs: tuple[Shape, ...] = (PICTURE,)
    output: Shape = PICTURE
    constants: tuple[tuple[Shape, str], ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    dtype: str = "like"
    activations: str = "like"


SLIDE: dict[str, Any] = {
    "stride": (1, 1),
    "padding": (1, 1, 1, 1),
    "dilation": (1, 1),
    "groups": 1,
    "multiplier": 1,
    "activation": "none",
}
POOL: dict[str, Any] = {**SLIDE, "window": (3, 3), "counted": (0, 0, 0, 0)}
GAPS: dict[str, Any] = {**POOL, "padding": (2, 2, 2, 2), "dilation": (2, 2)}
OVER: dict[str, Any] = {"axes": (1, 2), "keep_dimensions": True}
AFTER = (1, 1, 1, 24)
PADDED: dict[str, Any] = {
    "padding": ((0, 0), (1, 2), (2, 1), (0, 0)),
    "value": 3,
    "mode": "reflect",
}
TURN: dict[str, Any] = {"permutation": (0, 3, 1, 2)}
PLACES = ((2, 10), "int64"), ((2, 10), "float32")

CASES: dict[str, Case] = {
    "conv2d": Case(output=(1, 7, 6, 16), constants=(((16, 3, 3, 24), "like"),), attributes=SLIDE),
    "depthwise_conv2d": Case(constants=(((1, 3, 3, 24), "like"),), attributes=SLIDE),
    "transpose_conv2d": Case(
        output=(1, 15, 13, 16),
        constants=(((16, 3, 3, 24), "like"),),
        attributes={**SLIDE, "stride": (2, 2), "padding": (0, 0)},
    ),
    "fully_connected": Case(
        inputs=(FLAT,),
        output=(1, 33),
        constants=(((33, 96), "like"),),
        attributes={"activation": "none"},
    ),
    "matmul": Case(inputs=(ROWS, (1, 40, 17)), output=(1, 9, 17)),
    "einsum": Case(
        inputs=(ROWS, (1, 17, 40)), output=(1, 9, 17), attributes={"equation": "bij,bkj->bik"}
    ),
    "reduce": Case(
        inputs=(ROWS,),
        output=(1, 9, 1),
        attributes={"function": "sum", "axes": (2,), "keep_dimensions": True},
    ),
    "softmax": Case(inputs=(FLAT,), output=FLAT, attributes={"axis": 1, "beta": 1.0}),
    "log_softmax": Case(inputs=(FLAT,), output=FLAT, attributes={"axis": 1}),
    "layer_normalization": Case(
        constants=(((24,), "float32"),), attributes={"axes": (3,), "epsilon": 1e-5}
    ),
    "resize": Case(
        output=(1, 10, 10, 24),
        constants=(*PLACES, *PLACES),
        attributes={"axes": (1, 2), "outside": 0.0},
    ),
    "resize_nearest": Case(
        output=(1, 9, 11, 24),
        attributes={"size": (9, 11), "align_corners": False, "half_pixel_centers": False},
    ),
    "resize_bilinear": Case(
        output=(1, 9, 11, 24),
        attributes={"size": (9, 11), "align_corners": False, "half_pixel_centers": True},
    ),
    "average_pool2d": Case(attributes=POOL),
    "max_pool2d": Case(attributes=POOL),
    "dilated_average_pool2d": Case(attributes={**GAPS, "counted": (2, 2, 2, 2)}),
    "dilated_max_pool2d": Case(attributes=GAPS),
    "mean": Case(output=AFTER, attributes=OVER),
    "reduce_sum": Case(output=AFTER, attributes=OVER),
    "reduce_max": Case(output=AFTER, attributes=OVER),
    "reduce_min": Case(output=AFTER, attributes=OVER),
    "arg_max": Case(output=(1, 7, 6), attributes={"axis": 3}, dtype="int32"),
    "arg_min": Case(output=(1, 7, 6), attributes={"axis": 3}, dtype="int32"),
    "reshape": Case(output=(1, 1008), attributes={"shape": (1, 1008)}),
    "transpose": Case(output=(1, 24, 7, 6), attributes=TURN),
    "slice": Case(
        output=(1, 3, 6, 24),
        attributes={
            "starts": (0, 1, 0, 0),
            "sizes": (1, 3, 6, 24),
            "steps": (1, 2, 1, 1),
            "shape": (1, 3, 6, 24),
        },
    ),
    "pad": Case(output=(1, 10, 9, 24), attributes=PADDED),
    "mirror_pad": Case(output=(1, 10, 9, 24), attributes=PADDED),
    "edge_pad": Case(output=(1, 10, 9, 24), attributes=PADDED),
    "tile": Case(output=(1, 7, 12, 24), attributes={"repeats": (1, 1, 2, 1)}),
    "expand": Case(inputs=((1, 7, 1, 24),), output=PICTURE),
    "depth_to_space": Case(output=(1, 14, 12, 6), attributes={"block": 2}),
    "pixel_shuffle": Case(output=(1, 14, 12, 6), attributes={"block": 2}),
    "space_to_depth": Case(inputs=((1, 8, 6, 6),), output=(1, 4, 3, 24), attributes={"block": 2}),
    "pixel_unshuffle": Case(inputs=((1, 8, 6, 6),), output=(1, 4, 3, 24), attributes={"block": 2}),
    "concatenation": Case(inputs=(PICTURE, PICTURE), output=(1, 7, 6, 48), attributes={"axis": 3}),
    "pack": Case(inputs=(ROWS, ROWS), output=(1, 9, 2, 40), attributes={"axis": 2}),
    "gather": Case(output=(1, 7, 6, 4), constants=(((4,), "int64"),), attributes={"axis": 3}),
    "where": Case(inputs=(PICTURE,) * 3),
    "lookup": Case(constants=(((256,), "int8"),), activations="int8", dtype="int8"),
    "function": Case(attributes={"function": "Tanh"}),
    "quantize": Case(),
    "dequantize": Case(dtype="float32"),
    "dynamic_scale": Case(output=(1,), activations="float32", dtype="float32"),
    "leaky_relu": Case(attributes={"alpha": 0.2}),
}
TWO = ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "prelu", "squared_difference")
CASES |= {kind: Case(inputs=(PICTURE,) * 2, attributes={"activation": "none"}) for kind in TWO}
BY_SCALES = ("dynamic_zero_point", "quantize_by", "dequantize_by")
"""Their operands have a batch and differ in type: the networks of test_onnx_dynamic run them."""

ACTIVATIONS = ("int8", "float32")


def case_of(operator: str) -> Case:
    """A table of one code is a function of a picture, if nothing else is said."""
    return CASES.get(operator, Case(attributes={"alpha": 0.2, "activation": "none"}))


def described(name: str, shape: Shape, dtype: str, data: np.ndarray | None = None) -> Tensor:
    coded = Quantization(np.array([0.04]), np.array([0])) if dtype == "int8" else None
    return Tensor(name, shape, dtype, coded, data)


def values(generator: np.random.Generator, shape: Shape, dtype: str) -> np.ndarray:
    if dtype == "float32":
        # sums of numbers of unlike sizes show the order in which they were added
        return (generator.normal(size=shape) * 10 ** generator.uniform(-3, 3, shape)).astype("f4")
    largest = 4 if dtype == "int64" else 100
    return generator.integers(0 if dtype == "int64" else -largest, largest, shape).astype(dtype)


def network(
    operator: str, kind: str, semantics: str, generator: np.random.Generator
) -> tuple[Graph, list[np.ndarray]]:
    """A graph of one node, and a batch for it."""
    case = case_of(operator)
    own = kind if case.activations == "like" else case.activations
    result = own if case.dtype == "like" else case.dtype
    tensors, names, batch = {}, [], []
    for index, shape in enumerate(case.inputs):
        names.append(f"x{index}")
        tensors[names[-1]] = described(names[-1], shape, own)
        batch.append(values(generator, (SAMPLES, *shape[1:]), own))
    for index, (shape, dtype) in enumerate(case.constants):
        names.append(f"c{index}")
        dtype = own if dtype == "like" else dtype
        # as a front-end may leave it: a view
        data = np.asfortranarray(values(generator, shape, dtype))
        tensors[names[-1]] = described(names[-1], shape, dtype, data)
    tensors["y"] = described("y", case.output, result)
    node = Node(operator, operator, tuple(names), ("y",), case.attributes)
    inputs = tuple(name for name in names if tensors[name].data is None)
    return Graph("one", inputs, ("y",), tensors, (node,), semantics), batch


def layouts(array: np.ndarray) -> Iterator[np.ndarray]:
    """The same numbers in other places of memory."""
    yield np.asfortranarray(array)
    for axis in range(array.ndim):
        wide = np.zeros((*array.shape[:axis], 2 * array.shape[axis], *array.shape[axis + 1 :]))
        wide = wide.astype(array.dtype)
        view = wide[(slice(None),) * axis + (slice(None, None, 2),)]
        view[...] = array
        yield view
        yield np.flip(np.ascontiguousarray(np.flip(array, axis)), axis)
    bytes_ = np.zeros(array.nbytes + 4, np.uint8)
    shifted = bytes_[4:].view(array.dtype).reshape(array.shape)
    shifted[...] = array
    yield shifted


def operators() -> list[tuple[str, str, str]]:
    """Every kernel of every registry, of codes and, where it takes them, of real numbers."""
    found = []
    for semantics in ("tflm", "onnx", "lns1+4+3"):
        for operator in kernels_of(semantics):
            if operator in BY_SCALES:
                continue
            kinds = ACTIVATIONS if semantics == "onnx" else ("int8",)
            found += [(semantics, operator, kind) for kind in kinds]
    return found


@pytest.mark.parametrize(("semantics", "operator", "kind"), operators())
def test_values_alone_count(semantics: str, operator: str, kind: str) -> None:
    generator = np.random.default_rng(math.prod(map(ord, operator)) % 9973)
    graph, batch = network(operator, kind, semantics, generator)
    (wanted,) = kernels.run(graph.nodes[0], graph, batch)
    for laid in zip(*map(layouts, batch), strict=True):
        (made,) = kernels.run(graph.nodes[0], graph, list(laid))
        assert made.tobytes() == wanted.tobytes()
    for size in (1, 2, SAMPLES - 1):
        parts = [
            kernels.run(graph.nodes[0], graph, [value[at : at + size] for value in batch])[0]
            for at in range(0, SAMPLES, size)
        ]
        assert np.concatenate(parts).tobytes() == wanted.tobytes()
