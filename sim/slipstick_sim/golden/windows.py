"""Finds the activation that each lane of a CONVOLVE reads: reduction lanes, window stream."""

from collections.abc import Mapping

import numpy as np
from slipstick_rtl.config import Configuration

from .depthwise import depthwise_vectors

_AT_LEAST_ONE = ("reduction_tiles", "channels", "kernel_x", "rows", "groups")

Lanes = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def lanes(instruction: Mapping[str, int], configuration: Configuration) -> Lanes:
    """The flattened reduction of a CONVOLVE.

    Parameters
    ----------
    instruction : mapping
        Field values as ``isa.unpack`` gives them.
    configuration : Configuration

    Returns
    -------
    (ky, kx, c, counts) : arrays of int64, int64, int64 and bool, each (tiles, R)
        The tap and channel of each lane; idle lanes have ``counts`` False and no meaning.

    Raises
    ------
    ValueError
        If a loop of the instruction would not run at all, or it takes ``pairs`` against the rules.
    """
    for name in _AT_LEAST_ONE:
        if instruction[name] < 1:
            raise ValueError(f"{name} of CONVOLVE must be at least 1, not {instruction[name]}")
    rows, tiles = configuration.rows, instruction["reduction_tiles"]
    channels, kernel_x = instruction["channels"], instruction["kernel_x"]
    # each segment of lanes starts a new tile; without alignment all lanes are one segment
    if instruction["align_tap"]:
        segment = channels
    elif instruction["align_row"]:
        segment = kernel_x * channels
    else:
        segment = tiles * rows
    pairs = instruction.get("pairs", 0)
    if pairs:
        _check_pairs(instruction, configuration)
    tiles_a_segment = -(-segment // rows)
    tile, lane = np.divmod(np.arange(tiles * rows, dtype=np.int64).reshape(tiles, rows), rows)
    number, first_tile = np.divmod(tile, tiles_a_segment)
    within = first_tile * rows + lane
    if pairs:
        # the first tile's second half works on the second vector
        within -= np.where(within < rows // 2, 0, rows // 2)
    tap, c = np.divmod(number * segment + within, channels)
    ky, kx = np.divmod(tap, kernel_x)
    counts = within < segment
    if pairs:
        counts[0, rows // 2 :] = False
    return ky, kx, c, counts


def _check_pairs(instruction: Mapping[str, int], configuration: Configuration) -> None:
    half = configuration.rows // 2
    if not configuration.takes_pairs:
        raise ValueError(f"pairs must be 0 with {configuration.shape} of this kind, not 1")
    barred = [name for name in ("accumulate", "align_tap", "align_row") if instruction[name]]
    if barred or instruction["diagonal"]:
        raise ValueError(f"pairs must be 0 with {', '.join(barred) or 'diagonal'}, not 1")
    if instruction["groups"] % 2:
        raise ValueError(f"groups must be even with pairs, not {instruction['groups']}")
    if (instruction["column_step"] - half) % configuration.banks:
        raise ValueError(
            f"column_step must be {half} modulo {configuration.banks} with pairs, not"
            f" {instruction['column_step']}"
        )


def lane_offsets(instruction: Mapping[str, int], reduction: Lanes) -> np.ndarray:
    """Bytes from a window's first address to each lane's, int64 (tiles, R)."""
    ky, kx, c, _ = reduction
    return ky * instruction["tap_step_y"] + kx * instruction["tap_step_x"] + c


def congruent(offsets: np.ndarray, configuration: Configuration) -> np.ndarray:
    """Tells which lanes r the memory's banks can deliver: at lane 0's address plus r, mod B."""
    distances = offsets - offsets[:, :1] - np.arange(configuration.rows)
    return distances % configuration.banks == 0


def window_vectors(
    instruction: Mapping[str, int], activations: np.ndarray, configuration: Configuration
) -> tuple[list[np.ndarray], np.ndarray]:
    """The vectors that the window reader streams to the array, in its order.

    Parameters
    ----------
    instruction : mapping
        Field values of a CONVOLVE.
    activations : array of int8, (bytes,)
    configuration : Configuration

    Returns
    -------
    vectors : list of tiles arrays of int8, (rows, groups, P, R)
        One vector of R bytes a pixel; the C order of an array is the order in time. The first of
        ``pairs`` has half as many groups. With ``depthwise``: (blocks of rows, 2 stream columns,
        1, R), or, if they are ``joined``, all in a row.
    defined : array of bool, (tiles, R)
        Lanes whose bytes are specified. The others are idle, or break the rule of the banks; the
        compiler gives them zero weights, so that their bytes do not matter.
    """
    if instruction.get("depthwise"):
        return depthwise_vectors(instruction, activations, configuration)
    reduction = lanes(instruction, configuration)
    ky, kx, _, counts = (part[:, None, None, :] for part in reduction)
    offsets = lane_offsets(instruction, reduction)
    columns = instruction["groups"] * configuration.pixels
    row = np.arange(instruction["rows"])[:, None, None]
    column = np.arange(columns)[:, None]
    y = instruction["origin_y"] + row * instruction["stride_y"] + ky * instruction["dilation_y"]
    x = instruction["origin_x"] + column * instruction["stride_x"] + kx * instruction["dilation_x"]
    inside = (y >= 0) & (y < instruction["height"]) & (x >= 0) & (x < instruction["width"])
    address = (
        instruction["origin"]
        + row * instruction["row_step"]
        + column * instruction["column_step"]
        + offsets[:, None, None, :]
    )
    # the memory decodes the low address bits only
    bytes_read = activations[address % configuration.activation_bytes]
    vectors = np.where(inside & counts, bytes_read, np.int8(instruction["padding_value"]))
    shape = (len(offsets), instruction["rows"], instruction["groups"])
    defined = reduction[3] & congruent(offsets, configuration)
    tiles = list(vectors.reshape(*shape, configuration.pixels, configuration.rows))
    if instruction.get("pairs"):
        half = configuration.rows // 2
        first = tiles[0][..., :half]
        tiles[0] = np.concatenate([first[:, 0::2], first[:, 1::2]], axis=-1)
        defined[0, half:] = defined[0, :half]
    return tiles, defined
