"""Golden model of the post engine: DRAIN, MAP and TABLE as pure functions of arrays.

Activations are ``(batch, bytes)`` int8 and changed in place; parameters are the tuple ``(bias,
multiplier, shift)`` of arrays, one entry a channel of the instruction's block. Where the gateware
would wrap around the end of a memory, these functions raise instead: no compiled program does that.

Every read of an instruction precedes every write here. The gateware reads ahead of its writes by
its pipeline only, so an instruction must not read what one of its earlier pixels writes.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.lib.stride_tricks import as_strided
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import (
    FACTOR_BITS,
    POST_FIELDS,
    PRODUCT_TAPS,
    READING_FLAGS,
    MapFlag,
    Opcode,
    TrainingFlag,
)
from slipstick_rtl.numbers.rounding import (
    clamp,
    lowest_bytes,
    noted_bits,
    requantize_stochastic,
)

from .arithmetic import arithmetic_of
from .parameters import Parameters

_BYTES = 256

_BLOCK = 1 << 15
"""Results worked on at a time: their 64-bit intermediates stay in the second-level cache."""

_STEP_MODULUS = 1 << POST_FIELDS["destination_row_step"].width

LINEAR_SHIFT = 19
"""A tap that ``shift_taps`` says is shifted left by so much."""


def table_entries(configuration: Configuration) -> int:
    """Entries of both halves of the table: one is for even taps, one for odd ones."""
    return 2 * configuration.table_codes


def drain(
    instruction: Mapping[str, int],
    accumulators: np.ndarray,
    parameters: Parameters,
    activations: np.ndarray,
    configuration: Configuration,
    notes: np.ndarray | None = None,
    table: np.ndarray | None = None,
) -> None:
    """DRAIN: accumulators through requantisation into activation memory.

    Parameters
    ----------
    instruction : mapping
        Field values as ``isa.unpack`` gives them.
    accumulators : array of int32, (batch, depth, P, C)
        The bank that the instruction names.
    parameters : tuple of arrays, each of as many channels as are written, or more
    activations : array of int8, (batch, bytes)
        Written.
    configuration : Configuration
    notes : array of int32, (batch, L), optional
        With ``training``: of the lanes, changed.
    table : array of int32, (table_entries(configuration),), optional
        With ``drain_tables``: as ``load_table`` gives it.

    Raises
    ------
    ValueError
        If the instruction reaches beyond the accumulators, parameters or activations, or if an
        address is not a multiple of L.
    """
    flags = _flags(instruction, configuration)
    pixels, rows, columns = configuration.pixels, instruction["rows"], instruction["columns"]
    groups = -(-columns // pixels)
    channels = instruction["slices"] * configuration.lanes
    batch, depth, _, width = accumulators.shape
    _check_within("accumulators of DRAIN", 0, rows * groups, depth)
    _check_within("channels of DRAIN", 0, channels, width)
    used = accumulators[:, : rows * groups].reshape(batch, rows, groups * pixels, width)
    values = used[:, :, :columns, :channels]
    _check_within("channels of DRAIN's parameters", 0, channels, len(parameters[0]))
    bias, multiplier, shift = (array[:channels] for array in parameters)
    lanes, finish = (bias, multiplier, shift), _finisher(instruction, flags, configuration)
    destination = _destination(instruction, activations, configuration)
    if flags & TrainingFlag.NOTES:
        values = _given_notes(notes, destination.shape)
    if flags & TrainingFlag.MASKED:
        values = np.where(_source(instruction, activations, configuration) > 0, values, 0)
    if notes is not None:
        _note(notes, values, bias, flags)
    codes = _result_codes(instruction, configuration, table)
    size = configuration.table_codes
    for block in _blocks(destination.shape):
        result = finish(instruction, values[block], lanes)
        destination[block] = (
            result if codes is None else codes[result.astype(np.int64) + size // 2 & size - 1]
        )


def map_taps(
    instruction: Mapping[str, int],
    table: np.ndarray,
    parameters: Parameters,
    activations: np.ndarray,
    configuration: Configuration,
    notes: np.ndarray | None = None,
) -> None:
    """MAP: taps of activation memory, combined, through requantisation back into it.

    Parameters
    ----------
    instruction : mapping
        Field values as ``isa.unpack`` gives them.
    table : array of int32, (table_entries(configuration),)
        As ``load_table`` gives it; looked at only where the instruction says ``use_table``.
    parameters : tuple of arrays, each of L channels or more
    activations : array of int8, (batch, bytes)
        Read and written.
    configuration : Configuration
    notes : array of int32, (batch, L), optional
        With ``training``: of the lanes, changed.

    Raises
    ------
    ValueError
        If the instruction reaches beyond the parameters or activations, has no tap, or if an
        address is not a multiple of L.
    """
    flags = _flags(instruction, configuration)
    bias, multiplier, shift = (
        np.tile(array[: configuration.lanes], instruction["slices"]) for array in parameters
    )
    lanes, finish = (bias, multiplier, shift), _finisher(instruction, flags, configuration)
    destination = _destination(instruction, activations, configuration)
    multiplies = configuration.products and instruction["table_words"] & MapFlag.MULTIPLY
    if multiplies:
        _check_product(instruction)
    # a byte as it is stored, 0..255, is the index; of a code's bits those above the format's say
    # nothing
    codes = configuration.table_codes
    halves = np.asarray(table, dtype=np.int32).reshape(2, codes)
    halves = np.tile(np.roll(halves, codes // 2, axis=1), _BYTES // codes)
    taps = [
        (
            _window(
                "source of MAP",
                activations,
                instruction["source"]
                + tap_y * instruction["tap_step_y"]
                + tap_x * instruction["tap_step_x"],
                instruction["source_row_step"],
                instruction["source_column_step"],
                destination.shape[1:],
                configuration.lanes,
            ),
            halves[tap_x % 2] if instruction["use_table"] >> tap_x % 2 & 1 else None,
        )
        for tap_y in range(instruction["taps_y"])
        for tap_x in range(2 if multiplies else instruction["taps_x"])
    ]
    wide = instruction["use_table"] or instruction["shift_taps"]
    narrow = instruction["take_maximum"] and not wide
    combine = np.maximum if instruction["take_maximum"] else np.add
    if multiplies:
        combine = _multiply
    for block in _blocks(destination.shape):
        total: np.ndarray | None = None
        for source, half in taps:
            value = source[block]
            if half is not None:
                value = half.take(value.view(np.uint8))
            elif instruction["shift_taps"]:
                value = value.astype(np.int32) << LINEAR_SHIFT
            if total is None:
                # maxima of bytes are bytes; everything else needs the accumulator's 32 bits
                total = np.array(value, dtype=np.int8 if narrow else np.int32)
            else:
                combine(total, value, out=total)
        if total is None:
            raise ValueError("MAP must have at least one tap, not 0")
        if notes is not None:
            _note(notes[block[0]], total, bias, flags)
        destination[block] = finish(instruction, total, lanes)


def _check_product(instruction: Mapping[str, int]) -> None:
    """ValueError if a MAP that multiplies has other taps than it must."""
    needed = {"taps_y": 1, "taps_x": PRODUCT_TAPS, "use_table": 3, "take_maximum": 0}
    for name, value in needed.items():
        if instruction[name] != value:
            raise ValueError(
                f"{name} of a MAP that multiplies must be {value}, not {instruction[name]}"
            )


def _multiply(first: np.ndarray, second: np.ndarray, out: np.ndarray) -> None:
    """The product of both factors' low bits, as numbers with a sign, modulo 2^32."""
    unused = 32 - FACTOR_BITS
    factors = [(value << unused >> unused).astype(np.int64) for value in (first, second)]
    out[...] = (factors[0] * factors[1]).astype(np.int32)


