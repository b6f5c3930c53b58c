"""Predicts the cycles of the digits network on several targets, without running it.

Prints array shape, predicted cycles, share of peak, and inferences per second at the target's
nominal clock. The figures exclude transfers and host layers.
"""

import slipstick
from slipstick.examples.digits import MODEL

print(f"{'target':<12} {'array':<8} {'cycles':>8} {'of peak':>8} {'inf/s':>9}")
for target in ("icebreaker", "ulx3s-12f", "ulx3s-25f", "sim-medium", "ulx3s-85f", "1x32x32"):
    program = slipstick.compile(MODEL, target=target)
    hardware = program.hardware
    cycles = program.predicted_cycles
    share = program.macs / (cycles * hardware.macs_per_cycle)
    rate = hardware.clock_hz / cycles
    print(f"{target:<12} {hardware.shape:<8} {cycles:>8,} {share:>8.1%} {rate:>9,.0f}")
