"""Tests a device's whole DRAM through the DMA: its lines, its cells, and how fast it is."""

from .bandwidth import Bandwidth
from .procedure import MemoryReport, MemoryTest, check_covered
from .verdict import Fault, Verdict

__all__ = ["Bandwidth", "Fault", "MemoryReport", "MemoryTest", "Verdict", "check_covered"]
