"""Profiles each layer of the digits network on the compiled RTL of sim-small.

Verilator builds the simulation first; that takes about a minute once. Prints the simulated cycles
of each layer beside the predicted ones, and writes trace.json for https://ui.perfetto.dev.
"""

from pathlib import Path

import slipstick
from slipstick.examples.digits import MODEL
from slipstick.profile.chrome_trace import write_trace
from slipstick.profile.measure import measure

program = slipstick.compile(MODEL, target="sim-small")
benchmark = measure(program)
print(f"{'layer':<20} {'cycles':>8} {'predicted':>10} {'of peak':>8}")
for profile in benchmark.layers:
    share = profile.utilisation(program.hardware.macs_per_cycle)
    peak = "" if share is None else f"{share:.1%}"
    print(
        f"{profile.layer.name:<20} {profile.cycles:>8,}"
        f" {profile.layer.predicted_cycles:>10,} {peak:>8}"
    )
print(f"total: {benchmark.cycles:,} cycles simulated, {program.predicted_cycles:,} predicted")
write_trace(Path("trace.json"), benchmark)
