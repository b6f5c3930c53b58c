"""LiteEth's modules, joined in Migen. Only ``liteeth`` imports this: it needs LiteEth."""

from typing import Any

from liteeth.common import eth_phy_description
from liteeth.core import LiteEthUDPIPCore
from liteeth.core.dhcp import LiteEthDHCP
from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII
from liteeth.phy.rmii import LiteEthPHYRMII
from litex.build.lattice.platform import LatticePlatform
from litex.gen import LiteXModule
from litex.gen.fhdl import verilog
from litex.soc.interconnect import stream
from migen import ClockDomain, ClockDomainsRenamer, If, Record, Signal

from .datagrams import PORT
from .liteeth import BARE, BITS, CORE_HZ, DHCP_PORT, RGMII, LiteEthSettings

_STREAM = (("valid", 1), ("ready", 1), ("last", 1), ("last_be", BITS // 8), ("data", BITS))
_DATAGRAM = (*_STREAM, ("ip_address", 32), ("src_port", 16), ("dst_port", 16), ("length", 16))
_GIVEN = {"valid", "last", "last_be", "data"}
_PARAMETERS = {"ip_address", "src_port", "dst_port", "length"}


class _Module(LiteXModule):
    """A module of Migen, whose blocks of statements type checkers do not see."""

    comb: Any
    sync: Any


class BarePhy(_Module):
    """A byte per cycle, in LiteEth's clock, in the place of a PHY chip."""

    dw = 8

    def __init__(self, pads: Any) -> None:
        receiving: Any = ClockDomain("eth_rx")
        sending: Any = ClockDomain("eth_tx")
        self.cd_eth_rx, self.cd_eth_tx = receiving, sending
        self.sink = stream.Endpoint(eth_phy_description(8))
        self.source = stream.Endpoint(eth_phy_description(8))
        self.comb += [
            receiving.clk.eq(pads.clk),
            sending.clk.eq(pads.clk),
            receiving.rst.eq(pads.reset),
            sending.rst.eq(pads.reset),
            pads.tx_valid.eq(self.sink.valid),
            pads.tx_data.eq(self.sink.data),
            pads.tx_last.eq(self.sink.last),
            self.sink.ready.eq(1),
            self.source.valid.eq(pads.rx_valid),
            self.source.data.eq(pads.rx_data),
            self.source.last.eq(pads.rx_last),
        ]


class PreambleAligner(_Module):
    """Makes each preamble as long as a word, in the clock of the wire.

    LiteEth looks for the end of the preamble in words of 32 bits, and would miss frames whose
    preamble the PHY chip or a switch has made longer or shorter. Three of its bytes go on, and then
    nothing until its end.
    """

    def __init__(self) -> None:
        self.sink = stream.Endpoint(eth_phy_description(8))
        self.source = stream.Endpoint(eth_phy_description(8))
        before, inside = Signal(2), Signal()
        is_end = self.sink.data == 0xD5
        passes = inside | (before != 3) | is_end | self.sink.last
        self.comb += [
            self.sink.connect(self.source, omit={"valid", "ready"}),
            self.source.valid.eq(self.sink.valid & passes),
            self.sink.ready.eq(self.source.ready | ~passes),
        ]
        self.sync += [
            If(
                self.sink.valid & self.sink.ready,
                If(self.sink.last, before.eq(0), inside.eq(0)).Elif(
                    ~inside,
                    If(before != 3, before.eq(before + 1)).Elif(is_end, inside.eq(1)),
                ),
            )
        ]


class FrameTap(_Module):
    """The way of the frames from the MAC to the IP stack, through ports."""

    def __init__(self, incoming: Any, checked: Any) -> None:
        self.sink = stream.Endpoint(eth_phy_description(BITS))
        self.source = stream.Endpoint(eth_phy_description(BITS))
        self.comb += [
            *(getattr(incoming, name).eq(getattr(self.sink, name)) for name in _GIVEN),
            incoming.error.eq(self.sink.error != 0),
            self.sink.ready.eq(incoming.ready),
            *(getattr(self.source, name).eq(getattr(checked, name)) for name in _GIVEN),
            checked.ready.eq(self.source.ready),
        ]


class CoreTop(_Module):
    """All of it; ``ports`` are those of the Verilog."""

    def __init__(self, settings: LiteEthSettings) -> None:
        self.ports: set[Any] = set()
        self.cd_sys = ClockDomain()
        self.ports |= {self.cd_sys.clk, self.cd_sys.rst}
        addresses = self._pads("own", (("mac", 48), ("ip", 32)))
        self.phy = self._phy(settings)
        self.core = core = LiteEthUDPIPCore(
            self.phy,
            mac_address=addresses.mac,
            ip_address=addresses.ip,
            clk_freq=CORE_HZ,
            dw=BITS,
            with_sys_datapath=True,
            tx_cdc_depth=settings.cdc_depth,
            tx_cdc_buffered=True,
            rx_cdc_depth=settings.cdc_depth,
            rx_cdc_buffered=True,
        )
        _find_the_right_mac(core.arp.table.cache)
        incoming = self._pads("incoming", (*_STREAM, ("error", 1)))
        self.tap = tap = FrameTap(incoming, self._pads("checked", _STREAM))
        self.aligner = aligner = ClockDomainsRenamer("eth_rx")(PreambleAligner())
        pipeline = core.mac.core.rx_datapath.pipeline
        pipeline.insert(pipeline.index(self.phy) + 1, aligner)
        pipeline.insert(-1, tap)
        self._datagrams(core.udp.crossbar.get_port(PORT, dw=BITS))
        if settings.dhcp:
            client_port = core.udp.crossbar.get_port(DHCP_PORT, dw=32)
            self.dhcp = dhcp = LiteEthDHCP(client_port, sys_clk_freq=CORE_HZ)
            pads = self._pads("dhcp", (("start", 1), ("ip", 32)))
            self.comb += [
                dhcp.mac_address.eq(addresses.mac),
                dhcp.start.eq(pads.start),
                pads.ip.eq(dhcp.ip_address),
            ]

    def _pads(self, name: str, layout: Any) -> Any:
        pads = Record(list(layout), name=name)
        self.ports |= set(pads.flatten())
        return pads

    def _phy(self, settings: LiteEthSettings) -> Any:
        medium = settings.medium
        pads = self._pads(medium, [(name, width) for name, width, _ in settings.pins])
        if medium == BARE:
            pads.clk, pads.reset = self.cd_sys.clk, self.cd_sys.rst
            return BarePhy(pads)
        clocks = self._pads(f"{medium}_clocks", [(name, 1) for name, _ in settings.clocks])
        if medium == RGMII:
            phy = LiteEthPHYRGMII(
                clocks,
                pads,
                with_hw_init_reset=False,
                tx_delay=settings.tx_delay,
                rx_delay=settings.rx_delay,
            )
        else:
            no_domain: Any = None  # the clock of the pads
            phy = LiteEthPHYRMII(clocks, pads, refclk_cd=no_domain, with_hw_init_reset=False)
        # a register of a bus that is not there
        self.comb += phy.crg._reset.storage.eq(self.cd_sys.rst)
        return phy

    def _datagrams(self, port: Any) -> None:
        received = self._pads("received", (*_DATAGRAM, ("error", 1)))
        sent = self._pads("sent", _DATAGRAM)
        names = _GIVEN | _PARAMETERS
        self.comb += [
            *(getattr(received, name).eq(getattr(port.source, name)) for name in names),
            received.error.eq(port.source.error != 0),
            port.source.ready.eq(received.ready),
            *(getattr(port.sink, name).eq(getattr(sent, name)) for name in names),
            sent.ready.eq(port.sink.ready),
        ]


def _find_the_right_mac(cache: Any) -> None:
    """Mends LiteEth 2024.12's ARP cache, which finds an entry and then gives the first one's MAC.

    It looks at its memory's place for the search, but at place 0 for the answer. So with two hosts
    the second one's packets went to the first.
    """
    looks, *_ = cache.fsm.actions["MEM_SEARCH"]
    cache.fsm.act("RESPONSE", looks)


def convert(settings: LiteEthSettings, name: str) -> str:
    """Returns the Verilog of a core."""
    top = CoreTop(settings)
    if settings.medium == BARE:
        return str(verilog.convert(top, top.ports, name=name))
    platform = LatticePlatform(settings.device, io=[], toolchain="trellis")
    return str(platform.get_verilog(top, ios=top.ports, name=name))
