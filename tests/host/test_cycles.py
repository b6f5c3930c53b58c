"""The cycle model's latencies are the gateware's own."""

import pytest
from slipstick.schedule.cycles import POST_PIPELINE, WEIGHT_OVERHEAD, CycleModel
from slipstick_rtl.array.matrix_engine import MatrixEngine
from slipstick_rtl.array.weight_loader import TILE_OVERHEAD
from slipstick_rtl.config import Configuration
from slipstick_rtl.memory.latencies import ACTIVATION_WRITE_LATENCY
from slipstick_rtl.postprocess.control import PostControl


@pytest.mark.parametrize("sizes", [(1, 8, 8, 4), (2, 16, 16, 8), (1, 32, 16, 16)])
def test_latencies(sizes):
    names = ("pixels", "rows", "columns", "lanes")
    configuration = Configuration(**dict(zip(names, sizes, strict=True)))
    model = CycleModel(configuration)
    assert model.matrix_latency == MatrixEngine(configuration=configuration).latency
    assert PostControl.latency + ACTIVATION_WRITE_LATENCY == POST_PIPELINE
    assert WEIGHT_OVERHEAD == TILE_OVERHEAD
