"""Passes over a netlist, after which its Verilog is plain: equal widths, nothing left unused."""

from .netlist import FLIP_FLOPS, Bit, Cell, Netlist, NetlistError

_ARITHMETIC = {"$add", "$sub", "$mul", "$neg"}
_BITWISE = {"$and", "$or", "$xor", "$xnor", "$not", "$mux", "$pmux"}
_COMPARISONS = {"$eq", "$ne", "$eqx", "$nex", "$lt", "$le", "$gt", "$ge"}
_LOGIC = {"$logic_not", "$logic_and", "$logic_or"}
_REDUCTIONS = {"$reduce_or", "$reduce_and", "$reduce_xor", "$reduce_xnor", "$reduce_bool"}
_SHIFTS = {"$shl", "$shr", "$sshl", "$sshr", "$shift", "$shiftx"}
_KNOWN = (_ARITHMETIC | _BITWISE | _COMPARISONS | _LOGIC | _REDUCTIONS | _SHIFTS | FLIP_FLOPS) | {
    "$mem_v2"
}


def tidy(netlist: Netlist) -> None:
    """Applies all passes in place.

    Raises
    ------
    NetlistError
        If there is a cell that the passes do not know.
    """
    for cell in netlist.cells:
        if cell.kind not in _KNOWN and not cell.is_black_box:
            raise NetlistError(f"a netlist must be of known cells, not of {cell.kind}")
    _split_choices(netlist)
    _shorten_conditions(netlist)
    while _drop_unused(netlist):
        pass
    for cell in netlist.cells:
        _equalise(netlist, cell)
    _read_inputs(netlist)


def _split_choices(netlist: Netlist) -> None:
    """A choice among many becomes a chain of choices between two.

    At most one of a $pmux's selects is 1, so any order does.
    """
    cells = []
    for cell in netlist.cells:
        if cell.kind != "$pmux":
            cells.append(cell)
            continue
        width, value = cell.number("WIDTH"), cell.ports["A"]
        for index, select in enumerate(cell.ports["S"]):
            last = index == len(cell.ports["S"]) - 1
            chosen = cell.ports["B"][index * width : (index + 1) * width]
            result = cell.ports["Y"] if last else netlist.new_bits(width)
            ports = {"A": value, "B": chosen, "S": [select], "Y": result}
            cells.append(Cell("$mux", {"WIDTH": f"{width:032b}"}, ports, frozenset({"Y"})))
            value = result
    netlist.cells = cells


def _shorten_conditions(netlist: Netlist) -> None:
    """Logic operators work on single bits: a word is compared with 0, or reduced, before."""
    cells = []
    for cell in netlist.cells:
        if cell.kind == "$logic_not" and len(cell.ports["A"]) > 1:
            width = len(cell.ports["A"])
            cell.kind = "$eq"
            cell.ports["B"] = ["0"] * width
            cell.parameters |= {"B_SIGNED": f"{0:032b}", "B_WIDTH": f"{width:032b}"}
            cell.set_number("A_SIGNED", 0)
        elif cell.kind in _LOGIC:
            for port in sorted({"A", "B"} & set(cell.ports)):
                if len(cell.ports[port]) > 1:
                    cells.append(_reduction(netlist, cell.ports[port]))
                    cell.ports[port] = cells[-1].ports["Y"]
                    cell.set_number(f"{port}_WIDTH", 1)
                cell.set_number(f"{port}_SIGNED", 0)
        cells.append(cell)
    netlist.cells = cells


def _reduction(netlist: Netlist, bits: list[Bit]) -> Cell:
    parameters = {"A_SIGNED": 0, "A_WIDTH": len(bits), "Y_WIDTH": 1}
    return Cell(
        "$reduce_or",
        {name: f"{value:032b}" for name, value in parameters.items()},
        {"A": bits, "Y": netlist.new_bits(1)},
        frozenset({"Y"}),
    )


def _read_inputs(netlist: Netlist) -> None:
    """Bits of ports that nothing reads, as a bus may have, end in a net that is not used."""
    used = netlist.used_bits()
    inputs = [
        bit
        for direction, bits in netlist.ports.values()
        for bit in bits
        if direction == "input" and bit not in used
    ]
    if inputs:
        netlist.cells.append(_reduction(netlist, inputs))


