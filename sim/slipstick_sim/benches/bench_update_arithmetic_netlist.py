"""UpdateArithmetic once more, as ECP5's synthesis leaves it."""

from dataclasses import replace

from ..netlist import ecp5_netlist
from . import bench_update_arithmetic
from .drivers.on_chip import DEVICE, ECP5

BENCH = replace(
    bench_update_arithmetic.BENCH,
    name=__name__.rpartition(".")[2],
    parameters=({DEVICE: ECP5},),
    verilog=ecp5_netlist.verilog,
    optimisation="-O0",
)
