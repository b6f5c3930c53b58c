"""Maps memories to silicon: macros behind documented wrappers, or flip-flops.

The gateware names no technology: its memories are Yosys' own ``$mem`` cells. Here each shape of
them gets a description of a macro that fits it exactly, from which Yosys' ``memory_libmap`` makes
instances of two wrappers, ``slipstick_sram_1rw`` and ``slipstick_sram_1rw1r`` (``verilog/``). What
has less than ``SMALLEST_SRAM_BITS``, is read without a clock, or is a table of constants becomes
flip-flops or logic.

A macro gives what it reads for one cycle only. Where more may be needed a register holds it; a
memory that the gateware marks as ``MOMENTARY`` needs none.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from slipstick_rtl.memory_styles import MOMENTARY

from ..errors import TargetError
from .macros import WRAPPERS, MemoryShape, wrappers

SRAM = "sram"
FLIP_FLOPS = "flip-flops"
TECHNOLOGIES = (SRAM, FLIP_FLOPS)

DESIGN = "design.il"
"""The file that ``MemoryMapping.write`` writes the design to."""

_LIBRARY, _TECHMAP, _CELLS = "memories.txt", "memories.v", "memory_cells.v"
_MEMORY = re.compile(r"^ *memory width (\d+) size (\d+) ", re.MULTILINE)
_MODULE = re.compile(r"^module \\?(\S+)\n(.*?)^end\n", re.MULTILINE | re.DOTALL)
_IDENTIFIER = re.compile(r"cell \$(meminit|memwr)\w* .*?MEMID \"\\\\(\S+)\"", re.DOTALL)

_LIBRARY_ENTRY = """ram block {name} {{
  abits {address_bits};
  width {bits};
{byte}  cost {cost};
  init none;
  prune_rom;
{style}  port srsw "A" {{ clock posedge; rden; rdwr undefined; }}
{second}}}
"""
_SECOND_PORT = '  port sr "B" { clock posedge; rden; }\n'


@dataclass(frozen=True)
class MemoryMapping:
    """RTLIL, commands and files with which Yosys maps the memories of a design.

    Parameters
    ----------
    design : str
        RTLIL to be read instead: without the contents that FPGAs' memories begin with.
    commands : str
        Yosys commands that follow ``proc``, before or after ``flatten``.
    files : mapping of text by name
        What the commands read, in Yosys' working folder.
    """

    design: str
    commands: str
    files: Mapping[str, str]

    def write(self, folder: Path) -> None:
        """Writes the files, and the design as ``DESIGN``."""
        for name, text in {DESIGN: self.design, **self.files}.items():
            (folder / name).write_text(text, "utf-8")


def check_technology(technology: str) -> None:
    """TargetError unless there is such a technology for memories."""
    if technology not in TECHNOLOGIES:
        raise TargetError(f"memories must be {' or '.join(TECHNOLOGIES)}, not {technology!r}")


def memory_mapping(rtlil: str, technology: str) -> MemoryMapping:
    """Chooses how Yosys maps the memories of a design to those that the technology has.

    Parameters
    ----------
    rtlil : str
        As Amaranth writes it.
    technology : str
        One of ``TECHNOLOGIES``.

    Raises
    ------
    TargetError
        If there is no such technology, or a memory that is written must begin with contents.
    """
    check_technology(technology)
    from slipstick_sim.toolchain import without_zeros

    design = without_zeros(rtlil)
    _check_contents(design)
    shapes = large_shapes(design) if technology == SRAM else ()
    if not shapes:
        return MemoryMapping(design, "memory_collect\nmemory_map\nopt_clean\n", {})
    commands = [_ignore_collisions(shape) for shape in shapes]
    commands += [f"read_verilog -lib {_CELLS}", "memory_collect"]
    files = {_CELLS: "\n".join(wrappers().values())}
    for shape in shapes:
        library = f"{shape.words}x{shape.bits}_{_LIBRARY}"
        files[library] = "".join(_library_entries(shape))
        options = f"-logic-cost-ram 1000000 -lib {library}"
        commands.append(f"memory_libmap {options} {memories_of(shape)}")
    files[_TECHMAP] = "".join(text for shape in shapes for text in _techmap_modules(shape))
    commands += [f"techmap -autoproc -map {_TECHMAP}", "memory_map", "opt_clean"]
    return MemoryMapping(design, "\n".join(commands) + "\n", files)


def large_shapes(rtlil: str) -> tuple[MemoryShape, ...]:
    """The shapes of memories that are worth a macro, each once, in order."""
    found = {MemoryShape(int(words), int(bits)) for bits, words in _MEMORY.findall(rtlil)}
    return tuple(sorted(shape for shape in found if shape.is_large))


def memories_of(shape: MemoryShape) -> str:
    """Selects the memories of a shape, for Yosys; after ``memory_collect``."""
    return f"t:$mem_v2 r:SIZE={shape.words} %i r:WIDTH={shape.bits} %i"


def with_macros(rtlil: str) -> str:
    """A design of which each large memory is an instance of a wrapper, RTLIL.

    Raises
    ------
    TargetError
        As of ``memory_mapping``.
    ToolError
        If Yosys is missing or fails.
    """
    from slipstick_sim.toolchain import run_full_yosys

    mapping = memory_mapping(rtlil, SRAM)
    with tempfile.TemporaryDirectory(prefix="slipstick.") as name:
        folder = Path(name)
        mapping.write(folder)
        script = f"read_rtlil {DESIGN}\nhierarchy -auto-top\nproc\n{mapping.commands}"
        run_full_yosys(f"{script}write_rtlil mapped.il\n", cwd=folder)
        return (folder / "mapped.il").read_text("utf-8")


def _check_contents(rtlil: str) -> None:
    """Only what is never written may begin with contents: it becomes logic."""
    for module in _MODULE.finditer(rtlil):
        filled, written = set[str](), set[str]()
        for kind, name in _IDENTIFIER.findall(module[2]):
            (filled if kind == "meminit" else written).add(name)
        for name in sorted(filled & written):
            raise TargetError(
                f"memory {module[1]}.{name} must not begin with contents, as it is written, and"
                " silicon begins with anything"
            )


def _ignore_collisions(shape: MemoryShape) -> str:
    """No block uses a word that is read while it is written: macros may make it anything."""
    return (
        f"setparam -set COLLISION_X_MASK 1'1 t:$memrd_v2 r:WIDTH={shape.bits} %i"
        f" r:ABITS={shape.address_bits} %i r:CLK_ENABLE=1 %i"
    )


def _granularities(shape: MemoryShape) -> tuple[int, ...]:
    """Bits that share a write enable: the whole word, or bytes of 8 or 9 bits."""
    parts = [part for part in (8, 9) if shape.bits > part and shape.bits % part == 0]
    return (shape.bits, *parts[:1])


@dataclass(frozen=True)
class _Kind:
    """A kind of macro of one shape.

    ``is_momentary``: nobody needs what was read a cycle later.
    """

    shape: MemoryShape
    ports: int
    write_bits: int
    is_momentary: bool

    @property
    def cell_name(self) -> str:
        """Yosys' name for it."""
        end = "_MOMENTARY" if self.is_momentary else ""
        return f"$__SRAM_{self.shape.words}X{self.shape.bits}_{self.ports}_{self.write_bits}{end}"


