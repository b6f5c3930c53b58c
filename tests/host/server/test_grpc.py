"""The protocol over gRPC: the same inferences, and what is refused."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest
from slipstick.errors import DeviceError
from slipstick.server.grpc_messages import SERVICE, message_class
from slipstick.server.grpc_service import make_grpc_server
from slipstick.server.network_server import NetworkServer

TOKEN = "a-token-of-the-tests"
Call = Callable[..., Coroutine[Any, Any, Any]]


class Remote:
    """Calls the methods of a server in this process.

    Parameters
    ----------
    server : NetworkServer
    """

    def __init__(self, server: NetworkServer) -> None:
        self._server = server

    def call(self, name: str, request: Any = None, *, token: str = "") -> Any:
        """The response of a method; ``request`` may be bytes."""
        if request is None:
            request = message_class(f"{name}Request")()
        data = request if isinstance(request, bytes) else request.SerializeToString()
        metadata = (("authorization", f"Bearer {token}"),) if token else ()

        async def run() -> bytes:
            made = make_grpc_server(self._server)
            port = made.add_insecure_port("127.0.0.1:0")
            await made.start()
            try:
                async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                    return await channel.unary_unary(f"/{SERVICE}/{name}")(data, metadata=metadata)
            finally:
                await made.stop(None)

        return message_class(f"{name}Response").FromString(asyncio.run(run()))

    def refused(self, code: str, match: str, name: str, request: Any, token: str = "") -> None:
        """The method ends with a status and a message."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            self.call(name, request, token=token)
        assert caught.value.code().name == code, caught.value.details()
        assert match in (caught.value.details() or "")


@pytest.fixture
def remote(server: NetworkServer) -> Remote:
    return Remote(server)


def inference(bodies, images: np.ndarray, *, raw: bool = True, **fields: Any) -> Any:
    """A request with one input."""
    request = message_class("ModelInferRequest")(**{"model_name": "digits", "id": "b2", **fields})
    tensor = request.inputs.add(name=bodies.input, datatype="INT8", shape=images.shape)
    if raw:
        request.raw_input_contents.append(images.tobytes())
    else:
        tensor.contents.int_contents.extend(images.reshape(-1).tolist())
    return request


def test_metadata(remote: Remote, bodies) -> None:
    assert remote.call("ServerLive").live and remote.call("ServerReady").ready
    assert remote.call("ServerMetadata").name == "slipstick"
    request = message_class("ModelReadyRequest")(name="other", version="2")
    assert remote.call("ModelReady", request).ready
    request = message_class("ModelMetadataRequest")(name="digits")
    metadata = remote.call("ModelMetadata", request)
    assert list(metadata.versions) == ["1"]
    assert metadata.inputs[0].name == bodies.input and metadata.inputs[0].shape[0] == -1
    assert metadata.outputs[0].datatype == "INT8"
    index = remote.call("RepositoryIndex")
    assert [each.name for each in index.models] == ["digits", "other", "other"]


def test_bytes(remote: Remote, bodies, images, expected) -> None:
    response = remote.call("ModelInfer", inference(bodies, images))
    assert (response.model_name, response.model_version, response.id) == ("digits", "1", "b2")
    assert list(response.outputs[0].shape) == [4, 10]
    assert response.raw_output_contents[0] == expected.tobytes()


def test_numbers(remote: Remote, bodies, images, expected) -> None:
    response = remote.call("ModelInfer", inference(bodies, images[:2], raw=False))
    assert not response.raw_output_contents
    numbers = list(response.outputs[0].contents.int_contents)
    assert numbers == expected[:2].reshape(-1).tolist()


@pytest.mark.parametrize("raw", [True, False])
def test_classes(remote: Remote, bodies, images, expected, raw: bool) -> None:
    request = inference(bodies, images[:1], raw=raw)
    output = request.outputs.add(name=bodies.output)
    output.parameters["classification"].int64_param = 2
    response = remote.call("ModelInfer", request)
    assert response.outputs[0].datatype == "BYTES" and list(response.outputs[0].shape) == [1, 2]
    if raw:
        text = response.raw_output_contents[0][4:].decode("latin-1")
    else:
        text = response.outputs[0].contents.bytes_contents[0].decode()
    assert f":{expected[0].argmax()}" in text


