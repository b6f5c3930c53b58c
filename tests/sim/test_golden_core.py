"""The golden core on small programs made by hand: order of the streams, waits, errors, memories."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Opcode, Rounding, pack
from slipstick_rtl.link.protocol import Space
from slipstick_rtl.numbers.rounding import encode_shift
from slipstick_sim.golden.core import DeadlockError, GoldenCore, HazardError
from slipstick_sim.golden.memories import INSTRUCTION_BYTES, Memories

CONFIGURATION = Configuration(
    rows=8,
    columns=8,
    lanes=4,
    activation_bytes=1 << 12,
    weight_bytes=1 << 12,
    accumulator_depth=64,
    instruction_words=256,
)
PICTURE = 4
"""Height and width of the pictures here; they have 8 channels."""

POST_WORD = 128
PARAMETERS = 3 * 72
"""Word of the weight memory behind three layers' weights, where their parameters lie."""

BLOCK = CONFIGURATION.parameter_block_words
BUFFERS = (0, 1024, 2048)

Fields = Mapping[str, int]

HALT: Fields = {"opcode": Opcode.HALT}


def convolution(source: int, layer: int, bank: int, wait: int) -> Fields:
    """A 3x3 convolution of 8 channels, padded by 1, with the weights of a layer."""
    row_pitch = PICTURE * 8
    return {
        "opcode": Opcode.CONVOLVE,
        "wait": wait,
        "bank": bank,
        "align_tap": 1,
        "weight_address": layer * 72,
        "reduction_tiles": 9,
        "channels": 8,
        "kernel_x": 3,
        "tap_step_x": 8,
        "tap_step_y": row_pitch,
        "dilation_x": 1,
        "dilation_y": 1,
        "origin": source - row_pitch - 8,
        "origin_y": -1,
        "origin_x": -1,
        "height": PICTURE,
        "width": PICTURE,
        "stride_y": 1,
        "stride_x": 1,
        "column_step": 8,
        "row_step": row_pitch,
        "rows": PICTURE,
        "groups": PICTURE,
        "padding_value": 3,
    }


def drained(destination: int, layer: int, bank: int, wait: int) -> Fields:
    """The DRAIN behind a ``convolution``."""
    return {
        "opcode": Opcode.DRAIN,
        "wait": wait,
        "bank": bank,
        "rows": PICTURE,
        "columns": PICTURE,
        "slices": 2,
        "destination": destination,
        "destination_row_step": PICTURE * 8,
        "destination_column_step": 8,
        "parameter_address": PARAMETERS + layer * BLOCK,
        "rounding": Rounding.HALF_UP,
        "zero_point": 3,
        "minimum": -100,
        "maximum": 110,
    }


def parameter_words(entries: Sequence[tuple[int, int, int]]) -> bytes:
    """A block of parameters (bias, multiplier, shift): byte after byte of 8 channels."""
    channels = [struct.pack("<iIB", *entry) for entry in entries]
    return bytes(channel[k] for k in range(9) for channel in channels)


def load(core: GoldenCore, matrix: Sequence[Fields], post: Sequence[Fields]) -> None:
    """Writes both streams into instruction memory."""
    for word, fields, stream in ((0, MATRIX_FIELDS, matrix), (POST_WORD, POST_FIELDS, post)):
        data = b"".join(pack(fields, instruction) for instruction in stream)
        core.write(Space.INSTRUCTIONS, word, data)


def loaded_core(batch: int = 1, *, check_hazards: bool = False) -> GoldenCore:
    """A core with random weights, parameters and inputs for three layers."""
    random = np.random.default_rng(11)
    core = GoldenCore(CONFIGURATION, batch, check_hazards=check_hazards)
    weights = random.integers(-128, 128, (3 * 72, 8)).astype(np.int8)
    core.write(Space.WEIGHTS, 0, weights.tobytes())
    shift = encode_shift(Rounding.HALF_UP, 40)
    for layer in range(3):
        entries = [
            (int(random.integers(-4000, 4000)), 1 << 30 | 12345 * (8 * layer + channel), shift)
            for channel in range(8)
        ]
        core.write(Space.WEIGHTS, PARAMETERS + layer * BLOCK, parameter_words(entries))
    core.write_batch(0, random.integers(-128, 128, (batch, PICTURE**2 * 8)).astype(np.int8))
    return core


