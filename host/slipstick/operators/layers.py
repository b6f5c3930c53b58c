"""Layers with weights."""

from .record import Family, OnnxForm, Operator


def _layer(name: str, doc: str, share: float, *, natural_view: bool = False) -> Operator:
    return Operator(
        name=name,
        family=Family.LAYER,
        doc=doc,
        share=share,
        fuses_activation=True,
        onnx_form=OnnxForm(name),
        natural_view=natural_view,
    )


OPERATORS = (
    _layer("conv2d", "Convolution, with groups and dilations.", 14.0, natural_view=True),
    _layer("depthwise_conv2d", "Depthwise convolution.", 8.0, natural_view=True),
    _layer("transpose_conv2d", "Transposed convolution; a pass makes a `conv2d` of it.", 2.0),
    _layer("fully_connected", "Product of rows and a constant matrix.", 4.0),
)
"""In the order in which the random generator draws them."""
