"""The Yosys script of a build: what all FPGA families share."""

from collections.abc import Collection, Sequence

FREE_COLLISIONS = (
    "setparam -set COLLISION_X_MASK 1'1 t:$memrd_v2"
    " *.unbuffered/t:$memrd_v2 *_crossing/t:$memrd_v2 %u %d"
)
"""Yosys command, after the RTLIL is read: no reader minds what a word is while it is written.

Amaranth asks for the old word, which block RAM does not give from port to port: Yosys would add a
bypass to every memory, and could not merge a write port and a read port of one address. No
block uses such a word: two writers never meet, and readers come later (``tests/rtl`` holds the
core to its model with new words as well as old ones). Each memory here has one write port. Queues
between clock domains are left out (``unbuffered`` within Amaranth's, and those that are called
``..._crossing``): there Yosys allows none.
"""


NO_CONTENTS = "delete t:$meminit_v2"
"""Yosys command, after the RTLIL is read: memories begin as they please.

Amaranth writes down that they begin as zeros, and SPRAM cannot: Yosys would not use it. Nothing
reads what was not written.
"""


def _distributed(*memories: str) -> str:
    return " ".join(('setattr -set ram_style "distributed"', *memories))


SMALL_PAYLOAD = _distributed("*.link/m:payload")
"""Yosys command, after the RTLIL is read: the compact link's payload and its table of regions are
small enough for look-up tables. The engine takes every block RAM of a Tang Nano 20K.
"""

LINK_IN_LUTS = _distributed(
    "*.link.receiver.ring/m:memory", "*.transfers*/m:table", "*.uart.queue*/m:storage"
)
"""Yosys command, after the RTLIL is read: the pipelined link's payloads and regions, and the queue
of a UART, are made of look-up tables. In an 85F the engine takes nearly every block RAM.
"""

WIRE_IN_LUTS = _distributed(
    "*.ethernet.liteeth.filter*/m:frames", "*.ethernet.liteeth.sent.queue*/m:storage"
)
"""Yosys command, after the RTLIL is read: of Ethernet only the slots stay in block RAM."""

CROSSINGS_IN_LUTS = _distributed("*_crossing/m:storage")
"""The same for queues between clock domains: the engine takes every block RAM of an 85F."""

LINK, WIRE = "link", "wire"
IN_LUTS = {LINK: LINK_IN_LUTS, WIRE: WIRE_IN_LUTS}

COMMANDS = {
    "ECP5": (FREE_COLLISIONS, CROSSINGS_IN_LUTS, "synth_ecp5 -abc9"),
    "iCE40": (FREE_COLLISIONS, NO_CONTENTS, "synth_ice40 -device u -spram -abc9"),
    # these cells serve the LittleBee as well, whose DSP blocks are the same
    "Gowin": (FREE_COLLISIONS, SMALL_PAYLOAD, "synth_gowin -family gw2a"),
}
"""Commands of each family beyond Yosys' defaults, and its synthesis; iCE40 is the UltraPlus."""


def synthesis_script(
    *,
    family: str,
    rtlil: str,
    verilog: str,
    netlist: str,
    top: str,
    in_luts: Collection[str] = (),
    sources: Sequence[str] = (),
) -> str:
    """The Yosys commands from a design's RTLIL to its Verilog and its netlist for nextpnr.

    Parameters
    ----------
    family : str
        One of ``COMMANDS``.
    rtlil, verilog, netlist : str
        File names; the first is read, the others are written.
    top : str
    in_luts : collection of str
        What is made of look-up tables, names of ``IN_LUTS``.
    sources : sequence of str
        Verilog of other people's cores, which the RTLIL has instances of.
    """
    *before, synthesis = COMMANDS[family]
    before += (command for name, command in IN_LUTS.items() if name in in_luts)
    return "\n".join(
        (
            *(f"read_verilog {source}" for source in sources),
            f"read_rtlil {rtlil}",
            "design -save elaborated",
            "proc -nomux -norom",
            "memory_collect",
            f"write_verilog -norename {verilog}",
            "design -load elaborated",
            *before,
            f"{synthesis} -top {top} -json {netlist}",
            "",
        )
    )
