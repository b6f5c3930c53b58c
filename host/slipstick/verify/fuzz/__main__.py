"""Tries damaged files on every parser: ``python -m slipstick.verify.fuzz``.

Each file must end in a documented error, or be read; what is read and small is run, and its result
must be the reference's. No file may take more than 10 s, and no process more than 2 GB. The same
seed gives the same files.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ... import reports
from .arrays import ARRAYS, IMAGES
from .liberty import LIBERTY
from .onnx import ONNX
from .outcomes import Parser
from .slip import SLIP
from .tflite import TFLITE
from .workers import Finding, Tally, run_workers, total, try_file

PARSERS = {parser.name: parser for parser in (TFLITE, ONNX, SLIP, ARRAYS, IMAGES, LIBERTY)}
SHARES = {"tflite": 1, "onnx": 4, "slip": 3, "arrays": 5, "images": 3, "liberty": 4}
"""Relative shares of all files, by parser: parsers whose files are cheap get more."""
_NOTE_SECONDS = 10.0


def command(parser: str, seed: int, index: int) -> str:
    """Returns the command that tries one file again."""
    return (
        f"python -m slipstick.verify.fuzz --parser {parser} --seed {seed} --first {index} --files 1"
    )


def report(seed: int, tallies: dict[str, Tally]) -> dict[str, Any]:
    """All tallies as JSON has them."""
    return {
        "seed": seed,
        "files": total(tuple(tallies.values())),
        "total_findings": sum(len(tally.findings) for tally in tallies.values()),
        "parsers": {
            name: {
                "files": tally.files,
                "outcomes": dict(sorted(tally.outcomes.items())),
                "slowest_seconds": round(tally.slowest_seconds, 3),
                "largest_megabytes": tally.largest_bytes >> 20,
            }
            for name, tally in tallies.items()
        },
        "findings": [
            {**vars(item), "command": command(item.parser, seed, item.index)}
            for tally in tallies.values()
            for item in tally.findings
        ],
    }


def shares(names: Sequence[str], files: int, first: int) -> Iterable[tuple[Parser, range]]:
    """Yields each parser with the numbers of its files."""
    whole = sum(SHARES[name] for name in names)
    for name in names:
        yield PARSERS[name], range(first, first + -(-files * SHARES[name] // whole))


def fuzz(
    names: Sequence[str],
    files: int,
    *,
    seed: int = 0,
    first: int = 0,
    jobs: int = 1,
    note: Callable[[dict[str, Any]], object] = dict,
) -> dict[str, Any]:
    """Tries damaged files and returns the report; progress goes to the standard error.

    Parameters
    ----------
    names : sequence of str
        Of ``PARSERS``.
    files : int
        Of all parsers together.
    seed, first : int
        Of the generator; the number of each parser's first file.
    jobs : int
        Processes at a time.
    note : callable
        Given the report so far, every ten seconds.
    """
    tallies: dict[str, Tally] = {}
    for parser, indices in shares(names, files, first):
        tallies[parser.name] = Tally()
        noted = time.monotonic()
        for tally, left in run_workers(parser, seed, indices, jobs):
            tallies[parser.name] = tally
            if not left or time.monotonic() - noted > _NOTE_SECONDS:
                noted = time.monotonic()
                print(
                    f"{parser.name}: {tally.files} files, {left} to come,"
                    f" {len(tally.findings)} findings",
                    file=sys.stderr,
                    flush=True,
                )
                note(report(seed, tallies))
    return report(seed, tallies)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="slipstick.verify.fuzz", description=__doc__)
    parser.add_argument("--parser", action="append", choices=tuple(PARSERS), help="default: all")
    parser.add_argument("--files", type=int, default=6000, help="of all parsers together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--json", type=Path, help="where the report is written")
    parser.add_argument("--keep", type=Path, help="a folder for the files that are findings")
    return parser.parse_args(words)


def _keep(folder: Path, seed: int, findings: Sequence[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for item in findings:
        parser = PARSERS[item["parser"]]
        data = parser.case(parser.seeds(), seed, item["index"])
        (folder / f"{item['parser']}_{seed}_{item['index']}").write_bytes(data)


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; its status is 1 if there are findings."""
    given = _arguments(words)
    names = given.parser or tuple(PARSERS)

    def write(made: dict[str, Any]) -> None:
        if given.json is not None:
            part = given.json.with_suffix(".part")
            reports.write_file(part, "python -m slipstick.verify.fuzz", made)
            part.replace(given.json)

    made = fuzz(names, given.files, seed=given.seed, first=given.first, jobs=given.jobs, note=write)
    write(made)
    if given.keep is not None:
        _keep(given.keep, given.seed, made["findings"])
    print(json.dumps(made, indent=1))
    return 1 if made["findings"] else 0


__all__ = ["PARSERS", "Finding", "fuzz", "main", "report", "try_file"]

if __name__ == "__main__":
    sys.exit(main())
