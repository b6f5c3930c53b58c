"""Wires that are added to a DEF file: straps that join rows of cells, fillings of notches."""

import re
from collections.abc import Iterator, Sequence

from ..errors import TargetError
from .def_file import via_places
from .lef import Metal

_SECTION = re.compile(r"^SPECIALNETS (\d+) ;\n(.*?)^END SPECIALNETS$", re.M | re.S)
_RAIL_VIA = re.compile(r"metal1 \d+ \( (-?\d+) (-?\d+) \) \( \* \* \) (\w+)")
_VIA_PAD = (
    r"^- {}\n(?:\+ RECT \w+ [^\n]*\n)*?\+ RECT {} \( (-?\d+) (-?\d+) \) \( (-?\d+) (-?\d+) \)"
)
_PINS = re.compile(r"^PINS (\d+) ;\n", re.M)
_END = " ;\n"
_UNITS = re.compile(r"^UNITS DISTANCE MICRONS ([1-9]\d*) ;", re.M)


def join_rows(text: str, layer: str, supplies: Sequence[str]) -> str:
    """Adds vertical straps with pins to a placed DEF file, where qflow has vias on the rails.

    With three metals qflow finds no vertical layer for its power stripes: it makes room for them
    and puts vias on every row's rails, and nothing joins these.

    Raises
    ------
    TargetError
        If the file has no such vias.
    """
    section = _SECTION.search(text)
    body = section[2] if section is not None else ""
    rails = [int(y) for _, y, _ in _RAIL_VIA.findall(body)]
    if section is None or not rails:
        raise TargetError("a DEF file must have vias on the rails of power and ground")
    pins = list[str]()
    for net in supplies:
        wires = re.search(rf"^- {net}\n.*?^ ;\n", body, re.M | re.S)
        if wires is None:
            raise TargetError(f"a DEF file must have the special net {net}")
        straps, pin = dict[int, str](), ""
        for x, _, via in _RAIL_VIA.findall(wires[0]):
            pad = re.search(_VIA_PAD.format(via, layer), text, re.M)
            if pad is None:
                raise TargetError(f"a DEF file must have via {via} with {layer}")
            half = (int(pad[4]) - int(pad[2])) // 2
            straps[int(x)] = (
                f"  NEW {layer} {int(pad[3]) - int(pad[1])} ( {x} {min(rails) - half} )"
                f" ( * {max(rails) + half} )\n"
            )
            pin = pin or (
                f"- {net} + NET {net}\n"
                f"  + LAYER {layer} ( {pad[1]} {pad[2]} ) ( {pad[3]} {pad[4]} )\n"
                f"  + PLACED ( {x} {min(rails)} ) N ;\n"
            )
        pins.append(pin)
        longer = "".join([wires[0].removesuffix(_END), *straps.values(), _END])
        body = body.replace(wires[0], longer)
    text = text[: section.start(2)] + body + text[section.end(2) :]
    return _PINS.sub(lambda old: f"PINS {int(old[1]) + len(pins)} ;\n{''.join(pins)}", text)


def fill_notches(text: str, metal: Metal) -> tuple[str, int]:
    """Fills gaps between neighbouring vias of a net, where they are smaller than the rules allow.

    Returns
    -------
    tuple of (str, int)
        The DEF file's text, and how many gaps were filled.

    Raises
    ------
    TargetError
        If the file has no units or no special nets.
    """
    units, section = _UNITS.search(text), _SECTION.search(text)
    if units is None or section is None:
        raise TargetError("a DEF file must have UNITS DISTANCE MICRONS and SPECIALNETS")
    scale = int(units[1])
    lines = [
        f"- {net}\n+ ROUTED {wire} ;\n"
        for net, vias in via_places(text).items()
        for wire in sorted(set(_fillings(vias, metal, scale)))
    ]
    if not lines:
        return text, 0
    header = f"SPECIALNETS {int(section[1]) + len(lines)} ;\n"
    added = header + "".join(lines) + section[2]
    return text[: section.start()] + added + text[section.end(2) :], len(lines)


def _fillings(vias: Sequence[tuple[str, int, int]], metal: Metal, scale: int) -> Iterator[str]:
    """Wires between vias that are too near to one another, pads of the same layer compared."""
    for k, (first, x, y) in enumerate(vias):
        for second, other_x, other_y in vias[k + 1 :]:
            if (x == other_x) == (y == other_y):
                continue
            along = 0 if y == other_y else 1
            distance = abs(x - other_x) + abs(y - other_y)
            for layer, spacing in metal.spacing.items():
                pads = [metal.pads.get((via, layer)) for via in (first, second)]
                if pads[0] is None or pads[1] is None:
                    continue
                gap = distance / scale - pads[0][along] - pads[1][along]
                if 1e-6 < gap < spacing - 1e-6:
                    width = round(2 * scale * min(pads[0][1 - along], pads[1][1 - along]))
                    (left, low), (right, high) = sorted([(x, y), (other_x, other_y)])
                    yield f"{layer} {width} ( {left} {low} ) ( {right} {high} )"