def _result_codes(
    instruction: Mapping[str, int], configuration: Configuration, table: np.ndarray | None
) -> np.ndarray | None:
    """Returns what results, from the lowest on, become in a DRAIN; None: they stay as they are."""
    if not (configuration.drain_tables and instruction["use_table"] & 1):
        return None
    if table is None:
        raise ValueError("a DRAIN with use_table must have a table")
    return (np.asarray(table)[: configuration.table_codes] & 0xFF).astype(np.uint8).view(np.int8)


def _flags(instruction: Mapping[str, int], configuration: Configuration) -> TrainingFlag:
    """Returns an instruction's training flags; ValueError if they do not go together."""
    flags = TrainingFlag(
        instruction["table_words"] & ~MapFlag.MULTIPLY if configuration.training else 0
    )
    if flags & READING_FLAGS and (instruction["opcode"] != Opcode.DRAIN or instruction["repeats"]):
        raise ValueError(f"{flags!r} must be a DRAIN's, without repeats")
    if flags & READING_FLAGS == READING_FLAGS:
        raise ValueError("MASKED must not be with NOTES")
    if flags & TrainingFlag.NOTES and instruction["slices"] != 1:
        raise ValueError(f"NOTES must have one slice, not {instruction['slices']}")
    return flags


def _finisher(
    instruction: Mapping[str, int], flags: TrainingFlag, configuration: Configuration
) -> Callable[[Mapping[str, int], np.ndarray, Parameters], np.ndarray]:
    """Returns the function that makes bytes of sums."""
    if flags & TrainingFlag.AS_BYTES:
        return lambda _, values, parameters: lowest_bytes(values, *parameters)
    if flags & TrainingFlag.STOCHASTIC:
        zero_point, low, high = (instruction[n] for n in ("zero_point", "minimum", "maximum"))
        return lambda _, values, parameters: clamp(
            requantize_stochastic(values, *parameters), zero_point, low, high
        )
    return arithmetic_of(configuration).finish


