"""Chooses the lanes' requantiser: the one of the configuration's number format."""

from collections.abc import Mapping
from typing import Any, Protocol

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data
from amaranth.utils import exact_log2

from ..config import Configuration
from ..isa import MapFlag, TrainingFlag
from ..number_formats import INT8_FAMILY, LNS_FAMILY
from .fields import InstructionField, ParameterField
from .log_requantizer import LogRequantizer
from .requantizer import Requantizer
from .training_requantizer import TrainingRequantizer


class LaneRequantizer(Protocol):
    """A 32-bit sum to a byte, one a cycle: a component.

    All kinds have the same latency, and the clamp at its end: what happens beside the lanes does
    not depend on the kind.

    Members
    -------
    value : In(signed(32))
    bias : In(signed(32))
        With the value. Further inputs, by the names of ``parameters`` and ``fields``, as late.
    result : Out(signed(8))
        ``Requantizer.latency`` cycles after its value.
    """

    value: Signal
    bias: Signal
    result: Signal
    parameters: Mapping[str, ParameterField]
    fields: Mapping[str, InstructionField]

    def elaborate(self, platform: object) -> Module:
        """Its gateware."""
        ...


def requantizer(configuration: Configuration) -> LaneRequantizer:
    """A new requantiser for a lane."""
    kind, arithmetic = _kind(configuration), configuration.logarithmic
    silicon = configuration.silicon
    if arithmetic is None:
        return kind(silicon=silicon)
    return kind(arithmetic=arithmetic, silicon=silicon)


def parameter_fields(configuration: Configuration) -> Mapping[str, ParameterField]:
    """The parts of a channel's parameters."""
    return _kind(configuration).parameters


def instruction_fields(configuration: Configuration) -> Mapping[str, InstructionField]:
    """Lists the fields that all results of an instruction have in common."""
    return _kind(configuration).fields


def _kind(configuration: Configuration) -> type[Any]:
    return (
        TrainingRequantizer
        if configuration.training
        else _REQUANTIZERS[configuration.format.family]
    )


_REQUANTIZERS: dict[str, type[Any]] = {INT8_FAMILY: Requantizer, LNS_FAMILY: LogRequantizer}


def field_of(configuration: Configuration, instruction: data.View, name: str) -> Value:
    """One of ``instruction_fields`` in an instruction: a field of it, or a ``TrainingFlag``."""
    flags: Mapping[str, TrainingFlag] = getattr(_kind(configuration), "flags", {})
    if name in flags:
        return flag_of(instruction, flags[name])
    return Value.cast(instruction[name])


def flag_of(instruction: data.View, flag: TrainingFlag | MapFlag) -> Value:
    """A flag of a DRAIN or MAP."""
    return instruction.table_words[exact_log2(flag)]


def strobes(configuration: Configuration) -> data.StructLayout:
    """One bit for each part of a channel's parameters: it arrives, or it is taken."""
    return data.StructLayout(dict.fromkeys(parameter_fields(configuration), 1))


def lane_fields(configuration: Configuration) -> data.StructLayout:
    """``instruction_fields`` as a word."""
    fields = instruction_fields(configuration)
    return data.StructLayout({name: field.shape for name, field in fields.items()})
