"""Shell completion: scripts, commands, targets, devices and the files of networks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from slipstick.targets import TARGETS


def completed(folder: Path, *words: str) -> list[str]:
    """What bash is offered for the last word."""
    environment = os.environ | {
        "_SLIPSTICK_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("slipstick", *words)),
        "COMP_CWORD": str(len(words)),
    }
    program = "from slipstick.cli import app; app(prog_name='slipstick')"
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert not done.stderr
    return list(filter(None, done.stdout.splitlines()))


def test_commands_targets_devices_and_files(tmp_path: Path) -> None:
    for name in ("digits.tflite", "digits.onnx", "digits.slip", "digits.png"):
        (tmp_path / name).touch()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "small.onnx").touch()
    assert completed(tmp_path, "ver") == ["verify", "verify-training"]
    boards = [name for name in TARGETS if name.startswith("ulx3s")]
    assert completed(tmp_path, "compile", "--target", "ulx3s") == boards
    assert completed(tmp_path, "build", "--target", "ulx3s") == boards
    assert completed(tmp_path, "run", "--device", "s") == ["sim", "serial:", "spi:"]
    assert "sim:sim-small" in completed(tmp_path, "run", "--device", "sim:sim-")
    found = completed(tmp_path, "run", "d")
    assert found == ["deep/", "digits.onnx", "digits.slip", "digits.tflite"]
    assert completed(tmp_path, "compile", "di") == ["digits.onnx", "digits.tflite"]
    assert completed(tmp_path, "verify", "deep/") == ["deep/small.onnx"]
    assert not completed(tmp_path, "verify", "none/")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_shown(shell: str) -> None:
    environment = os.environ | {"_SLIPSTICK_COMPLETE": f"source_{shell}"}
    program = "from slipstick.cli import app; app(prog_name='slipstick')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "_SLIPSTICK_COMPLETE=complete_" in done.stdout and not done.stderr


def test_the_help_names_both_options(slipstick) -> None:
    text = slipstick("--help")[1]
    assert "--install-completion" in text and "--show-completion" in text
