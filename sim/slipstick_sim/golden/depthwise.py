"""Golden model of depthwise CONVOLVEs: their rules, weights, and vectors."""

from collections.abc import Mapping

import numpy as np
from slipstick_rtl.config import DEPTHWISE_KERNEL, DEPTHWISE_TAPS, Configuration
from slipstick_rtl.isa import KEPT_COLUMNS

from .gather import WindowGather

_BARRED = ("accumulate", "diagonal", "align_tap", "align_row", "pairs")


def check_depthwise(instruction: Mapping[str, int], configuration: Configuration) -> None:
    """ValueError if a depthwise instruction breaks a rule of the instruction set."""
    c = configuration
    if not c.takes_depthwise:
        raise ValueError(f"depthwise must be 0 with {c.shape} of this kind, not 1")
    for name in ("rows", "groups", "skip"):
        if instruction[name] < 1:
            raise ValueError(
                f"{name} of a depthwise CONVOLVE must be at least 1, not {instruction[name]}"
            )
    barred = [name for name in _BARRED if instruction.get(name)]
    if barred:
        raise ValueError(f"depthwise must be 0 with {', '.join(barred)}, not 1")
    halves = 2 if instruction["kernel_x"] == 2 else 1
    rules = (("reduction_tiles", 1), ("kernel_x", halves), ("channels", c.columns // halves))
    if halves == 2 and (instruction["tap_step_x"] - c.columns // 2) % c.banks:
        raise ValueError(
            f"tap_step_x must be {c.columns // 2} modulo {c.banks} with depthwise, not"
            f" {instruction['tap_step_x']}"
        )
    for name, value in rules:
        if instruction[name] != value:
            raise ValueError(
                f"{name} of a depthwise CONVOLVE must be {value}, not {instruction[name]}"
            )
    if (instruction["tap_step_y"] - c.columns) % c.banks:
        raise ValueError(
            f"tap_step_y must be {c.columns} modulo {c.banks} with depthwise, not"
            f" {instruction['tap_step_y']}"
        )
    if instruction.get("joined"):
        _check_joined(instruction)
    if instruction.get("kept_rows"):
        _check_kept_rows(instruction, c.kept_padding)
        return
    if instruction["skip"] > 1 or instruction["rows"] == 1:
        return
    for name, other in (("row_step", "tap_step_y"), ("stride_y", "dilation_y")):
        if instruction[name] != instruction[other]:
            raise ValueError(
                f"{name} must be {other} ({instruction[other]}) with depthwise, several rows and"
                f" skip 1, not {instruction[name]}"
            )


def _check_kept_rows(instruction: Mapping[str, int], padding: int) -> None:
    i = instruction
    above, columns = i["origin_y"] - i["dilation_y"], stream_columns(i)
    rules = (
        ("skip", 2, i["skip"] == 2),
        ("stride_y", 2 * i["dilation_y"], i["stride_y"] == 2 * i["dilation_y"]),
        ("row_step", 2 * i["tap_step_y"], not (i["row_step"] - 2 * i["tap_step_y"]) % (1 << 24)),
        ("padding_value", padding, i["padding_value"] == padding),
    )
    for name, value, kept in rules:
        if not kept:
            raise ValueError(f"{name} must be {value} with kept_rows, not {i[name]}")
    if 0 <= above < i["height"]:
        raise ValueError(
            f"origin_y less dilation_y must lie in padding with kept_rows, not at row {above}"
        )
    if columns > KEPT_COLUMNS:
        raise ValueError(
            f"stream columns must be at most {KEPT_COLUMNS} with kept_rows, not {columns}"
        )


def _check_joined(instruction: Mapping[str, int]) -> None:
    i = instruction
    if i["skip"] != 1:
        raise ValueError(f"skip must be 1 with joined, not {i['skip']}")
    if i["kernel_x"] != 1:
        raise ValueError(f"kernel_x must be 1 with joined, not {i['kernel_x']}")
    for m in (0, stream_columns(i) - 1):
        column = i["origin_x"] + m * i["stride_x"]
        if 0 <= column < i["width"]:
            raise ValueError(f"stream column {m} must lie in padding with joined, not at {column}")


def stream_columns(instruction: Mapping[str, int]) -> int:
    """Columns of the input that a row of the output takes."""
    return (instruction["groups"] - 1) * instruction["skip"] + DEPTHWISE_KERNEL


def depthwise_weights(tile: np.ndarray, configuration: Configuration) -> np.ndarray:
    """Weights of every channel of every tap, int8 (9 C, C), from those of a tile's rows, (R, C).

    Raises
    ------
    ValueError
        If another row than those of the taps has a weight.
    """
    c = configuration
    first = c.packed_rows
    others = tile.copy()
    others[first : first + DEPTHWISE_TAPS] = 0
    if others.any():
        row = int(np.argwhere(others.any(axis=1))[0, 0])
        raise ValueError(
            f"weights of rows other than {first}..{first + DEPTHWISE_TAPS - 1} must be zero with"
            f" depthwise, not those of row {row}"
        )
    matrix = np.zeros((DEPTHWISE_TAPS, c.columns, c.columns), np.int8)
    channel = np.arange(c.columns)
    matrix[:, channel, channel] = tile[first : first + DEPTHWISE_TAPS]
    return matrix.reshape(-1, c.columns)


def depthwise_gather(instruction: Mapping[str, int], configuration: Configuration) -> WindowGather:
    """The windows of all taps: a stream column's step is a tap's step along the row."""
    i = instruction
    shape = DEPTHWISE_KERNEL, DEPTHWISE_KERNEL, configuration.columns
    ky, kx, lane = (part.reshape(-1) for part in np.indices(shape))
    half, channel = np.divmod(lane, i["channels"])
    window = {
        **i,
        "dilation_x": i["stride_x"],
        "stride_x": i["skip"] * i["stride_x"],
        "column_step": i["skip"] * i["column_step"],
    }
    if i.get("kept_rows"):
        # from the row that is kept on; steps may be negative
        window["origin"] -= i["tap_step_y"]
        window["origin_y"] -= i["dilation_y"]
        window["row_step"] = 2 * i["tap_step_y"]
    offsets = ky * i["tap_step_y"] + kx * i["column_step"] + half * i["tap_step_x"] + channel
    # a tap of the second half is so many columns further on
    kx += half * (i["dilation_x"] // max(i["stride_x"], 1))
    return WindowGather(window, i["groups"], ky, kx, offsets)


def depthwise_vectors(
    instruction: Mapping[str, int], activations: np.ndarray, configuration: Configuration
) -> tuple[list[np.ndarray], np.ndarray]:
    """As ``window_vectors``: one array, (blocks of rows, 2 stream columns, 1, R)."""
    i = instruction
    check_depthwise(i, configuration)
    rows, columns = configuration.rows, configuration.columns
    block = 2 if i["skip"] == 1 or i.get("kept_rows") else 1
    blocks, count = -(-i["rows"] // block), stream_columns(i)
    b, m, h, r = np.ogrid[:blocks, :count, :2, :rows]
    k = 2 * h + r // columns
    y = i["origin_y"] + b * block * i["stride_y"] + k * i["dilation_y"]
    half, channel = np.divmod(r % columns, i["channels"])
    x = i["origin_x"] + m * i["stride_x"] + half * i["dilation_x"]
    address = i["origin"] + b * block * i["row_step"] + k * i["tap_step_y"]
    address = address + m * i["column_step"] + half * i["tap_step_x"] + channel
    inside = (y >= 0) & (y < i["height"]) & (x >= 0) & (x < i["width"])
    # the memory decodes the low address bits only
    bytes_read = activations[address % configuration.activation_bytes]
    vectors = np.where(inside, bytes_read, np.int8(i["padding_value"]))
    if i.get("joined"):
        # the first column of all blocks but the first is the last of the one before
        vectors = np.concatenate([vectors[:1, :1].reshape(1, -1), vectors[:, 1:].reshape(1, -1)], 1)
        return [vectors.reshape(1, -1, 1, rows)], np.ones((1, rows), bool)
    return [vectors.reshape(blocks, 2 * count, 1, rows)], np.ones((1, rows), bool)
