"""Ports of LiteDRAM's modules in Verilog. Only modules that need LiteDRAM import this."""

from typing import Any

from litex.gen import LiteXModule
from migen import ClockDomain, Record


class Top(LiteXModule):
    """A module whose ``ports`` are those of the Verilog."""

    comb: Any
    sync: Any

    def __init__(self) -> None:
        self.ports: set[Any] = set()
        self.cd_sys = ClockDomain()
        self.ports |= {self.cd_sys.clk, self.cd_sys.rst}

    def pads(self, name: str, layout: Any) -> Any:
        """A record whose signals are ports."""
        pads = Record(list(layout), name=name)
        self.ports |= set(pads.flatten())
        return pads

    def words(self, port: Any) -> None:
        """Makes ports of the crossbar's: commands, and words that are written and read."""
        command = self.pads(
            "command", [("valid", 1), ("ready", 1), ("write", 1), ("address", len(port.cmd.addr))]
        )
        written = self.pads(
            "written", [("ready", 1), ("data", port.data_width), ("enable", port.data_width // 8)]
        )
        read = self.pads("read", [("valid", 1), ("data", port.data_width)])
        self.comb += [
            port.cmd.valid.eq(command.valid),
            port.cmd.we.eq(command.write),
            port.cmd.addr.eq(command.address),
            command.ready.eq(port.cmd.ready),
            port.wdata.valid.eq(1),
            port.wdata.data.eq(written.data),
            port.wdata.we.eq(written.enable),
            written.ready.eq(port.wdata.ready),
            port.rdata.ready.eq(1),
            read.valid.eq(port.rdata.valid),
            read.data.eq(port.rdata.data),
        ]
