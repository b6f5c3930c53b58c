"""The cycle model's latencies follow the gateware's, give or take a pipeline register."""

import pytest
from slipstick.schedule.cycles import POST_PIPELINE, WEIGHT_OVERHEAD, CycleModel
from slipstick_rtl.array.matrix_engine import MatrixEngine
from slipstick_rtl.array.weight_loader import TILE_OVERHEAD
from slipstick_rtl.config import Configuration
from slipstick_rtl.memory.latencies import ACTIVATION_WRITE_LATENCY
from slipstick_rtl.postprocess.control import PostControl

SLACK = 4
"""Cycles an instruction: 150 instructions of ResNet-8 would be 1 % off."""


@pytest.mark.parametrize("sizes", [(1, 8, 8, 4), (2, 16, 16, 8), (1, 32, 16, 16)])
def test_latencies(sizes):
    names = ("pixels", "rows", "columns", "lanes")
    configuration = Configuration(**dict(zip(names, sizes, strict=True)))
    model = CycleModel(configuration)
    matrix, post = MatrixEngine(configuration=configuration).latency, PostControl.latency
    assert abs(model.matrix_latency - matrix) <= SLACK
    assert abs(POST_PIPELINE - post - ACTIVATION_WRITE_LATENCY) <= SLACK
    assert WEIGHT_OVERHEAD == TILE_OVERHEAD