def _kinds(shape: MemoryShape) -> Iterator[_Kind]:
    for is_momentary in (False, True):
        for ports in WRAPPERS:
            for write_bits in _granularities(shape):
                yield _Kind(shape, ports, write_bits, is_momentary)


def _library_entries(shape: MemoryShape) -> Iterator[str]:
    """Every kind of macro of this shape; costs say which is taken if several would do."""
    for kind in _kinds(shape):
        cost = 10 * kind.ports + (kind.write_bits < shape.bits)
        yield _LIBRARY_ENTRY.format(
            name=kind.cell_name,
            address_bits=shape.address_bits,
            bits=shape.bits,
            byte=f"  byte {kind.write_bits};\n" if kind.write_bits < shape.bits else "",
            # so dear that only the mark brings it
            cost=100 * cost if kind.is_momentary else cost,
            style=f'  style "{MOMENTARY}";\n' if kind.is_momentary else "",
            second=_SECOND_PORT if kind.ports == 2 else "",
        )


def _techmap_modules(shape: MemoryShape) -> Iterator[str]:
    return map(_techmap_module, _kinds(shape))


def _techmap_module(kind: _Kind) -> str:
    """The macro, and where a read may be held for longer than a cycle, a register that holds it."""
    shape, ports, write_bits = kind.shape, kind.ports, kind.write_bits
    letters = "AB"[:ports]
    mask_bits = shape.bits // write_bits
    word, address = f"[{shape.bits - 1}:0]", f"[{shape.address_bits - 1}:0]"
    declarations = [f"input {address} PORT_{letter}_ADDR;" for letter in letters]
    declarations += [f"input PORT_{letter}_CLK, PORT_{letter}_RD_EN;" for letter in letters]
    declarations += [f"output {word} PORT_{letter}_RD_DATA;" for letter in letters]
    declarations += [f"input {word} PORT_A_WR_DATA;", f"input [{mask_bits - 1}:0] PORT_A_WR_EN;"]
    names = ", ".join(
        [f"PORT_{letter}_{port}" for letter in letters for port in ("CLK", "ADDR", "RD_EN")]
        + [f"PORT_{letter}_RD_DATA" for letter in letters]
        + ["PORT_A_WR_DATA", "PORT_A_WR_EN"]
    )
    second = ",\n      .clk1(PORT_B_CLK), .csb1(!PORT_B_RD_EN), .addr1(PORT_B_ADDR), .dout1(read_B)"
    reads = "".join(_read(letter, word, is_held=not kind.is_momentary) for letter in letters)
    return f"""module \\{kind.cell_name} ({names});
  {" ".join(declarations)}
  wire writes = |PORT_A_WR_EN;
{reads}
  {WRAPPERS[ports]} #(
      .WORDS({shape.words}), .BITS({shape.bits}), .WRITE_BITS({write_bits}),
      .ADDRESS_BITS({shape.address_bits}), .MASK_BITS({mask_bits})
  ) _TECHMAP_REPLACE_ (
      .clk0(PORT_A_CLK), .csb0(!(writes | PORT_A_RD_EN)), .web0(!writes), .wmask0(PORT_A_WR_EN),
      .addr0(PORT_A_ADDR), .din0(PORT_A_WR_DATA), .dout0(read_A){second if ports == 2 else ""}
  );
endmodule
"""


def _read(letter: str, word: str, *, is_held: bool) -> str:
    """Writes the Verilog of a port's reads.

    A macro gives a word for a cycle, the memory until the next read.
    """
    if not is_held:
        return f"""  wire {word} read_{letter};
  assign PORT_{letter}_RD_DATA = read_{letter};
"""
    return f"""  parameter _TECHMAP_CONSTMSK_PORT_{letter}_RD_EN_ = 0;
  wire {word} read_{letter};
  generate if (_TECHMAP_CONSTMSK_PORT_{letter}_RD_EN_) begin
    assign PORT_{letter}_RD_DATA = read_{letter};
  end else begin
    reg fresh_{letter}; reg {word} held_{letter};
    always @(posedge PORT_{letter}_CLK) fresh_{letter} <= PORT_{letter}_RD_EN;
    always @(posedge PORT_{letter}_CLK) held_{letter} <= PORT_{letter}_RD_DATA;
    assign PORT_{letter}_RD_DATA = fresh_{letter} ? read_{letter} : held_{letter};
  end endgenerate
"""