def test_real_outputs(remote: Remote, bodies, images) -> None:
    request = inference(bodies, images[:1], raw=False)
    request.parameters["real_outputs"].bool_param = True
    (output,) = remote.call("ModelInfer", request).outputs
    assert output.datatype == "FP32" and abs(sum(output.contents.fp32_contents) - 1) < 0.05


def test_refusals(remote: Remote, bodies, images) -> None:
    def bad(match: str, request: Any, code: str = "INVALID_ARGUMENT") -> None:
        remote.refused(code, match, "ModelInfer", request)

    bad("must be a ModelInferRequest", b"\xff\xff\xff")
    bad("'nobody' is unknown", inference(bodies, images, model_name="nobody"), "NOT_FOUND")
    bad("no version '7'", inference(bodies, images, model_version="7"), "NOT_FOUND")
    bad("is missing", message_class("ModelInferRequest")(model_name="digits"))
    bad("1..8 images", inference(bodies, np.concatenate([images] * 3)))
    request = inference(bodies, images)
    request.raw_input_contents.append(b"")
    bad("as many as the 1 inputs", request)
    request = inference(bodies, images)
    request.raw_input_contents[0] = b"123"
    bad("must have 256 bytes, not 3", request)
    request.inputs[0].contents.int_contents.append(3)
    bad("not both", request)
    request = inference(bodies, images, raw=False)
    request.inputs[0].contents.int_contents[0] = 128
    bad("within -128..127", request)
    request.inputs[0].datatype = "NONE"
    bad("datatype must be one of", request)
    request.inputs[0].shape[0] = -4
    bad("shape must be", request)
    request = inference(bodies, images)
    request.inputs.add().CopyFrom(request.inputs[0])
    request.raw_input_contents.append(b"")
    bad("is there twice", request)
    request = inference(bodies, images)
    request.outputs.add(name="x")
    bad("output 'x' is unknown", request)
    request.outputs[0].parameters["classification"].string_param = "many"
    bad("classification must be within", request)
    large = message_class("ModelInferRequest")(model_name="x" * (1 << 17))
    bad("larger than max", large, "RESOURCE_EXHAUSTED")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        remote.call("ModelReady", message_class("ModelReadyRequest")(name="nobody"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_queue_and_errors(
    remote: Remote, server: NetworkServer, bodies, images, monkeypatch
) -> None:
    batcher = server.repository.models[0]._batcher
    with monkeypatch.context() as patch:
        patch.setattr(batcher, "pending", 6)
        request = inference(bodies, images)
        remote.refused("RESOURCE_EXHAUSTED", "the queue is full", "ModelInfer", request)
    for error, code in ((DeviceError("gone"), "UNAVAILABLE"), (KeyError("x"), "INTERNAL")):

        def submit(image: object, names: object, error: Exception = error) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(batcher, "_submit", submit)
            remote.refused(code, "", "ModelInfer", inference(bodies, images))
    server.draining = True
    assert not remote.call("ServerReady").ready
    remote.refused("UNAVAILABLE", "takes no more", "ModelInfer", inference(bodies, images))


def test_the_token(repository, bodies, images, expected) -> None:
    remote = Remote(NetworkServer(repository, repository_limits(repository), TOKEN))
    assert remote.call("ServerLive").live
    request = inference(bodies, images)
    for token in ("", "wrong", TOKEN + "x"):
        remote.refused(
            "UNAUTHENTICATED", "must have the server's token", "ModelInfer", request, token
        )
    remote.refused("UNAUTHENTICATED", "token", "ServerMetadata", b"")
    response = remote.call("ModelInfer", request, token=TOKEN)
    assert response.raw_output_contents[0] == expected.tobytes()


def repository_limits(repository):
    """Those that the networks were opened with."""
    return repository.models[0]._batcher._limits
