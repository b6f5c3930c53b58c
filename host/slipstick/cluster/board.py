"""The board of a worker process: opened once, programmed when another program comes."""

import hashlib
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import psutil
from distributed import Worker, WorkerPlugin
from slipstick_rtl.config import Configuration

from ..devices import Device, DeviceGroup, open_device
from ..errors import DeviceError
from ..program import Program
from ..runtime.emulation import Emulation
from ..runtime.executions import single_execution
from ..runtime.executor import BatchDevice, Execution
from .resources import board_needs, job_needs

Opener = Callable[[str, Configuration | None], Device]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Answer:
    """The result of some images on a board.

    Parameters
    ----------
    board : str
    address : str
        Of the worker.
    outputs : tuple of array
        Empty if the board failed.
    seconds : float
        That the board and its host were computing.
    cycles : int or None
        Of the last image; None where there is no clock.
    problem : str
        Why the board failed; empty if it did not.
    """

    board: str
    address: str
    outputs: tuple[np.ndarray, ...] = ()
    seconds: float = 0.0
    cycles: int | None = None
    problem: str = ""


class Board(WorkerPlugin):
    """Holds a worker's device, and the files that its jobs need.

    Parameters
    ----------
    device : str or None
        As for ``open_device``; None: the worker takes jobs without boards only.
    configuration : Configuration, optional
    must_open : bool
        Whether the worker ends where the device cannot be opened; else ``problem`` says why, and
        the worker is given no images.
    opener : callable
        Opens the device.

    Members
    -------
    problem : str
        Why the device is not open.
    """

    name = "slipstick-board"

    def __init__(
        self,
        device: str | None,
        configuration: Configuration | None = None,
        *,
        must_open: bool = False,
        opener: Opener = open_device,
    ) -> None:
        self.problem = ""
        self._name, self._configuration = device, configuration
        self._must_open, self._opener = must_open, opener
        self._device: Device | None = None
        self._execution: Execution | Emulation | None = None
        self._key = ""
        self._address = ""
        self._folder: Path | None = None

    def setup(self, worker: Worker) -> None:
        """Opens the device, before the worker is known to the scheduler."""
        self._address = worker.address
        offers = job_needs()
        if self._name is not None:
            try:
                device = self._open()
                offers = board_needs(device.configuration.fingerprint)
            except Exception as error:
                if self._must_open:
                    raise
                self.problem = str(error)
        for resources in (worker.state.total_resources, worker.state.available_resources):
            resources.update(offers)

    def teardown(self, worker: Worker) -> None:
        """Closes the device, ends the programs that jobs have started, removes the files."""
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
        self._drop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def place(self) -> str:
        """Names the board, its computer and its process for messages."""
        return f"{self._name} of {socket.gethostname()} (process {os.getpid()})"

    def _open(self) -> Device:
        if self._device is None:
            assert self._name is not None
            device = self._opener(self._name, self._configuration)
            if isinstance(device, DeviceGroup):
                device.close()
                raise DeviceError(
                    f"device {self._name}: a worker has one board; start a worker per board"
                )
            self._device = device
        return self._device

    def _drop(self) -> None:
        """Closes the device; the next images open it again."""
        self._execution, self._key = None, ""
        if self._device is not None:
            with suppress(DeviceError, OSError):
                self._device.close()
            self._device = None

    def use(self, function: Callable[[Device], Result]) -> Result:
        """Gives the device to a function that puts programs of its own there.

        Raises
        ------
        DeviceError
            If the worker has none, or it fails; the next use opens it again.
        """
        if self._name is None:
            raise DeviceError("the worker has no board")
        try:
            device = self._open()
            self._execution, self._key = None, ""
            return function(device)
        except (DeviceError, OSError) as error:
            self._drop()
            raise DeviceError(str(error)) from error

    @property
    def address(self) -> str:
        """Returns the address of the worker."""
        return self._address

    def load(self, program: bytes, key: str) -> Answer:
        """Puts a program on the device, unless it is there."""
        return self.infer(program, key, {}, ())

    def infer(
        self, program: bytes, key: str, inputs: dict[str, np.ndarray], names: Sequence[str]
    ) -> Answer:
        """Runs images.

        Parameters
        ----------
        program : bytes
            As ``slip_file.encode`` makes them.
        key : str
            Of those bytes.
        inputs : dict of array by name
            None: only the program is put on the device.
        names : sequence of str
            The outputs.
        """
        if self._name is None:
            return Answer(self.place, self._address, problem="the worker has no board")
        try:
            execution = self._execution_of(program, key)
            start = time.perf_counter()
            values = execution.infer_batch(inputs, tuple(names)) if inputs else {}
            seconds = time.perf_counter() - start
            clocked = not isinstance(execution.device, BatchDevice)
            cycles = execution.last_cycles if clocked else None
        except (DeviceError, OSError) as error:
            self._drop()
            return Answer(self.place, self._address, problem=str(error))
        outputs = tuple(values[name] for name in names)
        return Answer(self.place, self._address, outputs, seconds, cycles)

    def _execution_of(self, data: bytes, key: str) -> Execution | Emulation:
        device = self._open()
        if self._execution is None or self._key != key:
            from ..program.slip_file import decode

            program: Program = decode(data)
            self._execution, self._key = single_execution(program, device), key
        return self._execution

    def place_files(self, files: Sequence[tuple[str, bytes]]) -> list[str]:
        """Writes files that the command has, and returns their paths here; each is written once.

        Parameters
        ----------
        files : sequence of (name, content)
            The paths end with the names.
        """
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="slipstick-worker-"))
        paths = []
        for name, content in files:
            path = self._folder / hashlib.sha256(content).hexdigest()[:16] / Path(name).name
            if not path.exists():
                path.parent.mkdir(exist_ok=True)
                draft = path.with_suffix(".new")
                draft.write_bytes(content)
                draft.replace(path)
            paths.append(str(path))
        return paths
