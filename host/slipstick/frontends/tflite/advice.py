"""Tells what would help: how a file is quantised, and what its operators that are not read are."""

from collections.abc import Collection

from ...errors import UnsupportedError
from .folding import FOLDED
from .reader import RawModel, RawOperator

_CONVERTER = (
    "tf.lite.TFLiteConverter makes codes of a Keras network with optimizations=[Optimize.DEFAULT],"
    " a representative_dataset and target_spec.supported_ops=[OpsSet.TFLITE_BUILTINS_INT8]"
)
_ONNX = "`slipstick quantize` of a float .onnx file"
_LISTED = "docs/reference/tflite.md"
_ACTIVATIONS = ("int8", "uint8", "int16")

_CONTROL_FLOW = ("IF", "WHILE", "CALL", "STABLEHLO_WHILE")

_KINDS = (
    (("LSTM", "RNN", "SVDF"), "a recurrent layer", "run it beside Slipstick"),
    (
        ("NON_MAX_SUPPRESSION", "TOPK", "DetectionPostProcess", "Detection_PostProcess"),
        "a choice among results",
        "end the network before it, and choose on the host",
    ),
    (
        ("ethos-u", "edgetpu"),
        "what another accelerator's compiler made",
        "take the file from before that",
    ),
    (
        ("CUSTOM 'Flex",),
        "an operator of TensorFlow's own",
        "convert with OpsSet.TFLITE_BUILTINS_INT8 alone, without SELECT_TF_OPS",
    ),
    (("CUSTOM",), "an operator of one runtime's own", "replace it by builtin ones"),
    (("STABLEHLO",), "an operator of StableHLO", "convert to TensorFlow Lite's builtin ones"),
    (
        ("SPACE_TO_BATCH", "BATCH_TO_SPACE"),
        "how old converters write dilated convolutions",
        "convert with TensorFlow 2.4 or later",
    ),
)
"""Parts of operators' names, what those are, and what helps."""


def refuse_unknown(model: RawModel, known: Collection[str], name: str) -> None:
    """UnsupportedError if operators are not read: it names the first, and others.

    What else is wrong with the network may be because of them, and need not be mended.

    Parameters
    ----------
    model : RawModel
    known : collection of str
        Operators that are read.
    name : str
        The file's, for messages.
    """
    unknown: dict[str, RawOperator] = {}
    for operator in model.operators:
        if operator.name not in known and operator.name not in FOLDED:
            unknown.setdefault(operator.name, operator)
    if not unknown:
        return
    first = next(iter(unknown.values()))
    others = [other for other in unknown if other != first.name]
    more = f", nor {', '.join(others[:4])}" if others else ""
    what, hint = kind_of(first.name)
    raise UnsupportedError(
        f"{name}: {first.name} (operator {first.index}){', ' if what else ''}{what} must be one of"
        f" the operators that {_LISTED} lists, and is not{more}{': ' if hint else ''}{hint}"
    )


def kind_of(operator: str) -> tuple[str, str]:
    """Names the kind of an operator that is not read, and what helps; "" if nothing is known."""
    if operator in _CONTROL_FLOW:
        return "control flow,", "convert the network without branches and loops"
    for parts, what, hint in _KINDS:
        if any(part in operator for part in parts):
            return f"{what},", hint
    return "", ""


def advice(model: RawModel) -> str:
    """Explains how a network with float32 operands comes to have codes instead."""
    computed = [tensor for tensor in model.tensors if tensor.data is None]
    if any(tensor.dtype in _ACTIVATIONS for tensor in computed):
        return (
            "the converter left this part of the network in float32, and of float32 Slipstick has"
            " only functions of one number, sums, products, SOFTMAX, LOG_SOFTMAX, FULLY_CONNECTED"
            " and moves"
        )
    held = {tensor.dtype for tensor in model.tensors if tensor.data is not None}
    if "int8" in held:
        return f"only the weights are quantised: {_CONVERTER}"
    if "float16" in held:
        return f"the weights are float16: {_CONVERTER}"
    return f"quantise the network: {_CONVERTER}; or take {_ONNX}"


def type_advice(dtype: str) -> str:
    """Explains how to avoid tensors of a type that is not read; "" if nothing is known."""
    match dtype:
        case "float32":
            return f"quantise the network: {_CONVERTER}"
        case "int16":
            return (
                "convert with OpsSet.TFLITE_BUILTINS_INT8, for activations of 8 bits, not with"
                " 16 bits"
            )
        case "int4" | "int2" | "uint4":
            return "convert with weights of 8 bits"
        case "float16" | "bfloat16":
            return f"the weights are {dtype}: {_CONVERTER}"
        case "float64" | "complex64" | "complex128":
            return "convert this part of the network to float32 at most"
        case "string":
            return "end or begin the network where there are numbers"
        case _:
            return ""
