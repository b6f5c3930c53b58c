"""The bench runner tells failures, hangs and empty benches apart from success."""

import dataclasses
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from slipstick_sim import toolchain
from slipstick_sim.benches import __main__ as command
from slipstick_sim.benches import registry
from slipstick_sim.benches.registry import Bench, load
from slipstick_sim.benches.runner import BenchResult, run_bench

PARAMETERS = {"width": 8, "depth": 4}

TESTS = """
import cocotb
from cocotb.triggers import RisingEdge
from slipstick_sim.benches.registry import parameters
from slipstick_sim.benches.drivers.streams import Consumer, Producer, start

@cocotb.test()
async def passes(dut):
    assert parameters() == {"width": 8, "depth": 4}

@cocotb.test()
async def fails(dut):
    consumer = Consumer(dut, "o")
    await start(dut)
    await consumer.receive(1, timeout_cycles=30)

@cocotb.test()
async def sees_a_payload_change(dut):
    consumer = Consumer(dut, "i", stall=0.9)  # the wrong side: its payload is ours to change
    await start(dut)
    dut.i__valid.value = 1
    task = consumer.start(20)
    for number in range(100):
        dut.i__payload.value = number
        await RisingEdge(dut.clk)
    await task
"""

HANG = """
import cocotb

@cocotb.test()
async def hangs(dut):
    while True:
        pass
"""


def bench_of(text: str, name: str, folder: Path, **fields: int) -> Bench:
    (folder / f"{name}.py").write_text(text)
    return dataclasses.replace(load("bench_stream_queue"), test_module=name, **fields)


@pytest.fixture(autouse=True)
def module_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_failures_are_named(module_folder: Path) -> None:
    result = run_bench(bench_of(TESTS, "failing_tests", module_folder), PARAMETERS)
    assert not result.passed
    assert result.tests == 3
    assert [failure.partition(":")[0] for failure in result.failures] == [
        "fails",
        "sees_a_payload_change",
    ]
    assert result.cycles > 30
    text = result.explain()
    assert "o: 0 of 1 payloads after 30 cycles" in text
    assert "before it was taken" in text


def test_a_hanging_simulation_is_ended(module_folder: Path) -> None:
    bench = bench_of(HANG, "hanging_test", module_folder, timeout_seconds=3)
    begin = time.perf_counter()
    result = run_bench(bench, PARAMETERS)
    assert result.failures == ("the simulation ended without results",)
    assert time.perf_counter() - begin < 60


def test_no_tests_is_not_success(module_folder: Path) -> None:
    result = run_bench(bench_of("import cocotb\n", "no_tests", module_folder), PARAMETERS)
    assert not result.passed


def test_the_registry_names_what_is_wrong() -> None:
    bench = load("bench_stream_queue")
    with pytest.raises(
        ValueError, match="no bench is named 'streams'; there are: .*bench_stream_queue"
    ):
        load("streams")
    with pytest.raises(ValueError, match="must be an identifier, not 'a b'"):
        dataclasses.replace(bench, name="a b")
    with pytest.raises(ValueError, match="bench_stream_queue must have at least one set"):
        dataclasses.replace(bench, parameters=())
    assert registry.describe({"a": 1, "b": 2}) == "a=1, b=2"


def test_no_bench_stands_where_the_registry_does_not_look() -> None:
    """A module with ``BENCH`` in a folder below would never run, and nothing would say so."""
    folder = Path(registry.__file__).parent
    defined = {
        path.relative_to(folder).with_suffix("").as_posix()
        for path in folder.rglob("*.py")
        if any(line.startswith("BENCH = ") for line in path.read_text().splitlines())
    }
    assert defined == {bench.name for bench in registry.all_benches()}


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list", "bench_stream_queue"]) == 0
    assert "width=8, depth=4" in capsys.readouterr().out
    assert command.main(["no_such_bench"]) == 2
    assert "no bench is named 'no_such_bench'" in capsys.readouterr().err


def test_each_begin_and_end_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Into a pipe, which Python fills before it passes anything on unless it is told to."""
    told = tmp_path / "told"
    seen: list[list[str]] = []

    def pretend_to_run(bench: Bench, parameters: Mapping[str, Any], **options: object):
        seen.append(told.read_text().splitlines())
        failures = ("broken",) if parameters["width"] == 6 else ()
        return BenchResult(bench.name, parameters, 1, failures, 10, 1.25, tmp_path / "log", None)

    bench = dataclasses.replace(load("bench_stream_queue"), parameters=({"width": 8}, {"width": 6}))
    monkeypatch.setattr(command, "load", lambda name: bench)
    monkeypatch.setattr(command, "run_bench", pretend_to_run)
    with open(told, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        assert command.main(["bench_stream_queue"]) == 1
    first, second = (
        "[1/2] bench_stream_queue (width=8) ...",
        "[2/2] bench_stream_queue (width=6) ...",
    )
    assert seen == [[first], [first, "[1/2] passed in 1.2 s", second]]
    assert "[2/2] FAILED in 1.2 s" in told.read_text()


def test_a_folder_is_built_once_by_many(tmp_path: Path) -> None:
    built = []

    def build(part: Path) -> None:
        built.append(part)
        time.sleep(0.2)
        (part / "done").touch()

    threads = [
        threading.Thread(target=toolchain.build_once, args=(tmp_path / "model", build))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 1
    assert (tmp_path / "model" / "done").exists()


def test_a_tool_that_fails_is_quoted() -> None:
    with pytest.raises(toolchain.ToolError, match="exit code 1"):
        toolchain.run_tool(["false"])
    with pytest.raises(toolchain.ToolError, match="no-such-tool cannot be run"):
        toolchain.run_tool(["no-such-tool"])
