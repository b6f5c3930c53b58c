"""The compiled network: what a session loads on a device, and how each inference goes."""

import itertools
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Space
from slipstick_rtl.link.spaces import unit_bytes, unit_count

from ..errors import ProgramError
from ..graph import Tensor, Variable
from .alternate import Alternate, check_alternate
from .release import Release, check_releases
from .steps import (
    DownloadStep,
    HostStep,
    Image,
    LayerRecord,
    LoadStep,
    RunStep,
    Step,
    TensorDescription,
    Transfer,
    UploadStep,
    require,
)


@dataclass(frozen=True)
class Traffic:
    """Bytes that cross the link in one inference.

    Parameters
    ----------
    loaded : int
        Weights, parameters and instructions.
    uploaded, downloaded : int
        Activations.
    """

    loaded: int
    uploaded: int
    downloaded: int


@dataclass(frozen=True)
class Program:
    """A compiled network.

    Parameters
    ----------
    name : str
    semantics : str
        The reference whose rounding the integers follow: "tflm" or "onnx"; or the configuration's
        number format, of a network of logarithmic codes.
    configuration : mapping
        ``Configuration.to_dict()`` of the hardware that it was compiled for.
    fingerprint : str
        That configuration's fingerprint.
    tensors : mapping of TensorDescription by name
    inputs, outputs : tuple of str
    images : tuple of Image
        Loaded once.
    loads : tuple of Image
        What does not fit at once, and is loaded during an inference.
    steps : tuple of Step
        Every inference, in order.
    units : tuple of tuple of Step
        Where there are ``loads``: the same for many images, each unit for all of them before the
        next one, so that loads are shared.
    constants : mapping of Tensor by name
        What host steps read besides activations.
    layers : tuple of LayerRecord
        The mapping table.
    variables : tuple of Variable
        What is kept from one inference to the next: each is an input and an output of the steps.
    resident : tuple of str
        Sources of the variables that stay on the device: the steps leave a result where its source
        lay.
    alternate : Alternate, optional
        The second place of its inputs and outputs, if it is double-buffered: then the next inputs
        may arrive, and the last outputs leave, while it computes.
    releases : tuple of Release
        With one place: from when on each part of the next inputs may arrive while it computes. All
        rows of all uploads, in their order; or none.
    batch : int
        Images that its steps are for, from the board's DRAM: loads are shared among them. ``units``
        are for one image.

    Raises
    ------
    ProgramError
        If a part refers to something that is not there, or does not fit the configuration.
    """

    name: str
    semantics: str
    configuration: Mapping[str, Any]
    fingerprint: str
    tensors: Mapping[str, TensorDescription]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    images: tuple[Image, ...]
    loads: tuple[Image, ...]
    steps: tuple[Step, ...]
    units: tuple[tuple[Step, ...], ...]
    constants: Mapping[str, Tensor]
    layers: tuple[LayerRecord, ...]
    variables: tuple[Variable, ...] = ()
    resident: tuple[str, ...] = ()
    alternate: Alternate | None = None
    releases: tuple[Release, ...] = ()
    batch: int = 1

    def __post_init__(self) -> None:
        try:
            configuration = Configuration.from_dict(dict(self.configuration))
        except (TypeError, ValueError) as error:
            raise ProgramError(f"program {self.name!r}: {error}") from None
        require(
            configuration.fingerprint == self.fingerprint,
            f"program {self.name!r}: its fingerprint {self.fingerprint} is not that of its"
            f" configuration, {configuration.fingerprint}; it was compiled for other hardware or"
            " by another version: compile it again",
        )
        known = configuration.format.semantics
        require(
            self.semantics in known,
            f"semantics must be {' or '.join(known)}, not {self.semantics!r}",
        )
        require(
            self.batch == 1 or (self.batch > 1 and bool(self.units and configuration.dram)),
            f"program {self.name!r}: a batch must be 1, or more for a network that is streamed from"
            f" DRAM, not {self.batch}",
        )
        self._check_names()
        self._check_variables()
        self._check_steps()
        self._check_memories(configuration)
        check_alternate(self, configuration)
        check_releases(self)

    def _check_steps(self) -> None:
        for steps in (self.steps, *self.units):
            for number, step in enumerate(steps):
                self._check_step(step)
                if isinstance(step, RunStep):
                    behind = steps[number + 1 : number + 1 + max(step.overlapped, 0)]
                    require(
                        len(behind) == step.overlapped
                        and all(isinstance(other, Transfer) for other in behind),
                        f"program {self.name!r}: {step.overlapped} transfers must follow a run",
                    )

    def _check_step(self, step: Step) -> None:
        if isinstance(step, LoadStep):
            require(
                0 <= step.load < len(self.loads),
                f"program {self.name!r}: a load must be one of {len(self.loads)}, not {step.load}",
            )
        elif isinstance(step, UploadStep | DownloadStep) and step.part is not None:
            described = self.tensors.get(step.tensor)
            require(
                described is not None
                and described.dtype == "int8"
                and math.prod(described.shape) == math.prod(step.part.whole),
                f"program {self.name!r}: {step.part} must be of {step.tensor!r}'s size",
            )

    @property
    def _all_steps(self) -> Iterator[Step]:
        return itertools.chain(self.steps, *self.units)

    def _check_names(self) -> None:
        known = set(self.tensors) | set(self.constants) | {""}
        used = [*self.inputs, *self.outputs, *(layer.output for layer in self.layers)]
        for step in self._all_steps:
            if isinstance(step, HostStep):
                used += [*step.inputs, *step.outputs]
            elif isinstance(step, RunStep):
                owners = [layer for layer, _ in itertools.chain(*step.owners)]
                require(
                    max(owners, default=-1) < len(self.layers),
                    f"program {self.name!r}: a run works on layer {max(owners, default=-1)} of"
                    f" {len(self.layers)}",
                )
            elif isinstance(step, UploadStep | DownloadStep):
                described = self.tensors.get(step.tensor)
                placed = described is not None and described.placement is not None
                placed = placed or step.part is not None
                require(placed, f"program {self.name!r}: tensor {step.tensor!r} has no placement")
        for name in used:
            require(name in known, f"program {self.name!r}: tensor {name!r} is not described")

    def _check_variables(self) -> None:
        taken = set(self.inputs)
        for variable in self.variables:
            what = f"program {self.name!r}: variable {variable.name!r}"
            ends = [self.tensors.get(name) for name in (variable.source, variable.result)]
            require(None not in ends, f"{what}: its tensors are not described")
            require(
                variable.source not in taken,
                f"{what}: {variable.source!r} must be its own, and nothing else's",
            )
            taken.add(variable.source)
            initial = variable.initial
            alike = {(initial.dtype.name, initial.shape)}
            alike |= {(end.dtype, end.shape) for end in ends if end is not None}
            kinds = ", ".join(sorted(f"{dtype} of shape {shape}" for dtype, shape in alike))
            require(len(alike) == 1, f"{what} must be of one type and shape, not {kinds}")
            require(initial.shape[:1] == (1,), f"{what} must have a batch of 1, not {kinds}")
        self._check_resident()

    def _check_resident(self) -> None:
        results = {variable.source: variable.result for variable in self.variables}
        moved = {
            step.tensor for step in self._all_steps if isinstance(step, UploadStep | DownloadStep)
        }
        for name in self.resident:
            what = f"program {self.name!r}: resident {name!r}"
            require(name in results, f"{what} must be a variable's source")
            ends = name, results[name]
            first, last = (self.tensors[end].placement for end in ends)
            require(first is not None and first == last, f"{what} must keep its place")
            require(not moved & set(ends), f"{what} must not be moved by a step")
            require(not self.units, f"{what} must not be one of a program in units")

    def _check_memories(self, configuration: Configuration) -> None:
        units = space_units(configuration)
        for image in (*self.images, *self.loads):
            unit, depth = units[Space(image.space)]
            end = image.address * unit + len(image.data)
            require(
                len(image.data) % unit == 0 and end <= unit * depth,
                f"program {self.name!r}: an image of {len(image.data)} bytes at {image.address}"
                f" must be whole units of {unit} bytes within {depth} of {Space(image.space).name}",
            )
        places = [(name, tensor.placement) for name, tensor in self.tensors.items()]
        for step in self._all_steps:
            if isinstance(step, UploadStep | DownloadStep) and step.part is not None:
                places.append((step.tensor, step.part.placement))
        for name, place in places:
            end = 0 if place is None else place.reach
            require(
                end <= configuration.activation_bytes,
                f"program {self.name!r}: tensor {name!r} ends at {end}, the activation memory at"
                f" {configuration.activation_bytes}",
            )
        for step in self._all_steps:
            if isinstance(step, RunStep):
                for pc in step.pcs:
                    require(
                        0 <= pc < configuration.instruction_words,
                        f"program {self.name!r}: a stream starts at word {pc}, the instruction"
                        f" memory has {configuration.instruction_words}",
                    )

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference on the device."""
        return sum(layer.macs for layer in self.layers if layer.where == "device")

    @property
    def host_macs(self) -> int:
        """Multiply-accumulates of one inference that the host's layers take."""
        return sum(layer.macs for layer in self.layers if layer.where == "host")

    @property
    def predicted_cycles(self) -> int:
        """Cycles of one inference on the device, without transfers and host layers."""
        return sum(layer.predicted_cycles for layer in self.layers)

    @property
    def is_streamed(self) -> bool:
        """It does not fit: activations travel in parts, and what is loaded may have to be again."""
        return bool(self.units)

    def transferred(self) -> "Traffic":
        """Bytes that cross the link in one inference, beyond what stays on the device."""
        loaded = up = down = 0
        for step in self.steps:
            if isinstance(step, LoadStep):
                loaded += len(self.loads[step.load].data)
            elif isinstance(step, UploadStep | DownloadStep):
                size = math.prod(self.tensors[step.tensor].shape)
                if step.part is not None:
                    place = step.part.placement
                    size = place.height * place.width * place.channels
                up += size * isinstance(step, UploadStep)
                down += size * isinstance(step, DownloadStep)
        return Traffic(loaded, up, down)

    @property
    def state_bytes(self) -> int:
        """Counts the bytes of the variables, which are kept from one inference to the next."""
        return sum(variable.initial.nbytes for variable in self.variables)

    @property
    def resident_bytes(self) -> int:
        """Counts the bytes of the variables that stay on the device."""
        kept = (each.initial.nbytes for each in self.variables if each.source in self.resident)
        return sum(kept)

    @property
    def hardware(self) -> Configuration:
        """The configuration as an object."""
        return Configuration.from_dict(dict(self.configuration))

    def check(self, configuration: Configuration) -> None:
        """ProgramError, naming both fingerprints, unless it was compiled for this hardware."""
        if configuration.fingerprint != self.fingerprint:
            raise ProgramError(
                f"program {self.name!r} was compiled for hardware {self.fingerprint}"
                f" ({self.hardware.shape}), the device is {configuration.fingerprint}"
                f" ({configuration.shape}): compile it for this target"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program as one ``.slip`` file; ProgramError if that cannot be done."""
        from .slip_file import encode, write_file

        write_file(path, encode(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Program":
        """Reads a ``.slip`` file.

        Raises
        ------
        ProgramError
            If it cannot be read, or is not a whole, consistent program of this version.
        """
        from .slip_file import decode, read_file

        return decode(read_file(path))


def space_units(configuration: Configuration) -> dict[Space, tuple[int, int]]:
    """Returns the bytes per unit and the number of units of each memory space."""
    return {
        space: (unit_bytes(configuration, space), unit_count(configuration, space))
        for space in Space
        if space is not Space.TRANSFERS
    }
