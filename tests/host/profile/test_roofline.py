"""The roofline: what counts as moved, each layer's roof, and labels that hide nothing."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from slipstick.errors import InputError
from slipstick.examples.digits import MODEL
from slipstick.loading import compile_file
from slipstick.plots.figures import DOTS_PER_INCH
from slipstick.plots.number_labels import CHARACTER_WIDTH, LABEL_HEIGHT, labels
from slipstick.profile.executed import Executed, Traffic, executed_runs, layer_traffic, traffic
from slipstick.profile.measure import Benchmark
from slipstick.profile.profiles import LayerProfile
from slipstick.profile.roofline import FIGURE_SIZE, draw_roofline, layer_points
from slipstick.program import Program
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import Opcode

HARDWARE = Configuration(pixels=2, rows=8, columns=16, lanes=4)


def predicted(program: Program) -> Benchmark:
    """A benchmark whose cycles are the predicted ones."""
    lines = tuple(LayerProfile(layer, layer.predicted_cycles, ()) for layer in program.layers)
    return Benchmark(program, program.predicted_cycles, lines, None)


def moved(opcode: Opcode, **fields: int) -> Traffic:
    return traffic(HARDWARE, Executed(0, {"opcode": opcode, **fields}))


def test_traffic_counts_the_ports() -> None:
    convolve = {"rows": 3, "groups": 5, "reduction_tiles": 7}
    made = moved(Opcode.CONVOLVE, diagonal=0, **convolve)
    assert (made.weights, made.windows, made.results) == (7 * 8 * 16, 7 * 15 * 2 * 8, 0)
    assert moved(Opcode.CONVOLVE, diagonal=1, **convolve).weights == 7 * 16
    sizes = {"rows": 3, "columns": 5, "slices": 2}
    assert moved(Opcode.DRAIN, **sizes).results == 30 * 4
    assert moved(Opcode.MAP, taps_y=2, taps_x=3, **sizes).results == 30 * 7 * 4
    assert moved(Opcode.TABLE, table_words=128).bytes == 128 * 16


@pytest.mark.parametrize("target", ["1x8x8", "icebreaker"])
def test_points_lie_under_the_roof_of_all_ports(target: str, tmp_path: Path) -> None:
    program = compile_file(MODEL, target)
    benchmark = predicted(program)
    points = layer_points(benchmark)
    multiplying = [layer.name for layer in program.layers if layer.macs]
    assert [point.name for point in points] == multiplying
    all_moved = layer_traffic(program, executed_runs(program))
    weights = sum(tensor.weights for tensor in all_moved)
    assert weights >= 10 * 128
    for point in points:
        assert 0 < point.measured <= program.hardware.macs_per_cycle
        assert 0 < point.roof <= program.hardware.macs_per_cycle
    path = tmp_path / "new" / "roofline.png"
    draw_roofline(path, benchmark, target)
    with Image.open(path) as image:
        assert image.size == tuple(round(inches * DOTS_PER_INCH) for inches in FIGURE_SIZE)


def test_labels_hide_nothing() -> None:
    generator = np.random.default_rng(0)
    points = generator.uniform(100, 500, (30, 2)).round()
    points[20:] = points[0]
    bars = points + np.array([0.0, 40.0])
    bounds = np.array([0.0, 0.0, 700.0, 700.0])
    line = np.array([350.0, 600.0]), np.array([700.0, 3.0])
    found = list(labels(points, bars, line, bounds))
    texts = [text for text, _, _ in found]
    assert "1, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30" in texts
    assert len({number for text in texts for number in text.split(", ")}) == 30
    boxes = []
    for text, first, offset in found:
        size = np.array([CHARACTER_WIDTH * len(text), LABEL_HEIGHT])
        middle = points[first] + offset
        for point in points:
            assert (abs(point - middle) >= size / 2).any()
        for other, its_size in boxes:
            assert (abs(other - middle) >= (size + its_size) / 2).any()
        boxes.append((middle, size))


def test_a_network_that_does_not_multiply_is_refused(tmp_path: Path) -> None:
    program = compile_file(MODEL, "1x8x8")
    empty = Benchmark(program, 0, (), None)
    object.__setattr__(program, "layers", ())
    object.__setattr__(program, "steps", ())
    with pytest.raises(InputError, match="must have layers that multiply"):
        draw_roofline(tmp_path / "roofline.png", empty, "1x8x8")
