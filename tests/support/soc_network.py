"""Cocotb tests: a host's whole session with the exported core behind a bus, in simulation.

Not collected by pytest: test_soc_network.py runs it inside the simulator.
"""

from collections.abc import Callable
from typing import Any

import cocotb
import numpy as np
from cocotb.task import bridge, resume
from cocotb.triggers import ClockCycles
from slipstick.devices.link import LinkDevice, Patience
from slipstick.examples.digits import MODEL, load_digits
from slipstick.session import InferenceSession
from slipstick_rtl.config import Configuration
from slipstick_sim.benches import bench_soc_axi, bench_soc_stream, bench_soc_wishbone
from slipstick_sim.benches.drivers.soc_host import Port, begin, configuration_of
from slipstick_sim.benches.registry import parameters

IMAGES = 2
PATIENCE = Patience(timeout_seconds=60.0, silence_seconds=0.0)
"""In seconds of this machine, of which a simulation takes many."""
LONGEST_SILENCE = 24_000
"""Cycles without a byte after which no more will come: more than a run takes."""


class PortTransport:
    """A port as a transport, for a host that runs in a thread of its own."""

    def __init__(self, port: Port, clock: Any) -> None:
        self._port, self._clock = port, clock
        self._received = bytearray()
        self._give: Callable[[bytes], None] = resume(port.send)
        self._wait: Callable[[int], bytes] = resume(self._take)
        self._pumping = cocotb.start_soon(self._pump())

    def send(self, data: bytes) -> None:
        self._give(data)

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        return self._wait(count)

    def close(self) -> None:
        """Nothing: ``stop`` belongs to the simulator's thread."""

    def stop(self) -> None:
        """Takes no responses any more."""
        self._pumping.cancel()

    async def _pump(self) -> None:
        while True:
            self._received += await self._port.receive()

    async def _take(self, count: int) -> bytes:
        waited, seen = 0, len(self._received)
        while len(self._received) < count and waited < LONGEST_SILENCE:
            await ClockCycles(self._clock, 10)
            waited = waited + 10 if len(self._received) == seen else 0
            seen = len(self._received)
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken


async def port_of(dut: Any) -> tuple[Port, Any]:
    """The quickest way to the device, which is out of reset then, and its clock."""
    if hasattr(dut, "wb_cyc_i"):
        return await bench_soc_wishbone.start(dut, 0.0), dut.clk
    if hasattr(dut, "s_axil_awaddr"):
        setup = await bench_soc_axi.Setup(dut, 0.0).start()
        await setup.registers.write("control", 1)
        return setup.stream, dut.aclk
    port = bench_soc_stream.StreamPort(dut, 0.0)
    await begin(dut.clk, dut.rst)
    return port, dut.clk


@cocotb.test()
async def classifies_digits(dut: Any) -> None:
    """Probabilities of real images, as the golden model has them."""
    configuration = configuration_of(parameters())
    images = load_digits()[2][:IMAGES]
    with InferenceSession(MODEL, device="model", target=configuration) as session:
        (expected,) = session.run(None, {session.get_inputs()[0].name: images})
    transport = PortTransport(*await port_of(dut))
    outputs, cycles = await bridge(_classify)(transport, configuration, images)
    transport.stop()
    np.testing.assert_array_equal(outputs, expected)
    cocotb.log.info(f"{IMAGES} images, {cycles} cycles each")


def _classify(
    transport: PortTransport, configuration: Configuration, images: np.ndarray
) -> tuple[np.ndarray, int | None]:
    """What a host does, in a thread of its own; time goes on while it waits for bytes."""
    device = LinkDevice(
        transport, configuration=configuration, patience=PATIENCE, pause=lambda seconds: None
    )
    with InferenceSession(MODEL, device=device, target=configuration) as session:
        (outputs,) = session.run(None, {session.get_inputs()[0].name: images})
        return outputs, session.last_cycles
