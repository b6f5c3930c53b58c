"""The groups of instructions of every run, from the operations and where everything lies."""

from collections.abc import Mapping, Sequence

from slipstick_rtl.config import Configuration

from ..codegen.convolution import ConvolutionEmitter, Site
from ..codegen.map import MapEmitter
from ..ir.operations import Alias, Convolution, HostOperation, Operation
from ..mapping.activation_layout import Buffer
from ..memory.constants import Images
from ..memory.liveness import Arrangement
from .groups import Group


def make_groups(
    operations: Sequence[Operation],
    buffers: Mapping[str, Buffer],
    arrangement: Arrangement,
    images: Images,
    configuration: Configuration,
) -> dict[int, list[Group]]:
    """The groups of every run; weights and parameters are placed on the way."""
    runs: dict[int, list[Group]] = {}
    tables: dict[int, tuple[int, int]] = {}
    for moment in arrangement.moments:
        convolution, maps, load, trailing = None, [], False, 0
        for index in moment.operations:
            operation = operations[index]
            if isinstance(operation, HostOperation | Alias):
                continue
            site = Site(
                tuple(arrangement.places[name] for name in operation.sources),
                arrangement.places[operation.result],
                tuple(buffers[name].name for name in operation.sources),
                buffers[operation.result].name,
            )
            if isinstance(operation, Convolution):
                trailing = arrangement.row_tiles.get(operation.result, 0)
                emitter = convolution = ConvolutionEmitter(
                    operation, index, site, images, configuration, keeps=not trailing
                )
            else:
                emitter = MapEmitter(operation, index, site, images, configuration)
                maps.append(emitter)
            if emitter.table is not None:
                # a table that what is before left there need not be loaded again
                load = tables.get(moment.run) != emitter.table
                tables[moment.run] = emitter.table
        if convolution or maps:
            first = moment.operations[0]
            group = Group(first, convolution, tuple(maps), configuration, load, trailing)
            runs.setdefault(moment.run, []).append(group)
    return runs
