"""Random DRAIN, MAP and TABLE instructions that obey the instruction set's rules."""

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import (
    OFFSET_BITS,
    POST_FIELDS,
    PRODUCT_TAPS,
    MapFlag,
    Opcode,
    Rounding,
    TrainingFlag,
)
from slipstick_rtl.numbers.lns.array_arithmetic import GUARD_BITS

from ...golden.arithmetic import operand_range
from ...golden.parameters import Parameters, encode_block
from ...golden.post import table_entries
from .random_numbers import drawing

Fields = dict[str, int]

STOCHASTIC_BLOCKS = (4, 5)
"""Blocks of parameters, with ``training``, that suit STOCHASTIC alone."""

PARAMETER_BLOCKS = 4
"""Blocks of parameters that random instructions of a pipelined engine use, from word 0 on."""

ROW_STEP_MODULUS = 1 << POST_FIELDS["destination_row_step"].width


def parameter_blocks(configuration: Configuration) -> int:
    """Blocks of parameters before anything else in the weight memory."""
    return PARAMETER_BLOCKS + len(STOCHASTIC_BLOCKS) * configuration.training


def random_post(generator: np.random.Generator, configuration: Configuration) -> Fields:
    """Field values of one instruction within small memories.

    MAP reads one half of the activation memory and writes the other, or works in place.
    """
    kinds = ["drain", "pool", "operands", "in place", "table"]
    kind = generator.choice(kinds + ["product"] * configuration.products)
    if kind == "table":
        return random_table(generator, configuration)
    fields = dict.fromkeys(POST_FIELDS, 0)
    fields |= _output(generator, configuration, kind == "drain")
    if kind == "drain":
        fields |= {
            "opcode": int(Opcode.DRAIN),
            "bank": int(generator.integers(0, configuration.accumulator_banks)),
            # without drain_tables nobody looks at it
            "use_table": int(generator.integers(0, 4)),
        }
    else:
        fields |= {"opcode": int(Opcode.MAP)} | _input(generator, configuration, kind, fields)
    if configuration.training and generator.integers(0, 4):
        fields |= _training(generator, configuration, fields)
    return fields


def random_table(generator: np.random.Generator, configuration: Configuration) -> Fields:
    """Field values of a TABLE; the whole of it where the engine only notes where it lies."""
    words = table_entries(configuration) * 4 // configuration.weight_word_bytes
    whole = not configuration.traits.copies_tables or generator.random() < 0.5
    return dict.fromkeys(POST_FIELDS, 0) | {
        "opcode": int(Opcode.TABLE),
        "table_address": int(generator.integers(0, configuration.weight_words - words + 1)),
        "table_words": words if whole else int(generator.integers(0, min(20, words))),
    }


def _training(
    generator: np.random.Generator, configuration: Configuration, fields: Fields
) -> Fields:
    """Flags that go together, and what they need of other fields."""
    draw, drains = drawing(generator), fields["opcode"] == Opcode.DRAIN
    flags, changed = draw(0, 1) * TrainingFlag.NOTED, dict[str, int]()
    flags |= draw(0, 1) * TrainingFlag.POSITIVE
    kind = draw(0, 5 if drains else 2)
    if kind in (1, 3):
        flags |= TrainingFlag.STOCHASTIC
        block = STOCHASTIC_BLOCKS[draw(0, len(STOCHASTIC_BLOCKS) - 1)]
        changed["parameter_address"] = block * configuration.parameter_block_words
    elif kind in (2, 5):
        flags |= TrainingFlag.AS_BYTES
        changed["zero_point"] = 0
    if kind in (3, 4):
        source = _masks(generator, configuration, fields)
        if source is not None:
            flags |= TrainingFlag.MASKED
            changed |= source
    elif kind == 5:
        flags |= TrainingFlag.NOTES
        changed["slices"] = 1
    words = int(flags) | fields["table_words"]
    return changed | {"table_words": words, "rounding": int(Rounding.HALF_EVEN)}


