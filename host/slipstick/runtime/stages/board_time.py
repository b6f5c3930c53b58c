"""Predicts how long a board takes for a program, with the wire between it and the host."""

import math
from dataclasses import dataclass

from slipstick_rtl.config import Configuration

from ...compiler.codegen.dram_list import find_dram_program
from ...devices.wire_models import WireModel, find_wire_model
from ...program import Program
from ...program.resident_loads import Loaded
from ...program.steps import DownloadStep, LoadStep, UploadStep
from ...targets import Target
from ..end_to_end import predicted_per_second, wires_of
from ..executor import BATCH

_DEVICE_WIRES = {"serial": "uart", "spi": "spi", "usb": "usb-hs", "udp": "rmii"}
"""The wire of a kind of device, where nothing else is known of it."""


@dataclass(frozen=True)
class BoardTime:
    """A board, and the wire to it; a ``BoardModel``.

    Parameters
    ----------
    name : str
        Of its target.
    configuration : Configuration
    wire : WireModel, optional
        Without one the host is as near as can be: a byte per clock cycle, each direction.
    """

    name: str
    configuration: Configuration
    wire: WireModel | None = None

    def seconds(self, program: Program, together: int = BATCH) -> float:
        """Predicted time per image of a long batch: the slower one of core and wire.

        Parameters
        ----------
        program : Program
        together : int
            Images that share what a streamed program loads; 1: they come one by one.
        """
        hertz = program.hardware.clock_hz
        listed = find_dram_program(program)
        if listed is not None:
            core = listed.timeline.end / min(together, program.batch) / hertz
            sizes = (_sizes(program, names) for names in (program.inputs, program.outputs))
            return max(core, self.transfer_seconds(*sizes))
        if self.wire is not None and not program.units:
            return 1 / predicted_per_second(program, self.wire)
        traffic = batch_traffic(program, together)
        moved = self.transfer_seconds(
            math.ceil(traffic.loaded + traffic.uploaded), math.ceil(traffic.downloaded)
        )
        return max(program.predicted_cycles / hertz, moved)

    @property
    def loads_per_image(self) -> float:
        """Counts how often a streamed layer's weights cross the wire per image of a long batch."""
        return 0.0 if self.configuration.dram else 1 / BATCH

    def transfer_seconds(self, up: int, down: int) -> float:
        """Time that bytes of one image take on the wire while others are computed."""
        if self.wire is None:
            return max(up, down) / self.configuration.clock_hz
        each = self.wire.seconds(up), self.wire.seconds(down)
        return sum(each) if self.wire.is_shared else max(each)

    def exchange_seconds(self, up: int, down: int) -> float:
        """Time to read bytes from the board, and then to write bytes to it, one after the other."""
        if self.wire is None:
            return (up + down) / self.configuration.clock_hz
        return self.wire.seconds(down) + self.wire.reply_seconds + self.wire.seconds(up)


@dataclass(frozen=True)
class BatchTraffic:
    """Bytes per image that cross a board's wire, of a long batch.

    Parameters
    ----------
    loaded : float
        Weights, parameters and instructions.
    uploaded, downloaded : float
        Activations.
    """

    loaded: float
    uploaded: float
    downloaded: float


def batch_traffic(program: Program, together: int = BATCH) -> BatchTraffic:
    """Counts what ``Execution.infer_batch`` moves.

    Parameters
    ----------
    program : Program
    together : int
        Images that share what a streamed program loads. One alone runs the program's steps, more
        run its units.
    """
    alone = program.transferred()
    if not program.units or together == 1 or find_dram_program(program) is not None:
        return BatchTraffic(alone.loaded, alone.uploaded, alone.downloaded)
    there, loaded, up, down = Loaded(program.loads, program.hardware), 0, 0, 0
    for step in (step for unit in program.units for _ in range(together) for step in unit):
        match step:
            case LoadStep(load):
                if load not in there:
                    loaded += len(program.loads[load].data)
                    there.add(load)
            case UploadStep():
                up += _moved(program, step)
            case DownloadStep():
                down += _moved(program, step)
    return BatchTraffic(loaded / together, up / together, down / together)


def _moved(program: Program, step: UploadStep | DownloadStep) -> int:
    if step.part is None:
        return math.prod(program.tensors[step.tensor].shape)
    place = step.part.placement
    return place.height * place.width * place.channels


def board_of(target: Target, wire: str | None = None) -> BoardTime:
    """The board of a target, at the end of a wire; by default its fastest one.

    Raises
    ------
    InputError
        If there is no such wire.
    """
    if wire is not None:
        return BoardTime(target.name, target.configuration, find_wire_model(wire))
    found = wires_of(target.board) if target.board is not None else []
    fastest = max(found, key=lambda each: each.bytes_per_second, default=None)
    return BoardTime(target.name, target.configuration, fastest)


def board_at(device: str, configuration: Configuration) -> BoardTime:
    """The board at the end of an open device, whose wire is known by the device's name only."""
    kind, _, place = device.partition(":")
    wire = _DEVICE_WIRES.get(kind)
    if kind == "emulated" and "@" in place:
        wire = place.partition("@")[2].partition("/")[0]
    return BoardTime(device, configuration, None if wire is None else find_wire_model(wire))


def _sizes(program: Program, names: tuple[str, ...]) -> int:
    described = (program.tensors[name].as_tensor(name) for name in names)
    from ...compiler.stages.cut import tensor_bytes

    return sum(map(tensor_bytes, described))
