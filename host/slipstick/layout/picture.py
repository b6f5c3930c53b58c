"""A picture of a layout, drawn by KLayout without a display."""

from pathlib import Path
from typing import Any

from ..errors import TargetError

LACKING = (
    "a picture of the layout needs the Python package klayout: pip install 'slipstick[layout]'"
)

_LAYERS = {
    43: ("active", 0x2F6B3C),
    46: ("poly", 0xB04A4A),
    49: ("metal 1", 0x5B8DEF),
    51: ("metal 2", 0xE05C5C),
    62: ("metal 3", 0x53B86B),
    31: ("metal 4", 0xE0A93B),
    33: ("metal 5", 0xA56BD6),
    37: ("metal 6", 0x49B9C4),
}
"""Layers of GDS as the technologies' magic files number them, and colours (RGB)."""

_BACKGROUND = "#0b0e14"


def draw_layout(gds: Path, picture: Path, *, width: int = 1200) -> None:
    """Draws metal, poly and active areas of a GDS file as a PNG.

    Parameters
    ----------
    gds : Path
    picture : Path
        Written.
    width : int
        In pixels; the height follows from the layout.

    Raises
    ------
    TargetError
        If the package klayout is missing, or the file cannot be read.
    """
    try:
        import klayout.lay as lay
    except ImportError:
        raise TargetError(LACKING) from None
    view = lay.LayoutView()
    view.set_config("background-color", _BACKGROUND)
    view.set_config("grid-visible", "false")
    view.set_config("text-visible", "false")
    try:
        view.load_layout(str(gds), False)
    except RuntimeError as error:
        raise TargetError(f"KLayout cannot read {gds}: {error}") from None
    view.max_hier()
    _colour(view)
    view.zoom_fit()
    box = view.active_cellview().cell.dbbox()
    height = max(200, round(width * box.height() / box.width()))
    view.save_image(str(picture), width, height)


def _colour(view: Any) -> None:
    """Shows known layers in their colours and nothing else."""
    iterator = view.begin_layers()
    while not iterator.at_end():
        layer = iterator.current()
        known = _LAYERS.get(layer.source_layer)
        layer.visible = known is not None
        if known is not None:
            layer.name, colour = known
            layer.fill_color = layer.frame_color = 0xFF000000 | colour
            layer.dither_pattern = 0
            layer.width = 0
            layer.transparent = True
        view.set_layer_properties(iterator, layer)
        iterator.next()
