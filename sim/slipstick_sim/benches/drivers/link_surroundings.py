"""The memories behind a link and the state of a run, as benches of the link have them."""

from collections.abc import Callable, Sequence

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import DeviceStatus, Space
from slipstick_rtl.link.spaces import spaces_of, unit_bytes, unit_count

RUN_DONE = 0x1234, 0x5678
"""Instructions that every run has completed."""


class Surroundings:
    """Holds the memories and the run that a link, or the golden endpoint, acts upon.

    Parameters
    ----------
    configuration : Configuration
    wait : callable
        Whether a run ends that is waited for; only the golden endpoint waits.
    """

    def __init__(
        self, configuration: Configuration, wait: Callable[[], bool] = lambda: False
    ) -> None:
        self._configuration = configuration
        self._wait = wait
        self.memories = {
            space: bytearray(unit_count(configuration, space) * unit_bytes(configuration, space))
            for space in spaces_of(configuration)
            if space is not Space.TRANSFERS
        }
        if configuration.dram:
            # all instructions, one behind the other
            self.memories[Space.TRANSFERS] = bytearray()
        self.running = False
        self.bad_instruction = True
        self.strobes: list[tuple[int, ...] | str] = []

    def write(self, space: Space, address: int, data: bytes) -> None:
        if space is Space.TRANSFERS:
            self.memories[space] += data
            return
        begin = address * unit_bytes(self._configuration, space)
        self.memories[space][begin : begin + len(data)] = data

    def read(self, address: int, count: int) -> bytes:
        return bytes(self.memories[Space.ACTIVATIONS][address : address + count])

    def run(self, pcs: Sequence[int], clear: bool) -> None:
        self.strobes.append((*pcs, clear))
        self.running, self.bad_instruction = True, False

    def wait(self) -> bool:
        return self._wait()

    def finish(self, bad_instruction: bool, change: int) -> None:
        """A run ends; it has changed every byte of the activation memory."""
        self.running, self.bad_instruction = False, bad_instruction
        changed = bytes(byte ^ change for byte in range(256))
        memory = self.memories[Space.ACTIVATIONS]
        memory[:] = memory.translate(changed)

    def reset(self) -> None:
        self.strobes.append("reset")
        self.running = False

    def status(self) -> DeviceStatus:
        cycles = 3, 0x01020304
        return DeviceStatus(self.running, self.bad_instruction, RUN_DONE, 0x89ABCDEF, cycles)
