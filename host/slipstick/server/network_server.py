"""The state of a server, which REST, gRPC and the page share."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .boards import BoardHistory
from .inference import InferenceRequest, OutputTensor
from .limits import Limits
from .metrics import ServerMetrics
from .models import ModelRepository, ServedModel
from .refusals import Refusal, RequestError, as_request_error


class NetworkServer:
    """Runs the inferences of all protocols, and counts them.

    Parameters
    ----------
    repository : ModelRepository
    limits : Limits
    token : str, optional
        That requests must have.

    Members
    -------
    draining : bool
        The server ends: it takes no more inferences.
    running : int
        Inferences that have begun.
    """

    def __init__(
        self, repository: ModelRepository, limits: Limits, token: str | None = None
    ) -> None:
        self.repository, self.limits, self.token = repository, limits, token
        self.metrics = ServerMetrics(repository)
        self.history = BoardHistory(repository)
        self.draining = False
        self.running = 0
        self.begun = time.time()

    @property
    def ready(self) -> bool:
        """Tells whether it takes inferences, and a board works."""
        return not self.draining and any(
            str(board.state) != "failed" for board in self.repository.models[0].session.boards()
        )

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Keeps the server from ending while a request is read, computed and answered."""
        if self.draining:
            raise RequestError(Refusal.UNAVAILABLE, "the server ends and takes no more inferences")
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1

    async def infer(
        self, model: ServedModel, request: InferenceRequest, protocol: str
    ) -> list[OutputTensor]:
        """Runs a request; errors as ``ServedModel.infer``."""
        begun = time.perf_counter()
        outputs = await model.infer(request)
        images, seconds = len(outputs[0].array), time.perf_counter() - begun
        # the response goes first
        loop = asyncio.get_running_loop()
        loop.call_soon(self.metrics.note, model, protocol, images, seconds)
        return outputs

    def note_error(self, model: ServedModel | None, protocol: str, error: Exception) -> None:
        """Counts a request that is answered with an error."""
        known = as_request_error(error)
        refusal = Refusal.INTERNAL if known is None else known.refusal
        self.metrics.note_error(model, protocol, refusal)
