"""Maps of graphs of logarithmic codes: what is summed up goes through tables of linear numbers."""

import dataclasses
import math

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from ...graph import Graph, Node
from ...kernels.lns.layers import mean_offset, mean_table, sum_tables
from ...kernels.onnx.scaling import code_range
from ...operators.pooling import AVERAGE_POOL2D
from ..ir.operations import Map
from ..ir.requantization import Requantization, logarithm
from ..ir.views import Views
from .elementwise import summands, table_map
from .onnx import counted_taps, picture_map
from .pooling import Run, pool_map
from .table import LNS, lowers


def _arithmetic(views: Views) -> ArrayArithmetic:
    arithmetic = views.configuration.logarithmic
    assert arithmetic is not None
    return arithmetic


@lowers("add", arithmetics=(LNS,))
def make_log_sum(node: Node, graph: Graph, views: Views) -> Map:
    """An add of two activations; HostReason if it broadcasts or has a constant."""
    view, quantizations = summands(node, views)
    negate = bool(node.attributes.get("negate"))
    tables, offset = sum_tables(quantizations, _arithmetic(views), negate=negate)
    rescale = logarithm(np.array([0]), np.array([offset]), code_range(node.attributes))
    return table_map(node, node.inputs, view, tables, rescale)


@lowers(AVERAGE_POOL2D.name, arithmetics=(LNS,))
def make_log_pool(node: Node, graph: Graph, views: Views) -> Map:
    """An average_pool2d; HostReason if the device cannot."""
    tensors = views.activation(node.inputs[0]), views.activation(node.outputs[0])
    height, width = node.attributes["window"]
    table, unit = mean_table(height * width, _arithmetic(views))

    def mean(down: Run, across: Run) -> Requantization:
        count = counted_taps(node, tensors[0], down, across)
        offset = mean_offset(unit, tensors, count, _arithmetic(views))
        return logarithm(np.array([0]), np.array([offset]), code_range(node.attributes))

    return _looked_up(pool_map(node, views, mean), table)


@lowers("mean", arithmetics=(LNS,))
def make_log_mean(node: Node, graph: Graph, views: Views) -> Map:
    """A mean over height and width; HostReason for others."""
    tensors = views.activation(node.inputs[0]), views.activation(node.outputs[0])

    taps = math.prod(tensors[0].shape[axis] for axis in node.attributes["axes"])
    table, unit = mean_table(taps, _arithmetic(views))

    def mean(count: int) -> Requantization:
        offset = mean_offset(unit, tensors, count, _arithmetic(views))
        return logarithm(np.array([0]), np.array([offset]), code_range(node.attributes))

    return _looked_up(picture_map(node, views, mean), table)


def _looked_up(made: Map, table: np.ndarray) -> Map:
    """With a table for the taps of even columns of windows, and of odd ones."""
    wide = any(window.taps[1] > 1 for window in made.windows)
    return dataclasses.replace(made, table=np.tile(table, 2) if wide else table)
