"""Sums, products and the like of two tensors, element by element."""

from typing import Any

from .record import Family, OnnxForm, Operator


def _binary(name: str, doc: str, **fields: Any) -> Operator:
    return Operator(
        name=name, family=Family.BINARY, doc=doc, operands=2, **{"broadcasts": True, **fields}
    )


OPERATORS = (
    _binary("add", "a + b.", share=4.0, fuses_activation=True, onnx_form=OnnxForm("add")),
    _binary(
        "sub",
        "a - b.",
        share=1.0,
        fuses_activation=True,
        onnx_form=OnnxForm("add", {"negate": True}),
    ),
    _binary("mul", "a b.", share=1.0, fuses_activation=True, onnx_form=OnnxForm("mul")),
    _binary("squared_difference", "(a - b)^2.", share=0.3),
    _binary(
        "maximum",
        "The larger of a and b.",
        share=1.0,
        keeps_codes=True,
        onnx_form=OnnxForm("maximum"),
    ),
    _binary(
        "minimum",
        "The smaller of a and b.",
        share=1.0,
        keeps_codes=True,
        onnx_form=OnnxForm("minimum"),
    ),
    _binary("div", "a / b."),
    _binary("pow", "a^b.", sums_floats=True),
    _binary("where", "a or b, by a constant condition."),
    _binary(
        "matmul",
        "Product of two matrices.",
        broadcasts=False,
        sums_floats=True,
        onnx_form=OnnxForm("matmul"),
    ),
)
"""In the order in which the random generator draws them."""
