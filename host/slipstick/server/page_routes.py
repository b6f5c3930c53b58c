"""The routes of the page: its files, the state of the server, profiles, and pictures."""

import time
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from .. import __version__
from .boards import BoardSummary, board_summaries
from .body import BodyReader
from .inference import JsonObject, best_classes
from .layer_timeline import layer_timeline
from .models import ServedModel
from .network_server import NetworkServer
from .pictures import PictureReader, picture_size
from .refusals import bad_request
from .rest_response import json_response

Handler = Callable[[Request], Awaitable[Response]]
PROTOCOL = "page"
_FILES = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_SHOWN_CLASSES = 5
_MODEL = "/page/models/{name}/versions/{version}"


class PageRoutes:
    """Handlers of the page.

    Parameters
    ----------
    server : NetworkServer
    bodies : BodyReader
    """

    def __init__(self, server: NetworkServer, bodies: BodyReader) -> None:
        self._server, self._bodies = server, bodies
        self._pictures = PictureReader()
        folder = files("slipstick.server") / "page"
        self._files = {name: (folder / name).read_bytes() for name in _FILES}

    def handlers(self) -> list[tuple[str, str, Handler]]:
        """Method, place and handler of each."""
        return [
            ("GET", "/", self._index),
            ("GET", "/page/files/{file}", self._file),
            ("GET", "/page/status", self._status),
            ("GET", f"{_MODEL}/profile", self._profile),
            ("POST", f"{_MODEL}/picture", self._picture),
        ]

    async def _index(self, request: Request) -> Response:
        return self._content("index.html")

    async def _file(self, request: Request) -> Response:
        name = request.path_params["file"]
        if name not in _FILES:
            return json_response({"error": "the page has no such file"}, 404)
        return self._content(name)

    def _content(self, name: str) -> Response:
        headers = {"Content-Type": _FILES[name], "Cache-Control": "no-cache"}
        return Response(self._files[name], headers=headers)

    async def _status(self, request: Request) -> Response:
        server = self._server
        models = server.repository.models
        rates = server.history.board_rates()
        boards = board_summaries(models)
        entries = [_board_entry(board, rates[board.number] if rates else 0.0) for board in boards]
        state = "draining" if server.draining else "ready" if server.ready else "not ready"
        return json_response(
            {
                "version": __version__,
                "state": state,
                "uptime_seconds": time.time() - server.begun,
                "queue_limit": server.limits.queue,
                "boards": entries,
                "models": [_model_entry(model) for model in models],
                "history": server.history.entry(),
            }
        )

    async def _profile(self, request: Request) -> Response:
        return json_response(layer_timeline(self._model(request).program))

    async def _picture(self, request: Request) -> Response:
        model = None
        try:
            model = self._model(request)
            with self._server.inference():
                async with self._bodies.read(request) as body:
                    entry = await self._classified(model, body)
        except Exception as error:
            self._server.note_error(model, PROTOCOL, error)
            raise
        return json_response(entry)

    def _model(self, request: Request) -> ServedModel:
        names = request.path_params
        return self._server.repository.find(names["name"], names["version"])

    async def _classified(self, model: ServedModel, body: bytes) -> JsonObject:
        program = model.program
        if picture_size(program) is None:
            raise bad_request(f"{model.name} takes no picture: its inputs are of another form")
        (name,) = program.inputs
        array = await self._pictures.read(body, program.tensors[name].shape)
        begun = time.perf_counter()
        values = await model.infer_arrays({name: array})
        seconds = time.perf_counter() - begun
        self._server.metrics.note(model, PROTOCOL, 1, seconds)
        output = program.outputs[0]
        best = best_classes(values[output][0], program.tensors[output], _SHOWN_CLASSES)
        return {
            "output": output,
            "classes": [{"class": each, "score": score} for each, score in best],
            "milliseconds": seconds * 1e3,
        }


def _board_entry(board: BoardSummary, rate: float) -> JsonObject:
    return {
        "name": board.name,
        "target": board.target,
        "state": board.state,
        "error": board.error,
        "images": board.images,
        "failures": board.failures,
        "in_flight": board.in_flight,
        "busy_seconds": board.busy_seconds,
        "images_per_second": rate,
        "rates": [
            {"model": model.name, "version": model.version, "images_per_second": value}
            for model, value in board.rates
        ],
    }


def _model_entry(model: ServedModel) -> dict[str, Any]:
    counted = model.statistics
    return {
        "name": model.name,
        "version": model.version,
        "shape": model.program.hardware.shape,
        "inputs": model.tensors(model.program.inputs),
        "picture": picture_size(model.program),
        "queue": model.pending,
        "requests": counted.requests,
        "images": counted.images,
        "refused": counted.refused,
        "retried": model.session.retried,
        "images_per_second": counted.images_per_second(),
        "latency_ms": counted.latencies_ms(),
    }
