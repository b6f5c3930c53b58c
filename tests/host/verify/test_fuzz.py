"""The fuzzer: some hundred files of each parser, and that it sees what it is there to see."""

import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from slipstick.errors import ProgramError
from slipstick.program.slip_file import decode
from slipstick.verify.fuzz import __main__ as fuzzer
from slipstick.verify.fuzz import workers
from slipstick.verify.fuzz.onnx import ONNX
from slipstick.verify.fuzz.outcomes import READ, Parser
from slipstick.verify.fuzz.slip import SLIP
from slipstick.verify.fuzz.tflite import check_equal, tflite_seeds
from slipstick.verify.fuzz.workers import Tally, run_workers

FILES = {"tflite": 150, "onnx": 400, "slip": 300, "arrays": 500, "images": 300, "liberty": 400}


@pytest.mark.parametrize("name", fuzzer.PARSERS)
def test_damaged_files(name: str) -> None:
    report = fuzzer.fuzz([name], FILES[name], seed=1)
    assert report["findings"] == []
    outcomes = report["parsers"][name]["outcomes"]
    assert report["files"] == sum(outcomes.values()) == FILES[name]
    # neither is everything damaged beyond recognition, nor nothing
    assert outcomes.get("refused", 0) > 10 and outcomes.get("refused", 0) < FILES[name]


def test_the_seeds_are_good() -> None:
    for name, parser in fuzzer.PARSERS.items():
        seeds = parser.seeds()
        good = [parser.outcome(data, 0, 0) != "refused" for data in seeds[:40]]
        # files that suit one of several inputs, or are of another byte order
        assert sum(good) > len(good) * 0.7, name


def tried(check: Callable[[bytes, random.Random], str], indices: range, jobs: int = 1) -> Tally:
    def mutate(pick: random.Random, data: bytes, files: Sequence[bytes]) -> bytes:
        return bytes([pick.randrange(256)])

    parser = Parser(name="some", seeds=lambda: (b"x",), mutate=mutate, check=check)
    tallies = [tally for tally, _ in run_workers(parser, 0, indices, jobs)]
    return tallies[-1]


def test_what_must_not_happen_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "SECONDS", 8.0)
    monkeypatch.setattr(workers, "MEMORY_BYTES", workers.peak_bytes() + (50 << 20))
    calls = iter(range(100))

    def check(data: bytes, pick: random.Random) -> str:
        match next(calls):
            case 1:
                raise KeyError("name")
            case 2:
                check_equal("output", np.zeros(2), np.ones(2))
            case 3:
                raise ProgramError("two\nlines")
            case 4:
                time.sleep(8.1)
            case 5:
                # more than any test before this one took, as a worker inherits the peak
                return READ if b"x" * (workers.MEMORY_BYTES + (10 << 20)) else ""
        return READ

    tally = tried(check, range(6))
    kinds = [item.kind for item in tally.findings]
    expected = ["exception", "wrong result", "wrong result", "time", "memory"]
    assert kinds == expected, tally.findings
    assert "KeyError: 'name'" in tally.findings[0].message and tally.files == 6


def test_workers_that_die_are_found_and_the_rest_goes_on() -> None:
    parent = os.getpid()

    def check(data: bytes, pick: random.Random) -> str:
        assert os.getpid() != parent
        if data[0] < 16:
            os.kill(os.getpid(), signal.SIGSEGV)
        return READ

    tally = tried(check, range(60), jobs=2)
    killed = [item for item in tally.findings if item.kind == "killed"]
    assert tally.files == 60 and tally.findings == killed
    assert 1 <= len(killed) < 20


def test_numbers_that_no_field_holds_are_not_written() -> None:
    for index in (10128, 10129):
        assert ONNX.case(ONNX.seeds(), 1, index)


def test_a_fault_of_the_fuzzer_is_told_and_the_rest_goes_on() -> None:
    def mutate(pick: random.Random, data: bytes, files: Sequence[bytes]) -> bytes:
        if pick.random() < 0.2:
            raise TypeError("no such type")
        return data

    parser = Parser(name="some", seeds=lambda: (b"x",), mutate=mutate, check=lambda *_: READ)
    *_, (tally, _) = run_workers(parser, 0, range(50), 1)
    assert tally.files == 50 and tally.outcomes["fuzzer"] == len(tally.findings) > 0
    assert {item.kind for item in tally.findings} == {"fuzzer"}
    assert "TypeError: no such type" in tally.findings[0].message


@pytest.mark.parametrize("name", fuzzer.PARSERS)
def test_every_file_can_be_damaged(name: str) -> None:
    """Damage upon damage, as far as the files of one seed go, reading none of them."""
    parser = fuzzer.PARSERS[name]
    files = parser.seeds()
    for index in range(75238, 75238 + 1500):
        parser.case(files, 2, index)


def test_a_finding_can_be_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--parser", "slip", "--seed", "3", "--first", "17", "--files", "1"]
    path = tmp_path / "report.json"
    assert fuzzer.main([*words, "--json", str(path)]) == 0
    report, printed = json.loads(path.read_text()), json.loads(capsys.readouterr().out)
    assert {"command", "date", "versions"} <= report.keys()
    assert printed.items() <= report.items()
    assert fuzzer.command("slip", 3, 17).endswith(" ".join(words))
    first, second = (SLIP.case(SLIP.seeds(), 3, 17) for _ in range(2))
    assert first == second != SLIP.case(SLIP.seeds(), 3, 18)


def test_forged_programs_are_refused_by_name() -> None:
    """Each with a right CRC; kernels would have raised KeyErrors and the like."""
    found: set[str] = set()
    files = SLIP.seeds()
    for index in range(6000):
        if found == set(FORGED):
            break
        try:
            decode(SLIP.case(files, 9, index))
        except ProgramError as error:
            text = str(error)
            assert "\n" not in text
            found |= {part for part in FORGED if part in text}
    assert found == set(FORGED)


FORGED = (
    "before it is made",
    "there is no such operator in the semantics",
    "must suit its tensors",
    "must hold",
    "attribute",
)


def test_seeds_are_of_every_operator() -> None:
    from slipstick.frontends.tflite.operators import SPLITTERS, readers
    from slipstick.frontends.tflite.reader import read_model

    names = {op.name for data in tflite_seeds() for op in read_model(data, "seed").operators}
    assert names >= {*readers(), *SPLITTERS}
