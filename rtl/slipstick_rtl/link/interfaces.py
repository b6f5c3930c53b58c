"""Defines the interfaces of every link: one to the host, one to the accelerator."""

from collections.abc import Mapping

from amaranth.hdl import Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Member, Out

from .layouts import ByteWrite, RunStatus


class AcceleratorFace(wiring.Component):
    """Has what a link has towards the accelerator; :class:`slipstick_rtl.link.link.Link` says what.

    Parameters
    ----------
    members : Mapping[str, Member]
        What a component has besides.
    """

    writes: stream.Interface
    reads: stream.Interface
    read_data: stream.Interface
    run: Signal
    matrix_pc: Signal
    post_pc: Signal
    clear: Signal
    reset_run: Signal
    status: data.View

    def __init__(self, members: Mapping[str, Member]) -> None:
        super().__init__(
            {
                **members,
                "writes": Out(stream.Signature(ByteWrite)),
                "reads": Out(stream.Signature(24)),
                "read_data": In(stream.Signature(8)),
                "run": Out(1),
                "matrix_pc": Out(16),
                "post_pc": Out(16),
                "clear": Out(1),
                "reset_run": Out(1),
                "status": In(RunStatus),
            }
        )


class LinkFace(AcceleratorFace):
    """Has, besides, the bytes from the host and to it."""

    i: stream.Interface
    o: stream.Interface

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(8))})
