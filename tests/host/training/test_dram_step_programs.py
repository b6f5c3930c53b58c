"""Single programs of training from DRAM, on the golden model of a core."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from device_products import random_codes
from slipstick.compiler.codegen.dram_tensors import DramTensor
from slipstick.devices.model import ModelDevice
from slipstick.program.steps import Placement
from slipstick.runtime.dram_port import DramPort
from slipstick.training.device.convolutions import nearest
from slipstick.training.device.layer_programs import error_drains
from slipstick.training.device.program import Drain
from slipstick.training.dram_step.chains import ChainLister, Wanted, load_notes
from slipstick.training.dram_step.chip import Ring, Rings, choose_pitches
from slipstick.training.dram_step.contents import Contents
from slipstick.training.dram_step.gradient_lists import GradientLister, GradientWork
from slipstick.training.dram_step.gradients import GradientProgram
from slipstick.training.dram_step.kernels import KernelPlace
from slipstick.training.dram_step.listing import Listing
from slipstick.training.dram_step.notes import NoteReader
from slipstick.training.dram_step.places import Arena, box
from slipstick.training.dram_step.pools import pool_program
from slipstick.training.dram_step.relocation import Built, Streams
from slipstick.training.dram_step.segments import cut_segments, make_templates
from slipstick.training.dram_step.sums import SumSpec
from slipstick.training.dram_step.works import BlockWork, SumWork, Work
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES, DmaStatus, Operation
from slipstick_sim.golden import training as golden

SMALL = Configuration(
    rows=8,
    columns=8,
    lanes=8,
    activation_bytes=1 << 15,
    weight_bytes=1 << 16,
    dram="MT48LC16M16",
    training=1,
)
SHAPES = {
    "8x8": SMALL,
    "16x8, ninth bits": dataclasses.replace(
        SMALL, rows=16, weight_rows=4, ninth_bits=1, halved_tables=1, weight_bytes=1 << 17
    ),
    "2x8x16, few accumulators": dataclasses.replace(
        SMALL, pixels=2, columns=16, lanes=4, accumulator_depth=64, weight_bytes=1 << 17
    ),
    "32x16": dataclasses.replace(
        SMALL,
        rows=32,
        columns=16,
        weight_rows=4,
        activation_bytes=1 << 16,
        weight_bytes=1 << 18,
    ),
}


class Board:
    """A model with DRAM; tensors lie one behind the other."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.port = DramPort(ModelDevice(configuration, check_hazards=True))
        self.arena = Arena(0)

    def put(self, values: np.ndarray):
        tensor = self.arena.tensor(values.shape[1:], len(values))
        self.port.submit_write(tensor.place, b"".join(tensor.pack(value) for value in values))
        return tensor

    def fill(self, words: int, byte: int) -> int:
        place = self.arena.take(words)
        self.port.submit_write(place, bytes((byte,)) * (words * WORD_BYTES))
        return place

    def begin(self) -> tuple[Listing, Rings, NoteReader]:
        reader, configuration = NoteReader(self.configuration), self.configuration
        listing = Listing(configuration, self.arena.end)
        load_notes(listing, reader)
        instructions = Ring(0, configuration.instruction_words)
        return listing, Rings(instructions, Ring(reader.words, configuration.weight_words)), reader

    def run(self, listing: Listing) -> None:
        listed = listing.finish()
        self.port.submit_write(self.arena.end, bytes(listed.contents))
        status = self.port.run_list(listed.entry)
        assert status.dma is DmaStatus.OK and not status.bad_instruction

    def work(self, works: Sequence[Work], batch: int, wanted: Wanted) -> None:
        """Lists works for each image, and runs the list."""
        configuration, notes = self.configuration, self.arena.take(4096)
        pitches = choose_pitches(works, configuration)
        templates = make_templates(works, pitches, configuration)
        room = (
            configuration.instruction_words,
            configuration.weight_words,
            configuration.activation_bytes,
        )
        listing, rings, reader = self.begin()
        for segment in cut_segments(templates, pitches, configuration, room):
            lister = ChainLister(segment, notes, listing, wanted, rings, reader, configuration)
            lister.list_batch(batch)
        self.run(listing)

    def get(self, tensor, batch: int) -> np.ndarray:
        return tensor.unpack_batch(self.port.read(tensor.place, batch * tensor.words * WORD_BYTES))


