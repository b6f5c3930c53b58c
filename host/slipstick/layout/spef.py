"""SPEF, the wires of a layout as OpenSTA reads them."""

from collections.abc import Callable, Iterator

from ..errors import TargetError
from .parasitics import PIN, Branch, Wire
from .spice import Extracted, identifier

_HEADER = """*SPEF "IEEE 1481-1998"
*DESIGN "{design}"
*DATE "-"
*VENDOR "Slipstick"
*PROGRAM "slipstick layout"
*VERSION "1"
*DESIGN_FLOW "NETLIST_TYPE_VERILOG"
*DIVIDER /
*DELIMITER :
*BUS_DELIMITER [ ]
*T_UNIT 1 NS
*C_UNIT 1 PF
*R_UNIT 1 OHM
*L_UNIT 1 HENRY
"""

_CONTACT_OHMS = 0.001
"""Between a wire and a pin, which are one: SPEF wants them as two nodes."""


def spef(
    wires: list[Wire],
    found: Extracted,
    is_output: Callable[[str, str], bool],
    inputs: frozenset[str],
) -> str:
    """Writes wires as SPEF.

    The router knows how resistance and capacitance lie along a net, but counts one edge of a wire
    and no neighbours. So the capacitances of a net are scaled to the sum that magic has extracted.

    Parameters
    ----------
    wires : list of Wire
    found : Extracted
        The layout, whose names are used; a net without a capacitance in it keeps the router's.
    is_output : callable
        Whether a pin of an instance drives its net.
    inputs : frozenset of str
        Ports that drive their nets.

    Raises
    ------
    TargetError
        If a wire's driver is not in the layout.
    """
    pins, parts = found.pins, [_HEADER.format(design=found.name)]
    loads = dict[str, list[tuple[str, str]]]()
    for end, net in pins.items():
        loads.setdefault(net, []).append(end)
    for wire in wires:
        instance, pin = wire.driver
        net = pin if instance == PIN else pins.get(wire.driver)
        if net is None:
            raise TargetError(
                f"net {wire.net} must have a driver in the layout, not {instance}/{pin}"
            )
        writer = _NetWriter(wire, net, found.capacitances.get(net), loads.get(net, []))
        parts += writer.lines(is_output, inputs)
    return "\n".join([*parts, ""])


class _NetWriter:
    """Writes one net."""

    def __init__(
        self, wire: Wire, net: str, femtofarads: float | None, loads: list[tuple[str, str]]
    ) -> None:
        self._wire, self._name = wire, identifier(net)
        routed = wire.tree.total_picofarads
        self._total = routed if femtofarads is None else femtofarads / 1000
        self._scale = self._total / routed if routed else 0.0
        ends = dict.fromkeys([wire.driver, *wire.tree.all_ends])
        self._lost = [load for load in loads if load not in ends]
        self._ends = [*ends, *self._lost]
        # a route with a loop comes to a pin twice
        self._open = set(self._ends)
        self._capacitances = list[str]()
        self._resistances = list[str]()

    def lines(self, is_output: Callable[[str, str], bool], inputs: frozenset[str]) -> Iterator[str]:
        """The net's total, its pins, and its wires."""
        yield f"*D_NET {self._name} {self._total:.6g}"
        yield "*CONN"
        for end in self._ends:
            instance, pin = end
            if instance == PIN:
                yield f"*P {_node(end)} {'I' if pin in inputs else 'O'}"
            else:
                yield f"*I {_node(end)} {'O' if is_output(instance, pin) else 'I'}"
        if not self._scale:
            self._capacitances.append(f"{_node(self._wire.driver)} {self._total:.6g}")
        self._walk(self._wire.tree, _node(self._wire.driver))
        # what the router has lost is behind its first piece, and no further
        for end in self._lost:
            self._resistances.append(f"{self._name}:1 {_node(end)} {_CONTACT_OHMS}")
        yield "*CAP"
        yield from (f"{k} {text}" for k, text in enumerate(self._capacitances, 1))
        yield "*RES"
        yield from (f"{k} {text}" for k, text in enumerate(self._resistances, 1))
        yield "*END"

    def _walk(self, branch: Branch, begin: str) -> None:
        """Adds a piece's resistance, half of its capacitance at either end, and all behind it."""
        far = f"{self._name}:{len(self._resistances) + 1}"
        half = branch.picofarads * self._scale / 2
        self._resistances.append(f"{begin} {far} {max(branch.ohms, _CONTACT_OHMS):.6g}")
        self._capacitances += [f"{begin} {half:.6g}", f"{far} {half:.6g}"]
        for end in [end for end in branch.ends if end in self._open]:
            self._open.discard(end)
            self._resistances.append(f"{far} {_node(end)} {_CONTACT_OHMS}")
        for inner in branch.branches:
            self._walk(inner, far)


def _node(end: tuple[str, str]) -> str:
    """A pin, or a port, as a node."""
    instance, pin = end
    return identifier(pin) if instance == PIN else f"{identifier(instance)}:{pin}"
