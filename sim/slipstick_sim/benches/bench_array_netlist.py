"""The array once more, as ECP5's synthesis leaves it: every cell and register."""

from dataclasses import replace

from ..netlist import ecp5_netlist
from . import bench_array
from .drivers.on_chip import DEVICE, ECP5

BENCH = replace(
    bench_array.BENCH,
    name=__name__.rpartition(".")[2],
    parameters=(),
    thorough=(
        {
            "rows": 8,
            "columns": 4,
            "multiplier": "lut",
            "weight_rows": 2,
            "packed_rows": 3,
            DEVICE: ECP5,
        },
    ),
    verilog=ecp5_netlist.verilog,
    optimisation="-O0",
)
