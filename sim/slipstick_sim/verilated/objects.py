"""Compiles the C++ that Verilator writes, and Verilator's own, to objects."""

import concurrent.futures
import platform
from collections.abc import Sequence
from pathlib import Path

from .. import toolchain

_JOBS = 2
_SLOW_OPTIONS = ("-O0",)
# Bytes of C++. To compile less than this takes less time than the headers that every unit reads.
_SMALL = 300_000
# From here on two units take less time on two processors than one.
_LARGE = 1_500_000
# The compiler's memory grows with a unit.
_LARGEST = 3_000_000


def compiler_recipe() -> list[str | bytes]:
    """Returns what any object depends on besides its source and options."""
    compiler = toolchain.compiler()
    version = toolchain.run_tool([compiler, "--version"]).partition("\n")[0]
    return [Path(__file__).read_bytes(), compiler, version, platform.machine()]


def compile_model(
    folder: Path, fast: Sequence[str], options: Sequence[str], others: Sequence[Path] = ()
) -> list[Path]:
    """Compiles the C++ of a model, in few units: each reads Verilator's headers again.

    Parameters
    ----------
    folder : Path
        Where Verilator wrote its C++; the objects go there too.
    fast : sequence of str
        Options for what runs in every cycle. What runs once is not optimised.
    options : sequence of str
        For all of it.
    others : sequence of Path
        C++ from elsewhere that is a part of the model.

    Returns
    -------
    list of Path
        The objects.

    Raises
    ------
    ToolError
        If the compiler fails.
    """
    sources = [*folder.glob("*.cpp"), *others]
    # Verilator names the parts that run once "Slow".
    slow = [source for source in sources if source.stem.endswith("Slow")]
    units = list[tuple[Sequence[str], Sequence[Path]]]()
    if sum(map(_size, slow)) >= _SMALL:
        units.append((_SLOW_OPTIONS, slow))
        sources = [source for source in sources if source not in slow]
    total = sum(map(_size, sources))
    parts = 1 if total < _LARGE else max(_JOBS, -(-total // _LARGEST))
    units += [(fast, part) for part in _shares(sources, parts)]
    files = [
        (_together(folder / f"unit_{index}.cpp", unit), [*chosen, *options])
        for index, (chosen, unit) in enumerate(units)
    ]
    with concurrent.futures.ThreadPoolExecutor(_JOBS) as pool:
        return list(pool.map(lambda file: _compile_source(file[0], folder, file[1]), files))


def _size(path: Path) -> int:
    return path.stat().st_size


def _shares(sources: Sequence[Path], count: int) -> list[list[Path]]:
    """Divides the sources into shares of about the same size."""
    shares = [list[Path]() for _ in range(count)]
    for source in sorted(sources, key=_size, reverse=True):
        min(shares, key=lambda share: sum(map(_size, share))).append(source)
    return shares


def _together(unit: Path, sources: Sequence[Path]) -> Path:
    """Writes a unit that includes the sources, so that their headers are read once."""
    unit.write_text("".join(f'#include "{source}"\n' for source in sources))
    return unit


def _compile_source(source: Path, folder: Path, options: Sequence[str]) -> Path:
    """Compiles one file; returns the object, which is in the folder."""
    target = folder / f"{source.stem}.o"
    toolchain.run_tool([toolchain.compiler(), "-fPIC", *options, "-c", source, "-o", target])
    return target


def runtime_objects(
    folder: Path, sources: Sequence[Path], options: Sequence[str], headers: Sequence[Path] = ()
) -> list[Path]:
    """Returns the objects that all models share: they are compiled once, and kept in the folder.

    Parameters
    ----------
    folder : Path
        Where models are kept.
    sources : sequence of Path
        Verilator's own, and cocotb's.
    options : sequence of str
        Of the compiler.
    headers : sequence of Path
        Of ours that the sources include: if one changes, so do the objects.

    Raises
    ------
    ToolError
        If the compiler fails.
    """
    names = [source.name for source in sources]
    texts = [header.read_bytes() for header in headers]
    key = toolchain.content_key(*names, *options, *texts, *compiler_recipe())
    directory = folder / f"runtime-{key}"

    def build(part: Path) -> None:
        for source in sources:
            _compile_source(source, part, options)

    toolchain.build_once(directory, build)
    return [directory / f"{source.stem}.o" for source in sources]
