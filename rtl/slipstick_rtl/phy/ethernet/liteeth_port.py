"""LiteEth's core with what it needs around it: UDP packets in ``sync``, pins on the other side."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import (
    ClockSignal,
    Const,
    DomainRenamer,
    Instance,
    Module,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import ResetSynchronizer
from amaranth.lib.wiring import In, Member, Out, connect, flipped

from .addresses import link_local_ip
from .datagrams import PORT
from .dhcp_start import DhcpStart
from .frame_filter import FrameFilter
from .liteeth import INPUT, NAME, LiteEthSettings, liteeth_verilog
from .packet_crossings import ReceivedCrossing, SentCrossing
from .packet_words import RECEIVED_WORD, SENT_WORD

_CLOCK_PINS = {"tx": "tx_clk", "rx": "rx_clk", "ref_clk": "ref_clk"}
"""The names of clock pins here, by LiteEth's."""


class LiteEthPort(wiring.Component):
    """Receives and sends UDP packets on the board's port; answers ARP and ping.

    The port is that of ``datagrams``. Only whole, right packets are received (``FrameFilter``), so
    ``error`` is never set in practice. Packets are sent without a UDP check sum. LiteEth knows no
    router: only hosts of the same network are reached. Before it sends to a host, it asks for the
    host's MAC address by ARP, and what follows waits for the answer: if none comes within 0.8 s,
    the packet is lost. A ping of more than 128 bytes is not answered, and a second one waits until
    the first is answered.

    Domains: ``sync``, and ``ethernet`` of 50 MHz, which this resets.

    Parameters
    ----------
    settings : LiteEthSettings
        If they have DHCP, the address is a link-local one until the client has found another.
    mac : int
    ip : int or None
        None with DHCP.
    reset_cycles : int
        Cycles of ``sync`` for which the PHY chip and this are reset, after the reset of ``sync``.

    Members
    -------
    received : Out(stream)
        Of ``RECEIVED_WORD``.
    sent : In(stream)
        Of ``SENT_WORD``.
    rst_n : Out
        Low while all is reset, for the PHY chip.
    each pin of the medium, clocks included
        ``tx_clk`` and ``rx_clk`` of RGMII, ``ref_clk`` of RMII.

    Raises
    ------
    ImportError
        If LiteEth is not installed; the message says how to install it.
    ValueError
        If ``reset_cycles`` is below 1, or ``ip`` does not go with ``settings``.
    """

    received: stream.Interface
    sent: stream.Interface
    rst_n: Signal

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # the pins

    def __init__(
        self, *, settings: LiteEthSettings, mac: int, ip: int | None, reset_cycles: int
    ) -> None:
        if reset_cycles < 1:
            raise ValueError(f"reset_cycles must be at least 1, not {reset_cycles}")
        if (ip is None) != settings.dhcp:
            raise ValueError("ip must be None with DHCP, and only with it")
        self.settings, self.mac, self.ip = settings, mac, ip
        self.verilog = liteeth_verilog(settings)
        self._reset_cycles = reset_cycles
        super().__init__(
            {
                "received": Out(stream.Signature(RECEIVED_WORD)),
                "sent": In(stream.Signature(SENT_WORD)),
                "rst_n": Out(1),
                **_pin_members(settings),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        if platform is not None:
            platform.add_file(f"{NAME}.v", self.verilog)
        self._reset(m)
        m.submodules.filter = frames = DomainRenamer("ethernet")(
            FrameFilter(dhcp=self.settings.dhcp)
        )
        m.submodules.received = received = ReceivedCrossing()
        m.submodules.sent = sent = SentCrossing()
        connect(m, received.o, flipped(self.received))
        connect(m, flipped(self.sent), sent.i)
        mac, (ip, dhcp) = Const(self.mac, 48), self._address(m)
        m.d.comb += [frames.mac.eq(mac), frames.ip.eq(ip)]
        m.submodules.core = Instance(
            NAME,
            i_sys_clk=ClockSignal("ethernet"),
            i_sys_rst=ResetSignal("ethernet"),
            i_own_mac=mac,
            i_own_ip=ip,
            **_stream_ports("incoming", "o", frames.i),
            **_stream_ports("checked", "i", frames.o),
            **_stream_ports("received", "o", received.i, port="src_port"),
            o_received_error=received.error,
            **_stream_ports("sent", "i", sent.o, port="dst_port"),
            i_sent_src_port=Const(PORT, 16),
            **dhcp,
            **self._pins(),
        )
        return m

    def _address(self, m: Module) -> tuple[Value, dict[str, Value]]:
        """Returns the own IP address, and what the core needs for it."""
        if self.ip is not None:
            return Const(self.ip, 32), {}
        m.submodules.dhcp = start = DomainRenamer("ethernet")(DhcpStart())
        m.d.comb += start.fallback.eq(link_local_ip(self.mac))
        return start.ip, {"i_dhcp_start": start.start, "o_dhcp_ip": start.found}

    def _pins(self) -> dict[str, Value]:
        medium = self.settings.medium
        pins = {
            f"{direction}_{medium}_{name}": getattr(self, name)
            for name, _, direction in self.settings.pins
        }
        clocks = {
            f"{direction}_{medium}_clocks_{name}": getattr(self, _CLOCK_PINS[name])
            for name, direction in self.settings.clocks
        }
        return {**pins, **clocks}

    def _reset(self, m: Module) -> None:
        left, reset = Signal(range(self._reset_cycles + 1), init=self._reset_cycles), Signal(init=1)
        with m.If(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.sync += reset.eq(left != 0)
        m.submodules.reset = ResetSynchronizer(reset, domain="ethernet")
        m.d.comb += self.rst_n.eq(~reset)


def _pin_members(settings: LiteEthSettings) -> dict[str, Member]:
    clocks = tuple((_CLOCK_PINS[name], 1, direction) for name, direction in settings.clocks)
    return {
        name: In(width) if direction == INPUT else Out(width)
        for name, width, direction in (*settings.pins, *clocks)
    }


def _stream_ports(name: str, direction: str, interface: Any, **names: str) -> dict[str, Value]:
    """Returns the ports of a stream whose source is the core if the direction is ``o``; ``names``
    are those of the core where they differ."""
    back = "i" if direction == "o" else "o"
    fields = {
        f"{direction}_{name}_{names.get(field, field)}": Value.cast(interface.payload[field])
        for field in interface.payload.shape().members
    }
    return {
        f"{direction}_{name}_valid": interface.valid,
        f"{back}_{name}_ready": interface.ready,
        **fields,
    }
