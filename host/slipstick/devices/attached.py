"""Boards at a place of this machine: how they are told from strangers, whatever the wires."""

from typing import Protocol

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import Command

from ..errors import DeviceError
from .found import targets_of
from .link import LinkDevice
from .link.errors import LinkError
from .link.patience import WINDOW_BYTES, Patience, wait_seconds
from .link.request import Request
from .link.request_queue import RequestQueue
from .link.transport import Transport

_LEAST_WINDOW = 1 << 13
_AHEAD_SECONDS = 0.04
"""Longer than any adapter delays an answer."""
_PROBE = Patience(timeout_seconds=0.25, retries=0, silence_seconds=0.02)
"""For one rate of several: what answers does so at once."""
_GREETING = Patience(timeout_seconds=0.7, retries=2, silence_seconds=0.02)
"""For what may be no Slipstick: three attempts, and then the truth."""


class TimedTransport(Transport, Protocol):
    """A transport that knows how long bytes take.

    Members
    -------
    buffered_bytes : int
        What may lie between ``send`` and the wire.
    receive_bytes : int or None
        What the board takes while it is busy with a request; None: the wire can hold back.
    """

    buffered_bytes: int
    receive_bytes: int | None

    def seconds(self, count: int) -> float:
        """Returns the time that so many bytes take on the wire."""
        ...


class AttachedDevice(LinkDevice):
    """A board at the other end of wires, greeted and idle.

    Parameters
    ----------
    transport : TimedTransport
        Closed together with the device, and if the board is not what it should be.
    name : str
        Of the place, for messages.
    configuration : Configuration
        The hardware that the board must be.
    advice : str
        What to look at if nobody answers, but for the board itself.

    Raises
    ------
    LinkError
        NO_ANSWER if there is no Slipstick, WRONG_HARDWARE if it is another one.
    DeviceError
        If the connection is lost.
    """

    def __init__(
        self, transport: TimedTransport, name: str, configuration: Configuration, advice: str
    ) -> None:
        patience = _patience(transport, configuration)
        super().__init__(transport, configuration=configuration, patience=patience)
        try:
            _check(_greet(transport, name, configuration, advice), name, configuration)
            # whoever was here before may have left a run going on
            self.reset()
        except BaseException:
            self.close()
            raise


def answers(transport: Transport, configuration: Configuration) -> bool:
    """Returns whether a Slipstick answers, of whatever hardware; LinkError if the line is gone."""
    queue = RequestQueue(transport, configuration.payload_bytes, _PROBE)
    try:
        queue.ask(_identify(configuration))
    except LinkError as error:
        if error.code == "DISCONNECTED":
            raise
        return False
    return True


def split_place(kind: str, place: str, default_rate: int, example: str) -> tuple[str, int]:
    """Port and rate of ``PORT`` or ``PORT@RATE``; DeviceError if the rate is no number above 0."""
    port, at, rate = place.rpartition("@")
    if not at:
        port, rate = place, str(default_rate)
    number = rate.isascii() and rate.isdigit() and len(rate) < 20
    if not (number and port and port.isprintable()):
        raise DeviceError(
            f"a device on {kind} must be {kind}:PORT or {kind}:PORT@RATE, such as"
            f" {kind}:{example}@{default_rate}, not '{kind}:{place}'"
        )
    return port, int(rate)


def _patience(transport: TimedTransport, configuration: Configuration) -> Patience:
    """As much ahead as is on its way in ``_AHEAD_SECONDS``: a failure costs no more than that."""
    usual = Patience()
    window = _LEAST_WINDOW
    while window < WINDOW_BYTES and transport.seconds(window) < _AHEAD_SECONDS:
        window *= 2
    return Patience(
        timeout_seconds=usual.timeout_seconds + transport.seconds(transport.buffered_bytes),
        wait_seconds=wait_seconds(configuration),
        window_bytes=window,
        receive_bytes=transport.receive_bytes,
    )


def _greet(transport: Transport, name: str, configuration: Configuration, advice: str) -> Identity:
    """Finds out quickly whether there is a Slipstick at all."""
    try:
        queue = RequestQueue(transport, configuration.payload_bytes, _GREETING)
        return Identity.unpack(queue.ask(_identify(configuration)))
    except LinkError as error:
        if error.code == "DISCONNECTED":
            raise
        raise LinkError(
            error.code,
            f"no Slipstick answers at {name}: check that the board is programmed, and {advice}",
        ) from error


def _identify(configuration: Configuration) -> Request:
    size = len(Identity.of(configuration).pack())
    return Request(Command.IDENTIFY, answer_bytes=size)


def _check(identity: Identity, name: str, configuration: Configuration) -> None:
    """LinkError WRONG_HARDWARE, with the way out, if the board is another one."""
    expected = Identity.of(configuration)
    for field, what in (("protocol_version", "link protocol"), ("isa_version", "ISA")):
        actual, wanted = getattr(identity, field), getattr(expected, field)
        if actual != wanted:
            raise LinkError(
                "WRONG_HARDWARE",
                f"the board at {name} must have {what} version {wanted}, not {actual}: build its"
                " bitstream with this version of Slipstick and program it anew",
            )
    if identity != expected:
        raise LinkError(
            "WRONG_HARDWARE",
            f"the board at {name} must be hardware {expected.fingerprint} ({configuration.shape}):"
            f" fingerprint must be {expected.fingerprint}, not {identity.fingerprint}:"
            f" {_way_out(identity.fingerprint)}",
        )


def _way_out(fingerprint: str) -> str:
    names = targets_of(fingerprint)
    if names:
        return f"give --target {' or '.join(names)}, or program the board anew"
    return "program the board with that target's bitstream, or give the --target of the one it has"
