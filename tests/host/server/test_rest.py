"""The protocol over REST: metadata, JSON, bytes, classes, batches, and what is refused."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from slipstick import __version__
from slipstick.errors import DeviceError
from slipstick.runtime.pool.board import BoardState
from slipstick.server.models import ModelRepository
from slipstick.server.network_server import NetworkServer

INFER = "/v2/models/digits/infer"


def outputs_of(response: Any) -> tuple[dict[str, Any], bytes]:
    """The JSON of a response, and the bytes behind it."""
    assert response.status_code == 200, response.text
    length = response.headers.get("Inference-Header-Content-Length")
    split = len(response.content) if length is None else int(length)
    return json.loads(response.content[:split]), response.content[split:]


def test_metadata(client, bodies) -> None:
    server = client.get("/v2").json()
    assert (server["name"], server["version"]) == ("slipstick", __version__)
    assert "binary_tensor_data" in server["extensions"]
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}
    digits = client.get("/v2/models/digits").json()
    assert digits["versions"] == ["1"] and digits["platform"]
    (tensor,) = digits["inputs"]
    assert tensor["name"] == bodies.input and tensor["datatype"] == "INT8"
    assert tensor["shape"][0] == -1 and len(tensor["shape"]) == 4
    assert digits["outputs"] == [{"name": bodies.output, "datatype": "INT8", "shape": [-1, 10]}]
    assert client.get("/v2/models/other/versions/2").json()["versions"] == ["1", "2"]
    assert client.get("/v2/models/other/versions/2/ready").json() == {
        "name": "other",
        "ready": True,
    }
    index = client.post("/v2/repository/index", content=b"{}").json()
    assert [(each["name"], each["version"]) for each in index] == [
        ("digits", "1"),
        ("other", "1"),
        ("other", "2"),
    ]
    assert all(each["state"] == "READY" for each in index)


@pytest.mark.parametrize("count", [1, 3])
def test_json(client, bodies, images, expected, count: int) -> None:
    response = client.post(INFER, json=bodies.json(images[:count], id="a7"))
    result, rest = outputs_of(response)
    assert not rest and response.headers["content-type"] == "application/json"
    assert (result["model_name"], result["model_version"], result["id"]) == ("digits", "1", "a7")
    (output,) = result["outputs"]
    assert output["shape"] == [count, 10] and output["datatype"] == "INT8"
    assert output["data"] == expected[:count].reshape(-1).tolist()


def test_nested_data_and_no_batch_axis(client, bodies, images, expected) -> None:
    body = bodies.json(images[0])
    body["inputs"][0]["data"] = images[0].tolist()
    result, _ = outputs_of(client.post(INFER, json=body))
    assert result["outputs"][0]["data"] == expected[0].tolist()


def test_the_last_version_is_the_default(client, bodies, images) -> None:
    body = bodies.json(images[:1])
    result, _ = outputs_of(client.post("/v2/models/other/infer", json=body))
    assert result["model_version"] == "2"
    result, _ = outputs_of(client.post("/v2/models/other/versions/1/infer", json=body))
    assert result["model_version"] == "1"


def test_bytes_in_and_out(client, bodies, images, expected) -> None:
    content, headers = bodies.binary(images, parameters={"binary_data_output": True})
    response = client.post(INFER, content=content, headers=headers)
    result, rest = outputs_of(response)
    assert response.headers["content-type"] == "application/octet-stream"
    (output,) = result["outputs"]
    assert "data" not in output and output["parameters"] == {"binary_data_size": expected.nbytes}
    assert rest == expected.tobytes()
    # of the outputs that are named, each says for itself
    wanted = [{"name": bodies.output, "parameters": {"binary_data": False}}]
    content, headers = bodies.binary(
        images, outputs=wanted, parameters={"binary_data_output": True}
    )
    result, rest = outputs_of(client.post(INFER, content=content, headers=headers))
    assert not rest and result["outputs"][0]["data"] == expected.reshape(-1).tolist()


def test_pictures_and_real_numbers_are_converted(
    client, repository: ModelRepository, bodies, images, expected
) -> None:
    program = repository.models[0].program
    described = program.tensors[bodies.input]
    assert described.zero_point == -128 and described.scale is not None
    pictures = (images.astype(np.int16) + 128).astype(np.uint8)
    content, headers = bodies.binary(pictures, "UINT8")
    result, _ = outputs_of(client.post(INFER, content=content, headers=headers))
    assert result["outputs"][0]["data"] == expected.reshape(-1).tolist()
    real = ((images.astype(np.float64) + 128) * described.scale).astype(np.float32)
    content, headers = bodies.binary(real, "FP32", parameters={"real_outputs": True})
    result, _ = outputs_of(client.post(INFER, content=content, headers=headers))
    output = program.tensors[bodies.output]
    assert output.scale is not None and output.zero_point is not None
    assert result["outputs"][0]["datatype"] == "FP32"
    np.testing.assert_allclose(
        result["outputs"][0]["data"],
        ((expected.astype(np.float64) - output.zero_point) * output.scale).reshape(-1),
        rtol=1e-6,
    )


def test_classes(client, bodies, images, expected) -> None:
    wanted = [{"name": bodies.output, "parameters": {"classification": 3}}]
    result, _ = outputs_of(client.post(INFER, json=bodies.json(images, outputs=wanted)))
    (output,) = result["outputs"]
    assert output["datatype"] == "BYTES" and output["shape"] == [4, 3]
    best = np.argsort(-expected.astype(int), axis=1, kind="stable")[:, :3]
    assert [int(text.split(":")[1]) for text in output["data"]] == best.reshape(-1).tolist()
    wanted[0]["parameters"]["binary_data"] = True
    result, rest = outputs_of(client.post(INFER, json=bodies.json(images, outputs=wanted)))
    strings = []
    while rest:
        size = int.from_bytes(rest[:4], "little")
        strings.append(rest[4 : 4 + size].decode())
        rest = rest[4 + size :]
    assert strings == output["data"]


def test_networks_take_turns_on_their_boards(client, bodies, images, expected) -> None:
    asked = [
        (f"/v2/models/{name}/infer", number % 4)
        for number in range(16)
        for name in ("digits", "other")
    ]
    seen = []
    # the queue of each takes 8 images
    for first in range(0, len(asked), 8):
        part = asked[first : first + 8]
        answers = client.together(
            [(place, bodies.json(images[each : each + 1])) for place, each in part]
        )
        seen += [outputs_of(answer)[0]["outputs"][0]["data"] for answer in answers]
    assert seen == [expected[each].tolist() for _, each in asked]


def test_requests_beyond_the_queue_are_refused(client, bodies, images) -> None:
    answers = client.together([(INFER, bodies.json(images[:3]))] * 6)
    statuses = sorted(answer.status_code for answer in answers)
    assert set(statuses) == {200, 429} and statuses.count(200) >= 2


def refused(client, status: int, match: str, place: str = INFER, **arguments) -> None:
    response = client.post(place, **arguments)
    assert response.status_code == status, response.text
    assert list(response.json()) == ["error"]
    assert match in response.json()["error"]


def changed(body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A body with fields of its input changed; None: left out."""
    (tensor,) = body["inputs"]
    made = {name: value for name, value in {**tensor, **fields}.items() if value is not None}
    return {**body, "inputs": [made]}


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"name": "nobody"}, "'nobody' is unknown"),
        ({"name": 3}, "name must be text"),
        ({"datatype": "INT9"}, "datatype must be one of"),
        ({"datatype": "BYTES"}, "datatype must be one of"),
        ({"datatype": "INT16"}, "must hold int8"),
        ({"datatype": None}, "datatype must be text"),
        ({"shape": None}, "shape must be a list"),
        ({"shape": [-1]}, "whole numbers below 2^31"),
        ({"shape": [1.5]}, "whole numbers below 2^31"),
        ({"shape": [True]}, "whole numbers below 2^31"),
        ({"shape": [1] * 9}, "at most 8"),
        ({"shape": [10**30, 10**30]}, "whole numbers below 2^31"),
        ({"shape": [2**30, 2**30, 2**30]}, "numbers, not"),
        ({"shape": [1, 2]}, "must have 2 numbers"),
        ({"shape": [0]}, "must have 0 numbers"),
        ({"data": None}, "either data or the parameter"),
        ({"data": "abc"}, "must be a list"),
        ({"data": [1, [2]], "shape": [2]}, "not a list"),
        ({"data": [[1], 2]}, "nested as its shape"),
        ({"data": [{}], "shape": [1]}, "not an object"),
        ({"data": ["1"], "shape": [1]}, "not text"),
        ({"data": [None], "shape": [1]}, "not null"),
        ({"data": [1.5], "shape": [1]}, "not fractions"),
        ({"data": [128], "shape": [1]}, "within -128..127"),
        ({"data": [10**400], "shape": [1]}, "within -128..127"),
        ({"data": [10**400], "shape": [1], "datatype": "FP32"}, "numbers that FP32 has"),
        ({"data": [1], "shape": [1]}, "must have the shape"),
        ({"parameters": []}, "must be an object"),
        ({"parameters": {"binary_data_size": 4}}, "either data or the parameter"),
        ({"parameters": {"binary_data_size": 4}, "data": None}, "bytes that are left"),
        ({"parameters": {"binary_data_size": -1}, "data": None}, "bytes that are left"),
        ({"parameters": {"binary_data_size": 10**30}, "data": None}, "a larger one"),
        ({"parameters": {"binary_data_size": "4"}, "data": None}, "whole number"),
    ],
)
def test_bad_inputs(client, bodies, images, fields: dict, match: str) -> None:
    body = changed(bodies.json(images[:1]), **fields)
    refused(client, 400, match, content=json.dumps(body).encode())


