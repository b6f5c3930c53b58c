"""Runs a batch through a modelled wire and the simulated core, and counts what it took."""

from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import reports
from ...devices.link import LinkDevice, Patience
from ...devices.wire_models import WireModel
from ...errors import DeviceError
from ...program import Program
from ...runtime.feeds import random_batch
from ...session import InferenceSession
from ...targets import describe
from .transport import WireTransport

IMAGES = 32
_TIMEOUT_SECONDS = 600.0
"""Seconds of the simulated clock and of this machine's are counted alike: neither may end it."""


@dataclass(frozen=True)
class EndToEnd:
    """Figures of a batch, from its first byte on the wire to its last answer.

    Parameters
    ----------
    program : Program
    wire : WireModel
    images : int
    equal_images : int
        Whose results are the golden model's.
    clock_mhz : float
        Of the bitstream, or the target's if there is no report of its build.
    cycles : int
        Of the whole batch.
    core_cycles : int
        Of one inference on the core alone.
    input_bytes, output_bytes : int
        Of one image.
    bytes_up, bytes_down : int
        Of the batch, frames included.
    round_trips : int
        Times that the host had nothing more to send before an answer came.
    lost_bytes : int
        Bytes that a full board lost, to be sent again.
    """

    program: Program
    wire: WireModel
    images: int
    equal_images: int
    clock_mhz: float
    cycles: int
    core_cycles: int
    input_bytes: int
    output_bytes: int
    bytes_up: int
    bytes_down: int
    round_trips: int
    lost_bytes: int

    @property
    def per_second(self) -> float:
        """Images per second, end to end."""
        return self.images * self.clock_mhz * 1e6 / self.cycles

    @property
    def core_per_second(self) -> float:
        """Images per second of the core alone."""
        return self.clock_mhz * 1e6 / self.core_cycles

    @property
    def wire_per_second(self) -> float:
        """Images per second that the raw wire could carry, as inputs alone and as outputs alone."""
        up, down = self.input_bytes, self.output_bytes
        most = up + down if self.wire.is_shared else max(up, down)
        return self.wire.bytes_per_second / most

    def entry(self) -> dict[str, Any]:
        """As ``--json`` and the reports have it."""
        return {
            "network": self.program.name,
            "fingerprint": self.program.fingerprint,
            "shape": self.program.hardware.shape,
            "wire": self.wire.name,
            "reply_latency": self.wire.reply_seconds,
            "double_buffered": self.program.alternate is not None,
            "images": self.images,
            "equal_images": self.equal_images,
            "clock_mhz": self.clock_mhz,
            "inferences_per_second": self.per_second,
            "core_inferences_per_second": self.core_per_second,
            "wire_inferences_per_second": self.wire_per_second,
            "share_of_core": self.per_second / self.core_per_second,
            "share_of_wire": self.per_second / self.wire_per_second,
            "cycles": self.cycles,
            "core_cycles": self.core_cycles,
            "input_bytes": self.input_bytes,
            "output_bytes": self.output_bytes,
            "bytes_up": self.bytes_up,
            "bytes_down": self.bytes_down,
            "bytes_up_per_image": self.bytes_up / self.images,
            "bytes_down_per_image": self.bytes_down / self.images,
            "round_trips": self.round_trips,
            "lost_bytes": self.lost_bytes,
        }


def measure_end_to_end(
    program: Program, wire: WireModel, images: int = IMAGES, target: str | None = None
) -> EndToEnd:
    """Sends seeded random images through a wire to the compiled RTL; checks every result.

    The program is on the device before the clock is looked at. The time that Python takes is left
    out: ``python -m slipstick.benchmarks.end_to_end host`` measures it.

    Parameters
    ----------
    program : Program
    wire : WireModel
    images : int
    target : str, optional
        Whose last build tells the clock; by default any build of the same hardware does.

    Raises
    ------
    DeviceError
        If the simulation cannot be built, or a result is wrong.
    """
    feeds = random_batch(program, images)
    with InferenceSession(program, "model") as golden:
        expected = golden.run_batch(None, feeds)
    clock_mhz = clock_of(program, target)
    transport = _open_wire(program, wire, clock_mhz * 1e6)
    patience = Patience(
        timeout_seconds=_TIMEOUT_SECONDS,
        receive_bytes=None if wire.holds_back else wire.queue_bytes,
    )
    device = LinkDevice(transport, configuration=program.hardware, patience=patience)
    device.cycles_per_second = clock_mhz * 1e6
    with closing(device), InferenceSession(program, device) as session:
        # regions are described with the first image; what is measured is what follows
        session.run_batch(None, random_batch(program, 2))
        start, up, down = transport.cycles, transport.bytes_up, transport.bytes_down
        trips = device.round_trips
        actual = session.run_batch(None, feeds)
        cycles = transport.cycles - start
        counted = transport.bytes_up - up, transport.bytes_down - down
        trips = device.round_trips - trips
        core_cycles, lost = session.last_cycles, transport.lost
    same = [(a == e).reshape(images, -1).all(axis=1) for a, e in zip(actual, expected, strict=True)]
    return EndToEnd(
        program=program,
        wire=wire,
        images=images,
        equal_images=int(np.logical_and.reduce(same).sum()),
        clock_mhz=clock_mhz,
        cycles=cycles,
        core_cycles=core_cycles or 1,
        input_bytes=_bytes_of(program, program.inputs),
        output_bytes=_bytes_of(program, program.outputs),
        bytes_up=counted[0],
        bytes_down=counted[1],
        round_trips=trips,
        lost_bytes=lost,
    )


def clock_of(program: Program, target: str | None = None) -> float:
    """The clock in MHz that the bitstream of a program's hardware runs at."""
    build = reports.last_build(program.fingerprint, target)
    return reports.clock_mhz(build, program.hardware.clock_hz)


def _bytes_of(program: Program, names: tuple[str, ...]) -> int:
    described = [program.tensors[name] for name in names]
    return sum(np.dtype(each.dtype).itemsize * int(np.prod(each.shape)) for each in described)


def _open_wire(program: Program, wire: WireModel, clock_hz: float) -> WireTransport:
    try:
        from slipstick_sim.toolchain import ToolError
        from slipstick_sim.verilated import CompiledCore, paced_library
    except ImportError as error:
        raise DeviceError(f"the simulation needs slipstick[sim]: {error}") from error
    try:
        library = paced_library(program.hardware, label=describe(program.hardware))
        return WireTransport(CompiledCore(library), wire, clock_hz)
    except (ToolError, OSError) as error:
        raise DeviceError(f"the simulation of {program.hardware.shape}: {error}") from error
