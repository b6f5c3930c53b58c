"""What the page and Prometheus are told: boards, networks, profiles, pictures, metrics."""

import asyncio
import io
import time
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from PIL import Image
from server_process import INFER, sample
from slipstick.program import Program
from slipstick.server.batcher import Batcher
from slipstick.server.boards import BoardHistory
from slipstick.server.layer_timeline import layer_timeline
from slipstick.server.limits import Limits
from slipstick.server.models import ModelRepository
from slipstick.server.network_server import NetworkServer
from slipstick.server.pictures import picture_size
from slipstick.server.statistics import ModelStatistics

PICTURE = "/page/models/digits/versions/1/picture"


def test_metrics(client, bodies, images) -> None:
    for count in (1, 3):
        assert client.post(INFER, json=bodies.json(images[:count])).status_code == 200
    assert client.post(INFER, content=b"{").status_code == 400
    assert client.post("/v2/models/x/infer", content=b"{").status_code == 404
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = response.text
    labels = {"model": "digits", "version": "1", "protocol": "rest"}
    assert sample(text, "slipstick_requests_total", **labels) == 2
    assert sample(text, "slipstick_images_total", **labels) == 4
    assert sample(text, "slipstick_request_seconds_count", **labels) == 2
    assert sample(text, "slipstick_request_errors_total", **labels, reason="bad_request") == 1
    assert sample(text, "slipstick_request_errors_total", model="", reason="not_found") == 1
    assert sample(text, "slipstick_queue_images", model="digits") == 0
    assert sample(text, "slipstick_retried_images_total", model="digits") == 0
    assert sample(text, "slipstick_board_state", board="0", state="failed") == 0
    assert sample(text, "slipstick_board_images_total", board="0") >= 4
    assert sample(text, "slipstick_board_images_per_second", board="0", model="digits") > 0
    # a client's own words are no labels
    assert 'model="x"' not in text


def test_status(client, server: NetworkServer, bodies, images) -> None:
    server.history._sample()
    assert client.post(INFER, json=bodies.json(images)).status_code == 200
    server.history._sample()
    status = client.get("/page/status").json()
    assert status["state"] == "ready" and status["queue_limit"] == 8
    (board,) = status["boards"]
    assert board["state"] in ("idle", "working") and board["images"] >= 4
    assert board["images_per_second"] > 0 and board["rates"][0]["model"] == "digits"
    digits = status["models"][0]
    assert (digits["name"], digits["version"], digits["picture"]) == ("digits", "1", [8, 8, 1])
    assert digits["latency_ms"]["p50"] > 0 and digits["requests"] >= 1
    assert status["history"]["queue"] == [0]
    assert status["history"]["images_per_second"][0] > 0
    server.draining = True
    assert client.get("/page/status").json()["state"] == "draining"


def test_the_history_is_bounded(repository: ModelRepository) -> None:
    history = BoardHistory(repository)
    assert history.board_rates() == [] and history.entry()["queue"] == []
    for _ in range(200):
        history._sample()
    assert len(history.entry()["queue"]) == 120 and history.board_rates() == [0.0]


def test_profile(client, repository: ModelRepository) -> None:
    program = repository.models[0].program
    profile = client.get("/page/models/digits/versions/1/profile").json()
    assert profile == layer_timeline(program)
    layers = profile["layers"]
    assert [layer["name"] for layer in layers] == [layer.name for layer in program.layers]
    assert layers[-1]["begin"] + layers[-1]["cycles"] == profile["cycles"]
    used = sum(layer["utilisation"] * layer["cycles"] for layer in layers if layer["utilisation"])
    assert used / profile["cycles"] == pytest.approx(profile["utilisation"])
    assert client.get("/page/models/digits/versions/7/profile").status_code == 404