def test_numbers_that_are_not_finite(client, bodies, images) -> None:
    body = json.dumps(bodies.json(images[:1], "FP32"))
    first = body.index("[", body.index('"data"')) + 1
    for word, match in (("NaN", "no NaN"), ("-Infinity", "no -Infinity"), ("1e999", "finite")):
        end = body.index(",", first)
        refused(client, 400, match, content=(body[:first] + word + body[end:]).encode())


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "must be JSON"),
        (b"\xff\xfe{", "must be JSON"),
        (b"[]", "must be an object"),
        (b"{", "must be JSON"),
        (b"[" * 100_00, "nested so deeply"),
        (b"1" * 10_000, "must be JSON"),
        (b"{}", "inputs must be a list, not null"),
        (b'{"inputs":[]}', "is missing"),
        (b'{"inputs":[7]}', "inputs[0] must be an object"),
        (b'{"inputs":' + b"[" + b"{}," * 300 + b"{}]}", "at most 256"),
        (b'{"inputs":[],"id":5}', "id must be text"),
        (b'{"inputs":[],"outputs":{}}', "outputs must be a list"),
        (b'{"inputs":[],"parameters":{"binary_data_output":1}}', "must be true or false"),
    ],
)
def test_bad_json(client, content: bytes, match: str) -> None:
    refused(client, 400, match, content=content)


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"classification": -1}, "within 0..65536"),
        ({"classification": 1.5}, "a number"),
        ({"classification": 10**40}, "a number"),
        ({"binary_data": "yes"}, "true or false"),
    ],
)
def test_bad_outputs(client, bodies, images, parameters: dict, match: str) -> None:
    outputs = [{"name": bodies.output, "parameters": parameters}]
    refused(client, 400, match, json=bodies.json(images[:1], outputs=outputs))
    refused(client, 400, "'x' is unknown", json=bodies.json(images[:1], outputs=[{"name": "x"}]))


