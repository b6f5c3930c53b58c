"""Makes the responses of REST: JSON, and the bytes of outputs behind it."""

import json
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from .datatypes import to_bytes, to_numbers
from .inference import InferenceRequest, OutputTensor
from .models import ServedModel
from .refusals import Refusal, RequestError
from .rest_request import LENGTH_HEADER

_RETRY_SECONDS = "1"
_ENCODER = json.JSONEncoder(separators=(",", ":"))


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Returns a response of JSON."""
    text = _ENCODER.encode(value).encode()
    return Response(text, status, headers, media_type="application/json")


def error_response(error: RequestError) -> Response:
    """Returns the protocol's error object, with the status of its reason."""
    headers = {}
    if error.refusal in (Refusal.FULL, Refusal.UNAVAILABLE):
        headers["Retry-After"] = _RETRY_SECONDS
    if error.refusal is Refusal.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return json_response({"error": str(error)}, error.refusal.http_status, headers)


def inference_response(
    model: ServedModel, request: InferenceRequest, outputs: Sequence[OutputTensor]
) -> Response:
    """Returns the results of an inference; outputs that are binary behind the JSON."""
    entries, parts = [], []
    for output in outputs:
        entry: dict[str, Any] = {
            "name": output.name,
            "datatype": output.datatype,
            "shape": list(output.array.shape),
        }
        if output.is_binary:
            data = to_bytes(output.array)
            parts.append(data)
            entry["parameters"] = {"binary_data_size": len(data)}
        else:
            entry["data"] = to_numbers(output.array)
        entries.append(entry)
    result: dict[str, Any] = {"model_name": model.name, "model_version": model.version}
    if request.id:
        result["id"] = request.id
    result["outputs"] = entries
    if not parts:
        return json_response(result)
    text = _ENCODER.encode(result).encode()
    headers = {LENGTH_HEADER: str(len(text))}
    return Response(b"".join([text, *parts]), 200, headers, media_type="application/octet-stream")
