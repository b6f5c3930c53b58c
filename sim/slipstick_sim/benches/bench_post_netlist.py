"""The post engine once more, as ECP5's synthesis leaves it: every cell and register."""

from dataclasses import replace

from . import bench_post, ecp5_netlist
from .on_chip import DEVICE

BENCH = replace(
    bench_post.BENCH,
    name=__name__.rpartition(".")[2],
    parameters=tuple(shape for shape in bench_post.BENCH.parameters if DEVICE in shape),
    verilog=ecp5_netlist.verilog,
)
