"""Where compiled simulations are kept, on a machine with and without a home."""

import os
import tempfile
from pathlib import Path

import pytest
from slipstick_sim import toolchain


@pytest.fixture(autouse=True)
def no_cache_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLIPSTICK_CACHE", raising=False)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    toolchain._temporary_cache.cache_clear()


def test_home_has_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert toolchain.cache_directory() == tmp_path / ".cache/slipstick"
    assert toolchain.cache_directory().is_dir()
    monkeypatch.setenv("SLIPSTICK_CACHE", str(tmp_path / "elsewhere"))
    assert toolchain.cache_directory() == tmp_path / "elsewhere"


@pytest.mark.parametrize("home", ["file", "missing", "read-only", ""])
def test_without_a_home_it_is_temporary(
    home: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "read-only").mkdir()
    homes = {"": "", "missing": "/proc/nobody"}
    monkeypatch.setenv("HOME", homes.get(home, str(tmp_path / home)))
    if home == "read-only":
        # root may write there all the same
        monkeypatch.setattr(os, "access", lambda folder, mode: False)
    folder = toolchain.cache_directory()
    assert folder == tmp_path / "temporary" / f"slipstick-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    said = capsys.readouterr().err
    assert said.startswith(f"compiled simulations are kept in {folder}, as there is no cache (")
    assert said.endswith("); SLIPSTICK_CACHE names another folder\n") and said.count("\n") == 1
    # told once, and found again by the next process
    assert toolchain.cache_directory() == folder
    assert capsys.readouterr().err == ""
    toolchain._temporary_cache.cache_clear()
    assert toolchain.cache_directory() == folder


def test_a_folder_that_others_may_write_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "")
    theirs = tmp_path / "temporary" / f"slipstick-{os.getuid()}"
    theirs.mkdir()
    theirs.chmod(0o777)
    found = toolchain.cache_directory()
    assert found != theirs and found.parent == theirs.parent
    assert found.stat().st_mode & 0o777 == 0o700


def test_a_named_cache_must_be_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SLIPSTICK_CACHE", str(tmp_path / "file"))
    with pytest.raises(
        toolchain.ToolError, match="SLIPSTICK_CACHE must name a folder that can be written: .*file"
    ):
        toolchain.cache_directory()
