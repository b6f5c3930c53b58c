"""The DRAM of a device: a program's list and tensors in it, reached through the DMA."""

from collections.abc import Callable

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES, DmaStatus, Operation, Transfer
from slipstick_rtl.link.protocol import DeviceStatus, Space

from ..compiler.codegen.dram_list import DramProgram, find_dram_program
from ..devices.link import LinkDevice, LinkError, Request
from ..devices.link.regions import pieces
from ..program import Program

_LONGEST_RUN = 1 << 16
"""Bytes of a transfer's run."""
_LIST_SECONDS = 3600.0
"""More than any list takes, simulated ones too."""
_EXPLANATIONS = {
    DmaStatus.MEMORY_CORRUPT: "a block of its DRAM has another checksum than was written: load the"
    " program again; if that does not help, test the DRAM",
    DmaStatus.BAD_TRANSFER: "its DRAM has an instruction that there is none of: load the program"
    " again",
    DmaStatus.BAD_INSTRUCTION: "it met a bad instruction: load the program again",
}


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
        self._finished = finished
        self._stage = min(device.configuration.activation_bytes, _LONGEST_RUN)

    @classmethod
    def of(
        cls, program: Program, device: object, finished: Callable[[DeviceStatus], None]
    ) -> "DramMemory | None":
        """That of a program and device which are for it; None for others."""
        if not isinstance(device, LinkDevice):
            return None
        made = find_dram_program(program)
        return None if made is None else cls(device, program, made, finished)

    def load(self) -> None:
        """Writes constants and list."""
        self._write(0, self.program.image)
        self._check(self._device.state_of(self._device.submit_status(waiting=True)))

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
                self._write(place, tensors[name].pack(values[name][image]))
        self._give(Transfer(operation=Operation.JUMP, dram=self.program.first))
        device.finish()
        status = self._wait()
        self._check(status)
        answers = {
            name: self._submit_read(tensors[name].place, count * tensors[name].words * WORD_BYTES)
            for name in self.program.outputs
        }
        device.push()
        for name, requests in answers.items():
            packed = b"".join(device.answer(request) for request in requests)
            shape, size = self._network.tensors[name].shape, tensors[name].words * WORD_BYTES
            parts = [packed[size * image :][:size] for image in range(count)]
            found = [tensors[name].unpack(part) for part in parts]
            values[name] = np.stack(found).reshape(count, *shape[1:])
        self._finished(status)

    def _wait(self) -> DeviceStatus:
        """The status when the list has ended: it may take longer than a request can wait."""
        try:
            return self._device.wait(_LIST_SECONDS)
        except LinkError as error:
            if error.code != "BAD_INSTRUCTION":
                raise
            return self._device.status()

    def _give(self, transfer: Transfer) -> None:
        self._device.submit_write(Space.TRANSFERS, 0, transfer.pack(), waiting=True)

    def _write(self, place: int, data: bytes) -> None:
        for first, end in pieces(len(data), self._stage):
            self._device.submit_write(Space.ACTIVATIONS, 0, data[first:end], waiting=True)
            self._move(Operation.STORE, place + first // WORD_BYTES, end - first)

    def _submit_read(self, place: int, count: int) -> list[Request]:
        requests = list[Request]()
        for first, end in pieces(count, self._stage):
            self._move(Operation.LOAD, place + first // WORD_BYTES, end - first)
            requests += self._device.submit_read(0, end - first, waiting=True)
        return requests

    def _move(self, operation: Operation, word: int, count: int) -> None:
        """Between the beginning of the activation memory and a word of DRAM."""
        self._give(Transfer(operation=operation, dram=word, run_bytes=count))

    def _check(self, status: DeviceStatus) -> None:
        if status.dma is DmaStatus.OK and not status.bad_instruction:
            return
        error = status.dma if status.dma is not DmaStatus.OK else DmaStatus.BAD_INSTRUCTION
        # what was sent behind it changes nothing, and the next one begins anew
        self._device.reset()
        raise LinkError(
            error.name, f"the device could not run {self._network.name!r}: {_EXPLANATIONS[error]}"
        )
