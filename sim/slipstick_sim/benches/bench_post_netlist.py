"""The post engine once more, as ECP5's synthesis leaves it: every cell and register."""

from dataclasses import replace

from ..netlist import ecp5_netlist
from . import bench_post
from .drivers.on_chip import DEVICE, ECP5

BENCH = replace(
    bench_post.BENCH,
    name=__name__.rpartition(".")[2],
    parameters=(),
    thorough=(
        {"rows": 16, "columns": 4, "lanes": 4, "weight_rows": 4, "ninth_bits": 1}
        | {"halved_tables": 1, DEVICE: ECP5},
    ),
    verilog=ecp5_netlist.verilog,
    optimisation="-O0",
)
