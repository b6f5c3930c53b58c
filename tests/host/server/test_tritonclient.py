"""An unmodified ``tritonclient`` talks to the server, in an environment of its own.

It wants another protobuf than this project's. The environment is made in ``build/tritonclient``
the first time, by pip.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "build" / "tritonclient" / "venv"
PYTHON = FOLDER / "bin" / "python"
PACKAGE = "tritonclient[http,grpc]>=2.60,<3"
SECONDS = 60.0
TOKEN = "a-token-of-the-tests"

SCRIPT = r"""
import json, sys
import numpy as np
import tritonclient.grpc as over_grpc
import tritonclient.http as over_http
from tritonclient.utils import InferenceServerException

http, grpc, token, path = sys.argv[1:]
stored = np.load(path)
images, expected = stored["images"], stored["expected"]
# its HTTP client adds to the headers that it is given
headers = {"authorization": f"Bearer {token}"}
seen = []

for module, address in ((over_http, http), (over_grpc, grpc)):
    client = module.InferenceServerClient(address)
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("digits", headers=dict(headers))
    assert client.is_model_ready("digits", "1", headers=dict(headers))
    grpc_json = {"as_json": True} if module is over_grpc else {}
    assert client.get_server_metadata(headers=dict(headers), **grpc_json)["name"] == "slipstick"
    metadata = client.get_model_metadata("digits", headers=dict(headers), **grpc_json)
    name, output = metadata["inputs"][0]["name"], metadata["outputs"][0]["name"]
    index = client.get_model_repository_index(headers=dict(headers), **grpc_json)
    index = index["models"] if module is over_grpc else index
    assert [each["name"] for each in index] == ["digits"]

    def tensor(array, datatype="INT8", **options):
        made = module.InferInput(name, list(array.shape), datatype)
        made.set_data_from_numpy(array, **options)
        return made

    ways = [{}] if module is over_grpc else [{"binary_data": True}, {"binary_data": False}]
    for way in ways:
        for count in (1, 3):
            result = client.infer(
                "digits", [tensor(images[:count], **way)], request_id="7", headers=dict(headers),
                outputs=[module.InferRequestedOutput(output, **way)],
            )
            assert np.array_equal(result.as_numpy(output), expected[:count])
        result = client.infer(
            "digits", [tensor(images[:1], **way)], headers=dict(headers),
            outputs=[module.InferRequestedOutput(output, class_count=3, **way)],
        )
        texts = result.as_numpy(output)
        first = texts[0][0]
        first = first.decode() if isinstance(first, bytes) else first
        assert texts.shape == (1, 3) and int(first.split(":")[1]) == expected[0].argmax()
    # all outputs, and what the client asks for by itself
    result = client.infer("digits", [tensor(images)], model_version="1", headers=dict(headers))
    assert np.array_equal(result.as_numpy(output), expected)
    real = tensor(np.zeros((1, 8, 8, 1), np.float32), "FP32")
    wish = {"real_outputs": True}
    result = client.infer("digits", [real], headers=dict(headers), parameters=wish)
    assert abs(result.as_numpy(output).sum() - 1) < 0.05
    for arguments in (
        ("nobody", [tensor(images)]),
        ("digits", [tensor(images.astype(np.int32), "INT32")]),
    ):
        try:
            client.infer(*arguments, headers=dict(headers))
        except InferenceServerException as error:
            seen.append([str(error.status()), error.message()])
    try:
        client.infer("digits", [tensor(images)])
    except InferenceServerException as error:
        seen.append([str(error.status()), error.message()])
    # many at once
    if module is over_http:
        client = module.InferenceServerClient(address, concurrency=4)
        waiting = [
            client.async_infer("digits", [tensor(images)], headers=dict(headers))
            for _ in range(20)
        ]
        for each in waiting:
            assert np.array_equal(each.get_result().as_numpy(output), expected)
    client.close()
print(json.dumps(seen))
"""


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter of an environment that has tritonclient; skips if there can be none."""
    probe = [str(PYTHON), "-c", "import tritonclient.grpc, tritonclient.http"]
    if PYTHON.exists() and subprocess.run(probe, capture_output=True).returncode == 0:
        return PYTHON
    try:
        subprocess.run(
            [sys.executable, "-m", "venv", "--clear", FOLDER], check=True, capture_output=True
        )
        subprocess.run(
            [PYTHON, "-m", "pip", "install", "--quiet", PACKAGE], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"tritonclient cannot be installed into {FOLDER}: {error}")
    return PYTHON


@pytest.fixture
def addresses(digits_path: Path) -> Iterator[tuple[str, str]]:
    """Where a server is."""
    arguments = [f"digits={digits_path}", "--device", "model:1x16x16", "--json"]
    ports = ["--port", "0", "--grpc-port", "0"]
    started = subprocess.Popen(
        [sys.executable, "-m", "slipstick", "serve", *arguments, *ports],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "SLIPSTICK_TOKEN": TOKEN},
    )
    assert started.stdout is not None
    try:
        told = json.loads(started.stdout.readline())
        yield told["http"].removeprefix("http://"), told["grpc"]
    finally:
        started.terminate()
        assert started.wait(SECONDS) == 0
        started.stdout.close()


def test_tritonclient(
    python: Path, addresses: tuple[str, str], images: np.ndarray, expected, tmp_path: Path
) -> None:
    stored = tmp_path / "images.npz"
    np.savez(stored, images=images, expected=expected)
    ended = subprocess.run(
        [python, "-c", SCRIPT, *addresses, TOKEN, stored],
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert len(seen) == 6
    for (status, message), (codes, match) in zip(
        seen,
        [
            (("404",), "'nobody' is unknown"),
            (("400",), "must hold int8"),
            (("401",), "the server's token"),
            (("StatusCode.NOT_FOUND",), "'nobody' is unknown"),
            (("StatusCode.INVALID_ARGUMENT",), "must hold int8"),
            (("StatusCode.UNAUTHENTICATED",), "the server's token"),
        ],
        strict=True,
    ):
        assert status in codes and match in message
