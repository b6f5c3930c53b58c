"""The DRAM of a device: a program's list and tensors in it, reached through the DMA."""

from collections.abc import Callable

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES
from slipstick_rtl.link.protocol import DeviceStatus

from ..compiler.codegen.dram_list import DramProgram, find_dram_program
from ..devices.link import LinkDevice
from ..program import Program
from .dram_port import DramPort


class DramMemory:
    """Runs a program from a device's DRAM.

    Bytes go to DRAM and come from there by way of the activation memory, whose contents are lost.

    Parameters
    ----------
    device : LinkDevice
    network : Program
    program : DramProgram
        Its list.
    finished : callable
        Told the status after each list.
    """

    def __init__(
        self,
        device: LinkDevice,
        network: Program,
        program: DramProgram,
        finished: Callable[[DeviceStatus], None],
    ) -> None:
        self._device, self._network, self.program = device, network, program
        self._port = DramPort(device)
        self._finished = finished

    @classmethod
    def of(
        cls,
        program: Program,
        device: object,
        finished: Callable[[DeviceStatus], None],
        *,
        every: bool = False,
    ) -> "DramMemory | None":
        """Returns that of a program and device which are for it; None for others.

        ``every`` is that of ``make_dram_program``.
        """
        if not isinstance(device, LinkDevice):
            return None
        made = find_dram_program(program, every=every)
        return None if made is None else cls(device, program, made, finished)

    def load(self) -> None:
        """Writes constants and list."""
        self._port.submit_write(0, self.program.image)
        self._check(self._port.finish())

    def infer(self, values: dict[str, np.ndarray]) -> None:
        """A batch of at most the program's: from the tensors that the list reads to those that it
        writes.

        Parameters
        ----------
        values : dict of array
            By name, each with a batch axis; gains the list's outputs.

        Raises
        ------
        LinkError
            MEMORY_CORRUPT, BAD_TRANSFER or BAD_INSTRUCTION if the list did not come to its end.
        """
        device, tensors = self._device, self.program.tensors
        count = len(values[self.program.inputs[0]]) if self.program.inputs else 1
        for name in self.program.inputs:
            for image in range(count):
                place = tensors[name].place + image * tensors[name].words
                self._port.submit_write(place, tensors[name].pack(values[name][image]))
        status = self._port.run_list(self.program.first)
        self._check(status)
        answers = {
            name: self._port.submit_read(
                tensors[name].place, count * tensors[name].words * WORD_BYTES
            )
            for name in self.program.outputs
        }
        device.push()
        for name, requests in answers.items():
            packed = b"".join(device.answer(request) for request in requests)
            shape = self._network.tensors[name].shape
            values[name] = tensors[name].unpack_batch(packed).reshape(count, *shape[1:])
        self._finished(status)

    def _check(self, status: DeviceStatus) -> None:
        self._port.check(status, repr(self._network.name))
