"""Prints tables, lines and progress for people, or one JSON object for programs."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

LONGEST_NAME = 44


def print_json(result: Mapping[str, Any]) -> None:
    """Prints one JSON object on the standard output."""
    print(json.dumps(result, allow_nan=False))


def print_table(
    title: str, columns: Mapping[str, str], rows: Sequence[Sequence[object]], footer: str = ""
) -> None:
    """Prints a table on the standard output.

    Parameters
    ----------
    title : str
    columns : mapping of "left", "right" or "text" by heading
        Long values are shortened, but not in a column of text: it wraps.
    rows : sequence of sequences
        None prints as a dash.
    footer : str
        A line below.
    """
    table = Table(title=escape(title), title_justify="left", title_style="bold")
    for heading, justify in columns.items():
        table.add_column(heading, justify="right" if justify == "right" else "left")
    for row in rows:
        cells = zip(row, columns.values(), strict=True)
        table.add_row(*(escape(_text(value, justify)) for value, justify in cells))
    console = _console()
    console.print(table)
    if footer:
        console.print(escape(footer), soft_wrap=True, highlight=False)


def print_line(text: str) -> None:
    """Prints a line on the standard output."""
    _console().print(escape(text), soft_wrap=True, highlight=False)


def _console() -> Console:
    # a file or a pipe takes whole lines; 80 columns would cut tables
    return Console() if sys.stdout.isatty() else Console(width=200)


def _text(value: object, justify: str) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    if justify != "text" and len(text) > LONGEST_NAME:
        return text[: LONGEST_NAME // 2] + "…" + text[1 - LONGEST_NAME // 2 :]
    return text


def percent(share: float | None) -> str | None:
    """A share as people read it."""
    return None if share is None else f"{share:.1%}"


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on the standard error while the body runs, if that is a terminal.

    Yields
    ------
    callable
        To be told how many more are done.
    """
    with told_progress(what, total) as (advance, _):
        yield advance


@contextmanager
def told_progress(
    what: str, total: int
) -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    """A bar as ``progress`` has it, with figures beside it.

    Yields
    ------
    advance : callable
        To be told how many more are done.
    tell : callable
        Given the figures.
    """
    if not sys.stderr.isatty():
        yield lambda count: None, lambda text: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(what), total=total)

        def tell(text: str) -> None:
            bar.update(task, description=escape(f"{what} {text}"))

        yield lambda count: bar.advance(task, count), tell


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A line on the standard error while the body runs, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(escape(what)):
        yield


@contextmanager
def step(what: str) -> Iterator[None]:
    """The step that runs, on the standard error: a turning wheel, or a line where there is none."""
    if sys.stderr.isatty():
        with waiting(f"{what} ..."):
            yield
    else:
        print(f"{what} ...", file=sys.stderr, flush=True)
        yield
