"""Files of a divided network: a ``.slip`` per stage, and a ``.stages`` that names them."""

import dataclasses
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...compiler.stages.staged_program import Division, StagedProgram, join_programs
from ...errors import ProgramError
from ...program import Program
from ...program.slip_file import read_file, write_file
from ...program.steps import TensorDescription, require

SUFFIX = ".stages"
_VERSION = 1
_MOST_BYTES = 1 << 20
_DESCRIBED = ("shape", "dtype", "scale", "zero_point")


def is_stages_file(path: object) -> bool:
    """Tells whether a path is that of a file that names the stages of a network."""
    return isinstance(path, str | os.PathLike) and os.fspath(path).endswith(SUFFIX)


def stage_paths(path: Path, count: int) -> list[Path]:
    """The ``.slip`` files of the stages beside a network's ``.stages`` file, or a ``.slip`` one."""
    return [path.with_name(f"{path.stem}-{number}.slip") for number in range(1, count + 1)]


def write_stages(path: Path, program: StagedProgram) -> list[Path]:
    """Writes a pipeline's files; returns all of them, the ``.stages`` file last.

    Raises
    ------
    ProgramError
        If a file cannot be written, or the program is not a pipeline's.
    """
    require(
        program.division is Division.PIPELINE,
        f"program {program.name!r}: only a pipeline's stages can be files of their own",
    )
    paths = stage_paths(path, len(program.stages))
    for stage, own in zip(program.stages, paths, strict=True):
        stage.save(own)
    described = {name: program.tensors[name] for name in (*program.inputs, *program.outputs)}
    contents = {
        "version": _VERSION,
        "name": program.name,
        "inputs": program.inputs,
        "outputs": program.outputs,
        "tensors": {name: _entry(tensor) for name, tensor in described.items()},
        "stages": [own.name for own in paths],
    }
    index = path.with_suffix(SUFFIX)
    write_file(index, (json.dumps(contents, indent=2) + "\n").encode())
    return [*paths, index]


def read_stages(path: str | os.PathLike[str]) -> StagedProgram:
    """Reads a network's stages.

    Raises
    ------
    ProgramError
        If a file cannot be read, or they are not the stages of one network.
    """
    place = Path(path)
    data = read_file(place)
    require(len(data) <= _MOST_BYTES, f"{place}: a {SUFFIX} file must not be {len(data)} bytes")
    try:
        contents = json.loads(data)
        names, known = contents["stages"], contents["version"]
        require(known == _VERSION, f"its version must be {_VERSION}, not {known!r}")
        require(
            all(isinstance(name, str) and Path(name).name == name for name in names),
            "its stages must be files beside it",
        )
        stages = [Program.load(place.with_name(name)) for name in names]
        return join_programs(
            str(contents["name"]),
            tuple(map(str, contents["inputs"])),
            tuple(map(str, contents["outputs"])),
            {str(name): _tensor(entry) for name, entry in contents["tensors"].items()},
            Division.PIPELINE,
            stages,
        )
    except ProgramError as error:
        raise ProgramError(f"{place}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProgramError(
            f"{place}: it must be a {SUFFIX} file as slipstick compile --pipeline writes it:"
            f" {type(error).__name__}, {error}"
        ) from None


def _entry(tensor: TensorDescription) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(tensor).items() if name in _DESCRIBED}


def _tensor(entry: Mapping[str, Any]) -> TensorDescription:
    scale, point = entry["scale"], entry["zero_point"]
    return TensorDescription(
        tuple(int(size) for size in entry["shape"]),
        str(entry["dtype"]),
        None if scale is None else float(scale),
        None if point is None else int(point),
    )
