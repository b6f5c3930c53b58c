"""Writes the pages of ``PAGES`` in docs/reference from the code.

``python tools/generate_pages.py`` writes them; a test fails when they differ from the code.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from amaranth.lib.data import StructLayout
from slipstick.compiler.lower.table import MAKERS
from slipstick.operators import OPERATORS, Family, Operator, Pooling, Unary, entry
from slipstick.targets import DEFAULT_TARGET, TARGETS, Target
from slipstick_rtl import isa
from slipstick_rtl.config import Configuration
from slipstick_rtl.layouts import MATRIX_INSTRUCTION, post_instruction
from slipstick_rtl.number_formats import INT8_FORMAT
from slipstick_rtl.toplevel.board import Board
from slipstick_rtl.toplevel.registry import all_boards

ROOT = Path(__file__).parents[1]
WIDTH = 160
NOTE = "<!-- Written by tools/generate_pages.py; do not edit. -->"
_ROLE = re.compile(r":mod:`~?\.?([\w.]+)`")


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Returns the lines of a Markdown table; cells of numbers are aligned right."""
    right = [all(isinstance(row[column], int) for row in rows) for column in range(len(header))]
    lines = [header, ["---:" if numbers else "---" for numbers in right]]
    for row in rows:
        lines.append([f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row])
    return [f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines]


def member_docs(name: str) -> Iterator[tuple[str, int, str]]:
    """Yields name, value and docstring of each member of an enumeration of the ISA."""
    tree = ast.parse(Path(isa.__file__).read_text())
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    (body,) = [node.body for node in classes]
    for assigned, doc in zip(body, body[1:], strict=False):
        if (
            isinstance(assigned, ast.Assign)
            and isinstance(assigned.targets[0], ast.Name)
            and isinstance(assigned.value, ast.Constant)
            and isinstance(assigned.value.value, int)
            and isinstance(doc, ast.Expr)
            and isinstance(doc.value, ast.Constant)
        ):
            yield assigned.targets[0].id, assigned.value.value, markdown(str(doc.value.value))


def members(name: str) -> list[str]:
    """Returns the table of an enumeration of the ISA."""
    rows = [[f"{value}", member, " ".join(doc.split())] for member, value, doc in member_docs(name)]
    return table(["value", "name", "meaning"], rows)


def page(lines: Sequence[str]) -> str:
    """Returns the text of a page; paragraphs are wrapped, tables are not."""
    wrapped = []
    for line in "\n".join(lines).split("\n"):
        long = len(line) > WIDTH and not line.startswith("|")
        wrapped += textwrap.wrap(line, WIDTH, break_on_hyphens=False) if long else [line]
    return "\n".join(wrapped) + "\n"


def markdown(docstring: str) -> str:
    """Returns a docstring's text as Markdown: indented blocks stay code."""
    first, _, rest = docstring.partition("\n")
    lines = [line.removeprefix("    ") for line in rest.splitlines()]
    text = "\n".join([first, *lines]).rstrip()
    return re.sub(r"::$", ":", _ROLE.sub(r"`\1`", text), flags=re.MULTILINE)


def fields(layout: StructLayout, known: dict[str, isa.Field]) -> list[str]:
    """Returns the table of an instruction's fields."""
    rows = []
    for name, place in layout:
        last = place.offset + place.width - 1
        bits = f"{place.offset}" if place.width == 1 else f"{last}:{place.offset}"
        sign = "signed" if known[str(name)].signed else "unsigned"
        rows.append([f"`{name}`", bits, place.width, sign, known[str(name)].doc])
    return table(["field", "bits", "width", "sign", "meaning"], rows)


