"""CONVOLVE's golden model against the loop nest of the instruction set, written out naively."""

from collections.abc import Mapping

import numpy as np
import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MATRIX_FIELDS, Opcode, pack, unpack
from slipstick_sim.golden.convolve import convolve, lanes, window_vectors


def _configuration(
    pixels: int, rows: int = 8, columns: int = 8, weight_rows: int = 1
) -> Configuration:
    return Configuration(
        weight_rows=weight_rows,
        pixels=pixels,
        rows=rows,
        columns=columns,
        lanes=4,
        activation_bytes=1 << 13,
        weight_bytes=1 << 14,
        accumulator_depth=128,
    )


def naive_lanes(
    instruction: Mapping[str, int], configuration: Configuration
) -> list[list[tuple[int, int, int] | None]]:
    """Counts lanes one by one, as the docstring of CONVOLVE tells it."""
    ky = kx = c = 0
    tiles: list[list[tuple[int, int, int] | None]] = []
    for _ in range(instruction["reduction_tiles"]):
        tile: list[tuple[int, int, int] | None] = []
        while len(tile) < configuration.rows:
            tile.append((ky, kx, c))
            tap_ends = row_ends = False
            c += 1
            if c == instruction["channels"]:
                c, kx, tap_ends = 0, kx + 1, True
                if kx == instruction["kernel_x"]:
                    kx, ky, row_ends = 0, ky + 1, True
            if (tap_ends and instruction["align_tap"]) or (row_ends and instruction["align_row"]):
                tile += [None] * (configuration.rows - len(tile))
        tiles.append(tile)
    return tiles


