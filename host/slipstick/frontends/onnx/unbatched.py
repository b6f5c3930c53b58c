"""Networks without a batch: operators of pictures have one of their own there."""

import dataclasses
from collections.abc import Callable, Mapping

from .moves import moved
from .operator import Operator
from .values import Activation, Coded, Constant, Shape, Value, shape_of

Read = Callable[[Operator], Value | list[Value]]


def own_batch(read: Read) -> Read:
    """A reader of N x C x ... whose N is the batch, or 1 where the network has no batch."""

    def handle(operator: Operator) -> Value | list[Value]:
        value = operator.value(0)
        if not operator.lead or isinstance(value, Constant | Coded):
            return read(operator)
        shape = shape_of(value)
        if shape[1:2] != (1,):
            operator.refuse(f"axis 0 must be 1 where it is no batch, not {shape[1:]}")
        names = tuple(f"{name}/picture" if name else "" for name in operator.outputs)
        inner = with_shape(operator, value, shape[1:], f"{operator.input_names[0]}/picture")
        plain = dataclasses.replace(
            operator, inputs=(inner, *operator.inputs[1:]), outputs=names, lead=0
        )
        made = read(plain)
        values = made if isinstance(made, list) else [made]
        whole = [
            with_shape(operator, item, (1, *shape_of(item)), name)
            for item, name in zip(values, operator.outputs, strict=False)
        ]
        return whole if isinstance(made, list) else whole[0]

    return handle


def with_shape(operator: Operator, value: Value, shape: Shape, name: str) -> Value:
    """A value of another shape, under a name."""
    if isinstance(value, Coded):
        value = Constant(value.array)
    if isinstance(value, Constant):
        return Constant(value.array.reshape(shape))
    builder = operator.builder

    def move(activation: Activation, made: str) -> Activation:
        known = builder.reshaped_of.get((activation.tensor, shape))
        return known or rewrapped(operator, activation, made, shape)

    return moved(operator, value, move, shape, name)


def rewrapped(operator: Operator, activation: Activation, name: str, shape: Shape) -> Activation:
    """An activation of another shape, which remembers what it was made of."""
    builder = operator.builder
    made = builder.reshaped(activation, name, shape, f"{operator.name}/shape")
    builder.reshaped_of[made.tensor, activation.shape] = activation
    builder.reshaped_of[activation.tensor, shape] = made
    return made


def own_pictures(
    operator: Operator, computed: Mapping[int, Activation], shape: Shape
) -> dict[int, Activation] | None:
    """Finds the N x C x H x W that activations of 1 x 1 x C x H x W were made of or made into.

    None unless each of them has one.
    """
    if not operator.lead or len(shape) != 5 or shape[1] != 1:
        return None
    known = operator.builder.reshaped_of
    inner = {
        index: known.get((activation.tensor, activation.shape[1:]))
        for index, activation in computed.items()
        if len(activation.shape) == 5
    }
    found = {index: activation for index, activation in inner.items() if activation is not None}
    return found if len(found) == len(computed) else None


def ranked(operator: Operator, activation: Activation, shape: Shape) -> Activation:
    """With axes of one in front of its own, as broadcasting has it."""
    if not operator.lead:
        operator.refuse(
            f"computed inputs must have the output's {len(shape)} dimensions, not"
            f" {len(activation.shape)}"
        )
    filled = (1,) * (len(shape) - len(activation.shape)) + activation.shape
    name = f"{activation.tensor}/ranked"
    return operator.builder.reshaped(activation, name, filled, f"{operator.name}/shape")