def isa_page() -> str:
    """Returns the page of the instruction set."""
    logarithmic = post_instruction(Configuration(number_format="lns1+3+4"))
    lines = [
        NOTE,
        "# Instruction set",
        "",
        f"Version {isa.ISA_VERSION}. An instruction takes {isa.WORDS_PER_INSTRUCTION} words of 32"
        " bits, little endian. Bits above its last field are ignored. Two instruction streams run"
        " side by side from one memory: the *matrix* stream (CONVOLVE, HALT) and the *post* stream"
        " (DRAIN, MAP, TABLE, HALT). Each instruction waits until the other stream has completed"
        " `wait` instructions since the counters were last cleared.",
        "",
        "R, C, P, L and W are the configuration's `rows`, `columns`, `pixels`, `lanes` and"
        " `weight_rows`. The source is `rtl/slipstick_rtl/isa.py`.",
        "",
        "## Opcodes",
    ]
    for name, value, text in member_docs("Opcode"):
        lines += ["", f"### {name} ({value})", "", text]
    lines += ["", "## Fields of HALT and CONVOLVE", ""]
    lines += fields(MATRIX_INSTRUCTION, dict(isa.MATRIX_FIELDS))
    lines += ["", "## Fields of HALT, DRAIN, MAP and TABLE", ""]
    lines += fields(logarithmic, dict(isa.POST_FIELDS))
    only = ", ".join(f"`{name}`" for name in sorted(INT8_FORMAT.absent_fields))
    lines += ["", f"Only hardware with a logarithmic number format has {only}.", ""]
    lines += ["## Rounding", "", "Values of the field `rounding`:", ""]
    lines += members("Rounding")
    for title, opcodes, option, flags in (
        ("Training", "DRAIN and MAP", "training", "TrainingFlag"),
        ("Products", "MAP", "products", "MapFlag"),
    ):
        lines += ["", f"## {title}", ""]
        lines += [f"Bits of `table_words` in {opcodes}, where the hardware has `{option}`:", ""]
        lines += members(flags)
    return page(lines)


def _memories(target: Target) -> list[object]:
    configuration = target.configuration
    return [
        f"`{target.name}`",
        configuration.activation_bytes,
        configuration.weight_bytes,
        configuration.instructions,
        configuration.accumulator_depth * configuration.accumulator_banks,
        configuration.payload_bytes,
    ]


def _array(target: Target) -> list[object]:
    configuration = target.configuration
    device = "simulated" if target.part is None else target.part.device
    return [
        f"`{target.name}`",
        device,
        configuration.shape,
        configuration.macs_per_cycle,
        configuration.lanes,
        configuration.number_format,
        configuration.engine,
        f"{configuration.clock_hz / 1e6:g}",
        f"`{configuration.fingerprint}`",
    ]


def _chip(board: Board) -> list[object]:
    part = board.part
    counts = [part.luts, part.block_rams, part.multipliers, part.large_ram_bytes]
    return [f"`{board.name}`", part.device, part.package, f"{board.oscillator_hz / 1e6:g}", *counts]


def _wires(board: Board) -> list[object]:
    wires = [
        pins.wire
        + (f" at {pins.options['baud']:,} baud" if "baud" in pins.options else "")
        + (f" ({pins.note})" if pins.note else "")
        for pins in board.wires
    ]
    programmer = board.programmer
    memory = "vendor's tool"
    if programmer is not None:
        memory = "SRAM, flash" if programmer.volatile else "flash"
    return [f"`{board.name}`", "; ".join(wires), memory, board.notes]


