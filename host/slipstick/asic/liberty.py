"""The liberty format: what a file of standard cells says, as groups and attributes.

Written here because the one parser among Python's packages is under the GPL and brings SymPy.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..errors import TargetError

_TOKEN = re.compile(
    r"""(?P<blank>(?:\s|\\\s|/\*.*?\*/|//[^\n]*)+)
    | "(?P<string>(?:[^"\\]|\\.)*)"
    | (?P<mark>[(){}:;,])
    | (?P<word>(?:[^\s"(){}:;,/\\]|/(?![*/]))+)""",
    re.VERBOSE | re.DOTALL,
)
_CONTINUATION = re.compile(r"\\\r?\n")
_DEEPEST = 32
"""Most levels of groups within groups; real files have six."""


class LibertyError(TargetError):
    """A liberty file that cannot be read, or that lacks what mapping needs."""


@dataclass
class Group:
    """A group: ``kind (arguments) { attributes and groups }``.

    Parameters
    ----------
    kind : str
        Such as ``cell``, ``pin`` or ``ff``.
    arguments : list of str
        Without quotes.
    attributes : dict of list of str by name
        The values of an attribute, those of its last appearance.
    groups : list of Group
    """

    kind: str
    arguments: list[str]
    attributes: dict[str, list[str]] = field(default_factory=dict)
    groups: list["Group"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The first argument, "" if there is none."""
        return self.arguments[0] if self.arguments else ""

    def of(self, *kinds: str) -> Iterator["Group"]:
        """The groups of some kinds directly in this one."""
        return (group for group in self.groups if group.kind in kinds)

    def text(self, attribute: str, default: str = "") -> str:
        """An attribute's first value."""
        return (self.attributes.get(attribute) or [default])[0]

    def number(self, attribute: str, default: float | None = None) -> float:
        """An attribute's value as a number.

        Raises
        ------
        LibertyError
            If it is none, or if it is missing and there is no default.
        """
        if attribute not in self.attributes and default is not None:
            return default
        text = self.text(attribute)
        try:
            return float(text)
        except ValueError:
            raise LibertyError(
                f"{attribute} of {self.kind} {self.name} must be a number, not {text!r}"
            ) from None


def parse_liberty(text: str) -> Group:
    """The ``library`` group of a liberty file.

    Raises
    ------
    LibertyError
        If the text is no liberty file; the message has the line.
    """
    return _Parser(text).library()


class _Parser:
    """Reads tokens one after another; the last one is always an end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: Sequence[tuple[str, str, int]] = list(_tokens(text))
        self._next = 0

    def library(self) -> Group:
        library = Group("", [])
        self._statement(library, 0)
        if len(library.groups) != 1 or library.groups[0].kind != "library":
            raise self._wrong("a group library (name) {...}", at=0)
        if self._kind != "end":
            raise self._wrong("the end of the file after the library")
        return library.groups[0]

    def _statement(self, parent: Group, depth: int) -> None:
        """An attribute ``name : value ;`` or ``name (values) ;``, or a group."""
        if self._kind != "word":
            raise self._wrong("the name of an attribute or a group")
        name = self._take()
        if self._skip(":"):
            parent.attributes[name] = [self._expression()]
            return
        if not self._skip("("):
            raise self._wrong(f"':' or '(' after {name}")
        arguments = self._arguments()
        if not self._skip("{"):
            parent.attributes[name] = arguments
            self._skip(";")
            return
        if depth == _DEEPEST:
            raise self._wrong(f"groups at most {_DEEPEST} deep")
        group = Group(name, arguments)
        parent.groups.append(group)
        while not self._skip("}"):
            self._statement(group, depth + 1)
        self._skip(";")

    def _arguments(self) -> list[str]:
        found = list[str]()
        while not self._skip(")"):
            if self._kind not in ("word", "string", ":", ","):
                raise self._wrong("a value or ')'")
            if self._kind != ",":
                found.append(self._take())
            else:
                self._take()
        return found

    def _expression(self) -> str:
        """All words up to the semicolon, or to the end of the line if there is none."""
        parts, line = list[str](), self._line
        while self._kind not in (";", "}", "end") and self._line == line:
            parts.append(self._take())
        self._skip(";")
        if not parts:
            raise self._wrong("a value after ':'")
        return " ".join(parts)

    @property
    def _kind(self) -> str:
        return self._tokens[self._next][0]

    @property
    def _line(self) -> int:
        return self._tokens[self._next][2]

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _skip(self, mark: str) -> bool:
        """Passes a mark if it is next."""
        found = self._kind == mark
        self._next += found
        return found

    def _wrong(self, wanted: str, at: int | None = None) -> LibertyError:
        kind, value, line = self._tokens[self._next if at is None else at]
        found = "the end of the file" if kind == "end" else repr(value)
        return LibertyError(f"line {line} of a liberty file must be {wanted}, not {found}")


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and line of each token; marks are their own kinds."""
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise LibertyError(
                f"line {line} of a liberty file must not hold {text[position]!r} there"
            )
        kind = match.lastgroup or ""
        value = match[kind]
        if kind != "blank":
            value = _CONTINUATION.sub("", value) if kind == "string" else value
            yield (value if kind == "mark" else kind), value, line
        line += match[0].count("\n")
        position = match.end()
    yield "end", "", line
