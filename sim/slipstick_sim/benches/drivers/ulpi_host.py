"""A host of high speed behind a ULPI chip: chirps, microframes, PING, packets of 512 bytes."""

from collections.abc import Callable
from typing import Any

from cocotb.triggers import First, Timer
from cocotb.utils import get_sim_time

from ...golden.usb_line import LineError, Packet, Pid
from .ulpi_chip import FUNCTION_CONTROL, OPERATION_BITS, SPEED_BITS, TERMINATION, UlpiChip
from .usb_driver import BULK, ENDPOINT, INTERFACE, SerialDriver, split
from .usb_host import Faults, HostError, UsbHost

CYCLE_PICOSECONDS = 16_666
"""Picoseconds of a cycle of the 60 MHz clock: a byte of high speed."""

MICROFRAME_CYCLES = 7_500
CHIP_CYCLES = 10
"""A chip's way in and out: ULPI 1.1 (3.8.2.6) allows 3 to 8 cycles to the end of a packet that
comes, and 1 to 2 to the beginning of one that goes."""

GAP_CYCLES = 11
"""88 bits between packets of the host (USB 2.0, 7.1.18.2)."""

CHIRP_CYCLES = 180
"""3 us of each of the host's chirps, which USB has 40 to 60 us long; luna asks for 2.5."""

_SE0, _J, _K = 0, 1, 2


class ByteFaults(Faults):
    """Spoils packets as bytes: one bit is the opposite, or the end is missing."""

    def spoil(self, kind: str) -> Any:
        """As of ``Faults``, for bytes."""
        if not self.strike(kind):
            return None
        cut = self.generator.random() < 0.3

        def change(data: bytes) -> bytes:
            place = self.generator.randrange(len(data))
            if cut:
                return data[:place]
            spoilt = bytearray(data)
            spoilt[place] ^= 1 << self.generator.randrange(8)
            return bytes(spoilt)

        return change


class UlpiWires:
    """The host's end of the cable, beyond the chip. Times are in cycles of 60 MHz.

    Parameters
    ----------
    chip : UlpiChip

    Attributes
    ----------
    response_bits : list of float
        Of every packet of the device: bits from the end of the host's to its beginning.
    """

    def __init__(self, chip: UlpiChip) -> None:
        self.chip = chip
        self.response_bits: list[float] = []
        self._sent = 0.0

    async def send(self, packet: Packet, spoil: Callable[[bytes], bytes] | None = None) -> None:
        """Sends a packet, or what ``spoil`` makes of it."""
        await self.rest(GAP_CYCLES - (get_sim_time("ps") - self._sent) / CYCLE_PICOSECONDS)
        self.chip.begun.clear()
        data = packet.encode()
        await self.chip.deliver(data if spoil is None else spoil(data))
        self._sent = get_sim_time("ps")

    async def rest(self, cycles: float) -> None:
        """Lets some cycles pass."""
        if cycles > 0:
            await Timer(round(cycles) * CYCLE_PICOSECONDS, unit="ps")

    async def hear(self, timeout: float) -> Packet | LineError | None:
        """The device's next packet; None if it does not begin within the time."""
        since = get_sim_time("ps")
        limit = Timer(round(timeout) * CYCLE_PICOSECONDS, unit="ps")
        if not self.chip.begun.is_set():
            await First(limit, self.chip.begun.wait())
        if not self.chip.begun.is_set():
            return None
        cycles = (get_sim_time("ps") - since) / CYCLE_PICOSECONDS + CHIP_CYCLES
        self.response_bits.append(8 * cycles)
        data = await self.chip.sent.get()
        await self.rest(CHIP_CYCLES)
        try:
            return Packet.decode(data)
        except LineError as error:
            return error


