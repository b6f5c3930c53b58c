"""The compiled device: the core's RTL as a shared library behind ctypes."""

from .build import (
    accelerator_library,
    activity_library,
    build_library,
    ethernet_library,
    paced_library,
    serial_library,
    spi_library,
    waveform_library,
)
from .device import EVENT, EVENT_NAMES, CompiledCore, CompiledTransport, SimulationError

__all__ = [
    "EVENT",
    "EVENT_NAMES",
    "CompiledCore",
    "CompiledTransport",
    "SimulationError",
    "accelerator_library",
    "activity_library",
    "build_library",
    "ethernet_library",
    "paced_library",
    "serial_library",
    "spi_library",
    "waveform_library",
]
