"""The service of the Open Inference Protocol V2 over gRPC."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from .application import server_metadata
from .grpc_messages import SERVICE, message_class
from .grpc_tensors import inference_response, read_inference
from .guard import check_token
from .network_server import NetworkServer
from .refusals import Refusal, RequestError, as_request_error, bad_request

PROTOCOL = "grpc"
_LOG = logging.getLogger(__name__)
_OPEN = ("ServerLive", "ServerReady")
"""Methods that need no token."""
Context = Any
Method = Callable[[Any], Awaitable[Any]]


class GrpcService:
    """The methods of the service.

    Parameters
    ----------
    server : NetworkServer
    """

    def __init__(self, server: NetworkServer) -> None:
        self._server = server

    def handler(self) -> grpc.GenericRpcHandler:
        """Returns the handler that a gRPC server takes."""
        methods: dict[str, Method] = {
            "ServerLive": self._server_live,
            "ServerReady": self._server_ready,
            "ModelReady": self._model_ready,
            "ServerMetadata": self._server_metadata,
            "ModelMetadata": self._model_metadata,
            "RepositoryIndex": self._repository_index,
            "ModelInfer": self._model_infer,
        }
        handlers = {
            # messages are read in the handler, where an error has its own status
            name: grpc.unary_unary_rpc_method_handler(self._answering(name, method))
            for name, method in methods.items()
        }
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    def _answering(
        self, name: str, method: Method
    ) -> Callable[[bytes, Context], Awaitable[bytes | None]]:
        request_class = message_class(f"{name}Request")

        async def answer(data: bytes, context: Context) -> bytes | None:
            try:
                self._check_token(name, context)
                try:
                    request = request_class.FromString(data)
                except DecodeError:
                    raise bad_request(f"the message must be a {name}Request") from None
                return (await method(request)).SerializeToString()
            except Exception as error:
                known = as_request_error(error)
                if known is None:
                    _LOG.error("a request met a bug", exc_info=error)
                    text = "the server met an error of its own; its log has more"
                    known = RequestError(Refusal.INTERNAL, text)
            await context.abort(grpc.StatusCode[known.refusal.grpc_code], str(known))
            return None

        return answer

    def _check_token(self, name: str, context: Context) -> None:
        token = self._server.token
        if token is None or name in _OPEN:
            return
        metadata = dict(context.invocation_metadata() or ())
        given = metadata.get("authorization")
        check_token(token, given if isinstance(given, str) else None)

    async def _server_live(self, request: Any) -> Any:
        return message_class("ServerLiveResponse")(live=True)

    async def _server_ready(self, request: Any) -> Any:
        return message_class("ServerReadyResponse")(ready=self._server.ready)

    async def _model_ready(self, request: Any) -> Any:
        self._server.repository.find(request.name, request.version)
        return message_class("ModelReadyResponse")(ready=self._server.ready)

    async def _server_metadata(self, request: Any) -> Any:
        return message_class("ServerMetadataResponse")(**server_metadata())

    async def _model_metadata(self, request: Any) -> Any:
        repository = self._server.repository
        model = repository.find(request.name, request.version)
        return message_class("ModelMetadataResponse")(**repository.metadata(model))

    async def _repository_index(self, request: Any) -> Any:
        return message_class("RepositoryIndexResponse")(models=self._server.repository.index())

    async def _model_infer(self, request: Any) -> Any:
        server, model = self._server, None
        try:
            model = server.repository.find(request.model_name, request.model_version)
            with server.inference():
                outputs = await server.infer(model, read_inference(request), PROTOCOL)
                return inference_response(model, request, outputs)
        except Exception as error:
            server.note_error(model, PROTOCOL, error)
            raise


def make_grpc_server(server: NetworkServer) -> grpc.aio.Server:
    """Returns a gRPC server that has the service, and no port yet."""
    limits = server.limits
    made = grpc.aio.server(
        options=(
            ("grpc.max_receive_message_length", limits.max_body),
            ("grpc.max_send_message_length", -1),
            # two servers on one port would share its requests
            ("grpc.so_reuseport", 0),
        ),
        maximum_concurrent_rpcs=limits.queue,
    )
    made.add_generic_rpc_handlers((GrpcService(server).handler(),))
    return made
