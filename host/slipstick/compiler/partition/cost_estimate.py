"""Estimates the cycles and memory of a piece of work without compiling it."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from ...errors import CapacityError
from ..ir.operations import Convolution, Map, View, stored_table
from ..mapping.depthwise_window import fewest_cycles
from ..mapping.reduction import is_diagonal
from .halo import Region
from .subprograms import Job

LINK_CYCLES_PER_BYTE = 1
"""The device takes and gives a byte a cycle, at best."""

_DRAM_SHARE = 0.88
"""Share of the chips' peak rate that lists reach (``reports/dram.json``)."""

_RUN_BYTES = 10
"""Bytes that the DMA could move between two runs of a box, nearly."""

_INSTRUCTIONS_OF_TILE = 2
"""CONVOLVE and DRAIN, for all tiles of channels in turns, if the engine has turns."""


@dataclass(frozen=True)
class Budget:
    """Limits what a job may take.

    Parameters
    ----------
    hardware : Configuration
        With as much of each memory as there is for a job.
    share : float
        How much of that an estimate may use: estimates are a little too low.
    whole_weights, whole_activations : bool
        There is all of these memories, so that nothing comes or goes there meanwhile.
    images : int
        That share what is loaded.
    all_memories : Configuration, optional
        The hardware with all of its memories.
    """

    hardware: Configuration
    share: float = 1.0
    whole_weights: bool = False
    whole_activations: bool = False
    images: int = 1
    all_memories: Configuration | None = None

    @property
    def whole(self) -> Configuration:
        """The hardware with all of its memories."""
        return self.all_memories or self.hardware

    @property
    def activation_bytes(self) -> int:
        return int(self.hardware.activation_bytes * self.share)

    @property
    def weight_bytes(self) -> int:
        return int(self.hardware.weight_bytes * self.share)

    @property
    def parameter_words(self) -> int:
        """Counts words of a memory of parameters, or of the weight memory's ninth bits."""
        hardware = self.hardware
        words = hardware.weight_words if hardware.ninth_bits else hardware.parameter_words
        return int(words * self.share)

    @property
    def instructions(self) -> int:
        return int(self.hardware.instructions * self.share)


@dataclass(frozen=True)
class Demand:
    """Counts what operations take of the memories that a run only reads.

    Parameters
    ----------
    weight_bytes : int
        With parameters, if they lie between weights.
    parameter_words : int
        If they do not.
    instructions : int
    loaded_bytes : int
        What is sent to the weight and parameter memories.
    """

    weight_bytes: int
    parameter_words: int
    instructions: int
    loaded_bytes: int

    def fits(self, budget: Budget) -> bool:
        """Tells whether the budget allows it."""
        return self.holds(budget) and self.instructions <= budget.instructions

    def holds(self, budget: Budget) -> bool:
        """Tells whether the budget allows what does not depend on how much is computed at once."""
        return (
            self.weight_bytes <= budget.weight_bytes
            and self.parameter_words <= budget.parameter_words
        )


