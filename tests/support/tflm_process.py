"""tflm in a process of its own: absurd numbers stop it, and must not stop the tests."""

from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import TracebackType
from typing import Self

import numpy as np
from slipstick.errors import SlipstickError
from slipstick.verify.tflm_reference import TflmReference


def _run(data: bytes, inputs: tuple[np.ndarray, ...]) -> list[np.ndarray] | str:
    try:
        return TflmReference(data).run(*inputs)
    except (SlipstickError, RuntimeError) as error:
        return str(error)


class TflmProcess:
    """Runs networks; as a context manager it ends its process."""

    def __init__(self) -> None:
        self._pool = self._started()

    def _started(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def run(self, data: bytes, *inputs: np.ndarray) -> list[np.ndarray] | str:
        """The outputs, or why there are none."""
        try:
            return self._pool.submit(_run, data, inputs).result()
        except BrokenProcessPool:
            self._pool = self._started()
            return "the process died"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown()
