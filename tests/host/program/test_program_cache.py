"""Compiled programs that are kept: taken only where all is the same, and never damaged."""

import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from slipstick import loading
from slipstick.errors import SlipstickError
from slipstick.examples.digits import MODEL
from slipstick.loading import load_program
from slipstick.program import Program
from slipstick.program import cache as program_cache
from slipstick.program.slip_file import encode
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick.verify.fuzz.onnx_seeds import between

TARGET = find_target("sim-small").configuration


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLIPSTICK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "programs"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was compiled, and not taken from the folder."""
    calls, plain = list[object](), loading.compile_file

    def compile_file(path: Any, *given: Any, **options: Any) -> Program:
        calls.append(path)
        return plain(path, *given, **options)

    monkeypatch.setattr(loading, "compile_file", compile_file)
    return calls


def test_what_was_compiled_is_taken(folder: Path, compiled: list[object]) -> None:
    first, second = (load_program(MODEL, TARGET) for _ in range(2))
    assert len(compiled) == 1
    assert encode(first) == encode(second)
    images = np.random.default_rng(0).integers(-128, 128, (2, 8, 8, 1), np.int8)
    name = first.inputs[0]
    with InferenceSession(first, "model") as session:
        expected = session.run(None, {name: images})
    with InferenceSession(MODEL, "model", TARGET) as session:
        np.testing.assert_array_equal(session.run(None, {name: images})[0], expected[0])
    assert len(compiled) == 1
    (entry,) = folder.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


def other_network(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(path.read_bytes())
    # a weight in the middle of the file
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def other_source(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = path.with_name("source.py")
    source.write_text("x = 1")
    plain = program_cache._files
    monkeypatch.setattr(program_cache, "_files", lambda p: [*plain(p), ("source.py", source)])
    program_cache.sources_digest.cache_clear()


def other_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache.importlib.metadata, "version", lambda name: "0")
    program_cache.sources_digest.cache_clear()


def other_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_cache, "__version__", "0")
    program_cache.sources_digest.cache_clear()


@pytest.mark.parametrize("change", [other_network, other_source, other_package, other_version])
def test_any_change_misses(
    folder: Path,
    compiled: list[object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, pytest.MonkeyPatch], None],
) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(MODEL.read_bytes())
    load_program(path, TARGET)
    change(path, monkeypatch)
    try:
        load_program(path, TARGET)
        load_program(path, TARGET)
    finally:
        monkeypatch.undo()
        program_cache.sources_digest.cache_clear()
    assert len(compiled) == 2


def test_every_source_counts() -> None:
    """All modules of the compiler are among the hashed ones."""
    names = {
        name for package in program_cache._SOURCES for name, _ in program_cache._files(package)
    }
    loaded = "import sys; import slipstick.compiler, slipstick.frontends.onnx; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, check=True
    )
    for module in done.stdout.split():
        package, _, rest = module.partition(".")
        if package.startswith("slipstick"):
            assert package in program_cache._SOURCES, module
            place = rest.replace(".", "/")
            assert {f"{place}.py", f"{place}/__init__.py".lstrip("/")} & names, module


def test_targets_options_and_names_miss(
    folder: Path, compiled: list[object], tmp_path: Path
) -> None:
    path = tmp_path / "other.tflite"
    path.write_bytes(MODEL.read_bytes())
    medium = find_target("sim-medium").configuration
    ways = [(MODEL, TARGET, None), (MODEL, medium, None), (MODEL, TARGET, "tflm")]
    ways.append((path, TARGET, None))
    for way in ways:
        load_program(*way)
    programs = [load_program(*way) for way in ways]
    assert len(compiled) == 4
    assert programs[1].fingerprint != programs[0].fingerprint == programs[2].fingerprint
    assert programs[3].name == "other"


def flip(entry: Path) -> None:
    data = bytearray(entry.read_bytes())
    data[len(data) // 3] ^= 4
    entry.write_bytes(data)


def is_no_program(entry: Path) -> None:
    digest = program_cache.hashlib.sha256(b"nothing").digest()
    entry.write_bytes(digest + b"nothing")


def is_a_folder(entry: Path) -> None:
    entry.unlink()
    entry.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        flip,
        is_no_program,
        is_a_folder,
        lambda entry: entry.write_bytes(entry.read_bytes()[:-1]),
        lambda entry: entry.write_bytes(b""),
    ],
)
def test_a_damaged_entry_is_made_anew(
    folder: Path,
    compiled: list[object],
    capfd: pytest.CaptureFixture[str],
    damage: Callable[[Path], None],
) -> None:
    first = load_program(MODEL, TARGET)
    (entry,) = folder.iterdir()
    damage(entry)
    again = [load_program(MODEL, TARGET) for _ in range(2)]
    assert len(compiled) == 2
    assert {encode(program) for program in again} == {encode(first)}
    assert capfd.readouterr() == ("", "")


def test_nothing_is_kept_where_it_must_not_be(
    folder: Path, compiled: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLIPSTICK_CACHE", "off")
    load_program(MODEL, TARGET)
    # a file is in the way
    monkeypatch.setenv("SLIPSTICK_CACHE", str(MODEL))
    load_program(MODEL, TARGET)
    monkeypatch.delenv("SLIPSTICK_CACHE")
    monkeypatch.setattr(Path, "home", lambda: Path("/proc/nowhere"))
    load_program(MODEL, TARGET)
    assert len(compiled) == 3 and not folder.exists()


def test_errors_are_not_kept(folder: Path, compiled: list[object], tmp_path: Path) -> None:
    path = tmp_path / "bad.tflite"
    path.write_bytes(MODEL.read_bytes()[:100])
    for _ in range(2):
        with pytest.raises(SlipstickError, match="bad"):
            load_program(path, TARGET)
    assert len(compiled) == 2 and not folder.exists()


def test_what_changes_while_it_is_compiled_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(MODEL.read_bytes())
    plain = loading.compile_file

    def compile_file(*given: Any, **options: Any) -> Program:
        other_network(path, monkeypatch)
        return plain(*given, **options)

    monkeypatch.setattr(loading, "compile_file", compile_file)
    load_program(path, TARGET)
    assert not folder.exists()


def test_networks_of_several_files_are_not_kept(
    folder: Path, compiled: list[object], tmp_path: Path
) -> None:
    model = between("Add", (1, 2, 3, 4), np.full((2, 1, 1), 0.5, np.float32))
    item = next(item for item in model.graph.initializer if len(item.dims) == 3)
    (tmp_path / "more.bin").write_bytes(item.raw_data)
    item.ClearField("raw_data")
    entry = item.external_data.add()
    item.data_location = onnx.TensorProto.EXTERNAL
    entry.key, entry.value = "location", "more.bin"
    path = tmp_path / "several.onnx"
    path.write_bytes(model.SerializeToString())
    for _ in range(2):
        load_program(path, TARGET)
    assert len(compiled) == 2


def test_the_least_recently_used_are_removed(
    folder: Path, compiled: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / f"{name}.tflite" for name in "abc"]
    for path in paths:
        path.write_bytes(MODEL.read_bytes())
    load_program(paths[0], TARGET)
    (first,) = folder.iterdir()
    monkeypatch.setattr(program_cache, "LARGEST_CACHE", 5 * first.stat().st_size // 2)
    load_program(paths[1], TARGET)
    for age, entry in enumerate((first, *(e for e in folder.iterdir() if e != first))):
        os.utime(entry, (age + 1, age + 1))
    abandoned = folder / "x.part"
    abandoned.touch()
    os.utime(abandoned, (1, 1))
    # using it makes it the youngest
    load_program(paths[0], TARGET)
    load_program(paths[2], TARGET)
    assert len(compiled) == 3 and len(list(folder.iterdir())) == 2
    load_program(paths[0], TARGET)
    assert len(compiled) == 3
    load_program(paths[1], TARGET)
    assert len(compiled) == 4


def test_processes_at_once(folder: Path) -> None:
    code = (
        "from slipstick.loading import load_program;"
        "from slipstick.program.slip_file import encode;"
        "from slipstick.examples.digits import MODEL; from slipstick.targets import find_target;"
        "import zlib; configuration = find_target('sim-small').configuration;"
        "print(*{zlib.crc32(encode(load_program(MODEL, configuration))) for _ in range(3)})"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = {worker.communicate()[0] for worker in workers}
    assert len(answers) == 1 and all(worker.returncode == 0 for worker in workers)
    assert [path.suffix for path in folder.iterdir()] == [".slip"]
