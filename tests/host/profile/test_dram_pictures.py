"""The pictures of a list for the DMA: what is counted, and what is refused."""

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from random_networks import NetworkBuilder, random_network
from slipstick.compiler import compile_graph
from slipstick.errors import InputError
from slipstick.examples.digits import MODEL
from slipstick.plots.figures import DOTS_PER_INCH
from slipstick.profile.dram import DramCost, dram_cost, draw_dram_timeline
from slipstick.profile.dram_roofline import FIGURE_SIZE, draw_dram_roofline, stretches
from small_dram_core import SMALL


def costs(batch: int) -> list[DramCost]:
    """Of the random networks that run from DRAM."""
    found = list[DramCost]()
    for seed in range(200, 225):
        builder = random_network(seed)
        graph = builder.graph(builder.last)
        cost = dram_cost(compile_graph(graph, SMALL, batch=batch))
        if cost is not None:
            found.append(cost)
    return found


@pytest.mark.parametrize("batch", [1, 2])
def test_stretches_lie_under_both_roofs(batch: int) -> None:
    tried = 0
    for cost in costs(batch):
        hardware, points = cost.program.hardware, stretches(cost)
        if not points:
            continue
        tried += 1
        for point in points:
            assert 0 < point.rate <= hardware.macs_per_cycle
            assert 0 < point.share_of_dram(hardware) <= 1
            product = point.intensity * point.share_of_dram(hardware)
            assert math.isclose(point.rate, product * hardware.dram_bytes_per_cycle)
        assert sum(point.cycles for point in points) <= cost.timeline.end
        assert sum(point.words for point in points) <= cost.listed.words
    assert tried > 6


def test_nothing_is_counted_twice_or_left_out() -> None:
    """All multiply-accumulates, all of the list's time, and all words but the list's own."""
    builder = NetworkBuilder(5, 12, 12, 16)
    for outputs in (32, 16, 48):
        builder.same_conv2d(3, outputs)
    for batch in (1, 3):
        cost = dram_cost(compile_graph(builder.graph(builder.last), SMALL, batch=batch))
        assert cost is not None
        points = stretches(cost)
        macs = batch * sum(layer.macs for layer in cost.program.layers)
        assert math.isclose(sum(point.macs for point in points), macs)
        assert sum(point.cycles for point in points) == cost.timeline.end
        words = sum(span.words for span in cost.timeline.spans)
        assert sum(point.words for point in points) == words


def test_pictures(tmp_path: Path) -> None:
    cost = next(cost for cost in costs(1) if len(stretches(cost)) > 2)
    draw_dram_roofline(tmp_path / "new" / "roofline.png", cost, "small")
    draw_dram_timeline(tmp_path / "timeline.png", cost, "small")
    with Image.open(tmp_path / "new" / "roofline.png") as image:
        assert image.size == tuple(round(side * DOTS_PER_INCH) for side in FIGURE_SIZE)
        assert len(np.unique(np.asarray(image.convert("L")))) > 50
    assert (tmp_path / "timeline.png").stat().st_size > 10_000


def test_a_network_without_products_has_no_roofline(tmp_path: Path) -> None:
    for cost in costs(1):
        if not stretches(cost):
            with pytest.raises(InputError, match="must have layers that multiply"):
                draw_dram_roofline(tmp_path / "roofline.png", cost, "small")


@pytest.mark.parametrize("option", ["--roofline", "--timeline"])
def test_a_network_that_is_whole_on_the_chip_has_neither(
    option: str, slipstick, tmp_path: Path
) -> None:
    path = tmp_path / "picture.png"
    status, _, errors = slipstick("compile", MODEL, option, path, "--target", "ulx3s-12f-sdram")
    assert status == 2 and not path.exists()
    assert f"{option} is for networks that run from DRAM" in errors
