"""Random networks whose layers only copy: concatenations, slices, borders and enlargements."""

import numpy as np
from random_networks import NetworkBuilder
from slipstick.program import Program


def places(program: Program, operator: str) -> set[str]:
    return {layer.where for layer in program.layers if layer.operator == operator}


def move(builder: NetworkBuilder, operator: str, out: tuple[int, ...], **attributes) -> str:
    """A node that keeps the quantisation."""
    source = builder.last
    result = builder.activation(f"t{len(builder.nodes)}", out, like=source)
    return builder.node(operator, (source,), result, **attributes)


def concatenate(builder: NetworkBuilder, others: list[str], axis: int) -> None:
    """The last tensor behind others, which must have its quantisation."""
    shape = list(builder.shape())
    shape[axis] += sum(builder.shape(name)[axis] for name in others)
    names = (*others, builder.last)
    result = builder.activation(f"t{len(builder.nodes)}", tuple(shape), like=builder.last)
    builder.node("concatenation", names, result, axis=axis)


def share_quantization(builder: NetworkBuilder, names: list[str]) -> None:
    first = builder.tensors[names[0]].quantization
    for name in names[1:]:
        builder.activation(name, builder.shape(name), like=names[0])
    assert first is not None


def grow(builder: NetworkBuilder) -> None:
    """One copy of what a convolution made, or of two."""
    rng = builder.rng
    _, height, width, channels = builder.shape()
    match int(rng.integers(0, 6)):
        case 0:
            block = builder.last
            first = builder.same_conv2d(3, 4 * int(rng.integers(1, 4)))
            builder.last = block
            second = builder.same_conv2d(1, int(rng.integers(1, 14)))
            share_quantization(builder, [second, first])
            concatenate(builder, [first], 3)
        case 1:
            axis = int(rng.integers(1, 3))
            concatenate(builder, [builder.last] * int(rng.integers(1, 3)), axis)
        case 2:
            starts = (0, int(rng.integers(0, height)), int(rng.integers(0, width)), 0)
            steps = (1, *(int(step) for step in rng.integers(1, 3, 2)), 1)
            ends = (1, height, width, channels)
            sizes = tuple(
                -(-(end - start) // step)
                for start, step, end in zip(starts, steps, ends, strict=True)
            )
            move(builder, "slice", sizes, starts=starts, steps=steps, sizes=sizes, shape=sizes)
        case 3:
            size = int(rng.integers(1, 3)) * height, int(rng.integers(1, 4)) * width
            centers = bool(rng.integers(0, 2))
            options = {"size": size, "align_corners": False, "half_pixel_centers": centers}
            move(builder, "resize_nearest", (1, *size, channels), **options)
        case 4:
            reflect = bool(rng.integers(0, 2))
            top, left = (int(rng.integers(0, size - reflect + 1)) for size in (height, width))
            mode = "reflect" if reflect else "symmetric"
            padding = ((0, 0), (top, 0), (left, 0), (0, 0))
            shape = (1, height + top, width + left, channels)
            move(builder, "mirror_pad", shape, padding=padding, mode=mode)
        case 5:
            padding, value = ((0, 0), (1, 2), (0, 1), (0, 0)), int(rng.integers(-128, 128))
            shape = (1, height + 3, width + 1, channels)
            move(builder, "pad", shape, padding=padding, value=value)


def random_copies(seed: int) -> NetworkBuilder:
    """A convolution, some copies, and at times another convolution."""
    rng = np.random.default_rng(seed)
    sizes = (int(size) for size in rng.integers((1, 1, 1), (7, 7, 9)))
    builder = NetworkBuilder(seed, *sizes)
    builder.same_conv2d(1, int(rng.integers(1, 18)))
    for _ in range(int(rng.integers(1, 4))):
        grow(builder)
    if rng.integers(0, 2):
        builder.same_conv2d(3, int(rng.integers(1, 10)))
    return builder
