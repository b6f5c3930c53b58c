"""GatherND with constant indices, as exporters write pools of uneven windows."""

import math

import numpy as np

from .moves import moved
from .operator import Operator
from .values import Activation, Coded, Constant, Shape, Value, shape_of


def gather_nd(operator: Operator) -> Value:
    """GatherND: the first axes behind the batch become one, along which places are gathered."""
    operator.require_inputs(2, 2)
    value = operator.value(0)
    if isinstance(value, Constant | Coded):
        operator.refuse(f"{operator.what(0)} must be computed, and is a constant")
    shape, indices = shape_of(value), _indices(operator)
    count = indices.shape[-1]
    sizes = shape[1 : 1 + count]
    if len(sizes) < count:
        operator.reject(f"indices must be of at most {len(shape) - 1} axes, not {count}")
    limits = np.array(sizes, np.int64)
    if not ((indices >= -limits) & (indices < limits)).all():
        operator.reject(f"indices must be within the sizes {sizes}")
    parts = np.where(indices < 0, indices + limits, indices)
    steps = np.array([math.prod(sizes[axis + 1 :]) for axis in range(count)], np.int64)
    places = (parts * steps).sum(axis=-1).reshape(parts.shape[:-1])
    rest = shape[1 + count :]
    flat: Shape = (shape[0], math.prod(sizes), *rest)
    output: Shape = (shape[0], *places.shape, *rest)
    # a single place makes an axis of its own, which is taken away again
    places = places.reshape(places.shape or (1,))
    gathered: Shape = (shape[0], *places.shape, *rest)
    builder = operator.builder

    def move(activation: Activation, name: str) -> Activation:
        whole = builder.natural(activation)
        source = builder.reshaped(whole, f"{name}/flat", flat, f"{operator.name}/flat")
        result = name if gathered == output else f"{name}/gathered"
        made = builder.like(source.tensor, result, gathered)
        listed = builder.constant(f"{operator.name}/indices", places)
        builder.node(operator.name, "gather", (source.tensor, listed), made, {"axis": 1})
        if gathered == output:
            return Activation(made, output)
        return builder.reshaped(Activation(made, gathered), name, output, f"{operator.name}/axis")

    return moved(operator, value, move, output)


def _indices(operator: Operator) -> np.ndarray:
    """The places, (..., axes) behind the batch; axes that the indices share are among them."""
    indices = operator.constant(1)
    if indices.dtype.kind not in "iu" or not indices.size or not indices.ndim:
        operator.refuse(f"indices must be whole numbers, not {indices.dtype} of {indices.shape}")
    shared = operator.integer("batch_dims", 0)
    # of a network without a batch the graph alone has axis 0
    if not operator.lead:
        if shared < 1:
            operator.refuse(f"batch_dims must be at least 1, not {shared}")
        if indices.ndim < 2 or len(indices) != 1:
            operator.refuse(f"indices of a batch must be of one sample, not {indices.shape}")
        indices, shared = indices[0], shared - 1
    if not 0 <= shared < indices.ndim:
        operator.reject(f"batch_dims must be less than the axes of indices {indices.shape}")
    sides = np.indices(indices.shape[:-1])[:shared]
    return np.concatenate([np.moveaxis(sides, 0, -1), indices.astype(np.int64)], axis=-1)
