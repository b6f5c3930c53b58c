"""Pooling: operators of windows over a picture. docs/how-to/add-operator.md adds one."""

from .record import Family, OnnxForm, Operator, Pooling, Tflite

AVERAGE_POOL2D = Pooling(
    name="average_pool2d",
    doc="The mean of each window; padding does not count, or counts as zeros.",
    share=2.0,
    fuses_activation=True,
    keeps_codes=True,
    onnx="AveragePool",
    onnx_attributes={"count_include_pad": 0},
    # padding does not count
    onnx_form=OnnxForm("average_pool2d", {"counted": (0, 0, 0, 0)}),
    tflite=Tflite(code="AVERAGE_POOL_2D", version=2),
    dilated="dilated_average_pool2d",
)

MAX_POOL2D = Pooling(
    name="max_pool2d",
    doc="The largest code of each window.",
    share=2.0,
    fuses_activation=True,
    moves_codes=True,
    keeps_codes=True,
    onnx="MaxPool",
    onnx_attributes={"storage_order": 0},
    onnx_form=OnnxForm("max_pool2d"),
    tflite=Tflite(code="MAX_POOL_2D", version=2),
    dilated="dilated_max_pool2d",
)


def dilated(pooling: Pooling) -> Operator:
    """Returns the record of a pooling operator whose windows have gaps; the host runs it."""
    return Operator(
        name=pooling.dilated,
        family=Family.OTHER,
        doc=f"`{pooling.name}` of windows with gaps.",
        moves_codes=pooling.moves_codes,
    )


OPERATORS = (AVERAGE_POOL2D, MAX_POOL2D)
"""In the order in which the random generator draws them."""
