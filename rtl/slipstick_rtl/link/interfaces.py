"""Defines the ports of links and engines: one signature between them, and the host's bytes."""

from collections.abc import Mapping

from amaranth.hdl import Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Member, Out

from .layouts import ByteWrite, ProgramCounters, RunStatus

ENGINE = wiring.Signature(
    {
        "writes": In(stream.Signature(ByteWrite)),
        "reads": In(stream.Signature(24)),
        "read_data": Out(stream.Signature(8)),
        "run": In(1),
        "pcs": In(ProgramCounters),
        "clear": In(1),
        "status": Out(RunStatus),
    }
)
"""Members of an engine towards the link; a link has them flipped. ``writes`` are bytes into a
memory, ``reads`` are byte addresses, and ``read_data`` has the byte of each.

``run`` strobes: begin the streams at ``pcs``, with the counters of
instructions cleared if ``clear``. A link has ``reset_run`` as well, which resets the engine."""


class AcceleratorInterface(wiring.Component):
    """Has the members of a link towards an engine; :class:`slipstick_rtl.link.link.Link` has more.

    Parameters
    ----------
    members : Mapping[str, Member]
        Further members of the component.
    """

    writes: stream.Interface
    reads: stream.Interface
    read_data: stream.Interface
    run: Signal
    pcs: data.View
    clear: Signal
    reset_run: Signal
    status: data.View

    def __init__(self, members: Mapping[str, Member]) -> None:
        super().__init__({**members, **ENGINE.flip().members, "reset_run": Out(1)})


class LinkInterface(AcceleratorInterface):
    """Has, besides, the bytes from the host and to it."""

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})