def picture(size: tuple[int, int] = (8, 8), form: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    pixels = np.zeros(size, np.uint8)
    pixels[:, size[1] // 2] = 255
    Image.fromarray(pixels).save(stream, form, **options)
    return stream.getvalue()


@pytest.mark.parametrize(("size", "form"), [((8, 8), "PNG"), ((40, 30), "JPEG"), ((9, 9), "BMP")])
def test_pictures(client, repository: ModelRepository, size: tuple[int, int], form: str) -> None:
    found = client.post(PICTURE, content=picture(size, form)).json()
    assert len(found["classes"]) == 5 and found["milliseconds"] > 0
    scores = [each["score"] for each in found["classes"]]
    assert scores == sorted(scores, reverse=True)
    if size == (8, 8):
        session = repository.models[0].session
        image = np.zeros((8, 8, 1), np.uint8)
        image[:, 4] = 255
        (codes,) = session.run(None, {session.program.inputs[0]: image})
        assert found["classes"][0]["class"] == codes[0].argmax()


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "must be a picture"),
        (b"no picture", "must be a picture"),
        (picture()[:45], "cannot be read"),
        (picture((4097, 4097)), "at most 16777216 pixels"),
    ],
    ids=["nothing", "text", "cut", "large"],
)
def test_no_pictures(client, content: bytes, match: str) -> None:
    response = client.post(PICTURE, content=content)
    assert response.status_code == 400 and match in response.json()["error"]
    assert "/tmp" not in response.json()["error"]


def test_networks_that_take_no_pictures(
    client, repository: ModelRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = repository.models[0].program
    assert picture_size(program) == [8, 8, 1]
    monkeypatch.setattr("slipstick.server.page_routes.picture_size", lambda program: None)
    response = client.post(PICTURE, content=picture())
    assert response.status_code == 400 and "takes no picture" in response.json()["error"]


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((1, 8, 6, 3), [8, 6, 3]),
        ((1, 3, 8, 6), [8, 6, 3]),
        ((1, 8, 6, 5), None),
        ((1, 8), None),
    ],
)
def test_picture_size(shape: tuple[int, ...], size: list[int] | None) -> None:
    class Tensor:
        pass

    class OneInput:
        inputs = ("x",)
        tensors = {"x": Tensor()}

    Tensor.shape = shape  # type: ignore[attr-defined]
    program: Program = OneInput()  # type: ignore[assignment]
    assert picture_size(program) == size


def test_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.25
    monkeypatch.setattr("time.monotonic", lambda: now)
    counted = ModelStatistics()
    assert counted.latencies_ms() == {"p50": None, "p90": None, "p99": None}
    for number in range(100):
        counted.note(2, (number + 1) / 1000)
    now += 1
    assert counted.images_per_second(5) == 40
    latencies = counted.latencies_ms()
    assert latencies["p50"] == pytest.approx(50.5) and latencies["p99"] == pytest.approx(99.01)
    now += 61
    assert counted.images_per_second() == 0 and counted.latencies_ms()["p50"] is None


def test_images_wait_for_others() -> None:
    submitted: list[float] = []

    def submit(image: Any, names: Any) -> "Future[list[np.ndarray]]":
        submitted.append(time.monotonic())
        future: Future[list[np.ndarray]] = Future()
        future.set_result([image["x"] * 2])
        return future

    async def run(delay: float, batch: int, requests: int) -> float:
        batcher = Batcher(submit, Limits(batch_delay_ms=delay, batch=batch))
        begun = time.monotonic()
        feeds = [np.full((1, 3), number) for number in range(requests)]
        results = await asyncio.gather(*(batcher.infer({"x": each}, ["y"]) for each in feeds))
        assert [result[0].tolist() for result in results] == [(2 * f).tolist() for f in feeds]
        assert batcher.pending == 0
        return time.monotonic() - begun

    # all in time
    assert asyncio.run(run(50, 100, 5)) >= 0.045
    assert max(submitted) - min(submitted) < 0.04
    # enough of them need not wait
    assert asyncio.run(run(10_000, 4, 8)) < 5
    assert asyncio.run(run(0, 4, 3)) < 5