class HighSpeedHost(UsbHost):
    """Speaks to one device at high speed.

    Parameters
    ----------
    chip : UlpiChip

    Attributes
    ----------
    chirps : bool
        Whether it answers the device's chirp: a host of full speed does not.
    """

    response = 102
    """816 bits (USB 2.0, 7.1.19.2)."""
    gap = 1
    """8 bits after a packet of the device; between packets of the host ``UlpiWires`` rests."""
    transaction = 574
    frame_length = MICROFRAME_CYCLES

    def __init__(self, chip: UlpiChip) -> None:
        self.chip, self.wires = chip, UlpiWires(chip)
        self.faults = ByteFaults()
        self.address = self.frame = 0
        self.chirps = True
        self._frame_picoseconds = MICROFRAME_CYCLES * CYCLE_PICOSECONDS
        self._next_frame = get_sim_time("ps")

    async def attach(self) -> None:
        """Waits for the device's pull-up."""
        await self.chip.written_value(FUNCTION_CONTROL, lambda value: value & TERMINATION != 0)
        await self.chip.show(_J)

    async def reset(self, bits: int = 0) -> None:
        """Both wires low, until the device chirps; then chirps of the host, and high speed."""
        chip, before = self.chip, len(self.chip.chirps)
        await chip.show(_SE0)
        await chip.written_value(
            FUNCTION_CONTROL, lambda value: value & (OPERATION_BITS | TERMINATION) == 0x14
        )
        while len(chip.chirps) == before:
            await Timer(100, unit="us")
        if not 1e6 <= chip.chirps[-1] <= 7e6:
            raise HostError(f"a chirp of {chip.chirps[-1]} ns")
        self.address = 0
        if not self.chirps:
            await Timer(2600, unit="us")
            await chip.show(_J)
            return
        for line in (_K, _J) * 3:
            await chip.show(line)
            await self.wires.rest(CHIRP_CYCLES)
        await chip.written_value(
            FUNCTION_CONTROL,
            lambda value: value & (SPEED_BITS | TERMINATION | OPERATION_BITS) == 0,
        )
        await chip.show(_SE0)
        self._next_frame = get_sim_time("ps")

    async def ping(self, endpoint: int) -> Pid | None:
        """Asks whether there is room for a packet: ACK or NAK, or None if nothing was heard."""
        await self._await_room()
        token = Packet(Pid.PING, self.address, endpoint)
        await self.wires.send(token, self.faults.spoil("token"))
        answer = await self._hear()
        return None if answer is None else self._expect(answer, Pid.ACK, Pid.NAK, Pid.STALL).pid


class BulkDriver(SerialDriver):
    """A host's driver of the device: packets of 512 bytes, and PING after a NAK.

    Attributes
    ----------
    broken_promises : int
        Packets that were refused though a PING had been answered with ACK.
    """

    packet_bytes = 512
    resets_twice = False  # each takes 5 ms
    host: HighSpeedHost

    def __init__(self, host: HighSpeedHost) -> None:
        super().__init__(host)
        self._asks = False
        self.pings = self.broken_promises = 0

    def find_endpoints(self, configuration: bytes) -> tuple[int, int, int]:
        """Endpoints out and in of a vendor-specific interface."""
        head, *parts = split(configuration)
        if int.from_bytes(head[2:4], "little") != len(configuration) or head[4] != 1:
            raise HostError("the configuration must have its length, and one interface")
        found: dict[int, int] = {}
        for part in parts:
            if part[1] == INTERFACE and part[5:8] != bytes([0xFF, 0x53, 0x01]):
                raise HostError(f"an interface {part.hex()}")
            if part[1] == ENDPOINT:
                if part[3] & 3 != BULK or int.from_bytes(part[4:6], "little") != 512:
                    raise HostError(f"an endpoint {part.hex()}")
                found[part[2] & 0x80] = part[2] & 15
        return found[0], found[0x80], 0

    async def open(self) -> None:
        """There is nothing to ask for."""
        self._asks = False

    async def try_send(self, payload: bytes) -> bool:
        """A packet once, unless the device has said that it has no room: whether it was taken."""
        asked = self._asks
        if asked:
            self.pings += 1
            if await self.host.ping(self.found.outward) is not Pid.ACK:
                self.naks += 1
                return False
        before = self.naks
        taken = await super().try_send(payload)
        self._asks = self.naks > before
        self.broken_promises += asked and self._asks
        return taken