def network() -> tuple[list[Fields], list[Fields]]:
    """Three layers through three buffers and both banks, with the waits that they need."""
    matrix = [
        convolution(BUFFERS[0], 0, 0, wait=0),
        convolution(BUFFERS[1], 1, 1, wait=1),
        convolution(BUFFERS[2], 2, 0, wait=2),
        HALT,
    ]
    post = [
        drained(BUFFERS[1], 0, 0, wait=1),
        drained(BUFFERS[2], 1, 1, wait=2),
        drained(BUFFERS[0], 2, 0, wait=3),
        HALT,
    ]
    return matrix, post


def expected_layer(core: GoldenCore, image: np.ndarray, layer: int) -> np.ndarray:
    """One layer in plain integers: picture (4, 4, 8) int8 to the next one."""
    padded = np.full((PICTURE + 2, PICTURE + 2, 8), 3, np.int64)
    padded[1:-1, 1:-1] = image
    weights = core.memories.weights[layer * 72 :][:72].astype(np.int64).reshape(3, 3, 8, 8)
    total = np.zeros((PICTURE, PICTURE, 8), np.int64)
    for y, x in np.ndindex(3, 3):
        total += padded[y : y + PICTURE, x : x + PICTURE] @ weights[y, x]
    bias, multiplier, _ = core.memories.channel_parameters(PARAMETERS + layer * BLOCK, 2)
    scaled = ((total + bias) * multiplier + (1 << 39)) >> 40
    return np.clip(scaled + 3, -100, 110).astype(np.int8)


@pytest.mark.parametrize("order", ["matrix_first", "post_first", 0, 1])
@pytest.mark.parametrize("batch", [1, 5])
def test_network_is_its_layers(batch: int, order: str | int) -> None:
    core = loaded_core(batch)
    load(core, *network())
    expected = core.read_batch(0, 128).reshape(batch, PICTURE, PICTURE, 8)
    core.run((0, POST_WORD), True, order=order)
    for layer in range(3):
        expected = np.stack([expected_layer(core, image, layer) for image in expected])
    result = core.read_batch(BUFFERS[0], 128).reshape(expected.shape)
    np.testing.assert_array_equal(result, expected)
    assert len(np.unique(result)) > 30
    assert core.read(BUFFERS[0], 128) == result[0].tobytes()
    status = core.status()
    assert (status.running, status.bad_instruction) == (False, False)
    assert (status.done, status.cycles) == ((3, 3), 0)


def test_every_legal_order_is_tried() -> None:
    core = loaded_core(check_hazards=True)
    trusting = loaded_core()
    load(core, *network())
    load(trusting, *network())
    core.run((0, POST_WORD), True)
    trusting.run((0, POST_WORD), True)
    np.testing.assert_array_equal(core.activations, trusting.activations)
    assert core.status() == trusting.status()


@pytest.mark.parametrize(("stream", "index", "wait"), [(0, 1, 0), (0, 2, 1), (1, 1, 1)])
def test_a_wait_too_short_is_a_hazard(stream: int, index: int, wait: int) -> None:
    streams = network()
    streams[stream][index] = {**streams[stream][index], "wait": wait}
    core = loaded_core(check_hazards=True)
    load(core, *streams)
    with pytest.raises(HazardError, match=r"'matrix_first' and .* differ in \d+ bytes from addr"):
        core.run((0, POST_WORD), True)


