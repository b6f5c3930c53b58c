"""Asks the stream of a logarithmic unit for the results of arrays of operands."""

from typing import Any

import numpy as np
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import LnsArithmetic, Operation

from .streams import Consumer, Producer

OPERATION_BITS = 3


class UnitDriver:
    """Sends requests to a unit in the order of an array, and puts its results into another.

    Parameters
    ----------
    dut : cocotb handle
        Made from ``LnsUnit``.
    lns : Lns
        Its format.
    stall : float
        Probability that a cycle begins without a request, and that one does without a reader.
    """

    def __init__(self, dut: Any, lns: Lns, *, stall: float = 0.0) -> None:
        self._lns = lns
        self._producer = Producer(dut, "i", seed=1, stall=stall)
        self._consumer = Consumer(dut, "o", seed=2, stall=stall)
        self._slowness = 1 + 20 * stall

    async def ask(self, operation: Any, a: Any, b: Any = 0, c: Any = 0) -> tuple[Any, Any]:
        """Ordered codes of values and rests, int32, as ``LnsArithmetic.execute`` gives them.

        ``operation`` may be an array as well.
        """
        operation, a, b, c = np.broadcast_arrays(np.asarray(operation, np.int64), a, b, c)
        self._producer.start(self.pack(operation, a, b, c))
        limit = 200 + round(self._slowness * a.size)
        results = await self._consumer.receive(a.size, timeout_cycles=limit)
        value, rest = split_results(self._lns, np.array(results, np.int64))
        return value.reshape(a.shape), rest.reshape(a.shape)

    def pack(self, operation: np.ndarray, a: Any, b: Any, c: Any) -> list[int]:
        """Payloads of requests."""
        request = operation.ravel().astype(np.int64)
        for index, codes in enumerate((a, b, c)):
            words = self._lns.to_word(*self._lns.from_code(codes.ravel())).astype(np.int64)
            request = request | words << (OPERATION_BITS + index * self._lns.bits)
        return request.tolist()


def split_results(lns: Lns, payloads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ordered codes of values and of rests."""
    fields = (payloads & (1 << lns.bits) - 1, payloads >> lns.bits)
    value, rest = (lns.to_code(*lns.from_word(field)) for field in fields)
    return value, rest


def expected(lns: Lns, operation: np.ndarray, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Computes the golden model's values and rests for an array of operations."""
    arithmetic = LnsArithmetic(lns)
    value, rest = np.zeros_like(a, np.int32), np.zeros_like(a, np.int32)
    for member in Operation:
        chosen = operation == member
        value[chosen], rest[chosen] = arithmetic.execute(member, a[chosen], b[chosen], c[chosen])
    return value, rest
