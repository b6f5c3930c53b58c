"""LEF files of cells: vias and spacings of metal, and obstructions that magic can check."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import TargetError

_LAYER = re.compile(r"^LAYER (\w+)\n(.*?)^END \1$", re.M | re.S)
_VIA = re.compile(r"^VIA (\w+)[^\n]*\n(.*?)^END \1$", re.M | re.S)
_PAD = re.compile(
    r"^\s*LAYER (metal\d+) ;\s*RECT (-?[\d.]+) (-?[\d.]+) (-?[\d.]+) (-?[\d.]+) ;", re.M
)
_NUMBER = r"^\s*{}\s+(\d*\.?\d+)\s*;"
_OBSTRUCTIONS = re.compile(r"^ *OBS *\n.*?^ *END *\n", re.M | re.S)
_PIECE = re.compile(r"^\s*(?:LAYER (\w+) ;|RECT (\S+) (\S+) (\S+) (\S+) ;)\s*$")

_GRID = 1e-6
"""Micrometres below which a difference is one of rounding."""


@dataclass(frozen=True)
class Metal:
    """Rules of the metals, micrometres.

    Parameters
    ----------
    width, spacing : mapping of float by layer
        The smallest that are allowed.
    pads : mapping of (half width, half height) by (via, layer)
        Of each default via, around its middle.
    """

    width: Mapping[str, float]
    spacing: Mapping[str, float]
    pads: Mapping[tuple[str, str], tuple[float, float]]


def read_metal(text: str) -> Metal:
    """Reads a LEF file's rules; TargetError if it has no metal or no via between metals."""
    width, spacing = dict[str, float](), dict[str, float]()
    for name, body in _LAYER.findall(text):
        for found, attribute in ((width, "WIDTH"), (spacing, "SPACING")):
            number = re.search(_NUMBER.format(attribute), body, re.M)
            if name.startswith("metal") and number is not None:
                found[name] = float(number[1])
    pads = dict[tuple[str, str], tuple[float, float]]()
    for via, body in _VIA.findall(text):
        for layer, *corners in _PAD.findall(body):
            left, low, right, high = map(_number, corners)
            pads[via, layer] = (right - left) / 2, (high - low) / 2
    if not width or not spacing or not pads:
        raise TargetError("a LEF file must have metal layers with their rules, and vias")
    return Metal(width, spacing, pads)


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise TargetError(f"a rectangle of a LEF file must have numbers, not {word!r}") from None


def without_slivers(text: str, metal: Metal) -> tuple[str, int]:
    """Leaves out obstructions of cells that are narrower than any wire may be.

    The program that wrote the file has cut room for pins out of wider pieces, and these are what
    is left. They are no metal of the cell, and magic would call each an error of width.

    Returns
    -------
    tuple of (str, int)
        The file's text, and how many were left out.
    """
    removed = 0

    def clean(match: re.Match[str]) -> str:
        nonlocal removed
        lines, least = list[str](), 0.0
        for line in match[0].splitlines(keepends=True):
            found = _PIECE.match(line)
            if found is not None and found[1] is not None:
                least = metal.width.get(found[1], 0.0)
            elif found is not None:
                left, low, right, high = map(_number, found.groups()[1:])
                if min(right - left, high - low) < least - _GRID:
                    removed += 1
                    continue
            lines.append(line)
        return "".join(lines)

    return _OBSTRUCTIONS.sub(clean, text), removed
