"""Selects the cycle model of a configuration's engine."""

from slipstick_rtl.config import Configuration
from slipstick_rtl.engines import COMPACT, PIPELINED

from .compact_cycle_model import CompactCycleModel
from .cycle_model import CycleModel

CYCLE_MODELS = {PIPELINED.name: CycleModel, COMPACT.name: CompactCycleModel}
"""The cycle model of each engine, by the engine's name."""


def cycle_model(configuration: Configuration) -> CycleModel | CompactCycleModel:
    """Returns the model that predicts the clock cycles of a configuration's programs."""
    return CYCLE_MODELS[configuration.engine](configuration)
