"""A device at the other end of a framed link: boards, the simulated board, the golden endpoint."""

import random
import time
from collections.abc import Callable, Sequence

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import RUN_CLEARS_COUNTERS, Command, DeviceStatus, Space
from slipstick_rtl.link.spaces import unit_bytes, unit_count, units_per_frame

from .exchange import Exchanger, LinkError, Patience, Request
from .transport import Transport

__all__ = ["Identity", "LinkDevice", "LinkError", "Patience"]

_STATUS_BYTES = len(DeviceStatus.idle().pack())
_FIRST_PAUSE_SECONDS = 100e-6
_LONGEST_PAUSE_SECONDS = 20e-3


class LinkDevice:
    """Reads, writes and runs a device by the frames of :mod:`slipstick_rtl.link.protocol`.

    Lost, repeated, corrupted and truncated frames are sent again; every method returns what is
    right or raises, in bounded time.

    Parameters
    ----------
    transport : Transport
    configuration : Configuration
        The hardware that the device is taken for; ``identify`` tells whether it is.
    patience : Patience
        Timeouts, retries and how far requests run ahead of their answers.
    pause : callable
        Lets a number of seconds pass between two looks at a running device; a simulated one may
        want to be simulated meanwhile.
    draw : random.Random, optional
        Gives the sequence numbers that a session begins with.

    Raises
    ------
    ValueError
        If the configuration's ``payload_bytes`` cannot hold one unit of each space.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        configuration: Configuration,
        patience: Patience | None = None,
        pause: Callable[[float], None] = time.sleep,
        draw: random.Random | None = None,
    ) -> None:
        self._units_per_frame = {space: units_per_frame(configuration, space) for space in Space}
        self._transport = transport
        self._configuration = configuration
        self._pause = pause
        self._exchanger = Exchanger(
            transport, configuration.payload_bytes, patience or Patience(), draw
        )
        self._last_run: int | None = None

    @property
    def configuration(self) -> Configuration:
        """The hardware that the device is taken for."""
        return self._configuration

    def identify(self) -> Identity:
        """What the device says of itself; LinkError WRONG_HARDWARE if that is not expected."""
        return self.check(self._configuration)

    def check(self, configuration: Configuration) -> Identity:
        """What the device says of itself.

        Raises
        ------
        LinkError
            WRONG_HARDWARE if protocol, ISA or fingerprint are not this configuration's.
        """
        expected = Identity.of(configuration)
        request = Request(Command.IDENTIFY, answer_bytes=len(expected.pack()))
        identity = Identity.unpack(self._exchanger.exchange([request])[0])
        for name, what in (
            ("protocol_version", "link protocol version"),
            ("isa_version", "ISA version"),
            ("fingerprint", "fingerprint"),
            ("payload_bytes", "payload_bytes"),
        ):
            actual, wanted = getattr(identity, name), getattr(expected, name)
            if actual != wanted:
                raise LinkError(
                    "WRONG_HARDWARE", f"the device's {what} must be {wanted}, not {actual}"
                )
        return identity

    def write(self, space: Space, address: int, data: bytes) -> None:
        """Stores whole units of a memory from unit ``address`` on.

        The data go in as many frames as they need, several ahead of their answers. If it raises,
        any part of the data may have been written.

        Raises
        ------
        LinkError
            BAD_LENGTH, BAD_ADDRESS (nothing is sent then), NO_ANSWER.
        """
        unit = unit_bytes(self._configuration, space)
        units, rest = divmod(len(data), unit)
        if rest:
            raise LinkError(
                "BAD_LENGTH",
                f"data for {space.name} must be whole units of {unit} bytes, not {len(data)} bytes",
            )
        self._check_address(space, address, units)
        step = self._units_per_frame[space]
        self._exchanger.exchange(
            [
                Request(Command.WRITE, self._place(space, address + first) + content)
                for first in range(0, units, step)
                if (content := bytes(data[first * unit : (first + step) * unit]))
            ]
        )

    def read(self, address: int, count: int) -> bytes:
        """``count`` bytes of activation memory.

        Raises
        ------
        LinkError
            BAD_ADDRESS (nothing is sent then), NO_ANSWER.
        """
        self._check_address(Space.ACTIVATIONS, address, count)
        longest = self._configuration.payload_bytes
        requests = []
        for first in range(0, count, longest):
            size = min(longest, count - first)
            payload = self._place(Space.ACTIVATIONS, address + first) + size.to_bytes(2, "little")
            requests.append(Request(Command.READ, payload, answer_bytes=size))
        return b"".join(self._exchanger.exchange(requests))

    def run(self, pcs: Sequence[int], clear: bool = True) -> None:
        """Starts each instruction stream at its word of the instruction memory, once.

        RUN is not sent again if it is not answered: a device that was reset meanwhile would run
        twice, and the first time may have overwritten the inputs of the second.

        Raises
        ------
        LinkError
            BAD_ADDRESS, BUSY if a program runs, NO_ANSWER (it may have started or not).
        """
        for pc in pcs:
            self._check_address(Space.INSTRUCTIONS, pc, 1)
        self._exchanger.begin()
        if self._last_run is None:
            # what the device takes for the last RUN is unknown: make it forget by an empty WRITE
            empty = self._place(Space.ACTIVATIONS, 0)
            self._exchanger.exchange([Request(Command.WRITE, empty)])
        elif self._last_run == self._exchanger.next_sequence:
            self._exchanger.skip_sequence()
        sequence, self._last_run = self._exchanger.next_sequence, None
        payload = bytes([RUN_CLEARS_COUNTERS if clear else 0])
        payload += b"".join(pc.to_bytes(2, "little") for pc in pcs)
        self._exchanger.exchange([Request(Command.RUN, payload)], once=True)
        self._last_run = sequence

    def status(self) -> DeviceStatus:
        """The state of the run; LinkError NO_ANSWER."""
        request = Request(Command.STATUS, answer_bytes=_STATUS_BYTES)
        return DeviceStatus.unpack(self._exchanger.exchange([request])[0])

    def wait(self, timeout_seconds: float = 60.0) -> DeviceStatus:
        """Looks until the run is over, less and less often.

        Raises
        ------
        LinkError
            RUN_TIMEOUT, BAD_INSTRUCTION if the device met one, NO_ANSWER.
        """
        deadline = time.monotonic() + timeout_seconds
        pause = _FIRST_PAUSE_SECONDS
        while (status := self.status()).running:
            if time.monotonic() >= deadline:
                raise LinkError(
                    "RUN_TIMEOUT",
                    f"the run must end within {timeout_seconds} s; completed so far:"
                    f" {status.progress()}",
                )
            self._pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        if status.bad_instruction:
            raise LinkError(
                "BAD_INSTRUCTION",
                f"the device met a bad instruction after {status.progress()}",
            )
        return status

    def reset(self) -> None:
        """Stops a run; memories keep their contents. LinkError NO_ANSWER."""
        self._exchanger.exchange([Request(Command.RESET)])

    def close(self) -> None:
        """Ends the connection."""
        self._transport.close()

    def _check_address(self, space: Space, address: int, units: int) -> None:
        limit = unit_count(self._configuration, space)
        if not (0 <= address and 0 <= units and address + units <= limit):
            raise LinkError(
                "BAD_ADDRESS",
                f"{units} units at {address} must lie within the {limit} of {space.name}",
            )

    @staticmethod
    def _place(space: Space, address: int) -> bytes:
        return bytes([space]) + address.to_bytes(3, "little")
