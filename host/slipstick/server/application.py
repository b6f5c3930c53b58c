"""The routes of HTTP: the protocol's, Prometheus's, and those of the page."""

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from .. import __version__
from .body import BodyReader
from .guard import Guard
from .inference import JsonObject
from .metrics import CONTENT_TYPE
from .models import ServedModel
from .network_server import NetworkServer
from .page_routes import PageRoutes
from .refusals import Refusal, RequestError, as_request_error
from .rest_request import LENGTH_HEADER, read_inference
from .rest_response import error_response, inference_response, json_response

EXTENSIONS = ("binary_tensor_data", "classification", "model_repository")
PROTOCOL = "rest"
Handler = Callable[[Request], Awaitable[Response]]


def server_metadata() -> JsonObject:
    """Returns the protocol's description of the server."""
    return {"name": "slipstick", "version": __version__, "extensions": list(EXTENSIONS)}


def application(server: NetworkServer) -> ASGIApp:
    """Returns the application of a server, with its guard before it.

    Parameters
    ----------
    server : NetworkServer
    """
    bodies = BodyReader(server.limits)
    routes = _Routes(server, bodies)
    page = PageRoutes(server, bodies)
    handlers: list[tuple[str, str, Handler]] = [
        *(("POST", f"{place}/infer", routes.infer) for place in _model_places()),
        ("GET", "/v2", routes.metadata),
        ("GET", "/v2/health/live", routes.live),
        ("GET", "/v2/health/ready", routes.ready),
        *(("GET", place, routes.model) for place in _model_places()),
        *(("GET", f"{place}/ready", routes.model_ready) for place in _model_places()),
        ("POST", "/v2/repository/index", routes.index),
        ("GET", "/metrics", routes.metrics),
        *page.handlers(),
    ]
    app = Starlette(
        routes=[
            Route(place, _answering(handler), methods=[method])
            for method, place, handler in handlers
        ],
        exception_handlers={HTTPException: _http_error, Exception: _bug},
    )
    # a slash too many is another place
    app.router.redirect_slashes = False
    return Guard(app, server.token)


def _model_places() -> tuple[str, str]:
    return "/v2/models/{name}/versions/{version}", "/v2/models/{name}"


def named_model(server: NetworkServer, request: Request) -> ServedModel:
    """Returns the network that a request's path names; RequestError if there is none."""
    names = request.path_params
    return server.repository.find(names["name"], names.get("version", ""))


class _Routes:
    """Handlers of the protocol."""

    def __init__(self, server: NetworkServer, bodies: BodyReader) -> None:
        self._server, self._bodies = server, bodies

    async def metadata(self, request: Request) -> Response:
        return json_response(server_metadata())

    async def live(self, request: Request) -> Response:
        return json_response({"live": True})

    async def ready(self, request: Request) -> Response:
        ready = self._server.ready
        return json_response({"ready": ready}, 200 if ready else 503)

    async def model(self, request: Request) -> Response:
        model = named_model(self._server, request)
        return json_response(self._server.repository.metadata(model))

    async def model_ready(self, request: Request) -> Response:
        model = named_model(self._server, request)
        ready = self._server.ready
        return json_response({"name": model.name, "ready": ready}, 200 if ready else 503)

    async def index(self, request: Request) -> Response:
        return json_response(self._server.repository.index())

    async def metrics(self, request: Request) -> Response:
        return Response(self._server.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def infer(self, request: Request) -> Response:
        model = None
        try:
            model = named_model(self._server, request)
            with self._server.inference():
                async with self._bodies.read(request) as body:
                    asked = read_inference(body, request.headers.get(LENGTH_HEADER))
                    outputs = await self._server.infer(model, asked, PROTOCOL)
                    return inference_response(model, asked, outputs)
        except Exception as error:
            self._server.note_error(model, PROTOCOL, error)
            raise


def _answering(handler: Handler) -> Handler:
    """A handler whose known errors are responses."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Exception as error:
            known = as_request_error(error)
            if known is None:
                raise
            return error_response(known)

    return answer


async def _http_error(request: Request, error: Exception) -> Response:
    """Answers an HTTP error of Starlette: no such place, or another method."""
    assert isinstance(error, HTTPException)
    message = f"{request.method[:20]} {request.url.path[:200]}: {error.detail}"
    headers = dict(error.headers or {})
    return json_response({"error": message}, error.status_code, headers)


async def _bug(request: Request, error: Exception) -> Response:
    """Answers an unexpected error: the log has it, the client need not."""
    return error_response(
        RequestError(Refusal.INTERNAL, "the server met an error of its own; its log has more")
    )