def test_deadlock_names_both_streams() -> None:
    core = loaded_core()
    load(
        core,
        [convolution(0, 0, 0, wait=0), convolution(0, 0, 0, wait=2)],
        [drained(1024, 0, 0, wait=1), drained(1024, 0, 0, wait=4)],
    )
    message = (
        "matrix stream at word 12 waits for 2 instructions of the other, of which 1 are done;"
        " the post stream at word 140 waits for 4 instructions of the other, of which 1 are done"
    )
    with pytest.raises(DeadlockError, match=message):
        core.run((0, POST_WORD), True)
    load(core, [HALT], [drained(1024, 0, 0, wait=1)])
    with pytest.raises(DeadlockError, match="matrix stream has ended at word 0; the post stream"):
        core.run((0, POST_WORD), True)


def test_counters_are_kept_unless_cleared() -> None:
    core = loaded_core()
    load(core, [convolution(0, 0, 0, wait=0), HALT], [drained(1024, 0, 0, wait=1), HALT])
    for runs in (1, 2, 3):
        core.run((0, POST_WORD), False)
        assert core.status().done == (runs, runs)
    core.run((0, POST_WORD), True)
    assert core.status().done[0] == 1
    core.reset()
    assert core.status().done[0] == 0


@pytest.mark.parametrize("opcode", [5, 15, Opcode.DRAIN])
def test_bad_opcodes_end_the_run(opcode: int) -> None:
    core = loaded_core()
    load(core, [{"opcode": opcode}, HALT], [HALT])
    core.run((0, POST_WORD), True)
    assert core.status().bad_instruction
    load(core, [HALT], [HALT])
    core.run((0, POST_WORD), True)
    assert not core.status().bad_instruction


def test_the_other_stream_goes_on_after_a_bad_opcode() -> None:
    core = loaded_core()
    matrix = [convolution(0, 0, 0, wait=0), {"opcode": 9}]
    load(core, matrix, [drained(1024, 0, 0, wait=1), drained(2048, 0, 0, wait=2), HALT])
    core.run((0, POST_WORD), True)
    status = core.status()
    assert (status.bad_instruction, status.done) == (True, (1, 1))


def test_running_off_the_instruction_memory_is_bad() -> None:
    core = loaded_core()
    load(core, [HALT], [HALT])
    core.write(Space.INSTRUCTIONS, 256 - 12, pack(MATRIX_FIELDS, convolution(0, 0, 0, wait=0)))
    core.run((256 - 12, POST_WORD), True)
    assert core.status().bad_instruction
    assert core.status().done[0] == 1


def test_batched_core_shares_what_is_loaded() -> None:
    core = loaded_core()
    batched = core.batched(3)
    load(core, *network())
    images = np.random.default_rng(5).integers(-128, 128, (2, 128)).astype(np.int8)
    inputs = np.concatenate([core.read_batch(0, 128), images])
    batched.write_batch(0, inputs)
    batched.run((0, POST_WORD), True)
    for image, result in zip(inputs, batched.read_batch(BUFFERS[0], 128), strict=True):
        core.write_batch(0, image[None])
        core.run((0, POST_WORD), True)
        assert core.read(BUFFERS[0], 128) == result.tobytes()


def test_rewritten_memories_count() -> None:
    core = loaded_core()
    load(core, *network())
    core.run((0, POST_WORD), True)
    image = core.read_batch(BUFFERS[0], 128).reshape(PICTURE, PICTURE, 8)
    core.write(Space.WEIGHTS, 71, bytes(range(8)))
    core.write(Space.INSTRUCTIONS, 12, pack(MATRIX_FIELDS, HALT))
    core.write(Space.INSTRUCTIONS, POST_WORD + 12, pack(POST_FIELDS, HALT))
    core.run((0, POST_WORD), True)
    result = core.read_batch(BUFFERS[1], 128).reshape(image.shape)
    np.testing.assert_array_equal(result, expected_layer(core, image, 0))
    assert bytes(core.memories.weights[71]) == bytes(range(8))


