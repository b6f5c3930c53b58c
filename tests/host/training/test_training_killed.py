"""Trainings that are killed, in real processes: they go on to the bits of an undisturbed one."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from slipstick.errors import InputError
from slipstick.training.checkpoints import (
    Checkpoint,
    History,
    Within,
    check_settings,
    read_checkpoint,
    write_checkpoint,
)

SUPPORT = Path(__file__).parents[2] / "support"
STEPS = 24
"""Of the training in ``killed_training``, each with a checkpoint; and one per epoch."""


def start(
    path: Path, number: int = 0, byte: int = 0, kind: str = "alone"
) -> "subprocess.Popen[str]":
    script, arguments = SUPPORT / "killed_training.py", (path, number, byte, kind)
    return subprocess.Popen(
        [sys.executable, str(script), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )


def run(path: Path, number: int = 0, byte: int = 0, kind: str = "alone") -> tuple[int, int]:
    """Trains until the end or a death; its status, and how many steps it told of."""
    process = start(path, number, byte, kind)
    out, _ = process.communicate(timeout=300)
    return process.returncode, len(out.splitlines())


def assert_equal(found: Path, wanted: Path) -> None:
    one, other = read_checkpoint(found), read_checkpoint(wanted)
    assert one.history == other.history and len(one.history) == 3
    assert one.settings == other.settings == {"seed": 7} and one.within == Within()
    assert set(one.arrays) == set(other.arrays)
    for name, array in one.arrays.items():
        np.testing.assert_array_equal(array, other.arrays[name], err_msg=name)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("undisturbed") / "whole.npz"
    assert run(path) == (0, STEPS)
    return path


def test_killed_at_any_byte_of_a_checkpoint(undisturbed: Path, tmp_path: Path) -> None:
    path, size = tmp_path / "killed", undisturbed.stat().st_size
    generator = random.Random(3)
    told = 0
    # the very first checkpoint, its first and last bytes, and bytes in between
    for number, byte in ((1, 1), (1, size // 2), (4, 1), (5, size - 200)):
        status, steps = run(path, number, min(byte, size - 200))
        assert status == -9
        told += steps
    for _ in range(2):
        status, steps = run(path, generator.randint(2, 5), generator.randint(1, size - 200))
        assert status == -9
        told += steps
    assert read_checkpoint(path).history != read_checkpoint(undisturbed).history
    status, steps = run(path)
    assert status == 0 and told + steps > STEPS
    assert_equal(path, undisturbed)
    assert not path.with_name("killed.part").exists()


@pytest.mark.parametrize("kind", ["one-bit", "local"])
def test_many_devices_that_are_killed(kind: str, tmp_path: Path) -> None:
    """What compression has left out, and batches that wait for an average, are there again."""
    whole, path = tmp_path / "whole", tmp_path / "killed"
    assert run(whole, kind=kind) == (0, STEPS)
    # at the first bytes of the checkpoints of steps in the middle of epochs
    for number, byte in ((3, 1), (4, 2000), (7, 1)):
        assert run(path, number, byte, kind)[0] == -9
    kept = read_checkpoint(path).arrays
    assert any(name.startswith(("unsent/", "local/waiting/")) for name in kept)
    assert run(path, kind=kind)[0] == 0
    assert_equal(path, whole)


def test_killed_at_any_time(undisturbed: Path, tmp_path: Path) -> None:
    path, generator = tmp_path / "killed", random.Random(5)
    killed = 0
    for _ in range(4):
        process = start(path)
        assert process.stdout is not None
        for _ in range(generator.randint(1, 6)):
            process.stdout.readline()
        try:
            # at whatever it is just then
            process.wait(timeout=generator.uniform(0, 0.02))
        except subprocess.TimeoutExpired:
            process.kill()
            killed += 1
        process.wait()
        process.stdout.close()
    assert killed
    assert run(path)[0] == 0
    assert_equal(path, undisturbed)


def test_a_checkpoint_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "some.checkpoint"
    arrays = {"layer/masters": np.arange(6, dtype=np.int32)}
    history = History(loss=[0.1], before_percent=[25.0])
    within = Within(3, 1 / 3, 40, 96)
    write_checkpoint(path, Checkpoint(arrays, history, within, {"batch": 32}))
    known = read_checkpoint(path)
    assert (known.history, known.within, known.settings) == (history, within, {"batch": 32})
    assert within.mean_loss == 1 / 288 and within.percent == 100 * 40 / 96
    assert list(path.parent.iterdir()) == [path]


def test_settings_of_another_training() -> None:
    with pytest.raises(InputError, match="its batch must be 16, not 32"):
        check_settings(Path("x"), {"seed": 0, "batch": 32}, {"seed": 0, "batch": 16})
    check_settings(Path("x"), {"seed": 0}, {"seed": 0})
