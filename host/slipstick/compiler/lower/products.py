"""Products of two activations as maps, for hardware with ``products``."""

import numpy as np
from slipstick_rtl.isa import Rounding
from slipstick_rtl.numbers.rounding import clamp, encode_shift, requantize

from ...graph import Graph, Node, Quantization
from ...kernels.onnx.scaling import code_range, factor_parts
from ...kernels.tflite.scaling import activation_range, quantize_multiplier, scalar
from ..ir.operations import CODES, Convolution, Map
from ..ir.requantization import SHIFTS, Requantization, requantization
from ..ir.views import HostReason, Views, require_shift
from .convolutions import make_scaling
from .elementwise import make_function, product_map, single_operand, summands, tabulate
from .table import ONNX, TFLM, lowers

_CODE = np.arange(-CODES // 2, CODES // 2)

_MULTIPLIER_BITS = 31


@lowers("mul", arithmetics=(TFLM,))
def make_product(node: Node, graph: Graph, views: Views) -> Map | Convolution:
    """A mul by a constant code is a table, by a constant per channel a 1 x 1 convolution."""
    if single_operand(node, graph):
        return make_function(node, graph, views)
    if any(graph.tensors[name].data is not None for name in node.inputs):
        return make_scaling(node, graph, views)
    _require_products(views)
    view, quantizations = summands(node, views)
    first, second, output = quantizations
    scale, zero_point = scalar(output)
    factor = scalar(first)[0] * scalar(second)[0] / scale
    multiplier, shift = quantize_multiplier(factor)
    require_shift(shift)
    limits = activation_range(node.attributes["activation"], scale, zero_point)
    rescale = requantization(
        np.array([multiplier]), np.array([shift]), np.array([0]), zero_point, limits
    )
    return product_map(node, view, _tables(first, second), rescale)


@lowers("mul", arithmetics=(ONNX,))
def make_onnx_product(node: Node, graph: Graph, views: Views) -> Map:
    """A mul of two activations, if one rounding gives all codes that float32's four give."""
    if node.inputs[0] == node.inputs[1]:
        return make_function(node, graph, views)
    _require_products(views)
    view, quantizations = summands(node, views)
    first, second, _ = quantizations
    tables = _tables(first, second)
    products = tables[0][:, None] * tables[1]
    codes = tabulate(node, graph)
    limits = code_range(node.attributes)
    for rescale in _candidates(products, codes, quantizations, limits):
        if np.array_equal(_finish(products, rescale), codes):
            return product_map(node, view, tables, rescale)
    raise HostReason("float32 rounds some of its products to other codes than one rounding does")


def _require_products(views: Views) -> None:
    if not views.configuration.products:
        raise HostReason("the device does not multiply activations")


def _tables(first: Quantization, second: Quantization) -> np.ndarray:
    """Returns what every code stands for, in units of its scale; (2, 256)."""
    return np.stack([_CODE - scalar(first)[1], _CODE - scalar(second)[1]])


def _candidates(
    products: np.ndarray,
    codes: np.ndarray,
    quantizations: tuple[Quantization, Quantization, Quantization],
    limits: tuple[int, int],
) -> list[Requantization]:
    """Returns roundings to try: by the factor itself, and by the middle of all that may suit."""
    (a, _), (b, _), (c, zero_point) = (scalar(quantization) for quantization in quantizations)
    factor = np.float32(a) * np.float32(b) / np.float32(c)
    tried = [float(factor)]
    if (middle := _middle(products, codes.astype(np.int64) - zero_point, limits, zero_point)) > 0:
        tried.append(middle)
    found = []
    for value in tried:
        (multiplier,), (shift,) = factor_parts(np.array([value]))
        if shift not in SHIFTS:
            continue
        encoded = encode_shift(Rounding.HALF_EVEN, _MULTIPLIER_BITS - int(shift))
        found.append(
            Requantization(
                np.array([0]),
                np.array([multiplier]),
                np.array([encoded]),
                np.array([int(Rounding.HALF_EVEN)]),
                zero_point,
                *limits,
            )
        )
    return found


def _middle(
    products: np.ndarray, results: np.ndarray, limits: tuple[int, int], zero_point: int
) -> float:
    """Returns the middle of the factors that bring each product within half a unit of its result.

    0 if there is none.
    """
    low, high = (limit - zero_point for limit in limits)
    # the same product has one result, and that of -product is looked at for itself
    inner = (products != 0) & (results > low) & (results < high)
    size, result = np.abs(products[inner]), results[inner] * np.sign(products[inner])
    least, most = (
        ((result - 0.5) / size).max(initial=0),
        ((result + 0.5) / size).min(initial=np.inf),
    )
    return float(least + most) / 2 if 0 < least <= most < np.inf else 0.0


def _finish(products: np.ndarray, rescale: Requantization) -> np.ndarray:
    rounded = requantize(
        products, 0, rescale.multiplier, rescale.shift, Rounding(int(rescale.rounding[0]))
    )
    return clamp(rounded, rescale.zero_point, rescale.minimum, rescale.maximum)
