"""Chooses how a network is compiled: whole on the chip, partly on the host, or cut and streamed."""

import math

from slipstick_rtl.config import Configuration

from ..errors import CapacityError
from ..graph import Graph
from ..passes import optimize
from ..passes.clean import drop_dead_nodes
from ..passes.skip_flattening import skip_flattening
from ..program import Program
from .codegen.assemble import layer_record
from .lower.select import require_tensors, select
from .make_program import make_program
from .partition.offload import layers_to_offload
from .partition.partitioner import Cutter
from .partition.streaming import Streamer
from .scheduling.interleave_search import INTERLEAVING_EFFORT
from .transform.spread_vectors import spread_vectors
from .whole import compile_whole

_HOPELESS = 1.1
"""Bytes of weights, for each byte of memory, that are too many even without the smallest layers."""


def compile_graph(
    graph: Graph,
    configuration: Configuration,
    *,
    inspect: bool = False,
    cut: bool = True,
    effort: int = INTERLEAVING_EFFORT,
    double_buffer: bool = True,
    batch: int = 1,
) -> Program:
    """Compiles a network for one piece of hardware.

    What does not fit it at once is cut, and streamed; what does not fit in parts runs on the host.

    Parameters
    ----------
    graph : Graph
    configuration : Configuration
    inspect : bool
        For verification: every group of layers is a run of its own, nothing is overwritten in
        place, and the output of every layer on the device is downloaded after its run.
    cut : bool
        False: what does not fit at once is refused instead.
    effort : int
        Instructions issued in trials of each way to interleave layers. Less compiles faster, to
        programs that may take more cycles.
    double_buffer : bool
        Inputs and outputs get two places each if the memories have room for them; see
        ``Alternate``. False: one place.
    batch : int
        Of a network that is streamed from DRAM: so many images share what is loaded, and are
        computed together.

    Raises
    ------
    ModelError
        If the graph contradicts itself.
    UnsupportedError
        If its semantics are not the device's.
    CapacityError
        If it does not fit at once, and is not to be cut.
    """
    require_tensors(graph)
    graph = spread_vectors(optimize(graph), configuration)

    def whole(**way: frozenset[str]) -> Program:
        return compile_whole(
            graph, configuration, inspect, effort, double_buffer=double_buffer, **way
        )

    if not cut:
        return whole()
    if not _is_hopeless(graph, configuration):
        try:
            return whole()
        except CapacityError:
            small = layers_to_offload(select(graph, configuration)[0], configuration)
        ways = [{"in_ninth": small}] if configuration.ninth_bits else []
        for way in [*ways, {"on_host": small}] if small else []:
            try:
                return whole(**way)
            except CapacityError:
                continue
    return _compile_cut(graph, configuration, inspect, batch if configuration.dram else 1)


def _is_hopeless(graph: Graph, configuration: Configuration) -> bool:
    """Tells whether the weights cannot fit at once by far: nothing need be tried then."""
    weights = {
        node.inputs[1]
        for node in graph.nodes
        if node.operator in ("conv2d", "depthwise_conv2d", "fully_connected")
    }
    size = sum(math.prod(graph.tensors[name].shape) for name in weights)
    return size > _HOPELESS * configuration.weight_bytes


def _compile_cut(graph: Graph, configuration: Configuration, inspect: bool, batch: int) -> Program:
    """In segments, stripes and boxes, with what they need streamed from the host."""
    if not inspect:
        graph = drop_dead_nodes(skip_flattening(graph))
    apart = set[str]()
    while True:
        selected, views = select(graph, configuration, cut=True, apart=apart)
        cutter = Cutter(selected, set(graph.results), configuration, inspect=inspect, batch=batch)
        pieces = cutter.pieces()
        if not cutter.lost:
            break
        # the host runs a node at a time: what it gets has its function apart
        apart |= cutter.lost
    streamed = Streamer(pieces, cutter.operations, views.known, configuration, batch).stream()
    layers = tuple(
        layer_record(operation, streamed.cycles.get(number, 0))
        for number, operation in enumerate(cutter.operations)
    )
    return make_program(
        graph,
        configuration,
        cutter.operations,
        {},
        images=streamed.images,
        loads=streamed.loads,
        steps=streamed.steps,
        units=streamed.units,
        layers=layers,
        batch=batch,
    )
