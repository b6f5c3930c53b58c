"""Exports a core with an AXI interface as one Verilog file, with a C header for drivers.

Prints the files with their sizes; they are written to the folder axi_core.
"""

from pathlib import Path

from slipstick.export import export
from slipstick.targets import find_target

done = export(find_target("asic-4x4"), "axi", Path("axi_core"))
for path in done.files:
    print(f"{path.name:<14} {path.stat().st_size:>9,} bytes")
face = done.description["interface"]
print(f"module {done.description['top']}: clock {face['clock']}, reset {face['reset']}")
