"""Gathers the images of requests for a short time, so that they go to the boards together."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

import numpy as np

from .answers import Answers
from .limits import Limits
from .refusals import Refusal, RequestError, bad_request

Arrays = list[np.ndarray]
Submit = Callable[[Mapping[str, np.ndarray], Sequence[str]], "Future[Arrays]"]
"""Takes one image and output names."""


class Batcher:
    """Gives images of many requests to a session.

    All methods run in one event loop.

    Parameters
    ----------
    submit : callable
        ``InferenceSession.submit``.
    limits : Limits

    Members
    -------
    pending : int
        Images that wait or are computed.
    """

    def __init__(self, submit: Submit, limits: Limits) -> None:
        self._submit, self._limits = submit, limits
        self._waiting: list[_Waiting] = []
        self._timer: asyncio.TimerHandle | None = None
        self._answers = Answers[Arrays]()
        self.pending = 0

    async def infer(self, feeds: Mapping[str, np.ndarray], names: Sequence[str]) -> Arrays:
        """Runs images.

        Parameters
        ----------
        feeds : mapping of array, each (images, ...)
            As ``prepare`` returns them.
        names : sequence of str
            Outputs.

        Returns
        -------
        list of array, each (images, ...)

        Raises
        ------
        RequestError
            If there are no images, or the queue has no room for them.
        DeviceError
            If no board answers.
        """
        count = len(next(iter(feeds.values())))
        self._check(count)
        self.pending += count
        try:
            images = [
                {name: value[index : index + 1] for name, value in feeds.items()}
                for index in range(count)
            ]
            return await self._together([self._put(image, names) for image in images])
        finally:
            self.pending -= count

    def _check(self, count: int) -> None:
        queue = self._limits.queue
        if not 1 <= count <= queue:
            raise bad_request(f"a request must have 1..{queue} images, not {count}")
        if self.pending + count > queue:
            raise RequestError(
                Refusal.FULL,
                f"the queue is full: {self.pending} of {queue} images are in it, and the request"
                f" has {count}; try again later",
            )

    async def _together(self, futures: "list[asyncio.Future[Arrays]]") -> Arrays:
        if len(futures) == 1:
            return await futures[0]
        try:
            parts = await asyncio.gather(*futures)
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    def _put(
        self, image: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> "asyncio.Future[Arrays]":
        if not self._limits.batch_delay_ms:
            return self._answers.awaitable(self._submit(image, names))
        loop = asyncio.get_running_loop()
        waiting = _Waiting(image, names, loop.create_future())
        self._waiting.append(waiting)
        if len(self._waiting) >= self._limits.batch:
            self._release()
        elif self._timer is None:
            self._timer = loop.call_later(self._limits.batch_delay_ms / 1000, self._release)
        return waiting.result

    def _release(self) -> None:
        """Submits all that waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.result.done():
                each.submit(self._submit, self._answers)


class _Waiting:
    """An image that has not been submitted."""

    def __init__(
        self,
        image: Mapping[str, np.ndarray],
        names: Sequence[str],
        result: "asyncio.Future[Arrays]",
    ) -> None:
        self._image, self._names, self.result = image, names, result

    def submit(self, submit: Submit, answers: Answers[Arrays]) -> None:
        try:
            running = answers.awaitable(submit(self._image, self._names))
        except Exception as error:
            self.result.set_exception(error)
            return
        running.add_done_callback(self._finish)
        self.result.add_done_callback(lambda result: result.cancelled() and running.cancel())

    def _finish(self, running: "asyncio.Future[Arrays]") -> None:
        if self.result.done():
            # nobody waits; the error counts as seen
            if not running.cancelled():
                running.exception()
        elif running.cancelled():
            self.result.cancel()
        elif (error := running.exception()) is not None:
            self.result.set_exception(error)
        else:
            self.result.set_result(running.result())