def _masks(
    generator: np.random.Generator, configuration: Configuration, fields: Fields
) -> Fields | None:
    """Draws where the bytes that mask a DRAIN lie: in the other half, or in place."""
    draw, half, lanes = drawing(generator), configuration.activation_bytes // 2, configuration.lanes
    names = ("destination", "destination_row_step", "destination_column_step")
    if draw(0, 1):
        return {name.replace("destination", "source"): fields[name] for name in names}
    column = (fields["slices"] + draw(0, 2)) * lanes
    row = fields["columns"] * column + draw(0, 2) * lanes
    if row * fields["rows"] > half:
        return None
    other = 0 if fields["destination"] >= half else half
    return {"source": other, "source_row_step": row, "source_column_step": column}


def random_parameters(generator: np.random.Generator, configuration: Configuration) -> Parameters:
    """Bias, multiplier and shift: each word or block for sums of another size.

    Shaped (parameter_words, L) for a compact engine, else (PARAMETER_BLOCKS, C), or, with
    ``training``, with STOCHASTIC_BLOCKS behind them. Multipliers are
    significands of float32, so that they serve every rounding. With a logarithmic number format
    offsets take their place: also for sums of another size each, beside bits that do not matter.
    """
    c = configuration
    if c.logarithmic is not None:
        return _log_parameters(generator, c)
    own_memory = c.traits.has_parameter_memory
    shape = (c.parameter_words, c.lanes) if own_memory else (PARAMETER_BLOCKS, c.columns)
    word_shift = generator.integers(9, 22, (shape[0], 1))
    if not own_memory:
        # the last one suits taps that are shifted
        word_shift[-1] = 28
    shift = np.clip(word_shift + generator.integers(-1, 3, shape), 9, 40)
    bias = generator.integers(-(1 << 31), 1 << 31, shape) >> np.clip(35 - shift, 0, 31)
    multiplier = generator.integers(1 << 22, 1 << 24, shape) << 7
    if c.training:
        dropped = generator.integers(1, 32, (len(STOCHASTIC_BLOCKS), c.columns))
        bias = np.concatenate([bias, np.zeros(dropped.shape, np.int64)])
        multiplier = np.concatenate([multiplier, 1 << (31 - dropped)])
        shift = np.concatenate([shift, dropped])
    return bias.astype(np.int32), multiplier, shift


def _log_parameters(generator: np.random.Generator, configuration: Configuration) -> Parameters:
    c, arithmetic = configuration, configuration.logarithmic
    assert arithmetic is not None
    shape = PARAMETER_BLOCKS, c.columns
    place = generator.integers(4, 28, (shape[0], 1)) + generator.integers(-1, 3, shape)
    bias = generator.integers(-(1 << 31), 1 << 31, shape) >> np.clip(32 - place, 0, 31)
    # the block of the smallest biases leaves codes what they are
    bias[0] = generator.integers(-3, 4, shape[1])
    codes = generator.integers(0, arithmetic.lns.largest_code << GUARD_BITS, shape)
    offset = codes - (place << arithmetic.log_places)
    unused = generator.integers(0, 1 << 15, shape) << OFFSET_BITS
    shift = generator.integers(0, 256, shape)
    return bias.astype(np.int32), unused | offset & ((1 << OFFSET_BITS) - 1), shift


def place_parameters(
    configuration: Configuration, parameters: Parameters, weights: np.ndarray, ninth: np.ndarray
) -> None:
    """Writes the blocks of a pipelined engine where ``random_post`` expects them.

    Parameters
    ----------
    configuration : Configuration
    parameters : tuple of arrays, each (PARAMETER_BLOCKS, C)
    weights, ninth : array of int8 and of uint8, (weight_words, W, C)
        Of which one is changed.
    """
    memory = ninth if configuration.ninth_bits else weights
    words = configuration.parameter_block_words
    for index, block in enumerate(zip(*parameters, strict=True)):
        memory[index * words : (index + 1) * words] = encode_block(configuration, *block)