def lay_out(board: Board, errors: DramTensor, kernels: KernelPlace, batch: int) -> None:
    """Errors become kernels by way of the chip, whose rows have gaps."""
    listing, _, _ = board.begin()
    pitch = -(-errors.channels // 8) * 8
    row = errors.width * pitch + 8
    place = Placement(64, row, pitch, errors.height, errors.width, errors.channels)
    for image in range(batch):
        listing.move(box(Operation.LOAD, place, errors, image))
        for store in kernels.stores(place, image):
            listing.move(store)
    board.run(listing)


def gradients_of(
    images: np.ndarray, errors: np.ndarray, window: golden.Window, configuration: Configuration
) -> tuple[GradientProgram, np.ndarray, np.ndarray]:
    """The program, and what it makes on a board: weight and bias gradient."""
    batch = len(images)
    program = GradientProgram(images.shape[1:], errors.shape[1:], window, configuration)
    board = Board(configuration)
    images_there = board.put(images)
    results = board.arena.take(program.results.words)
    kernels = KernelPlace(program.kernels, board.fill(batch * program.kernels.dram_words, 0))
    ones = board.fill(-(-program.ones_bytes // WORD_BYTES), 1)
    lay_out(board, board.put(errors), kernels, batch)
    work = GradientWork("layer", program, images_there, kernels, ones, results)
    listing, rings, _ = board.begin()
    GradientLister(listing, rings, configuration).list_batch(work, batch)
    board.run(listing)
    packed = board.port.read(results, WORD_BYTES * program.results.words)
    weights, bias = program.results.sums(packed)
    return program, weights, bias


@pytest.mark.parametrize("shape", SHAPES)
def test_weight_gradients(shape: str) -> None:
    """Random kernels, strides, paddings and batches; maps wider than a kernel may be."""
    configuration, generator = SHAPES[shape], np.random.default_rng(1)
    aligned = passes = 0
    for case in range(40):
        draw = generator.integers
        kernel = (int(draw(1, 5)), int(draw(1, 5)))
        top, bottom, left, right = (int(draw(0, kernel[side // 2])) for side in range(4))
        stride = (int(draw(1, 3)), int(draw(1, 3)))
        window = golden.Window(kernel, stride, (top, bottom, left, right))
        height, width = int(draw(kernel[0], 12)), int(draw(kernel[1], 12))
        if case % 10 == 9:
            height, width = kernel[0], int(draw(70, 90))
        batch, inputs, outputs = int(draw(1, 4)), int(draw(1, 20)), int(draw(1, 40))
        images = random_codes(generator, batch, height, width, inputs)
        errors = random_codes(generator, batch, *window.outputs(height, width), outputs)
        program, weights, bias = gradients_of(images, errors, window, configuration)
        message = f"case {case}: {window} of {images.shape} and {errors.shape}"
        wanted = golden.weight_gradient(images, errors, window)
        np.testing.assert_array_equal(weights, wanted, message)
        np.testing.assert_array_equal(bias, golden.bias_gradient(errors), message)
        aligned += program.kernels.aligned
        passes += len(program.passes) > 1
    assert 0 < aligned < 40 and passes > 0


@pytest.mark.parametrize(
    ("shape", "errors", "channels"),
    [
        ("8x8", (8, 7), (16, 9)),
        ("8x8", (16, 3), (5, 12)),
        ("16x8, ninth bits", (16, 4), (8, 8)),
        ("16x8, ninth bits", (8, 6), (3, 17)),
        ("32x16", (16, 6), (16, 16)),
        ("32x16", (32, 32), (12, 20)),
        ("32x16", (8, 4), (3, 16)),
        ("32x16", (24, 8), (40, 10)),
    ],
    ids=str,
)
@pytest.mark.parametrize("kernel", [(3, 3), (1, 1), (2, 4)], ids=str)
def test_weight_gradients_of_whole_rows(
    shape: str, errors: tuple[int, int], channels: tuple[int, int], kernel: tuple[int, int]
) -> None:
    """Lanes are grids of pixels, and rows of the image are loaded as they are."""
    generator = np.random.default_rng(7)
    pads = [(side // 2, (side - 1) // 2) for side in kernel]
    window = golden.Window(kernel, (1, 1), (*pads[0], *pads[1]))
    images = random_codes(generator, 2, *errors, channels[0])
    codes = random_codes(generator, 2, *errors, channels[1])
    program, weights, bias = gradients_of(images, codes, window, SHAPES[shape])
    assert program.kernels.grid is not None
    np.testing.assert_array_equal(weights, golden.weight_gradient(images, codes, window))
    np.testing.assert_array_equal(bias, golden.bias_gradient(codes))


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_maxima_and_masks(shape: str, positive: bool) -> None:
    """Equal codes in a window: the first one counts. Few values, so that there are many."""
    board, generator = Board(SHAPES[shape]), np.random.default_rng(2)
    window = golden.Window((2, 3), (2, 3))
    images = generator.choice([-127, -1, 0, 1, 5, 127], (3, 5, 9, 10)).astype(np.int8)
    images = np.maximum(images, 0) if positive else images
    pool = pool_program((5, 9, 10), window, board.configuration, positive=positive)
    maxima, masks = board.arena.tensor((2, 3, 10), 3), board.arena.tensor((5, 9, 10), 3)
    loads, stores = [(pool.image, board.put(images))], [(pool.maxima, maxima), (pool.masks, masks)]
    program = pool.program
    built = Built(Streams.of(program.code, program.pcs), program.constants)
    work = BlockWork(
        "pool",
        (),
        (),
        block_bytes=pool.bytes,
        loads=loads,
        stores=stores,
        make=lambda: built,
    )
    board.work([work], 3, Wanted(frozenset(), {}, 0))
    wanted = golden.max_pool(images, window)
    np.testing.assert_array_equal(board.get(maxima, 3), wanted)
    ones = golden.max_pool_gradient(np.ones_like(wanted), images, wanted, window)
    ones = golden.relu_gradient(ones, images) if positive else ones
    np.testing.assert_array_equal(board.get(masks, 3)[:, :4], ones[:, :4])


@pytest.mark.parametrize("exponents", [(0, 0), (-3, 1), (2, -5), (0, -15), (0, -16), (-16, 0)])
@pytest.mark.parametrize("shift", [0, 1, 6])
@pytest.mark.parametrize("shape", [(5, 6, 21), (25, 21, 5)], ids=str)
@pytest.mark.parametrize("name", SHAPES)
def test_sums_of_unequal_exponents(
    name: str, shape: tuple[int, int, int], exponents: tuple[int, int], shift: int
) -> None:
    """Forward to nearest, errors pseudo-stochastically; one that is far below counts as 0."""
    board, generator = Board(SHAPES[name]), np.random.default_rng(3)
    first, second = (random_codes(generator, 2, *shape) for _ in range(2))
    sums, exponent = golden.aligned_sum([(first, exponents[0]), (second, exponents[1])])
    left, right = (each - exponent if each >= exponent else None for each in exponents)
    for drains, wanted in (
        (
            [Drain(nearest(np.zeros(1, np.int32), shift, 0))],
            golden.finish_forward(sums, shift, True),
        ),
        (error_drains(1, shift), golden.finish_errors(sums, shift)),
    ):
        result = board.arena.tensor(shape, 2)
        terms = board.put(first), board.put(second)
        spec = SumSpec(shape, (left, right), drains)
        work = SumWork("sum", terms, (result,), noted=True, spec=spec)
        board.work([work], 2, Wanted({result.place}, {}, board.fill(64, 0)))
        np.testing.assert_array_equal(board.get(result, 2), wanted)


@pytest.mark.parametrize(("channels", "pitch"), [(32, 40), (21, 24), (48, 48), (64, 72)])
def test_pixels_side_by_side_lie_in_different_slots(channels: int, pitch: int) -> None:
    """The post-processor writes a slice of all pixels: a STORE waits for it in one slot only."""
    arena, shape = Arena(0), (5, 6, channels)
    terms, result = tuple(arena.tensor(shape, 1) for _ in range(2)), arena.tensor(shape, 1)
    spec = SumSpec(shape, (0, 0), error_drains(1, 0))
    work = SumWork("sum", terms, (result,), noted=True, spec=spec)
    pitches = choose_pitches([work], SHAPES["32x16"])
    assert {pixel for _, pixel in pitches.values()} == {pitch}
    # there is one slot only
    alone = choose_pitches([work], SHAPES["8x8"])
    assert {pixel for _, pixel in alone.values()} == {-(-channels // 8) * 8}


def test_only_what_changes_is_written() -> None:
    device = ModelDevice(SMALL)
    port = DramPort(device)
    contents, generator = Contents(port), np.random.default_rng(4)
    data = generator.integers(0, 256, 40_000, np.uint8)

    def written(first: int) -> int:
        before = device.bytes_up
        contents.submit(first, data.tobytes())
        assert port.read(first, len(data)) == data.tobytes()
        return device.bytes_up - before

    reading = written(100)
    again = written(100)
    assert reading - again > 40_000
    data[17] ^= 1
    data[20_000:20_100] ^= 1
    assert 200 < written(100) - again < 600
    # shorter, and then as long as before: what was behind is there still
    whole, data = data, data[:8_000].copy()
    data[0] ^= 1
    written(100)
    data = np.concatenate([data, whole[8_000:]])
    assert written(100) == again
    assert written(101) - again > 40_000
    contents.forget()
    assert written(101) - again > 40_000


def test_dense_rows_with_gaps_are_refused() -> None:
    tensor = Arena(0).tensor((2, 2, 3), 1, dense=True)
    with pytest.raises(ValueError, match="a pixel pitch of 3 bytes, not 8"):
        box(Operation.LOAD, Placement(0, 16, 8, 2, 2, 3), tensor, 0)
