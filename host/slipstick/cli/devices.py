"""``slipstick devices``: the boards of this machine and of its networks."""

from typing import Any

from .. import console
from ..devices.found import FoundDevice, targets_of
from ..devices.kinds import KINDS
from .options import Json


def devices_command(json: Json = False) -> None:
    """List the places that may have a board: serial ports, SPI, USB, and boards on Ethernet."""
    with console.waiting("looking for boards"):
        entries = [_entry(kind.name, found) for kind in KINDS.values() for found in kind.find()]
    if json:
        console.print_json({"devices": entries})
    elif entries:
        columns = {
            "device": "text",
            "target": "left",
            "fingerprint": "left",
            "in use by": "left",
            "": "text",
        }
        rows = [
            [
                entry["device"],
                " ".join(entry["targets"]) or None,
                entry["fingerprint"],
                entry["owner"],
                entry["description"] or "",
            ]
            for entry in entries
        ]
        footer = (
            "A dash: none, or only opening it tells."
            " slipstick run MODEL --device DEVICE --target TARGET"
        )
        console.print_table("Devices", columns, rows, footer)
    else:
        console.print_line(
            "no device: no serial port, SPI controller or USB board is attached, and no board"
            " answers on Ethernet; slipstick serve-sim simulates one"
        )


def _entry(kind: str, found: FoundDevice) -> dict[str, Any]:
    return {
        "device": f"{kind}:{found.place}",
        "kind": kind,
        "place": found.place,
        "description": found.description or None,
        "fingerprint": found.fingerprint or None,
        "targets": targets_of(found.fingerprint) if found.fingerprint else [],
        "owner": found.owner or None,
    }
