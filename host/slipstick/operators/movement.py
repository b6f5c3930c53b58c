"""Operators that move numbers, and compute none."""

from typing import Any

from .record import Family, OnnxForm, Operator


def _movement(name: str, doc: str, *, alike: bool = True, **fields: Any) -> Operator:
    """``alike``: both semantics describe it with the same attributes."""
    return Operator(
        name=name,
        family=Family.MOVEMENT,
        doc=doc,
        onnx_form=OnnxForm(name) if alike else None,
        moves_codes=fields.pop("moves_codes", True),
        **fields,
    )


def _drawn(name: str, doc: str, **fields: Any) -> Operator:
    return _movement(name, doc, **{"share": 1.0, "keeps_codes": True, **fields})


OPERATORS = (
    _drawn("pad", "Rows, columns or channels of one code around the input."),
    _drawn("mirror_pad", "Rows and columns around the input, mirrored."),
    _drawn(
        "concatenation",
        "Tensors joined along an axis.",
        share=2.0,
        operands=2,
        # in ONNX's semantics it rescales codes
        moves_codes=False,
    ),
    _drawn("slice", "A box of the input; every n-th row or column of it."),
    _drawn("resize_nearest", "Rows and columns, repeated."),
    _drawn("space_to_depth", "Blocks of pixels become channels."),
    _drawn("depth_to_space", "Channels become blocks of pixels."),
    _drawn("reshape", "The same numbers in another shape."),
    _movement("resize_bilinear", "Rows and columns, interpolated.", alike=False, moves_codes=False),
    _movement(
        "resize",
        "ONNX's other ways of interpolation.",
        alike=False,
        moves_codes=False,
        sums_floats=True,
    ),
    _movement("transpose", "The axes in another order."),
    _movement("pack", "Tensors joined along a new axis."),
    _movement("tile", "The input, repeated along its axes; a pass makes copies of it."),
    _movement("edge_pad", "Rows and columns at the edge, repeated.", alike=False),
    _movement("expand", "The input, broadcast.", alike=False),
    _movement("gather", "Rows or columns by their places.", alike=False),
    _movement("pixel_shuffle", "Channels become blocks, by columns.", alike=False),
    _movement("pixel_unshuffle", "Blocks become channels, by columns.", alike=False),
    Operator(
        name="lookup",
        family=Family.OTHER,
        doc="A table of 256 codes.",
        moves_codes=True,
    ),
)
"""In the order in which the random generator draws them."""