def _reduction_tiles(convolution: Convolution, configuration: Configuration) -> int:
    """Counts the reduction tiles of one channel tile."""
    taps = math.prod(convolution.kernel)
    rows, columns = configuration.rows, configuration.columns
    if is_diagonal(convolution, configuration):
        # R / C taps a tile, if there are the channels
        together = rows > columns and convolution.output.channels >= columns
        return -(-taps * columns // rows) if together else taps
    inputs = convolution.weights.shape[3]
    if convolution.groups > 1:
        filters = convolution.output.channels // convolution.groups
        inputs *= min(convolution.groups, -(-columns // filters) + 1)
    if configuration.aligned:
        return taps * -(-inputs // rows)
    return -(-taps * inputs // rows)


def _channel_tiles(convolution: Convolution, configuration: Configuration) -> int:
    width = configuration.columns
    if is_diagonal(convolution, configuration):
        width = min(width, configuration.rows)
    return -(-convolution.output.channels // width)


def _channel_tile(convolution: Convolution, configuration: Configuration) -> tuple[int, int]:
    """Words of the weight memory and cycles, both of one channel tile."""
    length = configuration.tile_words
    view = convolution.output
    vectors = view.height * -(-view.width // configuration.pixels)
    tiles = _reduction_tiles(convolution, configuration)
    cycles = tiles * max(vectors, length)
    sliding = fewest_cycles(convolution, configuration)
    if sliding is not None and max(sliding, length) <= cycles:
        return length, max(sliding, length)
    return tiles * (1 if is_diagonal(convolution, configuration) else length), cycles


def weight_bytes(convolution: Convolution, configuration: Configuration) -> int:
    """Estimates what its weights take in the weight memory."""
    words, _ = _channel_tile(convolution, configuration)
    return _channel_tiles(convolution, configuration) * words * configuration.weight_word_bytes


def demand(operations: Sequence[Convolution | Map], configuration: Configuration) -> Demand:
    """Estimates what operations need at least."""
    weights = blocks = channels = 0
    instructions = 2
    for operation in operations:
        if isinstance(operation, Map):
            blocks += len(operation.windows)
            channels += len(operation.windows)
            instructions += len(operation.windows) + 1
            if operation.table is not None:
                weights += 4 * stored_table(operation.table, configuration).size
            continue
        weights += weight_bytes(operation, configuration)
        if operation.function is not None:
            weights += 4 * stored_table(operation.function, configuration).size
            instructions += 1
        blocks += _channel_tiles(operation, configuration)
        channels += operation.output.channels
        vectors = operation.output.height * -(-operation.output.width // configuration.pixels)
        tiles = -(-vectors // configuration.accumulator_depth)
        if not configuration.traits.overlaps_streams:
            tiles *= _channel_tiles(operation, configuration)
        instructions += _INSTRUCTIONS_OF_TILE * tiles
    if configuration.traits.has_parameter_memory:
        loaded = weights + channels * configuration.parameter_bytes
        return Demand(weights, channels, instructions, loaded)
    parameters = blocks * configuration.parameter_block_words
    word = configuration.weight_word_bytes
    if configuration.ninth_bits:
        loaded = max(-(-weights // word), parameters) * configuration.weight_unit_bytes
        if configuration.dram:
            # what is empty is not moved
            loaded = weights + parameters * (configuration.weight_unit_bytes - word)
        return Demand(weights, parameters, instructions, loaded)
    weights += parameters * word
    return Demand(weights, 0, instructions, weights)


def box_bytes(view: View, configuration: Configuration) -> int:
    """Counts what a box takes in activation memory, at least."""
    step = max(configuration.lanes, configuration.rows if configuration.aligned else 1)
    return view.pixels * -(-view.channels // step) * step


def peak_bytes(
    operations: Sequence[Convolution | Map],
    regions: Mapping[str, Region],
    owned: Collection[str],
    configuration: Configuration,
) -> int:
    """The most of the activation memory that is alive at once, nearly.

    Parameters
    ----------
    operations : sequence of Convolution or Map
        In their order; whole or not.
    regions : mapping of Region by tensor
        What is there of each tensor; tensors that are not here take nothing.
    owned : collection of str
        Results that leave the device.
    configuration : Configuration
    """
    sizes = {name: box_bytes(region.view, configuration) for name, region in regions.items()}
    last = dict.fromkeys(sizes, -1)
    for at, operation in enumerate(operations):
        for name in (*operation.sources, operation.result):
            last[name] = at
    for name in owned:
        last[name] = len(operations)
    alive = set(sizes) - {operation.result for operation in operations}
    peak = sum(sizes[name] for name in alive)
    for at, operation in enumerate(operations):
        dying = [name for name in operation.sources if last[name] == at]
        reused = isinstance(operation, Map) and operation.is_elementwise and bool(dying)
        alive |= {operation.result} & sizes.keys()
        own = sizes.get(operation.result, 0) if reused else 0
        peak = max(peak, sum(sizes[name] for name in alive) - own)
        alive -= {name for name in alive if last[name] <= at}
    return peak


def job_fits(job: Job, budget: Budget) -> bool:
    """Tells whether the budget allows a job, by the estimates."""
    try:
        needs = demand(job.operations, budget.hardware)
    except CapacityError:
        # more taps than an instruction counts
        return False
    peak = peak_bytes(job.operations, job.regions, job.owned, budget.hardware)
    return peak <= budget.activation_bytes and needs.fits(budget)


def cycles(operation: Convolution | Map, configuration: Configuration) -> int:
    """Estimates the cycles of an operation."""
    results = -(-operation.output.elements // configuration.lanes)
    if isinstance(operation, Map):
        taps = max(math.prod(window.taps) for window in operation.windows)
        return results * (max(taps, len(operation.sources)) + 1)
    _, tile = _channel_tile(operation, configuration)
    return max(_channel_tiles(operation, configuration) * tile, results)


def transferred(
    job: Job, operations: Sequence[Convolution | Map], configuration: Configuration
) -> int:
    """Bytes of activations that go up and come down.

    From DRAM, a pixel of which only some channels are moved is a run of its own, which takes as
    long as some bytes more.

    Parameters
    ----------
    job : Job
    operations : sequence of Convolution or Map
        Those of the job, whole.
    configuration : Configuration
    """
    boxes = [(name, job.regions[name].view) for name in job.inputs]
    boxes += [(name, region.view) for name, region in job.owned.items()]
    total = sum(view.elements for _, view in boxes)
    if configuration.dram:
        channels = dict[str, int]()
        for operation in operations:
            is_convolution = isinstance(operation, Convolution)
            read = operation.input if is_convolution else operation.output
            channels |= dict.fromkeys(operation.sources, read.channels)
            channels[operation.result] = operation.output.channels
        runs = sum(view.pixels for name, view in boxes if view.channels < channels[name])
        total += _RUN_BYTES * runs
    return total


def sliding_bytes(job: Job, following: Job, stripes: int, hardware: Configuration) -> int:
    """Bytes that do not come again for stripes one above the other, nearly.

    Parameters
    ----------
    job, following : Job
        Two stripes of an operation, side by side.
    stripes : int
    hardware : Configuration
        With all of its activation memory.
    """
    (name, *others) = job.inputs
    mine, theirs = job.regions[name], following.regions[name]
    low, high = max(mine.rows[0], theirs.rows[0]), min(mine.rows[1], theirs.rows[1])
    step = abs(theirs.rows[0] - mine.rows[0])
    alike = (mine.columns, mine.channels) == (theirs.columns, theirs.channels)
    if others or low >= high or not step or not alike:
        return 0
    row = box_bytes(View(1, mine.view.width, mine.view.channels), hardware)
    size = peak_bytes(job.operations, job.regions, job.owned, hardware)
    top = hardware.activation_bytes - size
    places = 1 + top // (step * row)
    # the last one leaves room for the first one of the next ones
    if (places - 1) * step * row < size <= top:
        return 0
    slide = stripes - -(-stripes // max(places, 1))
    return slide * (high - low) * mine.view.width * mine.view.channels


def dram_cycles(moved: int, configuration: Configuration) -> int:
    """Estimates the cycles of the DMA for so many bytes."""
    return round(moved / (_DRAM_SHARE * configuration.dram_bytes_per_cycle))


def together(work: int, loaded: int, transferred: int, budget: Budget, largest: int) -> int:
    """Cycles of work and of so many bytes of constants and of activations that come and go.

    The DMA moves them while the core works, but activations only into a memory of which the budget
    leaves a half. Of weights, what finds room beside those of another tile comes meanwhile.
    Over the link they are added: it is slower than a byte per cycle.

    Parameters
    ----------
    work : int
        Cycles.
    loaded, transferred : int
        Bytes of constants, and of activations.
    budget : Budget
    largest : int
        Bytes of weights that a tile needs at once.
    """
    if not budget.hardware.dram:
        return work + LINK_CYCLES_PER_BYTE * (loaded + transferred)
    shared = loaded // budget.images
    alone = 0
    if budget.whole_weights:
        # the images of a batch end with the last of their weights
        overlap = largest if budget.images > 1 else 2 * largest - budget.hardware.weight_bytes
        alone = shared * max(overlap, 0) // max(largest, 1)
    meanwhile, apart = shared - alone, alone
    if budget.whole_activations:
        apart += transferred
    else:
        meanwhile += transferred
    hidden, shown = (dram_cycles(moved, budget.hardware) for moved in (meanwhile, apart))
    return max(work, hidden) + shown
