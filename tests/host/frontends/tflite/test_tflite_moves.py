"""Operators that move codes, against tflm: kernels and golden session, bit for bit."""

import numpy as np
import pytest
from slipstick.errors import ModelError
from slipstick.writers import tflite_moves as ops
from slipstick.writers import tflite_operators as first
from tflm_cases import codes, scale, zero_point
from tflm_networks import check, described, integers, network, random_shape, unary

RESIZES = [(False, False), (True, False), (False, True)]


def test_concatenation() -> None:
    rng = np.random.default_rng(1)
    for _ in range(25):
        shape, axis = list(random_shape(rng)), int(rng.choice([1, 2, 3, -1]))
        same = scale(rng), zero_point(rng)
        inputs, arrays, total = [], [], 0
        for number in range(int(rng.integers(1, 5))):
            shape[axis] = int(rng.integers(1, 5))
            total += shape[axis]
            more = {"data": codes(rng, tuple(shape))} if number == 1 and rng.random() < 0.3 else {}
            inputs.append(described(tuple(shape), same, **more))
            arrays += [] if more else [codes(rng, (2, *shape[1:]))]
        shape[axis] = total
        data = network(ops.Concatenation(axis=axis), inputs, [described(tuple(shape), same)])
        check(data, arrays)


def test_pack() -> None:
    rng = np.random.default_rng(2)
    for _ in range(15):
        shape, count = random_shape(rng, 3), int(rng.integers(1, 4))
        axis = int(rng.integers(1, 4))
        same = scale(rng), zero_point(rng)
        out = (*shape[:axis], count, *shape[axis:])
        operator = ops.Pack(count=count, axis=axis)
        data = network(operator, [described(shape, same)] * count, [described(out, same)])
        check(data, [codes(rng, (2, *shape[1:])) for _ in range(count)])


def test_unpack() -> None:
    rng = np.random.default_rng(3)
    for _ in range(15):
        shape, axis = random_shape(rng), int(rng.choice([1, 2, 3, -1]))
        same, count = (scale(rng), zero_point(rng)), shape[axis]
        out = tuple(np.delete(shape, axis).tolist())
        outputs = [described(out, same)] * count
        data = network(ops.Unpack(count=count, axis=axis), [described(shape, same)], outputs)
        check(data, [codes(rng, (2, *shape[1:]))])


def test_split() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        shape, axis = list(random_shape(rng)), int(rng.choice([1, 2, 3, -2]))
        same, count = (scale(rng), zero_point(rng)), int(rng.integers(1, 4))
        size = shape[axis]
        shape[axis] *= count
        outputs = [described((*shape[: axis % 4], size, *shape[axis % 4 + 1 :]), same)] * count
        inputs = [integers([axis]), described(tuple(shape), same)]
        data = network(ops.Split(count=count), inputs, outputs)
        check(data, [codes(rng, (2, *shape[1:]))])


def test_split_v() -> None:
    rng = np.random.default_rng(5)
    for trial in range(20):
        shape, axis = list(random_shape(rng)), int(rng.choice([1, 2, 3]))
        same = scale(rng), zero_point(rng)
        sizes = [int(size) for size in rng.integers(1, 4, int(rng.integers(1, 4)))]
        shape[axis] = sum(sizes)
        outputs = [described((*shape[:axis], size, *shape[axis + 1 :]), same) for size in sizes]
        listed = [*sizes[:-1], -1] if trial % 3 == 0 else sizes
        inputs = [described(tuple(shape), same), integers(listed), integers([axis])]
        data = network(ops.SplitV(count=len(sizes)), inputs, outputs)
        check(data, [codes(rng, (2, *shape[1:]))])


def test_slice() -> None:
    rng = np.random.default_rng(6)
    for _ in range(25):
        shape = random_shape(rng, int(rng.choice([2, 3, 4])))
        begin = [0, *(int(rng.integers(0, size)) for size in shape[1:])]
        size = [int(rng.integers(1, n - b + 1)) for n, b in zip(shape, begin, strict=True)]
        shown = [-1 if rng.random() < 0.2 and s == n - b else s
                 for s, n, b in zip(size, shape, begin, strict=True)]  # fmt: skip
        unary(rng, ops.Slice(), shape, tuple(size), integers(begin), integers(shown))


