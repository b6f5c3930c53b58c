"""The instruction set: opcodes with their loop nests, and every field's place and meaning.

Two instruction streams run side by side from one memory: the *matrix* stream (CONVOLVE, HALT) keeps
the array busy, the *post* stream (DRAIN, MAP, TABLE, HALT) moves results back to activation memory.
Each instruction waits until the other stream has completed ``wait`` instructions since the counters
were last cleared; that is the only interlock, and the compiler proves that it suffices.

This file needs neither Amaranth nor NumPy: a board's host imports it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, IntFlag

ISA_VERSION = 3
KEPT_COLUMNS = 16
"""Stream columns of a depthwise CONVOLVE whose input rows the array can keep."""

WORDS_PER_INSTRUCTION = 12
INSTRUCTION_BITS = 32 * WORDS_PER_INSTRUCTION


class Opcode(IntEnum):
    """The operation of an instruction.

    R, C, P, L, W, B are the configuration's rows, columns, pixels, lanes, weight_rows, banks.
    """

    HALT = 0
    """Ends a stream, whatever it has in ``wait``, and is not counted; the run is over when both
    streams have ended and all writes have landed.

    An opcode that a stream does not have, or the end of the memory, ends that stream too and sets
    ``bad_instruction``; the other goes on, and if it waits for the ended one, until RESET."""

    CONVOLVE = 1
    """Matrix stream: one tile of output pixels x C output channels, the whole reduction.

    The reduction runs over lanes ``(ky, kx, c)``, R of them a tile::

        for tile in reduction_tiles:                  # weights: R / W words of W x C bytes each
            for row in rows:
                for group in groups:
                    for p in P, r in R:               # one cycle
                        (ky, kx, c) = lane r of this tile
                        y = origin_y + row * stride_y + ky * dilation_y
                        x = origin_x + (group * P + p) * stride_x + kx * dilation_x
                        a = origin + row * row_step + (group * P + p) * column_step
                              + ky * tap_step_y + kx * tap_step_x + c
                        inside = 0 <= y < height and 0 <= x < width
                        v[p][r] = memory[a] if inside else padding_value
                    for p in P, j in C:
                        accumulator[bank][row * groups + group][p][j] (+)=
                            sum(v[p][r] * weight[tile][r][j] for r in R)

    With a logarithmic number format v and weight are ordered codes, and ``*`` is what
    :mod:`.numbers.lns.array_arithmetic` calls ``multiply``: their product as an integer.

    ``weight[tile][r][j]`` is byte (r div (R / W)) * C + j of word
    ``weight_address + tile * R / W + r mod (R / W)``: a word holds a row of each of W chains of
    R / W rows.

    The first tile writes, the others add; with ``accumulate`` the first adds as well, so that a
    reduction may be cut over several CONVOLVEs, also of several runs: accumulators keep their
    contents between runs. Lanes count ``c`` up to ``channels``, then ``kx`` up to
    ``kernel_x``, then ``ky``; with ``align_tap`` the lanes left in a tile when ``c`` wraps are
    idle (their weights must be zero), with ``align_row`` those left when ``kx`` wraps. The address
    of lane r must be congruent to that of lane 0 plus r, modulo B, for every lane that counts.
    With ``diagonal`` a tile's weights are a single word: row r, column r mod C takes byte
    (r div (R / W)) * C + r mod C, the others are zero (depthwise), and weight_address advances by
    one word a tile. With ``whole_words`` the channels are a multiple of W, and W lanes are taken a
    cycle.

    With ``from_ninth`` (where there are ``ninth_bits``, not with ``diagonal``) each word of weights
    is made of the ninth bits of eight words from weight_address on: bit k of its byte i is the
    ninth bit of byte i of word k of the eight. Loading a tile takes eight times as long.

    With ``pairs`` (where the configuration ``takes_pairs``) the first tile has R / 2 lanes only,
    and takes two vectors in a cycle, columns 2k and 2k + 1: rows R / 2 and up work on the second
    one, and must hold the same weights as the rows R / 2 above them. ``groups`` is even then,
    column_step congruent to R / 2 modulo B, and there is no accumulate and no alignment.

    There are two banks of ``accumulator_depth`` words, or, as ``parts`` says, each has two or four
    parts of equal size: bank b is half b mod 2, part b div 2 of it. With several pixels there are
    no parts: ``parts`` is 0. (Compact engine: one bank.)

    With ``depthwise`` (where the configuration ``takes_depthwise``) each column convolves a channel
    of its own with a kernel of 3 x 3. The array's input is not a window but a column of it, half of
    four input rows a cycle, and moves through the window's taps::

        block = 2 if skip == 1 or kept_rows else 1    # output rows made at a time
        for b in ceil(rows / block):
            for m in (groups - 1) * skip + 3:         # stream columns
                for h in 0, 1:
                    for r in R:                       # one cycle
                        k = 2 * h + r div C
                        y = origin_y + b * block * stride_y + k * dilation_y
                        x = origin_x + m * stride_x
                        a = origin + b * block * row_step + k * tap_step_y + m * column_step
                              + r mod C
                        inside = 0 <= y < height and 0 <= x < width
                        v[k][m][r mod C] = memory[a] if inside else padding_value
            for h in block, n in groups, j in C:
                if b * block + h < rows:
                    accumulator[bank][(b * block + h) * groups + n][0][j] =
                        sum(v[h + ky][n * skip + kx][j] * weight[0][packed_rows + 3 * ky + kx][j]
                            for ky in 3, kx in 3)

    So ``stride_x`` and ``column_step`` lead from a stream column to the next, and ``skip`` is the
    stride in stream columns. There is one tile, whose other weights must be zero; channels are C,
    kernel_x is 1, tap_step_y is congruent to C modulo B; with skip 1 and several rows, the second
    row of a block is where dilation_y and tap_step_y lead: stride_y and row_step must be the same.
    There is no accumulate, no diagonal, no pairs and no alignment.

    With kernel_x 2 there are C / 2 channels only, of two places of the input: those of columns
    C / 2 and up are read tap_step_x bytes and dilation_x input columns further on, the former
    congruent to C / 2 modulo B.

    With ``kept_rows`` too, an output row begins two kernel rows below the one before, and a block
    takes five input rows: the array keeps the last one for the next block, whose first it is. The
    others are read as above, v[k + 1] in place of v[k], so that ``origin`` and ``origin_y`` are
    those of v[1]; and the output row h of a block meets v[2 * h + ky]. Of the first block v[0]
    counts as -128, with logarithms as 0: that row must lie in padding, and padding_value be that.
    skip is 2, stride_y is 2 * dilation_y, row_step 2 * tap_step_y modulo 2^24, and there are at
    most ``KEPT_COLUMNS`` stream columns.

    With ``joined`` (and skip 1) the stream columns before the first and behind the last output
    column must lie in padding, so that one may do for both: blocks but the first begin at m = 1.

    The instruction is executed ``repeats`` + 1 times: turn t at weight_address + t * weight_step
    and origin + t * origin_step, into bank (bank + t) mod B of the B = 2 << parts that there are,
    after wait + max(t + 1 - B, 0) instructions of the other stream, or, with ``waits_each``,
    wait + t. Every turn counts as an instruction. (Compact engine: once.)
    """

    DRAIN = 2
    """Post stream: accumulators through requantisation into activation memory, L results a cycle::

        for slice in slices:                          # L channels each
            (bias, multiplier, shift) = parameters of channels slice * L ... slice * L + L - 1
            for row in rows:
                for column in columns:                # output pixels
                    acc = accumulator[bank][row * ceil(columns / P) + column // P][column % P]
                    value = acc[slice * L : (slice + 1) * L]
                    memory[destination + row * destination_row_step
                        + column * destination_column_step + slice * L] =
                        clamp(requantize(value + bias, multiplier, shift) + zero_point)

    With a logarithmic number format what is written are ordered codes, and there is one way of
    rounding (``requantize`` of :mod:`.numbers.lns.array_arithmetic`)::

                        clamp(requantize(value, bias, offset))  or, if ``coded``:
                        clamp(value + bias)

    ``offset`` is the low 16 bits of ``multiplier``, signed; ``coded`` says that value + bias, which
    wraps at 32 bits, is a code already. Shift, rounding and zero_point are not looked at.

    Parameters are a block of words of the weight memory from ``parameter_address`` on, for C
    channels, each with 72 bits, little endian: bias i32, multiplier u32, shift u8. Byte k of
    channel j is byte (k mod W) * C + j of word k div W of the block; or, with the configuration's
    ``ninth_bits``, its bit k is the ninth bit of byte (k mod W) * C + j of word k div W. (Compact
    engine: words of its parameter memory, a channel each.)

    With the configuration's ``training`` a ``TrainingFlag`` in table_words changes what is written.

    With the configuration's ``drain_tables`` and bit 0 of ``use_table`` a result goes through the
    table: what is written is the low byte of table[result + 128].

    The instruction is executed ``repeats`` + 1 times: turn t writes to
    destination + t * destination_step with the parameters at
    parameter_address + t * parameter_step, from bank (bank + t) mod B, after wait + t instructions
    of the other stream. Every turn counts as an instruction. (Compact engine: once.)
    """

    MAP = 3
    """Post stream: pooling, elementwise sums and tables over activation memory::

        for slice in slices:
            for row in rows:
                for column in columns:
                    for ty in taps_y:
                        for tx in taps_x:             # one read of L bytes each
                            x = memory[source + row * source_row_step
                                + column * source_column_step + slice * L
                                + ty * tap_step_y + tx * tap_step_x]
                            k = tx % 2
                            v = table[256 * k + x + 128] if use_table bit k else
                                x * 2^19 if shift_taps else x
                            value = v if first tap else max(value, v) if maximum else value + v
                    memory[destination + ...] = as for DRAIN

    Lane i has the parameters of the block's channel i, whatever the slice. ``repeats`` is 0.

    With the configuration's ``products`` and ``MapFlag.MULTIPLY`` in table_words::

                    value = low 18 bits of v of tx = 0 * low 18 bits of v of tx = 1

    both signed, the product modulo 2^32. taps_y is 1, taps_x is 3, use_table is 3 and there is no
    maximum. The third tap is read and not looked at: the product takes its place.

    With a logarithmic number format a byte is a code: taps are compared as they are, with
    ``coded``; to be summed they go through the table, which holds the numbers that codes stand for
    (or, with ``coded``, the codes of a function). ``shift_taps`` is not used."""

    TABLE = 4
    """Post stream: copies ``table_words`` words of weight memory into the table, from entry 0 on:
    signed 32-bit entries, little endian, W x C / 4 per word. There are 512: 256 for even taps, and
    as many for odd ones. A logarithmic format has two per code, and at least a word. The compact
    engine only notes where they lie: the words must stay until the last MAP that looks them up."""


class Rounding(IntEnum):
    """The requantiser's rounding rule; NumPy twin in :mod:`slipstick_rtl.numbers.rounding`."""

    DOUBLE = 0
    """TensorFlow Lite's (gemmlowp's): doubling high multiply, ties up; then shift, ties away."""

    HALF_UP = 1
    """Once, ties towards plus infinity."""

    HALF_EVEN = 2
    """Once, ties to even."""

    FLOAT = 3
    """As float32 does: the product to 24 significant bits, ties to even, and that to an integer,
    ties to even: ONNX's rule in its runtimes' arithmetic. The multiplier is the significand of a
    float32, its lowest 7 bits are zero; shifts are as for HALF_EVEN. The two differ only where the
    product lies within half a unit of its 24th bit of a tie: FLOAT takes it for that tie."""


class TrainingFlag(IntFlag):
    """Extra actions of DRAIN and MAP, in ``table_words``; 0 without the configuration's
    ``training``."""

    STOCHASTIC = 1
    """The magnitude of a value takes its place, is rounded by
    :func:`.numbers.rounding.requantize_stochastic` and gets its sign back. ``shift`` is the number
    of bits that are dropped, 1..31, and multiplier 2^(31 - shift). Rounding is HALF_EVEN."""

    AS_BYTES = 2
    """The result is the lowest byte of (value + bias) x multiplier / 2^shift, rounded down and not
    clamped: four DRAINs give sums of 32 bits. Rounding is HALF_EVEN, zero_point 0."""

    NOTED = 4
    """Each lane has a register of 31 bits, its notes. The bits of value + bias are added to it by
    OR, inverted if that is negative; with STOCHASTIC those of the magnitude. The highest bit of
    all lanes' notes is that of the largest. They stay between runs, and are 0 after a reset."""

    POSITIVE = 32
    """NOTED: of values + bias that are negative nothing is added: a ReLU is behind them."""

    NOTES = 8
    """DRAIN: the lane's notes are the value; with NOTED they are 0 afterwards."""

    MASKED = 16
    """DRAIN: the value is 0 where the byte at source + row * source_row_step + column *
    source_column_step + slice * L + lane is not above 0: a ReLU's gradient. As with MAP, reads
    pause in cycles that a write takes. ``repeats`` is 0, and not with NOTES."""


class MapFlag(IntFlag):
    """Extra actions of MAP, in ``table_words`` beside a ``TrainingFlag``."""

    MULTIPLY = 64
    """The third tap is the product of the two before it; 0 without the configuration's
    ``products``."""


READING_FLAGS = TrainingFlag.NOTES | TrainingFlag.MASKED
"""A DRAIN with one of these reads what others before it have made: it begins when all of them have
completed, and has no repeats."""


@dataclass(frozen=True)
class Field:
    """One bit-field of an instruction: its width in bits, its sign, and what it says."""

    width: int
    signed: bool
    doc: str


def _unsigned(width: int, doc: str) -> Field:
    return Field(width, False, doc)


def _signed(width: int, doc: str) -> Field:
    return Field(width, True, doc)


_COMMON = {
    "opcode": _unsigned(4, "an Opcode"),
    "wait": _unsigned(16, "instructions that the other stream must have completed"),
}

MATRIX_FIELDS: Mapping[str, Field] = {
    **_COMMON,
    "bank": _unsigned(3, "accumulator bank written"),
    "parts": _unsigned(2, "0, 1, 2: each bank is one, two, four banks"),
    "diagonal": _unsigned(1, "weights are one word a tile, on the diagonal"),
    "align_tap": _unsigned(1, "each tap starts a new tile"),
    "align_row": _unsigned(1, "each kernel row starts a new tile"),
    "weight_address": _unsigned(24, "first weight word"),
    "reduction_tiles": _unsigned(16, "tiles of R lanes"),
    "channels": _unsigned(16, "lanes of one tap"),
    "kernel_x": _unsigned(5, "taps of one kernel row"),
    "tap_step_x": _signed(24, "bytes from a tap to the next in x"),
    "tap_step_y": _signed(24, "bytes from a tap to the next in y"),
    "dilation_x": _unsigned(8, "input columns from a tap to the next"),
    "dilation_y": _unsigned(8, "input rows from a tap to the next"),
    "origin": _signed(24, "address of the first window's first tap, in padding too"),
    "origin_y": _signed(16, "input row of that tap"),
    "origin_x": _signed(16, "input column of that tap"),
    "height": _unsigned(16, "input rows; outside them lies padding"),
    "width": _unsigned(16, "input columns; outside them lies padding"),
    "stride_y": _unsigned(8, "input rows from an output row to the next"),
    "stride_x": _unsigned(8, "input columns from an output column to the next"),
    "column_step": _unsigned(24, "bytes from an output column's window to the next one's"),
    "row_step": _unsigned(24, "bytes from an output row's first window to the next's, mod 2^24"),
    "rows": _unsigned(12, "output rows"),
    "groups": _unsigned(12, "groups of P output columns in a row"),
    "padding_value": _signed(8, "what lies outside the input: its zero point"),
    "accumulate": _unsigned(1, "the first tile adds to what the bank holds"),
    "whole_words": _unsigned(1, "channels are a multiple of W"),
    "pairs": _unsigned(1, "the first tile has R / 2 lanes and takes two vectors a cycle"),
    "from_ninth": _unsigned(1, "weights are ninth bits, eight words for one"),
    "repeats": _unsigned(8, "further turns"),
    "waits_each": _unsigned(1, "each turn waits for one instruction more than the one before it"),
    "weight_step": _unsigned(16, "weight words from a turn to the next"),
    "origin_step": _unsigned(8, "bytes from a turn's origin to the next one's"),
    "depthwise": _unsigned(1, "each column convolves a channel of its own, 3 x 3"),
    "skip": _unsigned(4, "depthwise: stream columns from an output column to the next"),
    "kept_rows": _unsigned(1, "depthwise: a block's last input row is the next one's first"),
    "joined": _unsigned(1, "depthwise: a block's last stream column is the next one's first"),
}
"""Fields of HALT and CONVOLVE, from bit 0 up."""

POST_FIELDS: Mapping[str, Field] = {
    **_COMMON,
    "bank": _unsigned(3, "accumulator bank read"),
    "parts": _unsigned(2, "0, 1, 2: each bank is one, two, four banks"),
    "rows": _unsigned(12, "output rows"),
    "columns": _unsigned(12, "output columns (pixels)"),
    "slices": _unsigned(12, "groups of L channels"),
    "destination": _unsigned(24, "first byte written, a multiple of L"),
    "destination_row_step": _unsigned(24, "bytes from an output row to the next, modulo 2^24"),
    "destination_column_step": _unsigned(24, "bytes from an output column to the next"),
    "parameter_address": _unsigned(24, "first word of the parameters"),
    "rounding": _unsigned(2, "a Rounding"),
    "zero_point": _signed(8, "added after rounding"),
    "minimum": _signed(8, "smallest result"),
    "maximum": _signed(8, "largest result"),
    "source": _unsigned(24, "MAP: first byte read, a multiple of L"),
    "source_row_step": _unsigned(24, "MAP: bytes from an output row's window to the next"),
    "source_column_step": _unsigned(24, "MAP: bytes from an output column's window to the next"),
    "taps_y": _unsigned(8, "MAP: rows of the window"),
    "taps_x": _unsigned(8, "MAP: columns of the window"),
    "tap_step_y": _signed(24, "MAP: bytes from a window row to the next"),
    "tap_step_x": _signed(24, "MAP: bytes from a window column to the next"),
    "take_maximum": _unsigned(1, "MAP: taps are compared instead of summed"),
    "use_table": _unsigned(
        2, "MAP: bit k: taps with tx mod 2 = k go through the table; DRAIN: bit 0: results do"
    ),
    "shift_taps": _unsigned(1, "MAP: taps that do not are multiplied by 2^19"),
    "table_address": _unsigned(24, "TABLE: first weight word"),
    "table_words": _unsigned(
        12, "TABLE: weight words copied; DRAIN, MAP: TrainingFlag and MapFlag"
    ),
    "repeats": _unsigned(8, "DRAIN: further turns"),
    "destination_step": _unsigned(8, "DRAIN: bytes from a turn's destination to the next one's"),
    "parameter_step": _unsigned(8, "DRAIN: words from a turn's parameters to the next one's"),
    "coded": _unsigned(1, "logarithmic number formats: values are codes; 0 with int8"),
}
"""Fields of HALT, DRAIN, MAP and TABLE, from bit 0 up."""

FACTOR_BITS = 18
"""Low bits of a table entry that MAP multiplies: as many as a DSP block takes."""

PRODUCT_TAPS = 3
"""Taps of a MAP that multiplies: two factors, and the step in which their product comes."""

OFFSET_BITS = 16
"""Bits of a channel's ``offset``, the low ones of its multiplier: logarithmic number formats."""


def accumulator_place(bank: int, parts: int, depth: int) -> tuple[int, int, int]:
    """The half of the accumulators, and the first word and the words in it, of a bank."""
    size = depth >> parts
    return bank % 2, bank // 2 % (1 << parts) * size, size


MATRIX_OPCODES = frozenset({Opcode.HALT, Opcode.CONVOLVE})
POST_OPCODES = frozenset({Opcode.HALT, Opcode.DRAIN, Opcode.MAP, Opcode.TABLE})


@dataclass(frozen=True)
class StreamKind:
    """Describes an instruction stream: its opcodes, and the fields of its instructions."""

    opcodes: frozenset[Opcode]
    fields: Mapping[str, Field]


STREAMS: Mapping[str, StreamKind] = {
    "matrix": StreamKind(MATRIX_OPCODES, MATRIX_FIELDS),
    "post": StreamKind(POST_OPCODES, POST_FIELDS),
}
"""The instruction streams by name. RUN, STATUS and programs keep one value per stream, in this
order."""


def pack(fields: Mapping[str, Field], values: Mapping[str, int]) -> bytes:
    """One instruction as the bytes of the instruction memory, little endian.

    Raises
    ------
    ValueError
        If a name is unknown or a value does not fit its field.
    """
    unknown = set(values) - set(fields)
    if unknown:
        raise ValueError(f"instruction fields must be known, not {sorted(unknown)}")
    bits, position = 0, 0
    for name, field in fields.items():
        value = int(values.get(name, 0))
        low = -(1 << (field.width - 1)) if field.signed else 0
        high = low + (1 << field.width) - 1
        if not low <= value <= high:
            raise ValueError(f"{name} ({field.doc}) must be within {low}..{high}, not {value}")
        bits |= (value & ((1 << field.width) - 1)) << position
        position += field.width
    return bits.to_bytes(INSTRUCTION_BITS // 8, "little")


def unpack(fields: Mapping[str, Field], data: bytes) -> dict[str, int]:
    """The values that ``pack`` wrote."""
    bits, values = int.from_bytes(data, "little"), {}
    for name, field in fields.items():
        value = bits & ((1 << field.width) - 1)
        if field.signed and value >> (field.width - 1):
            value -= 1 << field.width
        values[name] = value
        bits >>= field.width
    return values


def opcode_of(data: bytes) -> int:
    """The opcode of a packed instruction; it may be no Opcode."""
    return data[0] & 15
