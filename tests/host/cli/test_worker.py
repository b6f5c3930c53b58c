"""`slipstick worker`, and commands that use the workers of a scheduler."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from slipstick.cluster import connection
from slipstick.examples.digits import MODEL, load_digits
from stateful_networks import wake_word

COUNT = 96
OLD = "import slipstick; slipstick.__version__ = '0.0.1'; from slipstick.cli import app; app()"


@contextmanager
def started(*arguments: str, ready: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process, and the line that says that it is ready; it is killed at the end."""
    # other tests of this process may have silenced Dask
    plain = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**plain, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    try:
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if ready in line:
                break
        else:
            pytest.fail("".join(said))
        yield process, said[-1]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler."""
    arguments = ("-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0")
    arguments += ("--dashboard-address", "127.0.0.1:0")
    with started(*arguments, ready="Scheduler at:") as (_, line):
        yield line.split()[-1]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    images, labels = (array[:COUNT] for array in load_digits()[2:])
    np.savez(tmp_path / "digits.npz", x=images, y=labels)
    return tmp_path / "digits.npz"


def worker(scheduler: str, *options: str):
    """A worker process, whose one line is JSON."""
    arguments = ("-m", "slipstick", "worker", "--scheduler", scheduler, "--json", *options)
    return started(*arguments, ready="{")


def test_eval_on_two_workers(slipstick, scheduler, data):
    _, expected, _ = slipstick("eval", MODEL, "--inputs", data, "--json")
    with (
        worker(scheduler, "--device", "model") as (process, line),
        worker(scheduler, "--device", "model"),
    ):
        told = json.loads(line)
        assert told["device"] == "model" and told["scheduler"] == scheduler
        asked = ("eval", MODEL, "--inputs", data, "--json", "--cluster", scheduler)
        status, printed, said = slipstick(*asked)
        assert "dashboard is at http://127.0.0.1:" in said
        assert status == 0 and said.count("\n") == 1 and printed.count("\n") == 1
        found = json.loads(printed)
        assert found["devices"] == 2 and found["retried"] == 0 and 0 < found["efficiency"] <= 1
        for name in ("accuracy", "correct", "count"):
            assert found[name] == json.loads(expected)[name]
        assert found["device"] == scheduler
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_no_worker_suits(slipstick, scheduler, data, monkeypatch):
    monkeypatch.setattr(connection, "WORKER_SECONDS", 0.5)
    asked = ("eval", MODEL, "--inputs", data, "--cluster", scheduler)
    status, printed, said = slipstick(*asked)
    assert status == 2 and not printed
    assert "has no worker of slipstick 0" in said and "after 0.5 s; it has no other" in said
    assert "slipstick worker" in said
    with (
        started("-c", OLD, "worker", "-s", scheduler, "-d", "model", ready="worker"),
        worker(scheduler, "--device", "model:sim-small"),
        worker(scheduler),
    ):
        status, printed, said = slipstick(*asked)
    assert status == 2 and not printed
    assert "slipstick 0.0.1" in said and "no board" in said and "model:sim-small #" in said


def test_a_worker_of_another_version_is_given_nothing(slipstick, scheduler, data):
    with (
        started("-c", OLD, "worker", "-s", scheduler, "-d", "model", ready="worker"),
        worker(scheduler, "--device", "model"),
    ):
        status, printed, said = slipstick(
            "eval", MODEL, "--inputs", data, "--json", "--cluster", scheduler
        )
    assert status == 0 and json.loads(printed)["devices"] == 1
    assert "(slipstick 0.0.1, a board with hardware" in said and "was given nothing" in said


@pytest.mark.parametrize(
    ("options", "reason"),
    (
        (("--scheduler", "foo", "--device", "model"), "--scheduler must be tcp://HOST:PORT"),
        (("--scheduler", "tcp://127.0.0.1:9", "--wait", "0.5"), "does not answer within 0.5 s"),
        (("--scheduler", "tcp://a:1", "--target", "1x8x8"), "are of a board: give --device"),
        (("--scheduler", "tcp://a:1", "--device", "model", "--take"), "--take is for boards"),
    ),
)
def test_bad_options(slipstick, options, reason):
    status, printed, said = slipstick("worker", *options)
    assert status == 2 and not printed and reason in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("device", "reason"),
    (
        ("serial:/dev/nothing", "there is no port /dev/nothing"),
        ("pool:model,model", "a worker has one board"),
        ("nonsense", "device must be one of"),
    ),
)
def test_devices_that_cannot_be_opened(scheduler, device, reason):
    arguments = ("-m", "slipstick", "worker", "--scheduler", scheduler, "--device", device)
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and not done.stdout
    assert reason in done.stderr and done.stderr.count("\n") == 1


def test_bad_clusters(slipstick, data):
    for command in (
        ("eval", MODEL, "--inputs", data),
        ("run", MODEL, "--input", data),
        ("verify", MODEL, "--no-rtl"),
        ("verify", "--random", 1),
        ("explore", MODEL),
        ("build",),
        ("study", "lns-mnist"),
    ):
        status, printed, said = slipstick(*command, "--cluster", "foo")
        assert status == 2 and not printed
        assert said == "slipstick: --cluster must be local:N or tcp://HOST:PORT, not 'foo'\n"


def test_options_that_have_no_sense_there(slipstick, data):
    asked = ("eval", MODEL, "--inputs", data, "--cluster", "tcp://127.0.0.1:9", "--device", "sim")
    assert "leave it out" in slipstick(*asked)[2]
    asked = ("explore", MODEL, "--jobs", 2, "--cluster", "local:1")
    assert "--jobs cannot stand beside --cluster" in slipstick(*asked)[2]


def test_networks_that_keep_values_are_refused(slipstick, tmp_path):
    (tmp_path / "wake.tflite").write_bytes(wake_word(np.random.default_rng(1)))
    np.save(tmp_path / "x.npy", np.zeros((2, 3, 40), np.int8))
    asked = ("run", tmp_path / "wake.tflite", "--input", tmp_path / "x.npy")
    status, _, said = slipstick(*asked, "--cluster", "local:1")
    assert status == 2 and "keeps values from run to run" in said