def repeated_network() -> tuple[list[Fields], list[Fields]]:
    """The three layers' weights on one input, each into 8 channels of 24: in turns, and plainly."""
    wide = {"destination_row_step": PICTURE * 24, "destination_column_step": 24}
    convolve = {**convolution(BUFFERS[0], 0, 1, wait=0), "repeats": 2, "weight_step": 72}
    drain = {
        **drained(BUFFERS[1], 0, 1, wait=1),
        **wide,
        "repeats": 2,
        "destination_step": 8,
        "parameter_step": BLOCK,
    }
    return [convolve, HALT], [drain, HALT]


@pytest.mark.parametrize("order", ["matrix_first", "post_first", 0, 1])
def test_turns_are_instructions_a_step_further_on(order: str | int) -> None:
    core = loaded_core()
    load(core, *repeated_network())
    image = core.read_batch(0, 128).reshape(PICTURE, PICTURE, 8)
    core.run((0, POST_WORD), True, order=order)
    result = core.read_batch(BUFFERS[1], PICTURE**2 * 24).reshape(PICTURE, PICTURE, 24)
    expected = [expected_layer(core, image, layer) for layer in range(3)]
    np.testing.assert_array_equal(result, np.concatenate(expected, axis=2))
    assert core.status().done == (3, 3)


def test_turns_are_part_of_what_is_checked() -> None:
    """A third turn that does not wait for the first one's DRAIN overwrites its accumulators."""
    core = loaded_core(check_hazards=True)
    matrix, post = repeated_network()
    load(core, matrix, post)
    core.run((0, POST_WORD), True)
    # plainly, and the third one in haste
    turns = [
        {**convolution(BUFFERS[0], turn, 1 ^ turn & 1, wait=0), "weight_address": turn * 72}
        for turn in range(3)
    ]
    load(core, [*turns, HALT], post)
    with pytest.raises(HazardError, match="differ in"):
        core.run((0, POST_WORD), True)


def test_rewritten_weights_count_in_every_turn() -> None:
    core = loaded_core()
    load(core, *repeated_network())
    image = core.read_batch(0, 128).reshape(PICTURE, PICTURE, 8)
    core.run((0, POST_WORD), True)
    core.write(Space.WEIGHTS, 2 * 72 + 5, bytes(range(8)))
    core.run((0, POST_WORD), True)
    result = core.read_batch(BUFFERS[1], PICTURE**2 * 24).reshape(PICTURE, PICTURE, 24)
    np.testing.assert_array_equal(result[:, :, 16:], expected_layer(core, image, 2))


def test_ninth_bits_lie_between_the_bytes() -> None:
    configuration = replace(CONFIGURATION, weight_rows=2, ninth_bits=1)
    memories = Memories(configuration)
    random = np.random.default_rng(3)
    cells = random.integers(0, 512, (3, 2, 8))
    bits = "".join(f"{cell:09b}"[::-1] for cell in cells.reshape(-1))
    data = int(bits[::-1], 2).to_bytes(3 * configuration.weight_unit_bytes, "little")
    memories.write(Space.WEIGHTS, 7, data)
    np.testing.assert_array_equal(memories.weights[7:10].view(np.uint8), cells & 255)
    np.testing.assert_array_equal(memories.ninth[7:10], cells >> 8)
    assert not memories.weights[10:].any() and not memories.ninth[:7].any()
    copied = memories.copy()
    np.testing.assert_array_equal(copied.ninth, memories.ninth)


