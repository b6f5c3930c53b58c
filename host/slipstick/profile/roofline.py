"""A roofline: each layer's measured multiply-accumulates a cycle under what the memories allow."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slipstick_rtl.config import Configuration

from ..errors import InputError
from ..plots.figures import FAINT_INK, INK, PAPER, blank_figure, save_figure, shorten
from .executed import Traffic, executed_runs, layer_traffic
from .measure import Benchmark
from .roofline_drawing import FIGURE_SIZE, draw_table, number_points, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {"array": "#2f6fb3", "weights": "#8250df", "post-processor": "#e8912d"}
"""Colours of layers, by the unit that sets their own roof."""
LONGEST_NAME = 34


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Bytes a cycle that the memories on the chip can move."""

    weights: int
    windows: int
    results: int

    @classmethod
    def of(cls, hardware: Configuration) -> "Ports":
        """A weight word of W x C bytes, a window of P x R, an access of L."""
        word = hardware.rows // hardware.tile_words * hardware.columns
        return cls(weights=word, windows=hardware.pixels * hardware.rows, results=hardware.lanes)

    @property
    def bytes(self) -> int:
        """All of them."""
        return self.weights + self.windows + self.results


@dataclass(frozen=True, kw_only=True)
class LayerPoint:
    """A layer in the diagram.

    Parameters
    ----------
    name : str
    intensity : float
        Multiply-accumulates a byte that crosses the ports of activation and weight memory, all of
        ``Traffic``.
    measured : float
        Multiply-accumulates a cycle, of the cycles that count as its own.
    roof : float
        The most that the ports allow this layer, each on its own.
    bound : str
        Which unit's that is: a key of ``COLOURS``.
    """

    name: str
    intensity: float
    measured: float
    roof: float
    bound: str


def layer_points(benchmark: Benchmark) -> list[LayerPoint]:
    """The layers that multiply and have cycles of their own, in their order."""
    program = benchmark.program
    ports = Ports.of(program.hardware)
    moved = layer_traffic(program, executed_runs(program))
    points = []
    for line, traffic in zip(benchmark.layers, moved, strict=True):
        macs = line.layer.macs
        if macs and line.cycles and traffic.bytes:
            bound, cycles = _longest(traffic, ports)
            points.append(
                LayerPoint(
                    name=line.layer.name,
                    intensity=macs / traffic.bytes,
                    measured=macs / line.cycles,
                    roof=macs / cycles,
                    bound=bound,
                )
            )
    return points


def _longest(traffic: Traffic, ports: Ports) -> tuple[str, float]:
    """The unit that works longest, and its cycles."""
    cycles = {
        "array": traffic.windows / ports.windows,
        "weights": traffic.weights / ports.weights,
        "post-processor": traffic.results / ports.results,
    }
    bound = max(cycles, key=lambda unit: cycles[unit])
    return bound, cycles[bound]


def draw_roofline(path: Path, benchmark: Benchmark, target: str) -> None:
    """Draws a PNG, both axes logarithmic.

    Right, a layer's operational intensity: multiply-accumulates a byte that crosses the ports of
    the memories on the chip (``executed.Traffic``: weights, windows with padding and idle lanes,
    reads and writes of the post-processor). Up, its measured multiply-accumulates a cycle. The
    roofs of all layers are the peak P x R x C, and all ports together: W x C bytes of weights,
    P x R of windows, L of results a cycle. A layer seldom needs the ports in these shares, so each
    has a roof of its own besides, a bar: what the one unit allows that is busy longest.

    Parameters
    ----------
    path : Path
        Its folder is made.
    benchmark : Benchmark
    target : str
        For the title.

    Raises
    ------
    InputError
        If no layer multiplies, or matplotlib is not installed.
    """
    points = layer_points(benchmark)
    if not points:
        raise InputError(f"{benchmark.program.name} must have layers that multiply on the device")
    figure = blank_figure(FIGURE_SIZE)
    axes = figure.add_axes((0.065, 0.085, 0.585, 0.77))
    _draw_title(figure, benchmark, target)
    _draw_roofs(axes, benchmark.program.hardware, points)
    peak = benchmark.program.hardware.macs_per_cycle
    _draw_points(axes, points, peak)
    _draw_table(figure, points, peak)
    save_figure(figure, path)