def test_strided_slice() -> None:
    rng = np.random.default_rng(7)
    checked = 0
    while checked < 60:
        shape = random_shape(rng, int(rng.choice([2, 3, 4])))
        rank = len(shape)
        begin, end = [0], [1]
        for size in shape[1:]:
            begin.append(int(rng.integers(-size, size)))
            end.append(int(rng.integers(-size - 1, size + 2)))
        steps = [1, *(int(step) for step in rng.choice([1, 1, 2, 3, -1, -2], rank - 1))]
        masks = [int(rng.integers(0, 1 << rank)) & ~1 for _ in range(2)]
        shrink = 1 << int(rng.integers(1, rank)) if rng.random() < 0.3 and rank > 2 else 0
        if any(shrink >> axis & 1 and steps[axis] < 0 for axis in range(rank)):
            continue
        parts = [
            slice(
                None if masks[0] >> axis & 1 else begin[axis],
                None if masks[1] >> axis & 1 else end[axis],
                steps[axis],
            )
            for axis in range(rank)
        ]
        sizes = [len(range(size)[part]) for size, part in zip(shape, parts, strict=True)]
        sizes = [1 if shrink >> axis & 1 else size for axis, size in enumerate(sizes)]
        if not min(sizes) or masks[0] & shrink:
            continue
        out = tuple(size for axis, size in enumerate(sizes) if not shrink >> axis & 1)
        operator = ops.StridedSlice(begin_mask=masks[0], end_mask=masks[1], shrink_axis_mask=shrink)
        unary(rng, operator, shape, out, integers(begin), integers(end), integers(steps))
        checked += 1


def test_transpose() -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        shape = random_shape(rng, int(rng.choice([3, 4, 5])))
        order = [0, *(1 + rng.permutation(len(shape) - 1)).tolist()]
        out = tuple(shape[axis] for axis in order)
        unary(rng, ops.Transpose(), shape, out, integers(order))


@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_mirror_pad(mode: str) -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        shape = random_shape(rng)
        most = np.array(shape) - (mode == "REFLECT")
        border = np.stack([rng.integers(0, most + 1), rng.integers(0, most + 1)], axis=1)
        border[0] = 0
        out = tuple(int(size) for size in np.add(shape, border.sum(axis=1)))
        unary(rng, ops.MirrorPad(mode=mode), shape, out, integers(border))


def test_an_output_of_other_dimensions_is_refused() -> None:
    """tflite-micro takes the strides of the output as declared, and reads the wrong codes."""
    with pytest.raises(ModelError, match=r"output must have the input's 4 dimensions"):
        unary(
            np.random.default_rng(1),
            ops.MirrorPad(mode="REFLECT"),
            (1, 4, 4, 2),
            (7, 5, 2),
            integers([[0, 0], [1, 2], [0, 1], [0, 0]]),
        )


def test_pad_any_axes() -> None:
    rng = np.random.default_rng(10)
    for _ in range(15):
        shape = random_shape(rng, int(rng.choice([2, 3, 4])))
        border = rng.integers(0, 4, (len(shape), 2))
        border[0] = 0
        out = tuple(int(size) for size in np.add(shape, border.sum(axis=1)))
        unary(rng, first.Pad(), shape, out, integers(border))


def test_blocks() -> None:
    rng = np.random.default_rng(11)
    for block in (1, 2, 3):
        _, height, width, channels = random_shape(rng, largest=4)
        small = 1, height, width, channels * block**2
        large = 1, height * block, width * block, channels
        unary(rng, ops.DepthToSpace(block=block), small, large)
        unary(rng, ops.SpaceToDepth(block=block), large, small)


@pytest.mark.parametrize(("corners", "centers"), RESIZES)
@pytest.mark.parametrize("kind", [ops.ResizeNearest, ops.ResizeBilinear])
def test_resize(kind: type[ops.ResizeNearest], corners: bool, centers: bool) -> None:
    rng = np.random.default_rng(12)
    operator = kind(align_corners=corners, half_pixel_centers=centers)
    for trial in range(25):
        shape = random_shape(rng, largest=9)
        size = [int(n) for n in rng.integers(1, 20, 2)]
        if trial < 5:
            size = [shape[1] * (trial + 1), shape[2] * 2]
        out = shape[0], *size, shape[3]
        unary(rng, operator, shape, out, integers(size))
