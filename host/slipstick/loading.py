"""Makes programs of files: compiles networks, reads compiled programs."""

import os

from slipstick_rtl.config import Configuration

from .errors import ModelError, ProgramError, TargetError
from .program import Program
from .program.slip_file import MAGIC
from .targets import DEFAULT_TARGET, Target, find_target


def is_program(path: str | os.PathLike[str]) -> bool:
    """Tells whether a file is a compiled program rather than a network.

    Raises
    ------
    ModelError
        If it cannot be read, or is no path: a number would be taken for an open file's.
    """
    if not isinstance(path, str | os.PathLike):
        raise ModelError(
            f"a model must be a file's path, or a Program for a session, not {type(path).__name__}"
        )
    try:
        if not os.path.isfile(path):
            missing = "is a folder" if os.path.isdir(path) else "is not there"
            raise ModelError(f"model {os.fspath(path)} must be a file, but {missing}")
        with open(path, "rb") as file:
            start = file.read(len(MAGIC))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ModelError(f"model {os.fspath(path)!r} cannot be read: {reason}") from None
    return start == MAGIC or os.fspath(path).endswith(".slip")


def configuration_of(target: str | Target | Configuration | None) -> Configuration:
    """The hardware that a target, its name or a configuration stand for; None: the default."""
    if isinstance(target, Configuration):
        return target
    if isinstance(target, Target):
        return target.configuration
    if target is None or isinstance(target, str):
        return find_target(target or DEFAULT_TARGET).configuration
    raise TargetError(f"target must be a name or a configuration, not {type(target).__name__}")


def compile_file(
    path: str | os.PathLike[str],
    target: str | Target | Configuration | None = None,
    *,
    inspect: bool = False,
    semantics: str | None = None,
    double_buffer: bool = True,
    batch: int = 1,
) -> Program:
    """Compiles a network's file for a target.

    Parameters
    ----------
    path : path
        A quantised .tflite or .onnx file.
    target : str, Target, Configuration, optional
        Which hardware; by default ``targets.DEFAULT_TARGET``.
    inspect : bool
        Every layer's output comes back to the host, for verification; see ``compile_graph``.
    semantics : str, optional
        Whose rounding it follows, "tflm" or "onnx"; by default that of the file's kind.
    double_buffer : bool
        Inputs and outputs get two places each if memory allows it; see ``compile_graph``.
    batch : int
        Images that share what is loaded from DRAM; see ``compile_graph``.

    Returns
    -------
    Program

    Raises
    ------
    ModelError, UnsupportedError, TargetError
        If the file is no network, or holds what Slipstick does not run; if there is no such
        target, or the network cannot follow those semantics.
    """
    configuration = configuration_of(target)
    if is_program(path):
        raise ModelError(f"{os.fspath(path)} is a compiled program already, not a network")
    from .compiler import compile_graph
    from .frontends import load
    from .frontends.semantics import with_semantics

    graph = with_semantics(load(os.fspath(path)), semantics)
    return compile_graph(
        graph, configuration, inspect=inspect, double_buffer=double_buffer, batch=batch
    )


def load_program(
    model: str | os.PathLike[str] | Program,
    wanted: Configuration | None = None,
    semantics: str | None = None,
    batch: int = 1,
) -> Program:
    """The program of a model: a network is compiled, a program read or taken as it is.

    What is compiled is kept (see ``program_cache``), and taken from there the next time.

    Parameters
    ----------
    model : path or Program
    wanted : Configuration, optional
        The hardware that it must be for; by default a program's own, else ``DEFAULT_TARGET``.
    semantics : str, optional
        Whose rounding it must follow; by default a program's own, or that of the file's kind.
    batch : int
        Of a network that is compiled: see ``compile_file``.

    Raises
    ------
    ProgramError
        If it is a damaged program, or one for other hardware or of other semantics.
    ModelError, UnsupportedError
        As for ``compile_file``.
    """
    if not isinstance(model, Program) and not is_program(model):
        from .program.cache import cached_program

        configuration = configuration_of(wanted)
        return cached_program(
            model,
            configuration,
            {"semantics": semantics, "batch": batch},
            lambda: compile_file(model, configuration, semantics=semantics, batch=batch),
        )
    program = model if isinstance(model, Program) else _read_program(model)
    if wanted is not None:
        program.check(wanted)
    if semantics not in (None, program.semantics):
        raise ProgramError(
            f"program {program.name} follows the semantics {program.semantics}, not {semantics}:"
            " compile its network anew"
        )
    return program


def _read_program(path: str | os.PathLike[str]) -> Program:
    try:
        return Program.load(path)
    except ProgramError as error:
        raise ProgramError(f"{os.fspath(path)}: {error}") from None