@pytest.mark.parametrize("length", ["", "x", "-1", "1.0", "99999", "9" * 30, "\u0663"])
def test_bad_lengths(client, bodies, images, length: str) -> None:
    content, _ = bodies.binary(images)
    headers = {"Inference-Header-Content-Length": length.encode()}
    refused(client, 400, "Inference-Header", content=content, headers=headers)


def test_bytes_that_are_too_many_or_few(client, bodies, images) -> None:
    content, headers = bodies.binary(images)
    refused(client, 400, "belong to no input", content=content + b"x", headers=headers)
    refused(client, 400, "bytes that are left", content=content[:-1], headers=headers)
    shorter = {"Inference-Header-Content-Length": "10"}
    refused(client, 400, "must be JSON", content=content, headers=shorter)
    body = bodies.json(images[:1])
    body["inputs"] *= 2
    refused(client, 400, "is there twice", json=body)


def test_places_and_methods(client, bodies, images) -> None:
    body = bodies.json(images[:1])
    refused(client, 404, "'nobody' is unknown", "/v2/models/nobody/infer", json=body)
    refused(client, 404, "no version '9'", "/v2/models/other/versions/9/infer", json=body)
    refused(client, 404, "POST /v3", "/v3", json=body)
    response = client.get(INFER)
    assert response.status_code == 405 and "error" in response.json()
    assert client.get("/v2/").status_code == 404


