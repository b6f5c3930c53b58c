"""The small memory and the delay once more, as ECP5's synthesis leaves them."""

from dataclasses import replace

from ..netlist import ecp5_netlist
from . import bench_small_memory
from .drivers.on_chip import DEVICE

BENCH = replace(
    bench_small_memory.BENCH,
    name=__name__.rpartition(".")[2],
    parameters=tuple(shape for shape in bench_small_memory.BENCH.parameters if DEVICE in shape),
    verilog=ecp5_netlist.verilog,
    optimisation="-O0",
)