def _drop_unused(netlist: Netlist) -> bool:
    """Takes away cells, and bits of cells, that nothing reads; False if there were none."""
    used = netlist.used_bits()
    changed = False
    cells = []
    for cell in netlist.cells:
        outputs = [bit for port in cell.outputs for bit in cell.ports[port]]
        if not any(bit in used for bit in outputs):
            changed = True
            continue
        if cell.kind in _BITWISE:
            changed |= _keep_bits(cell, "Y", [bit in used for bit in cell.ports["Y"]], _BIT_PORTS)
        elif cell.kind in FLIP_FLOPS:
            changed |= _keep_bits(cell, "Q", [bit in used for bit in cell.ports["Q"]], ("D", "Q"))
        elif cell.kind in _ARITHMETIC:
            changed |= _cut_top(cell, used)
        cells.append(cell)
    netlist.cells = cells
    return changed


_BIT_PORTS = ("A", "B", "Y")


def _keep_bits(cell: Cell, output: str, keep: list[bool], ports: tuple[str, ...]) -> bool:
    """Leaves the places of a cell whose bits do not meet that are to be kept."""
    if all(keep):
        return False
    width = len(keep)
    for port in ports:
        if port in cell.ports:
            bits = _extended(cell, port, width) if port != output else cell.ports[port]
            cell.ports[port] = [bit for bit, kept in zip(bits, keep, strict=True) if kept]
            if f"{port}_WIDTH" in cell.parameters:
                cell.set_number(f"{port}_WIDTH", sum(keep))
            if f"{port}_SIGNED" in cell.parameters:
                cell.set_number(f"{port}_SIGNED", 0)
    if "WIDTH" in cell.parameters:
        cell.set_number("WIDTH", sum(keep))
    if "SRST_VALUE" in cell.parameters:
        text = cell.parameters["SRST_VALUE"]
        places = zip(text, reversed(keep), strict=True)
        cell.parameters["SRST_VALUE"] = "".join(bit for bit, kept in places if kept)
    return True


def _cut_top(cell: Cell, used: set[Bit]) -> bool:
    """Makes a result as short as its highest bit that is read: lower ones do not depend on it."""
    result = cell.ports["Y"]
    width = max(place for place, bit in enumerate(result) if bit in used) + 1
    if width == len(result):
        return False
    cell.ports["Y"] = result[:width]
    cell.set_number("Y_WIDTH", width)
    return True


def _signed(cell: Cell) -> bool:
    """Tells whether operands are extended by their sign: only if all of them are signed."""
    return all(cell.number(name) for name in cell.parameters if name.endswith("_SIGNED"))


def _extended(cell: Cell, port: str, width: int) -> list[Bit]:
    """An operand cut or extended to a width."""
    bits = cell.ports[port]
    if f"{port}_WIDTH" not in cell.parameters:
        return bits
    filler = bits[-1] if _signed(cell) else "0"
    return (bits + [filler] * (width - len(bits)))[:width]


def _equalise(netlist: Netlist, cell: Cell) -> None:
    """Gives operands and result the width that Verilog's rules would extend them to."""
    if cell.kind in _COMPARISONS:
        _widen(cell, max(len(cell.ports["A"]), len(cell.ports["B"])), keep_sign=True)
        _check_result(cell)
    elif cell.kind in _REDUCTIONS | _LOGIC:
        _check_result(cell)
    elif cell.kind in {"$add", "$sub", "$neg"} | (_BITWISE - {"$mux", "$pmux"}):
        _widen(cell, len(cell.ports["Y"]), keep_sign=False)
    elif cell.kind in _SHIFTS - {"$shiftx"}:
        _equalise_shift(netlist, cell)


def _widen(cell: Cell, width: int, *, keep_sign: bool) -> None:
    signed = _signed(cell)
    extended = {port: _extended(cell, port, width) for port in ("A", "B") if port in cell.ports}
    for port, bits in extended.items():
        cell.ports[port] = bits
        cell.set_number(f"{port}_WIDTH", width)
        cell.set_number(f"{port}_SIGNED", int(signed and keep_sign))


def _check_result(cell: Cell) -> None:
    if len(cell.ports["Y"]) > 1:
        raise NetlistError(f"the result of {cell.kind} must be a bit, not {len(cell.ports['Y'])}")


def _equalise_shift(netlist: Netlist, cell: Cell) -> None:
    """A word is shifted as long as it is, and what of it is not wanted stays unused."""
    operand, result = cell.ports["A"], cell.ports["Y"]
    missing = len(operand) - len(result)
    if missing > 0:
        cell.ports["Y"] = result + netlist.new_bits(missing)
        cell.set_number("Y_WIDTH", len(operand))
    elif missing < 0:
        filler = operand[-1] if cell.number("A_SIGNED") else "0"
        cell.ports["A"] = operand + [filler] * -missing
        cell.set_number("A_WIDTH", len(result))
