"""An option for each of the configuration's fields that can be swept, and what it is given."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from ..errors import InputError
from ..explore.sweeps import Values, swept_fields

_UNITS = {"K": 1 << 10, "M": 1 << 20}


def with_sweep_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option a field in place of its ``**lists``."""
    signature = inspect.signature(command)
    parameters = [
        entry for entry in signature.parameters.values() if entry.kind is not entry.VAR_KEYWORD
    ]
    for name, kind in swept_fields().items():
        what = "Numbers" if kind is int else "Names"
        option = typer.Option(
            option_name(name), help=f"{what}, separated by commas.", metavar="LIST"
        )
        annotation = Annotated[str | None, option]
        command.__annotations__[name] = annotation
        parameters.append(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
            )
        )
    # typer reads what a command takes from its signature and annotations
    command.__dict__["__signature__"] = signature.replace(parameters=parameters)
    return command


def option_name(field: str) -> str:
    """Names the option of a field."""
    return f"--{field.replace('_', '-')}"


def parse_lists(lists: Mapping[str, str | None]) -> Values:
    """The values that the options were given, by field; those that are absent are left out.

    Raises
    ------
    InputError
        If a list is empty, or a value is no whole number where one must be.
    """
    kinds = swept_fields()
    return {
        name: tuple(_value(name, kinds[name], item.strip(), text) for item in text.split(","))
        for name, text in lists.items()
        if text is not None
    }


def _value(name: str, kind: type, item: str, text: str) -> int | str:
    if kind is str and item:
        return item
    unit = _UNITS.get(item[-1:].upper(), 1)
    digits = item if unit == 1 else item[:-1]
    if kind is int and digits.isdecimal() and digits.isascii() and len(digits) < 10:
        return int(digits) * unit
    rule = "names" if kind is str else "whole numbers, such as 8,16 or 64K,128K,"
    raise InputError(f"{option_name(name)} must be a comma list of {rule} not {text!r}")
