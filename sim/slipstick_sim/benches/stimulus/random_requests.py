"""Random bytes for the link: good requests of every command, and every way to spoil them."""

import random
from collections.abc import Callable

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import (
    AFTER,
    CONTINUES,
    CRC_BYTES,
    REGIONS,
    REQUEST_START,
    SEQUENCE_NUMBERS,
    SILENT,
    UNORDERED,
    UNSEALED,
    WAITING,
    Command,
    Space,
    encode,
    session_of,
)
from slipstick_rtl.link.spaces import spaces_of, unit_bytes, unit_count, units_per_frame

from ..drivers.link_surroundings import RUN_DONE
from .random_regions import random_region


class RequestSource:
    """Draws requests for hardware of one configuration, in one session after the other.

    Now and then the session is not the hardware's: an OPEN was spoilt, or another host's. Mostly a
    request has the number that the hardware expects; the bytes that a GET reads are always within
    its region and the memory.

    Parameters
    ----------
    configuration : Configuration
    seed : int
    """

    def __init__(self, configuration: Configuration, seed: int) -> None:
        self._configuration = configuration
        self._random = random.Random(seed)
        self._next = 0
        self._seal = 0
        self._commands: tuple[Callable[[], bytes], ...] = (
            self.write,
            self.write,
            self.read,
            self.run,
            self._plain,
            self._odd,
            self.open,
            self.define,
            self.define,
            self.put,
            self.put,
            self.put,
            self.get,
            self.get,
            self.run_get,
            self.run_get,
            self.hold,
        )
        self._faults: tuple[Callable[[bytes], bytes], ...] = (
            self._flip,
            self._drop,
            self._cut,
            self._too_long,
            lambda frame: self._random.randbytes(self._random.randint(1, 20)) + frame,
            lambda frame: frame + bytes(self._random.randint(1, 5)),
            lambda frame: frame + frame,
        )

    def draw(self, fault: float, next_sequence: int | None = None) -> bytes:
        """Some requests, spoilt with the given probability; the number that the next should have
        is given, or one more than the last one's."""
        if next_sequence is not None:
            self._next = next_sequence
        frame = self._random.choice(self._commands)()
        return self._random.choice(self._faults)(frame) if self._random.random() < fault else frame

    def write(self, space: Space | None = None, units: int | None = None) -> bytes:
        """A WRITE, mostly of whole units within the memory."""
        space = self._random.choice(spaces_of(self._configuration)) if space is None else space
        most = units_per_frame(self._configuration, space)
        units = (
            self._random.choice([0, 1, most, self._random.randint(0, most)])
            if units is None
            else units
        )
        address = self._address(unit_count(self._configuration, space), units)
        content = self._random.randbytes(units * unit_bytes(self._configuration, space))
        if self._random.random() < 0.1:
            content = content[:-1]
        return self._encode(Command.WRITE, bytes([space]) + address + content)

    def read(self, count: int | None = None) -> bytes:
        """A READ, mostly within the memory."""
        most = self._configuration.payload_bytes
        drawn = self._random.choice([0, 1, most, most + 1, self._random.randint(0, most)])
        count = drawn if count is None else count
        space = self._random.choice([Space.ACTIVATIONS] * 6 + [Space.WEIGHTS, 9])
        address = self._address(self._configuration.activation_bytes, count)
        return self._encode(Command.READ, bytes([space]) + address + count.to_bytes(2, "little"))

    def run(self) -> bytes:
        """A RUN, mostly within the instruction memory."""
        frame = self._encode(Command.RUN, self._random.randbytes(1) + self._counters())
        return frame + frame if self._random.random() < 0.2 else frame

    def open(self) -> bytes:
        """An OPEN, mostly of the session that later requests are of."""
        seal = self._random.choice([0, self._random.getrandbits(32)])
        if self._random.random() < 0.9:
            self._seal = seal
        return self._encode(Command.OPEN, session_of(seal).to_bytes(4, "little"))

    def define(self) -> bytes:
        """A DEFINE; now and then of no region, or of more bytes than a frame has."""
        packed = random_region(self._random, self._configuration).pack()
        if self._random.random() < 0.1:
            most = self._configuration.payload_bytes
            count = self._random.choice([most + 1, 2 * most, 0xFFFF])
            packed = count.to_bytes(2, "little") + packed[2:]
        return self._encode(Command.DEFINE, self._region(0) + packed)

    def put(self) -> bytes:
        """A PUT, often with others behind it that go on where it ends."""
        frames = self._one_put(self._region(CONTINUES if self._random.random() < 0.1 else 0))
        while self._random.random() < 0.5:
            if self._random.random() < 0.2:
                frames += self._plain()
            if self._random.random() < 0.1:
                frames += self.read(1)
            if self._random.random() < 0.3:
                frames += self.hold()
            frames += self._one_put(self._region(CONTINUES, always=True))
        return frames

    def _one_put(self, region: bytes) -> bytes:
        most = self._configuration.payload_bytes - len(region)
        size = self._random.choice([0, 1, most, *(self._random.randint(0, most) for _ in range(3))])
        return self._encode(Command.PUT, region + self._random.randbytes(size))

    def get(self) -> bytes:
        """A GET."""
        return self._encode(Command.GET, self._region(0))

    def run_get(self) -> bytes:
        """A RUN_GET."""
        return self._encode(Command.RUN_GET, self._region(AFTER) + self._counters())

    def hold(self) -> bytes:
        """A HOLD, with counts near those that the surroundings have."""
        drawn = (self._random.choice([0, near - 1, near, near + 1, 0xFFFF]) for near in RUN_DONE)
        return self._encode(Command.HOLD, b"".join(count.to_bytes(2, "little") for count in drawn))

    def _region(self, flag: int, *, always: bool = False) -> bytes:
        """A region's number, with the flag half the time; now and then none that there is."""
        region = self._random.randrange(REGIONS)
        if always or self._random.random() < 0.5:
            region |= flag
        if self._random.random() < 0.05:
            region ^= self._random.choice([REGIONS, 0x40, 0x80])
        return bytes([region])

    def _counters(self) -> bytes:
        """Program counters, mostly within the instruction memory."""
        words = self._configuration.instruction_words
        counters = [0, words - 1, self._random.randrange(words)] * 6 + [words % (1 << 16), 0xFFFF]
        drawn = (self._random.choice(counters) for _ in range(2))
        return b"".join(counter.to_bytes(2, "little") for counter in drawn)

    def _plain(self) -> bytes:
        return self._encode(self._random.choice([Command.IDENTIFY, Command.STATUS, Command.RESET]))

    def _odd(self) -> bytes:
        """A frame that is sound as a frame only."""
        command = self._random.choice([*Command, 0, 13, self._random.randrange(64)])
        return self._encode(command, self._random.randbytes(self._random.randint(0, 12)))

    def _encode(self, command: int, payload: bytes = b"") -> bytes:
        """A frame, with random flags and mostly the right number."""
        near = [self._next - 1, self._next + 1, self._next + 2]
        chances = [self._next] * 40 + [*near, self._random.randrange(SEQUENCE_NUMBERS)]
        number = self._random.choice(chances) % SEQUENCE_NUMBERS
        if command == Command.OPEN or command not in UNORDERED and number == self._next:
            self._next = (number + 1) % SEQUENCE_NUMBERS
        seal = 0 if command in UNSEALED else self._seal
        flags = self._random.choice([0, 0, SILENT]) | self._random.choice([0, 0, 0, WAITING])
        return encode(REQUEST_START, command | flags, number, payload, seal)

    def _address(self, size: int, count: int) -> bytes:
        last = max(0, size - count)
        near = [0, last, self._random.randint(0, last)] * 3 + [last + 1, size, (1 << 24) - 1]
        return min(self._random.choice(near), (1 << 24) - 1).to_bytes(3, "little")

    def _flip(self, frame: bytes) -> bytes:
        spoilt = bytearray(frame)
        spoilt[self._random.randrange(len(frame))] ^= 1 << self._random.randrange(8)
        return bytes(spoilt)

    def _drop(self, frame: bytes) -> bytes:
        place = self._random.randrange(len(frame))
        return frame[:place] + frame[place + 1 :]

    def _cut(self, frame: bytes) -> bytes:
        return frame[: self._random.randrange(len(frame))]

    def _too_long(self, frame: bytes) -> bytes:
        longer = self._configuration.payload_bytes + self._random.choice([1, 2, 30])
        whole = self._encode(self._random.choice(list(Command)), self._random.randbytes(longer))
        return (
            whole if self._random.random() < 0.7 else whole[:-CRC_BYTES] + bytes(CRC_BYTES) + frame
        )
