"""Converts inferences between gRPC's messages and arrays."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .datatypes import BYTES, checked_shape, from_bytes, from_numbers, to_bytes
from .grpc_messages import message_class
from .inference import InferenceRequest, OutputTensor, RequestedOutput
from .models import ServedModel
from .refusals import bad_request
from .rest_request import checked_classes

_CONTENTS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    BYTES: "bytes_contents",
}
"""The field of a tensor's contents for each datatype."""
ModelInferResponse = message_class("ModelInferResponse")


def read_inference(message: Any) -> InferenceRequest:
    """Reads an inference from a ModelInferRequest.

    Raises
    ------
    RequestError
        If it breaks a rule of the protocol.
    """
    raw = message.raw_input_contents
    if raw and len(raw) != len(message.inputs):
        raise bad_request(
            f"raw_input_contents must be as many as the {len(message.inputs)} inputs, not"
            f" {len(raw)}"
        )
    names = [tensor.name for tensor in message.inputs]
    for name in names:
        if names.count(name) > 1:
            raise bad_request(f"input {name[:100]!r} is there twice")
    return InferenceRequest(
        id=message.id,
        inputs=dict(_inputs(message.inputs, raw)),
        outputs=tuple(_output(each) for each in message.outputs),
        real_outputs=_parameter(message.parameters, "real_outputs") is True,
    )


def _inputs(tensors: Sequence[Any], raw: Sequence[bytes]) -> Iterator[tuple[str, np.ndarray]]:
    for number, tensor in enumerate(tensors):
        name, datatype = tensor.name[:1000], tensor.datatype
        shape = checked_shape(name, list(tensor.shape))
        if raw:
            if tensor.HasField("contents"):
                raise bad_request(
                    f"input {name!r} must have either contents or raw_input_contents, not both"
                )
            yield name, from_bytes(name, datatype, shape, raw[number])
            continue
        numbers: list = []
        if datatype in _CONTENTS:
            numbers = list(getattr(tensor.contents, _CONTENTS[datatype]))
        yield name, from_numbers(name, datatype, shape, numbers)


def _output(tensor: Any) -> RequestedOutput:
    classes = _parameter(tensor.parameters, "classification") or 0
    return RequestedOutput(name=tensor.name, classes=checked_classes(tensor.name, classes))


def _parameter(parameters: Any, name: str) -> object:
    """A parameter's value; None: it is not there. Reading a map's field would add it."""
    if name not in parameters:
        return None
    value = parameters[name]
    choice = value.WhichOneof("parameter_choice")
    return None if choice is None else getattr(value, choice)


def inference_response(model: ServedModel, request: Any, outputs: Sequence[OutputTensor]) -> Any:
    """Returns the ModelInferResponse of a request; contents are raw if those of the request were.

    Parameters
    ----------
    model : ServedModel
    request : ModelInferRequest
    outputs : sequence of OutputTensor
    """
    response = ModelInferResponse(model_name=model.name, model_version=model.version, id=request.id)
    for output in outputs:
        tensor = response.outputs.add(name=output.name, datatype=output.datatype)
        tensor.shape.extend(output.array.shape)
        if request.raw_input_contents or output.datatype not in _CONTENTS:
            response.raw_output_contents.append(to_bytes(output.array))
        else:
            contents = getattr(tensor.contents, _CONTENTS[output.datatype])
            contents.extend(output.array.reshape(-1).tolist())
    return response
