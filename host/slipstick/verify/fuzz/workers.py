"""Processes that try damaged files, watched: one that crashes, hangs or grows is a finding."""

import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .outcomes import Parser, WrongResultError

SECONDS = 10.0
"""No file may take longer."""
MEMORY_BYTES = 2 << 30
"""No process may grow larger."""
_ADDRESS_BYTES = 12 << 30
"""Bytes that a worker may map at all, so that one file does not take the machine down."""
_CHUNK = 500
_POLL_SECONDS = 0.2
_FRAMES = 4


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A file whose outcome is none of those that there may be."""

    parser: str
    index: int
    kind: str
    message: str


@dataclass
class Tally:
    """Counts the outcomes of a parser's files, and keeps the findings."""

    files: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_seconds: float = 0.0
    largest_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: dict[str, Any]) -> None:
        """Adds a worker's report."""
        self.files += other["files"]
        self.outcomes.update(other["outcomes"])
        self.slowest_seconds = max(self.slowest_seconds, other["slowest_seconds"])
        self.largest_bytes = max(self.largest_bytes, other["largest_bytes"])
        self.findings += [Finding(**item) for item in other["findings"]]


def peak_bytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def try_file(parser: Parser, data: bytes, seed: int, index: int) -> tuple[str, Finding | None]:
    """Tries one file; returns its outcome, and the finding that it is, if any."""
    begin, peak = time.monotonic(), peak_bytes()
    try:
        # a name once warned of would not be again: results must not hang on the order of files
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = parser.outcome(data, seed, index)
    except WrongResultError as error:
        return "wrong", _finding(parser, index, "wrong result", str(error))
    except Exception as error:
        return "exception", _finding(parser, index, "exception", _described(error))
    seconds = time.monotonic() - begin
    if peak_bytes() > max(MEMORY_BYTES, peak):
        return "large", _finding(parser, index, "memory", f"{peak_bytes() >> 20} MiB")
    if seconds > SECONDS:
        return "slow", _finding(parser, index, "time", f"{seconds:.1f} s")
    return outcome, None


def _try_case(
    parser: Parser, files: Sequence[bytes], seed: int, index: int
) -> tuple[str, Finding | None]:
    """Damages a file and tries it; a fault of the damaging itself is a finding of its own kind."""
    try:
        data = parser.case(files, seed, index)
    except Exception as error:
        return "fuzzer", _finding(parser, index, "fuzzer", _described(error))
    return try_file(parser, data, seed, index)


def _described(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    way = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames))
    return f"{type(error).__name__}: {error}"[:300] + f" ({way})"


def _finding(parser: Parser, index: int, kind: str, message: str) -> Finding:
    return Finding(parser=parser.name, index=index, kind=kind, message=message)


def _work(parser: Parser, seed: int, indices: range, current: Any, begun: Any, pipe: Any) -> None:
    """A worker's life: some files, then its report."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_BYTES, _ADDRESS_BYTES))
    files = parser.seeds()
    tally = Tally()
    for index in indices:
        begun.value, current.value = time.monotonic(), index
        outcome, finding = _try_case(parser, files, seed, index)
        tally.slowest_seconds = max(tally.slowest_seconds, time.monotonic() - begun.value)
        tally.files += 1
        tally.outcomes[outcome] += 1
        if finding is not None:
            tally.findings.append(finding)
            if finding.kind == "memory":
                # its high-water mark would hide the next one's
                break
    tally.largest_bytes = peak_bytes()
    report = {**vars(tally), "findings": [vars(item) for item in tally.findings]}
    pipe.send(json.dumps(report))
    pipe.close()


@dataclass
class _Worker:
    process: Any
    parser: Parser
    indices: range
    current: Any
    begun: Any
    pipe: Any


def _start(parser: Parser, seed: int, indices: range) -> _Worker:
    context = multiprocessing.get_context("fork")
    current, begun = context.Value("q", indices.start, lock=False), context.Value("d", 0.0)
    reading, writing = context.Pipe(duplex=False)
    arguments = (parser, seed, indices, current, begun, writing)
    process = context.Process(target=_work, args=arguments, daemon=True)
    process.start()
    writing.close()
    return _Worker(process, parser, indices, current, begun, reading)


def _end(worker: _Worker) -> tuple[dict[str, Any] | None, range]:
    """A finished worker's report, None if it died, and the files that it has left."""
    try:
        report = json.loads(worker.pipe.recv())
    except (EOFError, OSError):
        report = None
    worker.process.join()
    return report, range(worker.current.value + 1, worker.indices.stop)


def run_workers(
    parser: Parser, seed: int, indices: range, jobs: int
) -> Iterator[tuple[Tally, int]]:
    """Tries files in parallel; yields what came of them so far, and how many are to come."""
    parser.seeds()
    tally = Tally()
    waiting: list[range] = [
        range(first, min(first + _CHUNK, indices.stop))
        for first in range(indices.start, indices.stop, _CHUNK)
    ]
    waiting.reverse()
    running: list[_Worker] = []
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(_start(parser, seed, waiting.pop()))
        multiprocessing.connection.wait([worker.pipe for worker in running], _POLL_SECONDS)
        for worker in list(running):
            if worker.pipe.poll() or not worker.process.is_alive():
                report, rest = _end(worker)
                killed = f"the process ended with {worker.process.exitcode}"
            elif worker.begun.value and time.monotonic() - worker.begun.value > 2 * SECONDS:
                worker.process.kill()
                report, rest = None, _end(worker)[1]
                killed = f"no outcome after {2 * SECONDS:.0f} s"
            else:
                continue
            running.remove(worker)
            _account(tally, worker, report, killed)
            if rest:
                waiting.append(rest)
        yield tally, sum(map(len, waiting)) + sum(len(worker.indices) for worker in running)


def _account(tally: Tally, worker: _Worker, report: dict[str, Any] | None, killed: str) -> None:
    if report is not None:
        tally.add(report)
        return
    index = worker.current.value
    tally.files += index + 1 - worker.indices.start
    tally.outcomes["killed"] += 1
    tally.outcomes["not told"] += index - worker.indices.start
    tally.findings.append(_finding(worker.parser, index, "killed", killed))


def total(tallies: Sequence[Tally]) -> int:
    """Files of all parsers together."""
    return sum(tally.files for tally in tallies)
