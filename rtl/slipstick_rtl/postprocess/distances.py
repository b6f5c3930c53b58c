"""Computes where a step of the post engine's loop nest is after so many cycles."""

from ..config import Configuration
from ..latencies import (
    ACTIVATION_READ_LATENCY,
    ACTIVATION_WRITE_LATENCY,
    result_table_latency,
)
from .lane import PostLane
from .requantizer import Requantizer

READ_DISTANCE = 1
"""Cycles from a step to the read of its tap: the addresses follow the loops' ends."""

BYTE_DISTANCE = READ_DISTANCE + ACTIVATION_READ_LATENCY
"""... to its bytes' arrival at the lanes. With ``halved_tables`` this and what follows is a cycle
later in the upper half of the lanes."""

BIAS_DISTANCE = BYTE_DISTANCE + PostLane.value_delay
"""... from a result's last step to the addition of its bias."""

FIELDS_PERIOD = BIAS_DISTANCE + Requantizer.clamp_delay - 1
"""At least that many cycles lie between the starts of two instructions: what an instruction's
results have in common is kept once, and copied where its first result comes by."""


def write_distance(configuration: Configuration) -> int:
    """Cycles from a result's last step to its write."""
    in_tables = configuration.halved_tables + result_table_latency(configuration)
    return BYTE_DISTANCE + PostLane.latency + in_tables


def landing_distance(configuration: Configuration) -> int:
    """Cycles from an instruction's last step to its completion."""
    return write_distance(configuration) + ACTIVATION_WRITE_LATENCY
