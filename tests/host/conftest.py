"""What the tests of this folder share."""

import os
import zlib

import numpy as np
import pytest
import shared_data
from slipstick.cli import app

# what a test compiles is compiled, whatever was kept before
os.environ.setdefault("SLIPSTICK_CACHE", "off")


@pytest.fixture(autouse=True)
def borrowing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets none but marked tests have shared data."""
    marked = request.node.get_closest_marker("borrows") is not None
    monkeypatch.setattr(shared_data, "BORROWING", marked)


@pytest.fixture(autouse=True)
def numbers_of_its_own(request: pytest.FixtureRequest) -> None:
    """A module's ``RNG`` begins anew with each test: which others ran before must not matter."""
    if hasattr(request.module, "RNG"):
        seed = zlib.crc32(request.node.name.encode())
        request.module.RNG.bit_generator.state = np.random.default_rng(seed).bit_generator.state


@pytest.fixture
def slipstick(capsys: pytest.CaptureFixture[str]):
    """Runs the command line: its exit status, what it printed, and its errors."""

    def run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            app(list(map(str, arguments)), prog_name="slipstick")
        captured = capsys.readouterr()
        return int(ended.value.code or 0), captured.out, captured.err

    return run
