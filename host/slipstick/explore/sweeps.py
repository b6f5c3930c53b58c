"""The configurations of a sweep: lists of values by field, and the rest as a target has it."""

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slipstick_rtl.config import Configuration, most_weight_rows, power_of_two_within
from slipstick_rtl.fpga.parts import Part

from ..errors import InputError
from ..fpga.area import multipliers

NOT_SWEPT = ("number_format", "payload_bytes", "engine", "clock_hz", "parameter_words")
"""Fields that change neither cycles nor area, or that follow from others."""
MOST = 4096
"""Configurations of a sweep, lawful or not."""

_SHAPE = ("pixels", "rows", "columns", "lanes", "multiplier")
_SPLIT = "packed_rows"
"""Field that says how much of the array has DSP blocks."""

Values = Mapping[str, Sequence[int | str]]


@dataclass(frozen=True)
class Skipped:
    """A configuration that cannot be made.

    Parameters
    ----------
    fields : mapping
        The fields that were swept.
    law : str
        What it breaks.
    """

    fields: Mapping[str, int | str]
    law: str


def swept_fields() -> dict[str, type]:
    """Lists the configuration's fields that can be swept: their types by their names."""
    return {
        field.name: str if field.type in (str, "str") else int
        for field in dataclasses.fields(Configuration)
        if field.name not in NOT_SWEPT
    }


def make_configurations(
    base: Configuration, values: Values, part: Part
) -> tuple[list[Configuration], list[Skipped]]:
    """Every combination of the values.

    Fields without values are the base's. But lanes and rows of weights are as few as a smaller
    array demands, and where the array is another, as much of it has DSP blocks as the part has.

    Parameters
    ----------
    base : Configuration
    values : mapping
        Sequences by the names of fields.
    part : Part
        Its DSP blocks are shared out.

    Returns
    -------
    lists of Configuration and Skipped

    Raises
    ------
    InputError
        If there are more than ``MOST`` combinations, or none of them can be made.
    """
    count = math.prod(len(dict.fromkeys(choices)) for choices in values.values())
    if count > MOST:
        raise InputError(f"a sweep must be of at most {MOST:,} configurations, not {count:,}")
    made: list[Configuration] = []
    skipped: list[Skipped] = []
    for choice in itertools.product(*(dict.fromkeys(choices) for choices in values.values())):
        given = dict(zip(values, choice, strict=True))
        try:
            made.append(_adapted(base, given, part))
        except ValueError as error:
            skipped.append(Skipped(given, str(error)))
    if not made:
        raise InputError(f"none of {count:,} configurations can be made: {skipped[0].law}")
    return made, skipped


def _adapted(base: Configuration, given: Mapping[str, Any], part: Part) -> Configuration:
    fields = {**base.to_dict(), **given}
    limits = {
        "lanes": power_of_two_within(min(fields["rows"], fields["columns"])),
        "weight_rows": most_weight_rows(fields["rows"]),
    }
    for name, limit in limits.items():
        if name not in given:
            fields[name] = min(fields[name], limit)
    same = all(fields[name] == getattr(base, name) for name in _SHAPE)
    if same or _SPLIT in given:
        return Configuration.from_dict(fields)
    return _most_blocks(fields, part)


def _most_blocks(fields: dict[str, Any], part: Part) -> Configuration:
    """With as many DSP blocks in the array as the part has left, or with none."""
    for value in range(fields["rows"], 0, -1):
        try:
            configuration = Configuration.from_dict(fields | {_SPLIT: value})
        except ValueError:
            continue
        if multipliers(configuration) <= part.multipliers:
            return configuration
    return Configuration.from_dict(fields | {_SPLIT: 0})