def naive_convolve(
    instruction: Mapping[str, int],
    weights: np.ndarray,
    activations: np.ndarray,
    configuration: Configuration,
) -> np.ndarray:
    """Accumulators (rows * groups, P, C) of one image, int64."""
    i = instruction
    shape = (i["rows"] * i["groups"], configuration.pixels, configuration.columns)
    result = np.zeros(shape, np.int64)
    wide = weights.astype(np.int64)
    length, columns = configuration.tile_words, configuration.columns
    for tile, lane_tile in enumerate(naive_lanes(instruction, configuration)):
        for pixel in np.ndindex(i["rows"], i["groups"] * configuration.pixels):
            row, column = pixel
            group, p = divmod(column, configuration.pixels)
            for r, lane in enumerate(lane_tile):
                if lane is None:
                    continue
                ky, kx, c = lane
                y = i["origin_y"] + row * i["stride_y"] + ky * i["dilation_y"]
                x = i["origin_x"] + column * i["stride_x"] + kx * i["dilation_x"]
                address = i["origin"] + row * i["row_step"] + column * i["column_step"]
                address += ky * i["tap_step_y"] + kx * i["tap_step_x"] + c
                value = i["padding_value"]
                if 0 <= y < i["height"] and 0 <= x < i["width"]:
                    value = int(activations[address])
                target = result[row * i["groups"] + group, p]
                if i["diagonal"]:
                    own = r % columns
                    target[own] += value * wide[i["weight_address"] + tile, r // length, own]
                else:
                    word = i["weight_address"] + tile * length + r % length
                    target += value * wide[word, r // length]
    return result


def random_case(
    random: np.random.Generator, configuration: Configuration, diagonal: bool, align: str
) -> tuple[dict[str, int], np.ndarray, np.ndarray]:
    """An instruction that the compiler could emit, weights and one image of activations."""
    rows, pick = configuration.rows, random.integers
    kernel_y, kernel_x, channels = int(pick(1, 5)), int(pick(1, 5)), int(pick(1, 12))
    if diagonal and align == "none":
        # several taps a tile: rows serve columns in turn
        channels = configuration.columns
    elif diagonal:
        channels, align = min(rows, configuration.columns, int(pick(1, rows + 1))), "tap"
    if align == "tap":
        pixel_pitch = -(-channels // rows) * rows
    else:
        pixel_pitch = channels
    dilation = int(pick(1, 4)) if align == "tap" else 1
    height, width = int(pick(1, 9)), int(pick(1, 9))
    row_pitch = width * pixel_pitch
    if align != "row":
        # the next kernel row's first lane follows the last one of this row, modulo R
        row_pitch += (kernel_x * pixel_pitch - row_pitch) % rows
    elif row_pitch % rows:
        row_pitch += -row_pitch % rows
    stride_y, stride_x, groups = int(pick(1, 4)), int(pick(1, 4)), int(pick(1, 5))
    segments = {"tap": (kernel_y * kernel_x, channels), "row": (kernel_y, kernel_x * channels)}
    number, length = segments.get(align, (1, kernel_y * kernel_x * channels))
    top, left = int(pick(-3, 4)), int(pick(-3, 4))
    instruction = {
        "opcode": int(Opcode.CONVOLVE),
        "diagonal": int(diagonal),
        "align_tap": int(align == "tap"),
        "align_row": int(align == "row"),
        "weight_address": int(pick(0, 50)),
        "reduction_tiles": number * -(-length // rows),
        "channels": channels,
        "kernel_x": kernel_x,
        "tap_step_x": dilation * pixel_pitch,
        "tap_step_y": dilation * row_pitch,
        "dilation_x": dilation,
        "dilation_y": dilation,
        "origin": 512 + top * row_pitch + left * pixel_pitch,
        "origin_y": top,
        "origin_x": left,
        "height": height,
        "width": width,
        "stride_y": stride_y,
        "stride_x": stride_x,
        "column_step": stride_x * pixel_pitch,
        "row_step": stride_y * row_pitch,
        "rows": int(pick(1, 7)),
        "groups": groups,
        "padding_value": int(pick(-128, 128)),
        "accumulate": int(pick(0, 2)),
    }
    instruction = unpack(MATRIX_FIELDS, pack(MATRIX_FIELDS, instruction))
    length, width = configuration.tile_words, configuration.weight_rows
    shape = configuration.weight_words, width, configuration.columns
    weights = random.integers(-128, 128, shape).astype(np.int8)
    for tile, lane_tile in enumerate(naive_lanes(instruction, configuration)):
        for r, lane in enumerate(lane_tile):
            if lane is None or lane[0] >= kernel_y:
                chain, step = divmod(r, length)
                if not diagonal:
                    weights[instruction["weight_address"] + tile * length + step, chain] = 0
                else:
                    own = r % configuration.columns
                    weights[instruction["weight_address"] + tile, chain, own] = 0
    activations = random.integers(-128, 128, configuration.activation_bytes).astype(np.int8)
    return instruction, weights, activations


CASES = [
    (shape, diagonal, align)
    for shape in ((1, 8, 8, 2), (2, 8, 8, 1), (2, 16, 4, 2), (1, 4, 16, 1), (1, 16, 8, 4))
    for diagonal, align in ((False, "none"), (False, "tap"), (False, "row"), (True, "tap"))
] + [((2, 16, 4, 2), True, "none"), ((1, 16, 8, 4), True, "none")]


@pytest.mark.parametrize(("shape", "diagonal", "align"), CASES)
def test_convolve_is_the_loop_nest(
    shape: tuple[int, int, int, int], diagonal: bool, align: str
) -> None:
    random = np.random.default_rng([*shape, diagonal, len(align)])
    configuration = _configuration(*shape)
    pixels, rows, columns, _ = shape
    for _ in range(6):
        instruction, weights, image = random_case(random, configuration, diagonal, align)
        images = np.stack([image, random.permutation(image), ~image])
        depth = configuration.accumulator_depth
        accumulators = np.full((3, depth, pixels, columns), 77, np.int32)
        convolve(instruction, weights, images, accumulators, configuration)
        used = instruction["rows"] * instruction["groups"]
        for activations, result in zip(images, accumulators, strict=True):
            expected = naive_convolve(instruction, weights, activations, configuration)
            expected += 77 * instruction["accumulate"]
            np.testing.assert_array_equal(result[:used], expected)
        assert (accumulators[:, used:] == 77).all()


@pytest.mark.parametrize(("shape", "diagonal", "align"), CASES)
def test_window_vectors_are_the_loop_nest(
    shape: tuple[int, int, int, int], diagonal: bool, align: str
) -> None:
    random = np.random.default_rng([1, *shape, diagonal, len(align)])
    configuration = _configuration(*shape)
    pixels, rows, columns, _ = shape
    for _ in range(6):
        instruction, weights, image = random_case(random, configuration, diagonal, align)
        vectors, defined = window_vectors(instruction, image, configuration)
        tiles, first = instruction["reduction_tiles"], instruction["weight_address"]
        length, matrix = configuration.tile_words, np.zeros((tiles, rows, columns), np.int64)
        for tile, r in np.ndindex(tiles, rows):
            chain, step = divmod(r, length)
            if diagonal:
                own = r % columns
                matrix[tile, r, own] = weights[first + tile, chain, own]
            else:
                matrix[tile, r] = weights[first + tile * length + step, chain]
        sums = np.einsum(
            "tygpr,trc->ygpc", np.stack(vectors).astype(np.int64), matrix.astype(np.int64)
        )
        expected = naive_convolve(instruction, weights, image, configuration)
        np.testing.assert_array_equal(sums.reshape(expected.shape), expected)
        assert not matrix[~defined].any()


def test_lanes_count_as_the_docstring_tells() -> None:
    random = np.random.default_rng(3)
    configuration = _configuration(1)
    for align in ("none", "tap", "row") * 10:
        instruction, _, _ = random_case(random, configuration, False, align)
        ky, kx, c, counts = lanes(instruction, configuration)
        for tile, lane_tile in enumerate(naive_lanes(instruction, configuration)):
            for r, lane in enumerate(lane_tile):
                assert counts[tile, r] == (lane is not None)
                if lane is not None:
                    assert (ky[tile, r], kx[tile, r], c[tile, r]) == lane


@pytest.mark.parametrize("lanes_reduced", [1024, 1032, 4096])
def test_long_reductions_of_extremes_are_exact(lanes_reduced: int) -> None:
    configuration = _configuration(1)
    instruction = dict.fromkeys(MATRIX_FIELDS, 0) | {
        "reduction_tiles": lanes_reduced // 8,
        "channels": lanes_reduced,
        "kernel_x": 1,
        "height": 1,
        "width": 1,
        "rows": 1,
        "groups": 1,
    }
    weights = np.full((configuration.weight_words, 1, 8), -128, np.int8)
    weights = np.concatenate([weights] * 4)
    weights[3, 0, 0] = weights[5, 0, 1] = -127
    activations = np.full((2, configuration.activation_bytes), -128, np.int8)
    activations[1, 7] = 127
    accumulators = np.zeros((2, 128, 1, 8), np.int32)
    convolve(instruction, weights, activations, accumulators, configuration)
    reduced = slice(0, lanes_reduced)
    expected = activations[:, reduced].astype(np.int64) @ weights[reduced, 0].astype(np.int64)
    np.testing.assert_array_equal(accumulators[:, 0, 0], expected)


def test_zero_weights_read_nothing() -> None:
    random = np.random.default_rng(4)
    configuration = _configuration(1)
    instruction, weights, image = random_case(random, configuration, False, "none")
    instruction["accumulate"] = 0
    accumulators = np.ones((1, 128, 1, 8), np.int32)
    convolve(instruction, weights * np.int8(0), image[None], accumulators, configuration)
    used = instruction["rows"] * instruction["groups"]
    assert not accumulators[:, :used].any()
    assert accumulators[:, used:].all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"channels": 0}, "channels of CONVOLVE must be at least 1, not 0"),
        ({"groups": 0}, "groups of CONVOLVE must be at least 1, not 0"),
        ({"rows": 129}, r"accumulators of CONVOLVE must lie within 0\.\.128, not 0\.\.129"),
        ({"weight_address": 1021}, r"weight words of CONVOLVE must lie within 0\.\.1024"),
        ({"channels": 5, "align_tap": 1}, "idle lanes must be zero, not those of tile 0 lane 5"),
        ({"channels": 4, "kernel_x": 2, "tap_step_x": 5}, r"lane 4 .* not at \+5"),
        ({"origin": 8190}, r"within the activation memory's 0\.\.8192, not 8190\.\.8198"),
        ({"channels": 7, "whole_words": 1}, r"multiple of weight_rows \(2\) .*, not 7"),
        ({"origin": -1}, r"within the activation memory's 0\.\.8192, not -1\.\.7"),
    ],
)
def test_broken_rules_are_named(changes: dict[str, int], message: str) -> None:
    configuration = _configuration(1, weight_rows=2)
    instruction = dict.fromkeys(MATRIX_FIELDS, 0) | {
        "reduction_tiles": 1,
        "channels": 8,
        "kernel_x": 1,
        "height": 999,
        "width": 999,
        "rows": 1,
        "groups": 1,
    }
    weights = np.ones((configuration.weight_words, 2, 8), np.int8)
    activations = np.zeros((1, configuration.activation_bytes), np.int8)
    accumulators = np.zeros((1, 128, 1, 8), np.int32)
    convolve(instruction, weights, activations, accumulators, configuration)
    with pytest.raises(ValueError, match=message):
        convolve(instruction | changes, weights, activations, accumulators, configuration)
