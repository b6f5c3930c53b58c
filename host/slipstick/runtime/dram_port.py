"""Reaches the DRAM of a device: bytes go there and come back by way of the activation memory."""

from slipstick_rtl.dma.transfer import WORD_BYTES, DmaStatus, Operation, Transfer
from slipstick_rtl.link.protocol import DeviceStatus, Space

from ..devices.link import LinkDevice, LinkError, Request
from ..devices.link.regions import pieces
from ..errors import DeviceError

LONGEST_RUN = 1 << 16
"""Bytes of a transfer's run."""
_LIST_SECONDS = 3600.0
"""More than any list takes, simulated ones too."""
_EXPLANATIONS = {
    DmaStatus.MEMORY_CORRUPT: "a block of its DRAM has another checksum than was written: load the"
    " program again; if that does not help, test the DRAM (slipstick memtest)",
    DmaStatus.BAD_TRANSFER: "its DRAM has an instruction that there is none of: load the program"
    " again",
    DmaStatus.BAD_INSTRUCTION: "it met a bad instruction: load the program again",
}


class DramPort:
    """Moves bytes between the host and a device's DRAM, and executes lists in it.

    Parameters
    ----------
    device : LinkDevice
        Of hardware with DRAM. What its activation memory holds is lost.
    """

    def __init__(self, device: LinkDevice) -> None:
        self.device = device
        self.stage_bytes = min(device.configuration.activation_bytes, LONGEST_RUN)
        self._stopped = False

    def stop(self) -> None:
        """Answers whatever the DMA is given with a DeviceError; any thread may say so."""
        self._stopped = True

    def give(self, *transfers: Transfer) -> None:
        """Submits instructions for the DMA, which begin when what was given before has ended."""
        if self._stopped:
            raise DeviceError("the device is wanted no more")
        packed = b"".join(transfer.pack() for transfer in transfers)
        self.device.submit_write(Space.TRANSFERS, 0, packed, waiting=True)

    def stage(self, data: bytes) -> None:
        """Submits bytes for the beginning of the activation memory."""
        self.device.submit_write(Space.ACTIVATIONS, 0, data, waiting=True)

    def submit_write(self, word: int, data: bytes) -> None:
        """Submits bytes for the DRAM, from a word on; the last word is filled up."""
        for first, end in pieces(len(data), self.stage_bytes):
            self.stage(data[first:end])
            self._move(Operation.STORE, word + first // WORD_BYTES, end - first)

    def submit_read(self, word: int, count: int) -> list[Request]:
        """Bytes of the DRAM, from a word on, are the answers, together."""
        requests = list[Request]()
        for first, end in pieces(count, self.stage_bytes):
            self._move(Operation.LOAD, word + first // WORD_BYTES, end - first)
            requests += self.device.submit_read(0, end - first, waiting=True)
        return requests

    def read(self, word: int, count: int) -> bytes:
        """Returns bytes of the DRAM, also over a link that loses answers."""
        data = b""
        for first, end in pieces(count, self.stage_bytes):
            self._move(Operation.LOAD, word + first // WORD_BYTES, end - first)
            self.finish()
            data += self.device.read(0, end - first)
        return data

    def finish(self) -> DeviceStatus:
        """Returns the status when all that was submitted has been executed."""
        return self.device.state_of(self.device.submit_status(waiting=True))

    def run_list(self, word: int, timeout_seconds: float = _LIST_SECONDS) -> DeviceStatus:
        """Executes the list at a word of DRAM; returns the status at its end, also at a bad one.

        Raises
        ------
        LinkError
            RUN_TIMEOUT, NO_ANSWER.
        """
        self.give(Transfer(operation=Operation.JUMP, dram=word))
        self.device.finish()
        try:
            # it may take longer than a request can wait
            return self.device.wait(timeout_seconds)
        except LinkError as error:
            if error.code != "BAD_INSTRUCTION":
                raise
            return self.device.status()

    def check(self, status: DeviceStatus, what: str) -> None:
        """Returns if what was submitted came to its end; else the next one begins anew.

        Parameters
        ----------
        status : DeviceStatus
            Of ``finish`` or ``run_list``.
        what : str
            The device could not run it, the message says.

        Raises
        ------
        LinkError
            MEMORY_CORRUPT, BAD_TRANSFER or BAD_INSTRUCTION.
        """
        if status.dma is DmaStatus.OK and not status.bad_instruction:
            return
        error = status.dma if status.dma is not DmaStatus.OK else DmaStatus.BAD_INSTRUCTION
        # what was sent behind it changes nothing
        self.device.reset()
        raise LinkError(error.name, f"the device could not run {what}: {_EXPLANATIONS[error]}")

    def _move(self, operation: Operation, word: int, count: int) -> None:
        """Between the beginning of the activation memory and a word of DRAM."""
        self.give(Transfer(operation=operation, dram=word, run_bytes=count))
