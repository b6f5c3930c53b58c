"""The register map for people: a table and pictures. Needs no Amaranth."""

from collections.abc import Iterator

from .registers import WORD_BITS, Register, RegisterMap


def table(registers: RegisterMap) -> str:
    """All fields as a table in Markdown."""
    lines = ["| offset | register | bits | field | access | what |", "|---|---|---|---|---|---|"]
    for register in registers:
        for field in register.fields:
            lines.append(
                f"| 0x{register.offset:02x} | `{register.name}` | {field.bits} | `{field.name}` |"
                f" {field.access.text} | {field.doc} |"
            )
    return "\n".join(lines) + "\n"


def pictures(registers: RegisterMap) -> str:
    """A picture of every register with more than one field."""
    drawn = [register for register in registers if len(register.fields) > 1]
    return "\n".join(picture(register) for register in drawn)


def picture(register: Register) -> str:
    """Fields from the highest bit to the lowest, each as wide as its name needs."""
    cells = list(reversed(list(_cells(register))))
    widths = [max(len(bits), len(name)) + 2 for bits, name in cells]
    rule = "+" + "+".join("-" * width for width in widths) + "+"
    head = " " + " ".join(
        bits.center(width) for (bits, _), width in zip(cells, widths, strict=True)
    )
    body = "|".join(name.center(width) for (_, name), width in zip(cells, widths, strict=True))
    title = f"0x{register.offset:02x} {register.name}"
    return "\n".join((title, head.rstrip(), rule, f"|{body}|", rule)) + "\n"


def _cells(register: Register) -> Iterator[tuple[str, str]]:
    """Bits and name of every field from bit 0 up, and of what is 0 between them."""
    end = 0
    for field in register.fields:
        if field.low > end:
            yield _gap(end, field.low), "0"
        yield field.bits, field.name
        end = field.low + field.width
    if end < WORD_BITS:
        yield _gap(end, WORD_BITS), "0"


def _gap(low: int, end: int) -> str:
    return f"{end - 1}:{low}" if end - low > 1 else str(low)
