"""What the server's tests share: two small networks on the golden model, and clients."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import slipstick
from slipstick.server.application import application
from slipstick.server.limits import Limits
from slipstick.server.models import ModelArgument, ModelRepository
from slipstick.server.network_server import NetworkServer
from starlette.types import ASGIApp

DIGITS = Path(slipstick.__file__).parent / "assets" / "digits.tflite"
LIMITS = Limits(queue=8, max_body=1 << 16, body_seconds=2.0)
TOKEN = "a-token-of-the-tests"
BASE = "http://127.0.0.1"


class Client:
    """Asks an application in this process; use it as a context.

    Parameters
    ----------
    app : ASGI application
    base : str
        The address that requests name.
    """

    def __init__(self, app: ASGIApp, base: str = BASE) -> None:
        # errors of the application are responses, as on a wire
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url=base)
        self._runner = asyncio.Runner()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def request(self, method: str, place: str, **arguments: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, place, **arguments))

    def together(self, requests: list[tuple[str, dict[str, Any]]]) -> list[httpx.Response]:
        """Posts many at one time: places and JSON."""

        async def run() -> list[httpx.Response]:
            posts = [self._client.post(place, json=body) for place, body in requests]
            return await asyncio.gather(*posts)

        return self._runner.run(run())

    def get(self, place: str, **arguments: Any) -> httpx.Response:
        return self.request("GET", place, **arguments)

    def post(self, place: str, **arguments: Any) -> httpx.Response:
        return self.request("POST", place, **arguments)


@pytest.fixture(scope="session")
def digits_path() -> Path:
    """The network of handwritten digits."""
    return DIGITS


@pytest.fixture(scope="session")
def repository() -> Iterator[ModelRepository]:
    """The digits under two names, the second one in two versions, on one device."""
    names = [("digits", "1"), ("other", "1"), ("other", "2")]
    arguments = [ModelArgument(name=name, version=v, path=DIGITS) for name, v in names]
    with ModelRepository.open(arguments, "model:1x16x16", None, LIMITS) as opened:
        yield opened


@pytest.fixture
def server(repository: ModelRepository) -> NetworkServer:
    return NetworkServer(repository, LIMITS)


@pytest.fixture
def client(server: NetworkServer) -> Iterator[Client]:
    with Client(application(server)) as made:
        yield made


@pytest.fixture
def guarded(repository: ModelRepository) -> Iterator[Client]:
    """A client of a server that wants ``TOKEN``."""
    made = NetworkServer(repository, LIMITS, TOKEN)
    with Client(application(made)) as opened:
        yield opened


@pytest.fixture(scope="session")
def images(repository: ModelRepository) -> np.ndarray:
    """Four inputs of the digits, int8."""
    program = repository.models[0].program
    shape = program.tensors[program.inputs[0]].shape[1:]
    rng = np.random.default_rng(7)
    return rng.integers(-128, 128, (4, *shape)).astype(np.int8)


@pytest.fixture(scope="session")
def expected(repository: ModelRepository, images: np.ndarray) -> np.ndarray:
    """What a session gives for them."""
    session = repository.models[0].session
    (codes,) = session.run(None, {session.program.inputs[0]: images})
    return codes


class Bodies:
    """Makes bodies of inferences."""

    def __init__(self, repository: ModelRepository) -> None:
        program = repository.models[0].program
        (self.input,), (self.output,) = program.inputs, program.outputs

    def json(self, images: np.ndarray, datatype: str = "INT8", **more: Any) -> dict[str, Any]:
        """One of JSON alone."""
        tensor = {"name": self.input, "datatype": datatype, "shape": list(images.shape)}
        return {"inputs": [{**tensor, "data": images.reshape(-1).tolist()}], **more}

    def binary(
        self, images: np.ndarray, datatype: str = "INT8", **more: Any
    ) -> tuple[bytes, dict[str, str]]:
        """One of JSON with bytes behind it, and its header."""
        data = images.tobytes()
        tensor = {"name": self.input, "datatype": datatype, "shape": list(images.shape)}
        tensor["parameters"] = {"binary_data_size": len(data)}
        text = json.dumps({"inputs": [tensor], **more}).encode()
        return text + data, {"Inference-Header-Content-Length": str(len(text))}


@pytest.fixture(scope="session")
def bodies(repository: ModelRepository) -> Bodies:
    return Bodies(repository)
