"""Random bytes for the link: good requests of every command, and every way to spoil them."""

import random
from collections.abc import Callable

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import (
    CRC_BYTES,
    REQUEST_START,
    UNSEALED,
    Command,
    Space,
    encode,
    session_of,
)
from slipstick_rtl.link.spaces import unit_bytes, unit_count, units_per_frame


class RequestSource:
    """Draws requests for hardware of one configuration, in one session after the other.

    Now and then the session is not the hardware's: an OPEN was spoilt, or another host's.

    Parameters
    ----------
    configuration : Configuration
    seed : int
    """

    def __init__(self, configuration: Configuration, seed: int) -> None:
        self._configuration = configuration
        self._random = random.Random(seed)
        self._sequence = 0
        self._seal = 0
        self._commands: tuple[Callable[[], bytes], ...] = (
            self.write,
            self.write,
            self.read,
            self.run,
            self._plain,
            self._odd,
            self.open,
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

    def draw(self, fault: float) -> bytes:
        """One request, spoilt with the given probability."""
        frame = self._random.choice(self._commands)()
        return self._random.choice(self._faults)(frame) if self._random.random() < fault else frame

    def write(self, space: Space | None = None, units: int | None = None) -> bytes:
        """A WRITE, mostly of whole units within the memory."""
        space = self._random.choice(list(Space)) if space is None else space
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
        words = self._configuration.instruction_words
        counters = [0, words - 1, self._random.randrange(words)] * 4 + [words % (1 << 16), 0xFFFF]
        payload = self._random.randbytes(1)
        for _ in range(2):
            payload += self._random.choice(counters).to_bytes(2, "little")
        frame = self._encode(Command.RUN, payload)
        return frame + frame if self._random.random() < 0.2 else frame

    def open(self) -> bytes:
        """An OPEN, mostly of the session that later requests are of."""
        seal = self._random.choice([0, self._random.getrandbits(32)])
        if self._random.random() < 0.9:
            self._seal = seal
        return self._encode(Command.OPEN, session_of(seal).to_bytes(4, "little"))

    def _plain(self) -> bytes:
        return self._encode(self._random.choice([Command.IDENTIFY, Command.STATUS, Command.RESET]))

    def _odd(self) -> bytes:
        """A frame that is sound as a frame only."""
        command = self._random.choice([*Command, 0, 8, self._random.randrange(256)])
        return self._encode(command, self._random.randbytes(self._random.randint(0, 12)))

    def _encode(self, command: int, payload: bytes = b"") -> bytes:
        """A frame whose sequence number mostly differs from the last one's."""
        self._sequence = (self._sequence + self._random.choice([0, 1, 1, 1])) % 256
        seal = 0 if command in UNSEALED else self._seal
        return encode(REQUEST_START, command, self._sequence, payload, seal)

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