def _given_notes(notes: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray:
    """The notes in place of accumulators."""
    if notes is None:
        raise ValueError("NOTES must have notes to give")
    return np.broadcast_to(notes[:, None, None, :].copy(), shape)


def _note(notes: np.ndarray, values: np.ndarray, bias: np.ndarray, flags: TrainingFlag) -> None:
    """Adds the bits of values, (batch, rows, columns, channels), to the notes of their lanes."""
    if not flags & TrainingFlag.NOTED:
        return
    if flags & TrainingFlag.NOTES:
        notes[...] = 0
        return
    stochastic, positive = TrainingFlag.STOCHASTIC in flags, TrainingFlag.POSITIVE in flags
    bits = noted_bits(values, bias, stochastic, positive)
    notes |= np.bitwise_or.reduce(bits.reshape(len(notes), -1, notes.shape[1]), axis=1)


def load_table(
    instruction: Mapping[str, int],
    weights: np.ndarray,
    table: np.ndarray,
    configuration: Configuration,
) -> None:
    """TABLE: copies weight words into the table.

    Parameters
    ----------
    instruction : mapping
    weights : array of int8, (words, W, C)
    table : array of int32, (table_entries(configuration),)
        Written from entry 0 on.
    configuration : Configuration

    Raises
    ------
    ValueError
        If the words reach beyond the weight memory or the table.
    """
    first, count = instruction["table_address"], instruction["table_words"]
    _check_within("weight words of TABLE", first, first + count, len(weights))
    entries = count * configuration.weight_word_bytes // 4
    _check_within("entries of TABLE", 0, entries, table_entries(configuration))
    source = np.ascontiguousarray(weights[first : first + count])
    table[:entries] = source.reshape(-1).view("<i4")


def _check_within(name: str, low: int, high: int, size: int) -> None:
    if low < 0 or high > size:
        raise ValueError(f"{name} must lie within 0..{size}, not {low}..{high}")


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
    """Slices of the batch and row axes that hold about ``_BLOCK`` results each."""
    batch, rows, columns, channels = shape
    row_step = max(1, _BLOCK // max(1, columns * channels))
    batch_step = max(1, _BLOCK // max(1, rows * columns * channels))
    for image in range(0, batch, batch_step):
        for row in range(0, rows, row_step):
            yield slice(image, image + batch_step), slice(row, row + row_step)


def _window(
    name: str,
    activations: np.ndarray,
    first: int,
    row_step: int,
    column_step: int,
    shape: tuple[int, ...],
    lanes: int,
) -> np.ndarray:
    """A view of activation memory, (batch, rows, columns, channels), that starts at ``first``."""
    rows, columns, channels = shape
    for offset in (first, row_step if rows > 1 else 0, column_step if columns > 1 else 0):
        if offset % lanes:
            raise ValueError(f"{name} must lie at multiples of {lanes} bytes, not {offset}")
    lowest = first + min((rows - 1) * row_step, 0)
    last = first + max((rows - 1) * row_step, 0) + (columns - 1) * column_step + channels
    _check_within(name, lowest, last, activations.shape[1])
    return as_strided(
        activations[:, first:],
        (len(activations), *shape),
        (activations.strides[0], row_step, column_step, 1),
    )


def _signed_step(step: int) -> int:
    """A step modulo 2^24 as it is meant: also backwards."""
    return step - _STEP_MODULUS if step >= _STEP_MODULUS // 2 else step


def _source(
    instruction: Mapping[str, int], activations: np.ndarray, configuration: Configuration
) -> np.ndarray:
    """A view of what a masked DRAIN reads, (batch, rows, columns, channels)."""
    names = ("rows", "columns", "slices")
    rows, columns, slices = (instruction[name] for name in names)
    return _window(
        "source of DRAIN",
        activations,
        instruction["source"],
        _signed_step(instruction["source_row_step"]),
        instruction["source_column_step"],
        (rows, columns, slices * configuration.lanes),
        configuration.lanes,
    )


def _destination(
    instruction: Mapping[str, int], activations: np.ndarray, configuration: Configuration
) -> np.ndarray:
    """A view of what the instruction writes, (batch, rows, columns, channels)."""
    for name in ("rows", "columns", "slices"):
        if instruction[name] < 1:
            raise ValueError(f"{name} must be at least 1, not {instruction[name]}")
    return _window(
        "destination",
        activations,
        instruction["destination"],
        _signed_step(instruction["destination_row_step"]),
        instruction["destination_column_step"],
        (
            instruction["rows"],
            instruction["columns"],
            instruction["slices"] * configuration.lanes,
        ),
        configuration.lanes,
    )