def test_bodies_are_bounded(client, bodies, images) -> None:
    large = b" " * ((1 << 16) + 1)
    refused(client, 413, "at most 65536 bytes", content=large)
    # without a length: counted as it comes

    async def parts() -> AsyncIterator[bytes]:
        yield large[:40_000]
        yield large[:40_000]

    refused(client, 413, "at most 65536 bytes", content=parts())
    content, headers = bodies.binary(images)
    headers["Content-Encoding"] = "gzip"
    refused(client, 415, "must not be compressed", content=content, headers=headers)


def test_the_queue_is_bounded(client, server: NetworkServer, bodies, images, monkeypatch) -> None:
    many = np.concatenate([images] * 3)
    refused(client, 400, "1..8 images, not 12", json=bodies.json(many))
    model = server.repository.models[0]
    monkeypatch.setattr(model._batcher, "pending", 6)
    refused(client, 429, "6 of 8 images", json=bodies.json(images))
    response = client.post(INFER, json=bodies.json(images))
    assert response.headers["retry-after"] == "1"
    outputs_of(client.post(INFER, json=bodies.json(images[:2])))


def test_errors_of_boards_and_bugs(
    client, server: NetworkServer, bodies, images, monkeypatch
) -> None:
    batcher = server.repository.models[0]._batcher

    def fail(error: Exception) -> None:
        def submit(image: object, names: object) -> None:
            raise error

        monkeypatch.setattr(batcher, "_submit", submit)

    fail(DeviceError("no board answers"))
    refused(client, 503, "no board answers", json=bodies.json(images))
    fail(KeyError("a secret"))
    refused(client, 500, "its log has more", json=bodies.json(images))
    assert batcher.pending == 0


def test_a_server_without_boards(
    client, server: NetworkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = server.repository.models[0].session
    failed = [replace(each, state=BoardState.FAILED, error="gone") for each in session.boards()]
    for model in server.repository.models:
        monkeypatch.setattr(model.session, "boards", lambda: failed)
    assert client.get("/v2/health/ready").status_code == 503
    assert client.get("/v2/health/live").status_code == 200
    status = client.get("/page/status").json()
    assert status["state"] == "not ready"
    assert status["boards"][0]["state"] == "failed" and status["boards"][0]["error"] == "gone"
    metrics = client.get("/metrics").text
    assert 'slipstick_board_state{board="0",device="model:1x16x16",state="failed"} 1.0' in metrics


def test_a_server_that_ends(client, server: NetworkServer, bodies, images) -> None:
    server.draining = True
    assert client.get("/v2/health/ready").status_code == 503
    assert client.get("/v2/models/digits/ready").status_code == 503
    assert client.get("/v2/health/live").status_code == 200
    refused(client, 503, "takes no more", json=bodies.json(images))
