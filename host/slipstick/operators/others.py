"""Operators that are alone in their ways: conversions, normalisation, recurrent layers."""

from .record import Family, OnnxForm, Operator

OPERATORS = (
    Operator(
        name="dequantize",
        family=Family.CONVERSION,
        doc="Real numbers of codes.",
        onnx_form=OnnxForm("dequantize"),
    ),
    Operator(
        name="log_softmax",
        family=Family.NORMALIZATION,
        doc="The logarithm of softmax.",
        sums_floats=True,
        transcendental=True,
    ),
    Operator(
        name="layer_normalization",
        family=Family.NORMALIZATION,
        doc="x less its mean over its deviation, along some axes.",
        broadcasts=True,
        sums_floats=True,
    ),
    Operator(
        name="einsum",
        family=Family.OTHER,
        doc="A sum of products by an equation.",
        sums_floats=True,
    ),
    Operator(
        name="function",
        family=Family.OTHER,
        doc="A function of one number by ONNX's name, between real numbers.",
        sums_floats=True,
    ),
    Operator(name="lstm", family=Family.OTHER, doc="TensorFlow Lite's LSTM over a sequence."),
    Operator(name="recurrent", family=Family.OTHER, doc="ONNX's LSTM or GRU over a sequence."),
    Operator(
        name="dynamic_scale",
        family=Family.CONVERSION,
        doc="The scale that DynamicQuantizeLinear computes of an image.",
    ),
    Operator(
        name="dynamic_zero_point",
        family=Family.CONVERSION,
        doc="The zero point that DynamicQuantizeLinear computes of an image.",
    ),
    Operator(
        name="quantize_by",
        family=Family.CONVERSION,
        doc="Codes by computed scales and zero points.",
        broadcasts=True,
    ),
    Operator(
        name="dequantize_by",
        family=Family.CONVERSION,
        doc="Real numbers by computed scales and zero points.",
        broadcasts=True,
    ),
)
