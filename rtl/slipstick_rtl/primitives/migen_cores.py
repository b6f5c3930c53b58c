"""Verilog from cores that are written in Migen: LiteEth, LiteDRAM."""

import importlib
import warnings
from collections.abc import Callable


def require_core(package: str, modules: tuple[str, ...], *, purpose: str, extra: str) -> None:
    """Raises ImportError, with how to install them, if modules of a package or LiteX are missing.

    Parameters
    ----------
    package : str
        Of Python.
    modules : tuple of str
        That are imported.
    purpose : str
        What needs it.
    extra : str
        Of this project, that has it.
    """
    try:
        with warnings.catch_warnings():
            # invalid escape sequences and such
            warnings.simplefilter("ignore")
            for module in modules:
                importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{purpose} needs the Python package {package} ({error}):"
            f" pip install 'slipstick[{extra}]'",
            name=package,
        ) from error


def core_verilog(convert: Callable[[], str]) -> str:
    """Returns the Verilog that ``convert`` makes, without what is new each time it is made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = convert()
    # before and after the module stands when it was made, and by which commit of what folder
    return text[text.index("`timescale") : text.rindex("endmodule")] + "endmodule\n"
