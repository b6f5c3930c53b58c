"""The golden model's logarithmic arithmetic as kernels that numba compiles, for whole trainings.

Bit for bit :class:`slipstick_rtl.numbers.lns.arithmetic.LnsArithmetic`, whose tables they take. The
casts keep every number in 32 bits, and there are no branches within the inner loops: the compiler
then makes vector instructions of them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from slipstick_rtl.numbers.lns.arithmetic import LnsArithmetic, Operation
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.gauss import reach

from .lns_training import InnerProducts, Request

_int, _index = np.int32, np.uint32


class Constants(NamedTuple):
    """What the kernels need to know of a format."""

    changes: np.ndarray
    """G+ of each distance and one 0 behind, then G- likewise, int32."""
    reach: np.int32
    top: np.int32
    one: np.int32


def constants_of(lns: Lns) -> Constants:
    """Of a format."""
    arithmetic = LnsArithmetic(lns)
    changes = np.concatenate([arithmetic.plus_table, arithmetic.minus_table])
    return Constants(changes, _int(reach(lns)), _int(lns.largest_code), _int(arithmetic.one))


@njit(cache=True)
def _limited(magnitude: Any, negative: Any, k: Any) -> Any:
    low = magnitude if magnitude > _int(0) else _int(0)
    within = low if low < k.top else k.top
    return _int(-within) if negative else within


@njit(cache=True)
def _size(code: Any) -> Any:
    return code if code >= _int(0) else _int(-code)


@njit(cache=True)
def _multiply(a: Any, b: Any, k: Any) -> Any:
    of_a, of_b = _size(a), _size(b)
    product = _limited(_int(_int(of_a + of_b) - k.one), _int(a ^ b) < _int(0), k)
    return _int(0) if (of_a == _int(0)) | (of_b == _int(0)) else product


@njit(cache=True)
def _add(a: Any, b: Any, k: Any) -> Any:
    of_a, of_b = _size(a), _size(b)
    first = of_a >= of_b
    larger, smaller = (of_a if first else of_b), (of_b if first else of_a)
    distance = _int(larger - smaller)
    distance = distance if distance < k.reach else k.reach
    table = _int(k.reach + _int(1)) if _int(a ^ b) < _int(0) else _int(0)
    found = k.changes[_index(_int(distance + table))]
    change = _int(0) if smaller == _int(0) else found
    return _limited(_int(larger + change), (a if first else b) < _int(0), k)


@njit(cache=True)
def _compensated(total: Any, term: Any, rest: Any, k: Any) -> Any:
    corrected = _add(term, rest, k)
    new = _add(total, corrected, k)
    return new, _add(corrected, _int(-_add(new, _int(-total), k)), k)


@njit(cache=True)
def _inner_products(a: Any, b: Any, total: Any, k: Any) -> None:
    for row in range(a.shape[0]):
        for inner in range(a.shape[1]):
            factor = a[row, inner]
            if factor != 0:
                for column in range(b.shape[1]):
                    product = _multiply(factor, b[inner, column], k)
                    total[row, column] = _add(total[row, column], product, k)


@njit(cache=True)
def _compensated_inner_products(a: Any, b: Any, total: Any, rest: Any, k: Any) -> None:
    for row in range(a.shape[0]):
        for inner in range(a.shape[1]):
            factor = a[row, inner]
            if factor != 0:
                for column in range(b.shape[1]):
                    product = _multiply(factor, b[inner, column], k)
                    old, owed = total[row, column], rest[row, column]
                    new, owes = _compensated(old, product, owed, k)
                    nothing = product == _int(0)
                    total[row, column] = old if nothing else new
                    rest[row, column] = owed if nothing else owes


@njit(cache=True)
def _multiply_all(a: Any, b: Any, result: Any, k: Any) -> None:
    for place in range(a.size):
        result[place] = _multiply(a[place], b[place], k)


@njit(cache=True)
def _add_all(a: Any, b: Any, result: Any, k: Any) -> None:
    for place in range(a.size):
        result[place] = _add(a[place], b[place], k)


@njit(cache=True)
def _compensated_all(total: Any, term: Any, rest: Any, new: Any, owed: Any, k: Any) -> None:
    for place in range(total.size):
        new[place], owed[place] = _compensated(total[place], term[place], rest[place], k)


@njit(cache=True)
def _encode_all(values: Any, codes: Any, steps: Any, zero: Any, top: Any) -> None:
    for place in range(values.size):
        value = float(values[place])
        mantissa, exponent = math.frexp(abs(value))
        code = 0
        if mantissa > 0:
            code = int(np.rint(math.log2(mantissa) * steps)) + exponent * steps - zero
        code = min(max(code, 0), top)
        codes[place] = -code if value < 0 else code


def encode(lns: Lns, values: np.ndarray) -> np.ndarray:
    """``from_float`` for finite float32: none is so near a tie that more digits would matter."""
    flat = np.ascontiguousarray(values, np.float32).ravel()
    codes = np.empty(flat.shape, np.int32)
    _encode_all(flat, codes, 1 << lns.fraction_bits, lns.zero, lns.largest_code)
    return codes.reshape(values.shape)


class CompiledAnswers:
    """Answers the requests of a training step, as ``GoldenAnswers`` does, but by kernels.

    Parameters
    ----------
    lns : Lns
    """

    def __init__(self, lns: Lns) -> None:
        self._arithmetic = LnsArithmetic(lns)
        self._constants = constants_of(lns)

    def __call__(self, request: Request) -> Any:
        """The request's answer."""
        if isinstance(request, InnerProducts):
            return self.inner_products(request)
        kernels = {Operation.MULTIPLY: _multiply_all, Operation.ADD: _add_all}
        if request.operation is Operation.COMPENSATED_ADD:
            shape, (total, term, rest) = _flat(request.a, request.b, request.c)
            new, owed = np.empty_like(total), np.empty_like(total)
            _compensated_all(total, term, rest, new, owed, self._constants)
            return new.reshape(shape), owed.reshape(shape)
        if request.operation in kernels:
            shape, (a, b) = _flat(request.a, request.b)
            result = np.empty_like(a)
            kernels[request.operation](a, b, result, self._constants)
            return result.reshape(shape), None
        # divisions and the few subtractions of a step are not worth a kernel
        return self._arithmetic.execute(request.operation, request.a, request.b, request.c)

    def inner_products(self, request: InnerProducts) -> np.ndarray:
        """The answer to a request for inner products."""
        a, b = (np.ascontiguousarray(x, np.int32) for x in (request.a, request.b))
        total = np.empty((a.shape[0], b.shape[1]), np.int32)
        total[:] = request.start
        if request.compensated:
            _compensated_inner_products(a, b, total, np.zeros_like(total), self._constants)
        else:
            _inner_products(a, b, total, self._constants)
        return total


def _flat(*arrays: Any) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """The common shape, and the arrays in one dimension."""
    spread = np.broadcast_arrays(*arrays)
    return spread[0].shape, [np.ascontiguousarray(x, np.int32).ravel() for x in spread]