def _draw_title(figure: "Figure", benchmark: Benchmark, target: str) -> None:
    program = benchmark.program
    hardware = program.hardware
    title = f"{program.name} on {target}: {benchmark.cycles:,} cycles, RTL simulated"
    figure.text(0.065, 0.945, title, fontsize=17, fontweight="bold", color=INK)
    text = (
        f"array {hardware.shape}, {hardware.lanes} lanes; {benchmark.utilisation:.1%} of peak over"
        " all layers, those without multiply-accumulates included"
    )
    figure.text(0.065, 0.905, text, fontsize=11, color=FAINT_INK)


def _draw_roofs(axes: "Axes", hardware: Configuration, points: Sequence[LayerPoint]) -> None:
    peak, ports = hardware.macs_per_cycle, Ports.of(hardware)
    ridge = peak / ports.bytes
    low = min(0.5 * min(point.intensity for point in points), 0.5 * ridge)
    high = max(4 * max(point.intensity for point in points), 4 * ridge)
    bottom = 0.4 * min(*(point.measured for point in points), low * ports.bytes)
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, 2.2 * peak))
    axes.plot([low, ridge, high], [low * ports.bytes, peak, peak], color=INK, linewidth=2, zorder=2)
    text = {"fontsize": 10, "color": INK, "va": "bottom"}
    axes.annotate(
        f"peak {hardware.shape} = {peak}", (high, peak), (-4, 24), textcoords="offset points",
        ha="right", **text,
    )  # fmt: skip
    axes.annotate(
        f"all ports: {ports.weights} + {ports.windows} + {ports.results} bytes a cycle\n"
        "(weights + windows + results)",
        (ridge * 0.8, ridge * 0.8 * ports.bytes),
        (-14, 4),
        textcoords="offset points",
        ha="right",
        **text,
    )
    style_axes(
        axes,
        "multiply-accumulates a byte through weight and activation memory",
        "multiply-accumulates a cycle, measured",
    )


def _draw_points(axes: "Axes", points: Sequence[LayerPoint], peak: float) -> None:
    for bound, colour in COLOURS.items():
        own = [point for point in points if point.bound == bound]
        x = [point.intensity for point in own]
        axes.vlines(
            x, [p.measured for p in own], [p.roof for p in own], colour, linewidth=1, zorder=3
        )
        axes.plot(x, [point.roof for point in own], "_", color=colour, markersize=11, zorder=3)
        axes.plot(
            x, [p.measured for p in own], "o", color=colour, markersize=6, markeredgecolor=PAPER,
            markeredgewidth=0.6, label=f"longest busy: {bound}", zorder=4,
        )  # fmt: skip
    axes.plot([], [], "_", color=FAINT_INK, markersize=11, label="roof of this layer")
    axes.legend(loc="lower right", fontsize=10, frameon=False, labelcolor=INK)
    measured = [(point.intensity, point.measured) for point in points]
    number_points(axes, measured, [(point.intensity, point.roof) for point in points], peak)


def _draw_table(figure: "Figure", points: Sequence[LayerPoint], peak: int) -> None:
    """The layers' names by number, their share of peak, and that of their own roofs."""
    rows = list[tuple[Sequence[str], str]]()
    for number, point in enumerate(points, start=1):
        name = f"{number}  {shorten(point.name, LONGEST_NAME)}"
        cells = (name, f"{point.measured / peak:.1%}", f"{point.roof / peak:.1%}")
        rows.append((cells, COLOURS[point.bound]))
    draw_table(
        figure,
        {0.675: "left", 0.91: "right", 0.98: "right"},
        ("layer", "of peak", "its roof"),
        rows,
        "its roof: what the one unit allows that the layer keeps busy longest. A layer above\n"
        "it was still being written under the next one, in cycles that count as that one's.",
    )
