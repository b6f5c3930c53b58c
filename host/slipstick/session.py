"""A program loaded on a device, ready to run inputs: the face that onnxruntime's users know."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from slipstick_rtl.config import Configuration

from .devices import DEVICES, Device, open_device
from .errors import DeviceError, InputError
from .loading import configuration_of, load_program
from .program import Program
from .runtime.executor import BatchDevice, Execution
from .runtime.feeds import prepare
from .runtime.sharing import exclusive
from .targets import Target, find_target


@dataclass(frozen=True)
class TensorArgument:
    """An input or output: its ``name``, ``shape`` and ``type``, as ``tensor(int8)``."""

    name: str
    shape: list[int]
    type: str


class InferenceSession:
    """Runs a network.

    Threads may share a session, and sessions an open device: inferences wait for each other.

    One that keeps something from run to run (``program.variables``) goes on where the last run of
    this session ended, or from its beginning after ``reset_state``. Inputs with a larger batch axis
    are runs one after the other. After an error the state is that before the failed call, or the
    error is a ``StateLostError``, as are all that follow until the reset.

    Parameters
    ----------
    model : path or Program
        A quantised .tflite or .onnx file, which is compiled; a .slip file or a ``Program``.
    device : str or Device
        As for ``open_device``: ``sim`` (the compiled RTL), ``model`` (the golden model), either
        with ``:TARGET``. A device that is passed open stays open.
    target : str, Target or Configuration, optional
        The hardware; by default the program's, the device's, or ``targets.DEFAULT_TARGET``.
    semantics : str, optional
        Whose rounding the network follows, "tflm" or "onnx"; by default that of the file's kind.

    Members
    -------
    program : Program
    device : Device

    Raises
    ------
    SlipstickError
        If the model cannot be read, compiled or loaded, the device not opened, or the program was
        compiled for other hardware; each by its own type.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | Program,
        device: str | Device = "sim",
        target: str | Target | Configuration | None = None,
        *,
        semantics: str | None = None,
    ) -> None:
        wanted = _wanted_hardware(device, target)
        self.program = load_program(model, wanted, semantics)
        self._own = isinstance(device, str)
        self.device = (
            open_device(device, wanted or self.program.hardware)
            if isinstance(device, str)
            else device
        )
        self._closed = False
        try:
            self._execution = Execution(self.program, self.device)
        except BaseException:
            self.close()
            raise
        self._ran = False

    @property
    def last_cycles(self) -> int | None:
        """Cycles of the last inference on the device; None before one, and on the golden model,
        which has no clock."""
        if not self._ran or isinstance(self.device, BatchDevice):
            return None
        return self._execution.last_cycles

    def get_inputs(self) -> list[TensorArgument]:
        """The network's inputs."""
        return [self._argument(name) for name in self.program.inputs]

    def get_outputs(self) -> list[TensorArgument]:
        """The network's outputs."""
        return [self._argument(name) for name in self.program.outputs]

    def _argument(self, name: str) -> TensorArgument:
        described = self.program.tensors[name]
        return TensorArgument(name, list(described.shape), f"tensor({described.dtype})")

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: object = None,
    ) -> list[np.ndarray]:
        """Runs the network.

        Parameters
        ----------
        output_names : sequence of str or None
            Which outputs, in which order; None: all of them.
        input_feed : mapping of array by name
            Each of the input's type and shape; the batch axis may lack, or be larger: then images
            run one after the other. Real numbers (float) are quantised with the input's scale and
            zero point, what lies outside their range is clamped. Where the zero point is -128,
            uint8 images are taken, and 128 is subtracted.
        run_options : object
            Ignored; there for onnxruntime's users.

        Returns
        -------
        list of arrays
            One an output name, in the network's own codes; batch in the leading axis.

        Raises
        ------
        InputError
            If an input is missing, unknown, or of another shape, type or content; if an output is
            unknown.
        DeviceError
            If the device does not answer, or the session is closed.
        StateLostError
            If what the network keeps on the device was lost, now or before.
        """
        return self.run_batch(output_names, input_feed)

    def run_batch(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        advance: Callable[[int], object] = int,
    ) -> list[np.ndarray]:
        """As ``run``; ``advance`` is told how many more images are done.

        The golden model runs several images at a time on both cores, the others one by one.
        """
        names = self._output_names(output_names)
        inputs = prepare(self.program, input_feed)
        with exclusive(self.device):
            if self._closed:
                raise DeviceError(f"the session of {self.program.name} is closed")
            values = self._execution.infer_batch(inputs, names, advance)
            self._ran = True
        return [values[name] for name in names]

    def reset_state(self) -> None:
        """Sets all that the network keeps from run to run to its initial values.

        Raises
        ------
        DeviceError
            If the session is closed.
        """
        if self._closed:
            raise DeviceError(f"the session of {self.program.name} is closed")
        with exclusive(self.device):
            self._execution.reset_state()

    def _output_names(self, names: Sequence[str] | None) -> tuple[str, ...]:
        if names is None:
            return self.program.outputs
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"output names must be a list of names, not {names!r}")
        chosen = tuple(names)
        for name in chosen:
            if name not in self.program.outputs:
                raise InputError(
                    f"output {name!r} is unknown: {self.program.name} gives"
                    f" {', '.join(self.program.outputs)}"
                )
        return chosen

    def close(self) -> None:
        """Closes the device, if the session opened it, when no other thread runs on it any more."""
        with exclusive(self.device):
            if not self._closed and self._own:
                self.device.close()
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _wanted_hardware(
    device: str | Device, target: str | Target | Configuration | None
) -> Configuration | None:
    """The hardware that was asked for by name, None if it was not."""
    if not isinstance(device, str):
        wanted = getattr(device, "configuration", None)
        if not isinstance(wanted, Configuration):
            raise DeviceError(
                f"device must be one of {', '.join(DEVICES)}, or an open Device, not"
                f" {type(device).__name__}"
            )
        if target is not None and configuration_of(target).fingerprint != wanted.fingerprint:
            raise DeviceError(
                f"the device is {wanted.fingerprint} ({wanted.shape}), but the target"
                f" {configuration_of(target).fingerprint} ({configuration_of(target).shape})"
            )
        return wanted
    if target is not None:
        return configuration_of(target)
    kind, colon, place = device.partition(":")
    return find_target(place).configuration if colon and kind in ("model", "sim") else None
