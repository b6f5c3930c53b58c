"""Selects the link of a configuration's engine."""

from ..config import Configuration
from ..engines import COMPACT, PIPELINED
from .compact.link import CompactLink
from .link import Link
from .protocol import DEFAULT_TIMEOUT_CYCLES

LINKS = {PIPELINED.name: Link, COMPACT.name: CompactLink}
"""The link of each engine, by the engine's name."""


def make_link(
    configuration: Configuration, timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES
) -> Link | CompactLink:
    """Returns a new link: frames on one side, memories and runs on the other."""
    return LINKS[configuration.engine](configuration=configuration, timeout_cycles=timeout_cycles)
