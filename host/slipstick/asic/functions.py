"""Boolean functions as liberty files write them: ``(!A B) + C'``."""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .liberty import LibertyError

_TOKEN = re.compile(r"\s*([A-Za-z_][\w.\[\]]*|[01]|[!'&*|+^()])")
_MOST_VARIABLES = 12
"""Most inputs of a truth table."""
_DEEPEST = 64
"""Most levels of parentheses within parentheses, and of negations."""

Evaluate = Callable[[Mapping[str, bool]], bool]


@dataclass(frozen=True)
class Function:
    """A parsed function.

    Parameters
    ----------
    text : str
        As the file has it.
    verilog : str
        The same as an expression of Verilog.
    variables : tuple of str
        In the order of their first appearance.
    evaluate : callable
        Its value for values of the variables.
    """

    text: str
    verilog: str
    variables: tuple[str, ...]
    evaluate: Evaluate

    @property
    def table(self) -> tuple[bool, ...]:
        """Values for all inputs, the first variable as the lowest bit of the place.

        Raises
        ------
        LibertyError
            If there are too many variables to write them all down.
        """
        if len(self.variables) > _MOST_VARIABLES:
            raise LibertyError(
                f"function {self.text!r} must have at most {_MOST_VARIABLES} inputs,"
                f" not {len(self.variables)}"
            )
        rows = itertools.product((False, True), repeat=len(self.variables))
        return tuple(
            self.evaluate(dict(zip(reversed(self.variables), row, strict=True))) for row in rows
        )


def parse_function(text: str) -> Function:
    """Reads a function; negation binds closest, then and, exclusive or, or.

    Raises
    ------
    LibertyError
        If it is no function.
    """
    return _Reader(text).function()


_Term = tuple[str, Evaluate]


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._variables = dict[str, None]()
        self._tokens = list[str]()
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise self._wrong()
            self._tokens.append(match[1])
            position = match.end()
        self._depth = 0

    def function(self) -> Function:
        verilog, evaluate = self._sum()
        if self._tokens:
            raise self._wrong()
        return Function(self._text, verilog, tuple(self._variables), evaluate)

    def _wrong(self) -> LibertyError:
        return LibertyError(f"a function must be one of and, or, exclusive or, not: {self._text!r}")

    def _peek(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _sum(self) -> _Term:
        return self._chain(self._difference, ("+", "|"), " | ", any)

    def _difference(self) -> _Term:
        return self._chain(self._product, ("^",), " ^ ", lambda values: sum(values) % 2 == 1)

    def _product(self) -> _Term:
        terms = [self._factor()]
        while self._peek() and self._peek() not in (")", "+", "|", "^"):
            if self._peek() in ("*", "&"):
                self._tokens.pop(0)
            terms.append(self._factor())
        return _join(terms, " & ", all)

    def _chain(
        self,
        part: Callable[[], _Term],
        marks: Sequence[str],
        verilog: str,
        combine: Callable[[list[bool]], bool],
    ) -> _Term:
        terms = [part()]
        while self._peek() in marks:
            self._tokens.pop(0)
            terms.append(part())
        return _join(terms, verilog, combine)

    def _factor(self) -> _Term:
        """A variable, a constant, a negation or a function in parentheses."""
        self._depth += 1
        if not self._tokens or self._depth > _DEEPEST:
            raise self._wrong()
        token = self._tokens.pop(0)
        if token == "!":
            term = _negated(self._factor())
        elif token == "(":
            term = self._sum()
            if self._peek() != ")":
                raise self._wrong()
            self._tokens.pop(0)
        elif token in "01":
            value = token == "1"
            term = (f"1'b{token}", lambda values: value)
        elif token in "'&*|+^)":
            raise self._wrong()
        else:
            self._variables[token] = None
            term = (token, lambda values: values[token])
        while self._peek() == "'":
            self._tokens.pop(0)
            term = _negated(term)
        self._depth -= 1
        return term


def _negated(term: _Term) -> _Term:
    verilog, evaluate = term
    return f"~{verilog}", lambda values: not evaluate(values)


def _join(terms: Sequence[_Term], verilog: str, combine: Callable[[list[bool]], bool]) -> _Term:
    if len(terms) == 1:
        return terms[0]
    functions = [evaluate for _, evaluate in terms]
    text = verilog.join(text for text, _ in terms)
    return f"({text})", lambda values: combine([evaluate(values) for evaluate in functions])