def targets_page() -> str:
    """Returns the page of the targets."""
    targets = list(TARGETS.values())
    array = ["target", "FPGA", "array", "MACs per cycle", "lanes", "numbers", "engine", "MHz"]
    memories = ["target", "activations", "weights", "instructions", "accumulators", "frame"]
    boards = list(all_boards().values())
    chip = ["board", "FPGA", "package", "oscillator, MHz", "LUT4", "block RAMs", "multipliers"]
    lines = [
        NOTE,
        "# Targets",
        "",
        f"A target is a configuration with a name. `{DEFAULT_TARGET}` is the default. A shape PxRxC"
        " such as `1x16x16` is a simulated target,",
        "and so is `sim-` with a logarithmic number format, such as `sim-lns1+4+3`."
        " `slipstick targets` also shows area and clock of the last builds.",
        "The source of the boards is `rtl/slipstick_rtl/boards`, of the other targets"
        " `host/slipstick/targets/__init__.py`.",
        "",
        "## Array",
        "",
        "MHz is the clock that the target is built for. Programs run on hardware of the same"
        " fingerprint only.",
        "",
        *table([*array, "fingerprint"], [_array(target) for target in targets]),
        "",
        "## Memories",
        "",
        "Activations, weights and the longest payload of a link frame are in bytes; parity bits of"
        " the weight memory are not counted. Accumulators are pixel groups of all banks.",
        "",
        *table(memories, [_memories(target) for target in targets]),
        "",
        "## Boards",
        "",
        "The FPGA's resources, as many as the vendor sells. ECP5 block RAMs have 18 kbit, and its"
        " multipliers are 18 x 18 bits; Gowin multipliers are 9 x 9 bits.",
        "",
        *table([*chip, "large RAM, bytes"], [_chip(board) for board in boards]),
        "",
        "The first wire is the default of `slipstick build --link`. A UART is that of the board's"
        " USB chip unless its pins are named.",
        "",
        *table(["board", "wires", "programmed into", "notes"], [_wires(board) for board in boards]),
    ]
    return page(lines)


FAMILIES = {
    Family.LAYER: "Layers with weights",
    Family.BINARY: "Two tensors, element by element",
    Family.POOLING: "Pooling",
    Family.REDUCTION: "Reductions",
    Family.UNARY: "Functions of one number",
    Family.NORMALIZATION: "Normalisation",
    Family.MOVEMENT: "Moves",
    Family.CONVERSION: "Conversions",
    Family.OTHER: "Others",
}
ARITHMETICS = {"tflm": "TFLite", "onnx": "ONNX", "lns": "LNS"}


def _names(operator: Operator) -> list[object]:
    """Returns an operator's names in files, where its record says them."""
    if not isinstance(operator, Unary | Pooling):
        return []
    return [operator.tflite.code if operator.tflite else "", operator.onnx]


def _device(operator: Operator) -> str:
    if isinstance(operator, Unary):
        return "table"
    found = [name for key, name in ARITHMETICS.items() if entry(MAKERS[key], operator.name)]
    return ", ".join(found)


def operators_page() -> str:
    """Returns the page of the operators."""
    lines = [
        NOTE,
        "# Operators",
        "",
        "The operators of the graph, into which front-ends turn those of a file. Each has one"
        " record in `host/slipstick/operators`. [Add an operator](../how-to/add-operator.md) shows"
        " how to write one. The pages of [TFLite](tflite.md) and [ONNX](onnx.md) networks say which"
        " cases run on the device.",
        "",
        'The column "device" names the semantics in which the device has the operator: those of'
        " TensorFlow Lite, of ONNX, and of logarithmic codes (LNS). All others run on the host. A"
        " function of one number is a table of 256 entries wherever its input and output have"
        " codes, and so are chains of them.",
    ]
    for family, title in FAMILIES.items():
        found = [operator for operator in OPERATORS.values() if operator.family is family]
        named = ["TFLite", "ONNX"] if any(map(_names, found)) else []
        rows = [
            [f"`{operator.name}`", *_names(operator), _device(operator), operator.doc]
            for operator in found
        ]
        lines += ["", f"## {title}", ""]
        lines += table(["operator", *named, "device", "result"], rows)
    return page(lines)


PAGES = {
    "docs/reference/isa.md": isa_page,
    "docs/reference/targets.md": targets_page,
    "docs/reference/operators.md": operators_page,
}
"""The functions that make each page."""


def main() -> None:
    """Writes the pages."""
    for place, make in PAGES.items():
        (ROOT / place).write_text(make())
        print(place)


if __name__ == "__main__":
    main()