def _output(generator: np.random.Generator, configuration: Configuration, drain: bool) -> Fields:
    """Loops, destination and requantisation; no byte is written twice."""
    draw, lanes = drawing(generator), configuration.lanes
    slices = draw(1, configuration.columns // lanes if drain else 3)
    rows, columns = draw(1, 5), draw(1, 7)
    pixel = slices * lanes
    if draw(0, 2):
        column_step = pixel + draw(0, 2) * lanes
        row_step = columns * column_step + draw(0, 2) * lanes
    else:  # rows lie side by side, columns below each other
        row_step = pixel + draw(0, 2) * lanes
        column_step = rows * row_step + draw(0, 2) * lanes
    half = configuration.activation_bytes // 2
    size = (rows - 1) * row_step + (columns - 1) * column_step + pixel
    first = draw(0, 1) * half + draw(0, (half - size) // lanes) * lanes
    if drain and configuration.traits.overlaps_streams and not draw(0, 3):
        # from the last row on
        first, row_step = first + (rows - 1) * row_step, -row_step % ROW_STEP_MODULUS
    ends = operand_range(configuration)
    minimum, maximum = sorted((draw(*ends), draw(*ends))) if draw(0, 1) else ends
    if configuration.traits.has_parameter_memory:
        parameter_address = draw(0, configuration.parameter_words - (slices if drain else 1))
    else:
        blocks = draw(0, PARAMETER_BLOCKS - 1)
        parameter_address = blocks * configuration.parameter_block_words
    return {
        "rows": rows,
        "columns": columns,
        "slices": slices,
        "destination": first,
        "destination_row_step": row_step,
        "destination_column_step": column_step,
        "parameter_address": parameter_address,
        "rounding": draw(0, len(Rounding) - 1),
        "zero_point": draw(-128, 127) if draw(0, 1) else 0,
        "minimum": minimum,
        "maximum": maximum,
        "coded": 0 if "coded" in configuration.format.absent_fields else draw(0, 1),
    }


def _input(
    generator: np.random.Generator, configuration: Configuration, kind: str, output: Fields
) -> Fields:
    """Source and taps of a MAP: a window, two operands, or the destination itself."""
    draw, lanes, half = drawing(generator), configuration.lanes, configuration.activation_bytes // 2
    fields = {"take_maximum": draw(0, 1), "use_table": draw(0, 3), "shift_taps": draw(0, 1)}
    if kind == "in place":
        names = ("destination", "destination_row_step", "destination_column_step")
        same = {name.replace("destination", "source"): output[name] for name in names}
        return fields | same | {"taps_y": 1, "taps_x": 1}
    taps_y, taps_x = (draw(1, 4), draw(1, 4))
    if kind == "operands":
        taps_y, taps_x = 1, 2
    elif kind == "product":
        # the third tap is read, too, wherever that is
        taps_y, taps_x = 1, PRODUCT_TAPS
        fields |= {"table_words": int(MapFlag.MULTIPLY), "take_maximum": 0, "use_table": 3}
    slices, rows, columns = output["slices"], output["rows"], output["columns"]
    while True:
        steps = {
            "source_row_step": draw(0, 20) * lanes,
            "source_column_step": draw(0, 10) * lanes,
            "tap_step_y": draw(-20, 20) * lanes,
            "tap_step_x": draw(-40, 40) * lanes,
        }
        spans = (
            (rows - 1) * steps["source_row_step"],
            (columns - 1) * steps["source_column_step"],
            (slices - 1) * lanes,
            (taps_y - 1) * steps["tap_step_y"],
            (taps_x - 1) * steps["tap_step_x"],
        )
        below = -sum(min(span, 0) for span in spans)
        above = sum(max(span, 0) for span in spans) + lanes
        if below + above <= half:
            break
    other_half = half if output["destination"] < half else 0
    first = other_half + below + draw(0, (half - below - above) // lanes) * lanes
    return fields | steps | {"source": first, "taps_y": taps_y, "taps_x": taps_x}
