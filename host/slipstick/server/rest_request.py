"""Reads the body of an inference over REST: JSON, and the bytes behind it."""

import json
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from .datatypes import checked_shape, from_bytes, from_numbers
from .inference import InferenceRequest, JsonObject, RequestedOutput
from .refusals import bad_request

LENGTH_HEADER = "Inference-Header-Content-Length"
MOST_CLASSES = 1 << 16
_MOST_TENSORS = 256
_LENGTH_DIGITS = 12


def read_inference(body: bytes, json_length: str | None) -> InferenceRequest:
    """Reads an inference.

    Parameters
    ----------
    body : bytes
    json_length : str, optional
        The header ``Inference-Header-Content-Length``: bytes of JSON at the begin of the body.

    Raises
    ------
    RequestError
        If the body is not of the protocol's form; the message names the field and the rule.
    """
    split = len(body) if json_length is None else _json_bytes(json_length, len(body))
    request = _object("the request", _parsed(body[:split]))
    parameters = _parameters("the request", request)
    identity = request.get("id", "")
    if not isinstance(identity, str):
        raise bad_request(f"id must be text, not {_kind(identity)}")
    outputs = _list("outputs", request.get("outputs", []))
    binary = _flag("binary_data_output", parameters)
    data = _Data(body, split)
    inputs = dict(_inputs(_list("inputs", request.get("inputs")), data))
    data.check_end()
    return InferenceRequest(
        id=identity,
        inputs=inputs,
        outputs=tuple(_output(number, each, binary) for number, each in enumerate(outputs)),
        real_outputs=_flag("real_outputs", parameters),
        binary_outputs=binary,
    )


class _Data:
    """The bytes behind the JSON; inputs take theirs one behind the other."""

    def __init__(self, body: bytes, begin: int) -> None:
        self._body, self._at = body, begin

    def take(self, name: str, count: int) -> bytes:
        left = len(self._body) - self._at
        if not 0 <= count <= left:
            raise bad_request(
                f"input {name!r}: binary_data_size must be within the {left} bytes that are left"
                f" behind the JSON, not {count if count < 1 << 64 else 'a larger one'}"
            )
        self._at += count
        return self._body[self._at - count : self._at]

    def check_end(self) -> None:
        left = len(self._body) - self._at
        if left:
            raise bad_request(f"the body has {left} bytes behind the JSON that belong to no input")


def _json_bytes(text: str, whole: int) -> int:
    good = text.isascii() and text.isdigit() and len(text) <= _LENGTH_DIGITS
    if not good or int(text) > whole:
        raise bad_request(
            f"{LENGTH_HEADER} must be a number of bytes within the body's {whole}, not"
            f" {text[:40]!r}"
        )
    return int(text)


def _no_constant(word: str) -> NoReturn:
    raise bad_request(f"the request must be JSON, which has no {word}")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _parsed(text: bytes) -> Any:
    try:
        return _DECODER.decode(text.decode(json.detect_encoding(text), "surrogatepass"))
    except RecursionError:
        raise bad_request("the request must be JSON that is not nested so deeply") from None
    # what is no JSON, no UTF-8, or has thousands of digits
    except ValueError as error:
        raise bad_request(f"the request must be JSON: {str(error)[:200]}") from None


def _inputs(items: list, data: _Data) -> Iterator[tuple[str, np.ndarray]]:
    seen = set()
    for number, item in enumerate(items):
        tensor = _object(f"inputs[{number}]", item)
        name = _text(f"inputs[{number}]", tensor, "name")
        if name in seen:
            raise bad_request(f"input {name!r} is there twice")
        seen.add(name)
        datatype = _text(f"input {name!r}", tensor, "datatype")
        shape = checked_shape(name, tensor.get("shape"))
        size = _parameters(f"input {name!r}", tensor).get("binary_data_size")
        if (size is None) == ("data" not in tensor):
            raise bad_request(
                f"input {name!r} must have either data or the parameter binary_data_size"
            )
        if size is None:
            numbers = _list(f"data of input {name!r}", tensor["data"], most=None)
            yield name, from_numbers(name, datatype, shape, numbers)
            continue
        if type(size) is not int:
            raise bad_request(
                f"input {name!r}: binary_data_size must be a whole number, not {_kind(size)}"
            )
        yield name, from_bytes(name, datatype, shape, data.take(name, size))


def _output(number: int, item: object, binary: bool) -> RequestedOutput:
    tensor = _object(f"outputs[{number}]", item)
    name = _text(f"outputs[{number}]", tensor, "name")
    parameters = _parameters(f"output {name!r}", tensor)
    return RequestedOutput(
        name=name,
        classes=checked_classes(name, parameters.get("classification", 0)),
        is_binary=_flag("binary_data", parameters, binary),
    )


def checked_classes(name: str, value: object) -> int:
    """Returns the parameter ``classification`` of an output; RequestError if it is no count."""
    if type(value) is not int or not 0 <= value <= MOST_CLASSES:
        raise bad_request(
            f"output {name[:100]!r}: classification must be within 0..{MOST_CLASSES}, not"
            f" {value if type(value) is int and abs(value) < 1 << 64 else _kind(value)}"
        )
    return value


def _object(what: str, value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise bad_request(f"{what} must be an object, not {_kind(value)}")
    return value


def _parameters(what: str, value: JsonObject) -> JsonObject:
    return _object(f"parameters of {what}", value.get("parameters", {}))


def _list(what: str, value: object, most: int | None = _MOST_TENSORS) -> list:
    if not isinstance(value, list):
        raise bad_request(f"{what} must be a list, not {_kind(value)}")
    if most is not None and len(value) > most:
        raise bad_request(f"{what} must be at most {most}, not {len(value)}")
    return value


def _text(what: str, value: JsonObject, field: str) -> str:
    text = value.get(field)
    if not isinstance(text, str) or not 1 <= len(text) <= 1000:
        raise bad_request(f"{what}: {field} must be text of 1..1000 letters, not {_kind(text)}")
    return text


def _flag(name: str, parameters: JsonObject, default: bool = False) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise bad_request(f"parameter {name} must be true or false, not {_kind(value)}")
    return value


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "empty" if not value else "text"
        case list():
            return "a list"
        case _:
            return "an object"
