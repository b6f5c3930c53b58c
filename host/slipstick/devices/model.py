"""The golden model as a device: real frames, and a way around them for many images at once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration

from ..errors import DeviceError
from .link import LinkDevice
from .link.transport import ByteEndpoint, LoopbackTransport

if TYPE_CHECKING:
    from slipstick_sim.golden.core import GoldenCore


class ModelDevice(LinkDevice):
    """The NumPy golden model of the core, behind the golden end of the link.

    Its cycles are 0: only the RTL has any.

    Parameters
    ----------
    configuration : Configuration
    check_hazards : bool
        Every run is executed in several legal orders of the two instruction streams, and a program
        whose result depends on the order is a DeviceError.
    """

    def __init__(self, configuration: Configuration, *, check_hazards: bool = False) -> None:
        from slipstick_sim.golden.core import GoldenCore
        from slipstick_sim.golden.link import Endpoint

        self._core = GoldenCore(configuration, check_hazards=check_hazards)
        transport = _ModelTransport(Endpoint(configuration, self._core))
        super().__init__(transport, configuration=configuration)

    def batch_core(self, batch: int, *, shared: bool = True) -> "BatchCore":
        """A core for ``batch`` images over the memories that are loaded, or copies of them."""
        return BatchCore(self._core.batched(batch, shared=shared))


class _ModelTransport(LoopbackTransport):
    """DeviceError if a program's streams wait for each other for ever, or an instruction breaks a
    rule of the instruction set: hardware would hang, or go on with wrong numbers."""

    def __init__(self, endpoint: ByteEndpoint) -> None:
        super().__init__(endpoint)

    def send(self, data: bytes) -> None:
        with _program_errors():
            super().send(data)


class BatchCore:
    """Many images in one run of the golden model, without the link.

    Parameters
    ----------
    core : GoldenCore
    """

    def __init__(self, core: "GoldenCore") -> None:
        self._core = core

    @property
    def batch(self) -> int:
        """Images a run."""
        return self._core.batch

    def write(self, space: int, address: int, data: bytes) -> None:
        """Writes whole units of a memory, for all images."""
        with _program_errors():
            self._core.write(space, address, data)

    def write_batch(self, address: int, data: np.ndarray) -> None:
        """Writes ``data``, int8 (batch, n), into each image's activation memory."""
        with _program_errors():
            self._core.write_batch(address, data)

    def read_batch(self, address: int, count: int) -> np.ndarray:
        """A copy of ``count`` bytes of each image's activation memory, int8 (batch, count)."""
        with _program_errors():
            return self._core.read_batch(address, count)

    def run(self, pcs: Sequence[int], clear: bool = True) -> None:
        """Runs both instruction streams to their ends; DeviceError as ``ModelDevice`` and for a
        bad instruction."""
        with _program_errors():
            self._core.run(pcs, clear)
        status = self._core.status()
        if status.bad_instruction:
            raise DeviceError(f"the device met a bad instruction after {status.progress()}")


@contextmanager
def _program_errors() -> Iterator[None]:
    """Turns errors that the golden model finds in a program into a DeviceError, as users expect."""
    from slipstick_sim.golden.core import DeadlockError, HazardError

    try:
        yield
    except (DeadlockError, HazardError, ValueError) as error:
        raise DeviceError(f"the program cannot run on the model: {error}") from error
