"""Reductions of some axes."""

from .record import Family, OnnxForm, Operator

OPERATORS = (
    Operator(
        name="mean",
        family=Family.REDUCTION,
        doc="The mean over some axes.",
        share=1.0,
        onnx_form=OnnxForm("mean"),
        natural_view=True,
    ),
    Operator(
        name="reduce_max",
        family=Family.REDUCTION,
        doc="The largest code over some axes.",
        share=1.0,
        onnx_form=OnnxForm("reduce_max"),
        natural_view=True,
        moves_codes=True,
        keeps_codes=True,
    ),
    Operator(
        name="reduce_min",
        family=Family.REDUCTION,
        doc="The smallest code over some axes.",
        onnx_form=OnnxForm("reduce_min"),
        moves_codes=True,
    ),
    Operator(
        name="reduce_sum",
        family=Family.REDUCTION,
        doc="The sum over some axes.",
        natural_view=True,
    ),
    Operator(
        name="reduce",
        family=Family.REDUCTION,
        doc="ONNX's other reductions, in float32: sums, products, norms.",
        sums_floats=True,
    ),
    Operator(
        name="arg_max",
        family=Family.REDUCTION,
        doc="The place of the largest code along an axis.",
        onnx_form=OnnxForm("arg_max"),
        moves_codes=True,
    ),
    Operator(
        name="arg_min",
        family=Family.REDUCTION,
        doc="The place of the smallest code along an axis.",
        onnx_form=OnnxForm("arg_min"),
        moves_codes=True,
    ),
)
"""In the order in which the random generator draws them."""