def test_parameters_are_ninth_bits() -> None:
    configuration = replace(CONFIGURATION, weight_rows=2, ninth_bits=1)
    memories = Memories(configuration)
    entries = [(channel - 4, 1 << 30 | channel, 3 * channel) for channel in range(8)]
    blocks = [int.from_bytes(struct.pack("<iIB", *entry), "little") for entry in entries]
    for bit, column in np.ndindex(72, 8):
        memories.ninth[5 + bit // 2, bit % 2, column] = blocks[column] >> bit & 1
    found = np.stack(memories.channel_parameters(5, 1), axis=1)
    np.testing.assert_array_equal(found, entries)
    with pytest.raises(
        ValueError, match=r"parameter words must lie within 0\.\.256, not 221\.\.257"
    ):
        memories.channel_parameters(221, 1)


@pytest.mark.parametrize("instruction", [convolution(0, 0, 0, 0), drained(0, 0, 0, 0)])
@pytest.mark.parametrize(("pixels", "most"), [(1, 2), (2, 0)])
def test_parts_of_banks(instruction: Fields, pixels: int, most: int) -> None:
    core = GoldenCore(replace(CONFIGURATION, pixels=pixels, accumulator_depth=1024))
    for parts in range(4):
        row = {**instruction, "parts": parts}
        streams = ([row, HALT], [HALT]) if "stride_x" in row else ([HALT], [row, HALT])
        load(core, *streams)
        if parts <= most:
            core.run((0, POST_WORD), True)
            continue
        with pytest.raises(ValueError, match=rf"parts must be within 0\.\.{most}, not {parts}"):
            core.run((0, POST_WORD), True)


def test_map_and_table_run() -> None:
    core = loaded_core()
    table = np.arange(512, dtype="<i4")[::-1]
    core.write(Space.WEIGHTS, 0, table.tobytes())
    shift = encode_shift(Rounding.HALF_UP, 30)
    core.write(Space.WEIGHTS, 256, parameter_words([(-400, 1 << 30, shift)] * 8))
    sums = {
        "opcode": Opcode.MAP,
        "rows": 1,
        "columns": 1,
        "slices": 1,
        "source": 0,
        "destination": 64,
        "taps_y": 1,
        "taps_x": 2,
        "tap_step_x": 32,
        "use_table": 3,
        "parameter_address": 256,
        "rounding": Rounding.HALF_UP,
        "minimum": -128,
        "maximum": 127,
    }
    words = 512 * 4 // 8
    load(core, [HALT], [{"opcode": Opcode.TABLE, "table_words": words}, sums, HALT])
    core.write(Space.ACTIVATIONS, 0, bytes([1, 2, 3, 4]))
    core.write(Space.ACTIVATIONS, 32, bytes([5, 5, 5, 5]))
    core.run((0, POST_WORD), True)
    # entries are 511 - index: of x + 128 for the first tap, of 256 + y + 128 for the second
    sums_of_taps = [(511 - (x + 128)) + (511 - (256 + 5 + 128)) for x in (1, 2, 3, 4)]
    assert list(core.read(64, 4)) == [total - 400 for total in sums_of_taps]
    assert core.status().done == (0, 2)


def test_memories_refuse_what_does_not_fit() -> None:
    core = loaded_core(2)
    with pytest.raises(ValueError, match="WEIGHTS take whole units of 8 bytes, not 9"):
        core.write(Space.WEIGHTS, 0, bytes(9))
    with pytest.raises(ValueError, match=r"PARAMETERS units must be within 0\.\.0, not 0\.\.8"):
        core.write(Space.PARAMETERS, 0, bytes(72))
    with pytest.raises(ValueError, match=r"ACTIVATIONS must be within 0\.\.4096, not 4095\.\.4097"):
        core.write(Space.ACTIVATIONS, 4095, bytes(2))
    with pytest.raises(ValueError, match=r"ACTIVATIONS must be within 0\.\.4096, not -1\.\.1"):
        core.read(-1, 2)
    with pytest.raises(ValueError, match="4 is not a valid Space"):
        core.write(4, 0, b"")
    with pytest.raises(ValueError, match=r"data must be int8 \(2, n\), not int8 \(1, 4\)"):
        core.write_batch(0, np.zeros((1, 4), np.int8))
    with pytest.raises(ValueError, match="batch must be at least 1, not 0"):
        GoldenCore(CONFIGURATION, 0)
    with pytest.raises(ValueError, match="order must be 'matrix_first', 'post_first' or a seed"):
        core.run((0, POST_WORD), True, order="backwards")
    memories = Memories(CONFIGURATION)
    with pytest.raises(ValueError, match="word 0 of the instruction memory must hold a CONVOLVE"):
        memories.prepared(0)
    assert INSTRUCTION_BYTES == 48
