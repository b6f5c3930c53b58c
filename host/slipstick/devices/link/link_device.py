"""The host's end of a framed link: it reads, writes, runs, and queues requests."""

import random
import time
from collections.abc import Callable, Sequence

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.identity import Identity
from slipstick_rtl.link.protocol import (
    AFTER,
    RUN_CLEARS_COUNTERS,
    STATUS_BYTES,
    Command,
    DeviceStatus,
    Region,
    Space,
    unpack_status,
)
from slipstick_rtl.link.spaces import spaces_of, unit_bytes, unit_count, units_per_frame

from ..turns import TURNS
from .burst import Burst
from .errors import LinkError
from .hold import Hold, packed_counts, put_layout
from .patience import Patience
from .regions import RegionTable, pieces
from .request import LostAnswerError, Request
from .request_queue import RequestQueue
from .transport import Transport

_FIRST_PAUSE_SECONDS = 100e-6
_LONGEST_PAUSE_SECONDS = 20e-3
_MOST_STARTS = 256
"""Most tuples of a program's start addresses that are remembered, so that each is checked once."""


class LinkDevice:
    """Reads, writes and runs a device by the frames of :mod:`slipstick_rtl.link.protocol`.

    Lost, repeated, corrupted and truncated frames are sent again; every method returns what is
    right or raises, in bounded time.

    ``write``, ``read``, ``run``, ``wait`` return when the device has done what they say. The
    ``submit_...`` methods only put requests behind each other; ``answer`` waits for one of them.
    Their errors come with the answers, or with the next call.

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

    Members
    -------
    cycles_per_second : float
        Of the device's clock, in the seconds of ``patience``.

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
        self._units_per_frame = {
            space: units_per_frame(configuration, space) for space in spaces_of(configuration)
        }
        self._transport = transport
        self._configuration = configuration
        self._pause = pause
        self._queue = RequestQueue(
            transport, configuration.payload_bytes, patience or Patience(), draw
        )
        self._regions = RegionTable()
        self._checked: set[tuple[int, ...]] = set()
        self.cycles_per_second = float(configuration.clock_hz)

    @property
    def takes_turns(self) -> bool:
        """Tells whether a thread that drives it lets others have their turns whenever it waits."""
        return getattr(self._transport, "takes_turns", False)

    @property
    def round_trips(self) -> int:
        """Counts how often something was sent when all that had been sent before was answered."""
        return self._queue.round_trips

    @property
    def bytes_up(self) -> int:
        """Bytes sent, frames included."""
        return self._queue.bytes_up

    @property
    def bytes_down(self) -> int:
        """Bytes received, frames included."""
        return self._queue.bytes_down

    @property
    def configuration(self) -> Configuration:
        """The hardware that the device is taken for."""
        return self._configuration

    def identify(self) -> Identity:
        """Asks the device for its identity; LinkError WRONG_HARDWARE if that is not expected."""
        return self.check(self._configuration)

    def check(self, configuration: Configuration) -> Identity:
        """Asks the device for its identity, and checks it.

        Raises
        ------
        LinkError
            WRONG_HARDWARE if protocol, ISA or fingerprint are not this configuration's.
        """
        expected = Identity.of(configuration)
        request = Request(Command.IDENTIFY, answer_bytes=len(expected.pack()))
        identity = Identity.unpack(self._queue.ask(request))
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
        self.submit_write(space, address, data)
        self._queue.finish()

    def read(self, address: int, count: int) -> bytes:
        """``count`` bytes of activation memory.

        Raises
        ------
        LinkError
            BAD_ADDRESS (nothing is sent then), NO_ANSWER.
        """
        self._check_address(Space.ACTIVATIONS, address, count)
        wanted = [*pieces(count, self._configuration.payload_bytes)]
        parts: dict[int, bytes] = {}
        while len(parts) < len(wanted):
            missing = [k for k in range(len(wanted)) if k not in parts]
            asked = [
                (k, self._submit_read(address + wanted[k][0], wanted[k][1] - wanted[k][0]))
                for k in missing
            ]
            self._queue.push()
            for k, request in asked:
                try:
                    parts[k] = self._queue.wait(request)
                except LostAnswerError:
                    # the device has gone on; a READ may be asked for again
                    continue
        return b"".join(parts[k] for k in range(len(wanted)))

    def run(self, pcs: Sequence[int], clear: bool = True) -> None:
        """Starts each instruction stream at its word of the instruction memory, once.

        Raises
        ------
        LinkError
            BAD_ADDRESS, BUSY if a program runs, NO_ANSWER (it may have started or not).
        """
        self._queue.wait(self.submit_run(pcs, clear, silent=False))

    def status(self) -> DeviceStatus:
        """The state of the run; LinkError NO_ANSWER."""
        return unpack_status(self._queue.ask(_status()))[0]

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
            TURNS.wait(self._pause, pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        if status.bad_instruction:
            raise LinkError(
                "BAD_INSTRUCTION",
                f"the device met a bad instruction after {status.progress()}",
            )
        return status

    def reset(self) -> None:
        """Stops a run, and forgets what was submitted; memories keep their contents. LinkError
        NO_ANSWER."""
        self._queue.abandon()
        self._queue.ask(Request(Command.RESET))

    def submit_write(
        self, space: Space, address: int, data: bytes, *, waiting: bool = False
    ) -> None:
        """Stores whole units of a memory; ``waiting``: once no program runs."""
        unit, step = unit_bytes(self._configuration, space), self._units_per_frame[space]
        for first, end in pieces(len(data), step * unit):
            payload = self._place(space, address + first // unit) + bytes(data[first:end])
            self._queue.submit(
                Request(Command.WRITE, payload, silent=True, waiting=waiting and not first)
            )

    def submit_put(
        self,
        region: Region,
        data: bytes,
        *,
        waiting: bool = False,
        holds: Sequence[Hold] = (),
        first: Request | None = None,
        last: Request | None = None,
    ) -> None:
        """Writes bytes into a region, from its beginning on.

        Parameters
        ----------
        region : Region
        data : bytes
        waiting : bool
            Once no program runs.
        holds : sequence of Hold
            Of places within the data, ascending.
        first : Request, optional
            One of ``start``, which is submitted before them.
        last : Request, optional
            One of ``get`` or ``run_get``, which is submitted behind them.
        """
        number, longest = self._number_of(region), self._configuration.payload_bytes - 1
        layout = put_layout(number, len(data), longest, tuple(holds), waiting)
        burst = Burst(layout, data, first=first, last=last)
        if self._queue.takes_burst(layout):
            self._queue.submit_burst(burst)
            return
        for request in burst.spread():
            self._queue.submit(request)

    def submit_run(
        self,
        pcs: Sequence[int],
        clear: bool = True,
        *,
        waiting: bool = False,
        silent: bool = True,
        run_seconds: float = 0.0,
    ) -> Request:
        """Submits what ``start`` makes; returns it."""
        request = self.start(pcs, clear, waiting=waiting, silent=silent, run_seconds=run_seconds)
        return self._queue.submit(request)

    def get(self, region: Region, *, waiting: bool = False) -> Request:
        """Makes a request whose answer are the ``count`` bytes of a region.

        Parameters
        ----------
        region : Region
        waiting : bool
            When no program runs.
        """
        payload = bytes((self._number_of(region),))
        return Request(Command.GET, payload, answer_bytes=region.count, waiting=waiting)

    def submit(self, request: Request) -> Request:
        """Submits what ``start``, ``get`` or ``run_get`` has made; returns it."""
        return self._queue.submit(request)

    def submit_read(self, address: int, count: int, *, waiting: bool = False) -> list[Request]:
        """Bytes of the activation memory are the answers, together."""
        requests = []
        for first, end in pieces(count, self._configuration.payload_bytes):
            requests.append(self._submit_read(address + first, end - first, waiting=waiting))
            waiting = False
        return requests

    def start(
        self,
        pcs: Sequence[int],
        clear: bool = True,
        *,
        waiting: bool = False,
        silent: bool = True,
        run_seconds: float = 0.0,
    ) -> Request:
        """Makes a request that starts the instruction streams.

        Parameters
        ----------
        pcs : sequence of int
        clear : bool
            The counters of completions begin at 0.
        waiting : bool
            It starts once no program runs.
        silent : bool
            Nobody needs its answer.
        run_seconds : float
            How long the run takes, probably.
        """
        payload = bytes([RUN_CLEARS_COUNTERS if clear else 0]) + self._starts(pcs)
        return Request(
            Command.RUN, payload, silent=silent, waiting=waiting, run_seconds=run_seconds
        )

    def run_get(
        self,
        region: Region,
        pcs: Sequence[int],
        *,
        after: bool = False,
        waiting: bool = False,
        run_seconds: float = 0.0,
    ) -> Request:
        """Makes a request that starts the instruction streams; a region's bytes are its answer.

        Parameters
        ----------
        region : Region
        pcs : sequence of int
        after : bool
            The bytes after this run; otherwise those before it.
        waiting : bool
            It starts once no program runs.
        run_seconds : float
            How long the run takes, probably.
        """
        starts = self._starts(pcs)
        number = self._number_of(region) | (AFTER if after else 0)
        return Request(
            Command.RUN_GET,
            bytes((number,)) + starts,
            answer_bytes=region.count,
            waiting=waiting,
            run_seconds=run_seconds,
        )

    def submit_status(self, *, waiting: bool = False) -> Request:
        """The state is the answer, for ``state_of``; ``waiting``: when no program runs."""
        return self._queue.submit(_status(waiting=waiting))

    @property
    def holds_back(self) -> bool:
        """Tells whether the wire keeps bytes back while the device is busy, so that bursts go."""
        return self._queue.holds_back

    def push(self, *, if_idle: bool = False) -> None:
        """Sends what was submitted, as far as the window allows.

        Parameters
        ----------
        if_idle : bool
            Only if nothing is on its way: few large pieces cost less than many small ones.
        """
        if not if_idle or self._queue.is_idle:
            self._queue.push()

    def finish(self) -> None:
        """Returns when all that was submitted has been executed; LinkError for any of it."""
        self._queue.finish()

    def answer(self, request: Request) -> bytes:
        """The answer to a request that was submitted.

        Raises
        ------
        LinkError
            If it, or one before it, was refused; LostAnswerError if it was executed, but the answer
            is lost; NO_ANSWER, SESSION_LOST, DISCONNECTED.
        """
        return self._queue.wait(request)

    def state_of(self, request: Request) -> DeviceStatus:
        """The state in the answer to ``submit_status``; raises as ``answer``."""
        return unpack_status(self._queue.wait(request))[0]

    def close(self) -> None:
        """Ends the connection."""
        self._transport.close()

    def _submit_read(self, address: int, count: int, *, waiting: bool = False) -> Request:
        payload = self._place(Space.ACTIVATIONS, address) + count.to_bytes(2, "little")
        return self._queue.submit(
            Request(Command.READ, payload, answer_bytes=count, waiting=waiting)
        )

    def _number_of(self, region: Region) -> int:
        number, request = self._regions.find(region, self._queue.generation)
        if request is not None:
            self._queue.submit(request)
        return number

    def _starts(self, pcs: Sequence[int]) -> bytes:
        """Packs the start addresses of streams for a frame; a program's are checked once."""
        known = tuple(pcs)
        if known not in self._checked:
            for pc in known:
                self._check_address(Space.INSTRUCTIONS, pc, 1)
            if len(self._checked) == _MOST_STARTS:
                self._checked.clear()
            self._checked.add(known)
        return packed_counts(known)

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


def _status(*, waiting: bool = False) -> Request:
    return Request(Command.STATUS, answer_bytes=STATUS_BYTES, waiting=waiting)
