"""The array once more, as ECP5's synthesis leaves it: every cell and register."""

from dataclasses import replace

from . import bench_array, ecp5_netlist
from .on_chip import DEVICE

BENCH = replace(
    bench_array.BENCH,
    name=__name__.rpartition(".")[2],
    parameters=tuple(shape for shape in bench_array.BENCH.parameters if DEVICE in shape),
    verilog=ecp5_netlist.verilog,
)
