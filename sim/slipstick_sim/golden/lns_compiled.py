"""The golden model's logarithmic arithmetic as kernels that numba compiles, for whole trainings.

Bit for bit :class:`slipstick_rtl.numbers.lns.unit.arithmetic.LnsArithmetic`, whose tables they
take.
Each kernel is one loop over rows in 32-bit integers without a branch, so that the compiler makes
vector instructions of it; the look-up has a loop of its own, because vector look-ups are slow.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.arithmetic import LnsArithmetic, Operation
from slipstick_rtl.numbers.lns.unit.gaussian_log_model import reach

from .lns_training import InnerProducts, Request

_int, _index = np.int32, np.uint32
_ROWS = 8
"""Rows that additions, and compensated ones, need for what is between them."""


class Constants(NamedTuple):
    """Holds what the kernels need to know of a format."""

    changes: np.ndarray
    """G+ of each distance and one 0 behind, then G- likewise, int32."""
    reach: np.int32
    top: np.int32
    one: np.int32


def constants_of(lns: Lns) -> Constants:
    """Computes the constants of a format."""
    arithmetic = LnsArithmetic(lns)
    changes = np.concatenate([arithmetic.plus_table, arithmetic.minus_table])
    return Constants(changes, _int(reach(lns)), _int(lns.largest_code), _int(arithmetic.one))


@njit(cache=True)
def _multiply_by(factor: Any, row: Any, result: Any, top: Any, one: Any) -> None:
    shift = _int((factor if factor >= _int(0) else _int(-factor)) - one)
    for place in range(row.shape[0]):
        code = row[place]
        size = code if code >= _int(0) else _int(-code)
        product = _int(shift + size)
        product = product if product > _int(0) else _int(0)
        product = product if product < top else top
        product = _int(0) if size == _int(0) else product
        result[place] = _int(-product) if _int(factor ^ code) < _int(0) else product


@njit(cache=True)
def _measure(a: Any, b: Any, sign: Any, larger: Any, index: Any, limit: Any) -> None:
    """Finds for a + sign * b the larger operand, and the place of its change in the table."""
    for place in range(a.shape[0]):
        first, second = a[place], _int(sign * b[place])
        of_first = first if first >= _int(0) else _int(-first)
        of_second = second if second >= _int(0) else _int(-second)
        larger[place] = first if of_first >= of_second else second
        distance = _int(of_first - of_second)
        distance = distance if distance >= _int(0) else _int(-distance)
        distance = distance if distance < limit else limit
        distance = limit if (first == _int(0)) | (second == _int(0)) else distance
        table = _int(limit + _int(1)) if _int(first ^ second) < _int(0) else _int(0)
        index[place] = _int(distance + table)


@njit(cache=True)
def _look_up(index: Any, changes: Any, change: Any) -> None:
    for place in range(index.shape[0]):
        change[place] = changes[_index(index[place])]


@njit(cache=True)
def _change(larger: Any, change: Any, result: Any, top: Any) -> None:
    for place in range(larger.shape[0]):
        code = larger[place]
        size = _int((code if code >= _int(0) else _int(-code)) + change[place])
        size = size if size > _int(0) else _int(0)
        size = size if size < top else top
        result[place] = _int(-size) if code < _int(0) else size


@njit(cache=True)
def _keep_where_zero(term: Any, old: Any, new: Any) -> None:
    """Puts new values into ``old`` where there is a term."""
    for place in range(term.shape[0]):
        old[place] = old[place] if term[place] == _int(0) else new[place]


@njit(cache=True)
def _add(a: Any, b: Any, sign: Any, result: Any, rows: Any, k: Any) -> None:
    """a + sign * b; takes the first three rows."""
    _measure(a, b, sign, rows[0], rows[1], k.reach)
    _look_up(rows[1], k.changes, rows[2])
    _change(rows[0], rows[2], result, k.top)


@njit(cache=True)
def _compensated_add(total: Any, term: Any, rest: Any, rows: Any, k: Any) -> None:
    """Leaves the new total in row 4 and what it owes in row 5."""
    _add(term, rest, _int(1), rows[3], rows, k)
    _add(total, rows[3], _int(1), rows[4], rows, k)
    _add(rows[4], total, _int(-1), rows[6], rows, k)
    _add(rows[3], rows[6], _int(-1), rows[5], rows, k)


@njit(cache=True)
def _inner_products(a: Any, b: Any, total: Any, rows: Any, k: Any) -> None:
    for row in range(a.shape[0]):
        for inner in range(a.shape[1]):
            # a product with 0 changes no sum
            if a[row, inner] != 0:
                _multiply_by(a[row, inner], b[inner], rows[7], k.top, k.one)
                _add(total[row], rows[7], _int(1), total[row], rows, k)


@njit(cache=True)
def _compensated_inner_products(a: Any, b: Any, total: Any, rest: Any, rows: Any, k: Any) -> None:
    for row in range(a.shape[0]):
        for inner in range(a.shape[1]):
            if a[row, inner] != 0:
                _multiply_by(a[row, inner], b[inner], rows[7], k.top, k.one)
                _compensated_add(total[row], rows[7], rest[row], rows, k)
                _keep_where_zero(rows[7], total[row], rows[4])
                _keep_where_zero(rows[7], rest[row], rows[5])


@njit(cache=True)
def _encode_all(values: Any, codes: Any, steps: Any, zero: Any, top: Any) -> None:
    for place in range(values.size):
        # float() would leave it a float32
        value = np.float64(values[place])
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
        k = self._constants
        if request.operation is Operation.COMPENSATED_ADD:
            shape, (total, term, rest) = _flat(request.a, request.b, request.c)
            rows = np.empty((_ROWS, total.size), np.int32)
            _compensated_add(total, term, rest, rows, k)
            return rows[4].reshape(shape), rows[5].reshape(shape)
        if request.operation is Operation.ADD:
            shape, (a, b) = _flat(request.a, request.b)
            result, rows = np.empty_like(a), np.empty((3, a.size), np.int32)
            _add(a, b, _int(1), result, rows, k)
            return result.reshape(shape), None
        if request.operation is Operation.MULTIPLY and np.ndim(request.b) == 0:
            shape, (a,) = _flat(request.a)
            result = np.empty_like(a)
            _multiply_by(_int(request.b), a, result, k.top, k.one)
            return result.reshape(shape), None
        # the few others of a step are not worth a kernel
        return self._arithmetic.execute(request.operation, request.a, request.b, request.c)

    def inner_products(self, request: InnerProducts) -> np.ndarray:
        """The answer to a request for inner products."""
        a, b = (np.ascontiguousarray(x, np.int32) for x in (request.a, request.b))
        total = np.empty((a.shape[0], b.shape[1]), np.int32)
        total[:] = request.start
        rows = np.empty((_ROWS, b.shape[1]), np.int32)
        if request.compensated:
            rest = np.zeros_like(total)
            _compensated_inner_products(a, b, total, rest, rows, self._constants)
        else:
            _inner_products(a, b, total, rows, self._constants)
        return total


def _flat(*arrays: Any) -> tuple[tuple[int, ...], list[np.ndarray]]:
    """The common shape, and the arrays in one dimension."""
    spread = np.broadcast_arrays(*arrays)
    return spread[0].shape, [np.ascontiguousarray(x, np.int32).ravel() for x in spread]
