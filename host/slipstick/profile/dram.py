"""The cost of a list for the DMA: bound by the DRAM or the core, per layer; and its picture."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slipstick_rtl.dma.transfer import WORD_BYTES

from ..compiler.codegen.dram_list import DramProgram, find_dram_program
from ..compiler.timing.dram_timeline import DramTimeline, Span
from ..plots.figures import FAINT_INK, FIGURE_SIZE, INK, RULE, blank_figure, save_figure
from ..program import Program
from ..program.steps import RunStep

_ROWS = (
    ("array and post-processor", ("run",), "#2f6fb3"),
    ("weights, instructions", ("constants",), "#8250df"),
    ("maps: DRAM to chip", ("load",), "#1a7f37"),
    ("maps: chip to DRAM", ("store",), "#e8912d"),
)
"""Rows of the picture: title, kinds of spans, colour."""


@dataclass(frozen=True)
class DramCost:
    """A program's list, predicted.

    Parameters
    ----------
    program : Program
    listed : DramProgram
    waits : mapping of int by the layer's number
        Cycles between the run before and a run of the layer: the DMA has work, or the layer needs
        what the run before made.
    """

    program: Program
    listed: DramProgram
    waits: Mapping[int, int]

    @property
    def timeline(self) -> DramTimeline:
        return self.listed.timeline

    @property
    def images(self) -> str:
        """Says for a title how many images the list is for."""
        return "an inference" if self.program.batch == 1 else f"{self.program.batch} images"

    def entry(self) -> dict[str, Any]:
        """As ``--json`` has it; cycles and bytes are those of an image."""
        batch = self.program.batch
        return {
            **list_figures(self.program, self.listed, self.timeline.end),
            "bound_by_memory": [
                layer.name
                for number, layer in enumerate(self.program.layers)
                if self.waits.get(number, 0) > batch * layer.predicted_cycles
            ],
        }


def dram_cost(program: Program) -> DramCost | None:
    """Predicts the cost of a program's list; None if it does not run from DRAM."""
    listed = find_dram_program(program)
    if listed is None:
        return None
    return DramCost(program, listed, _waits(program, listed.timeline))


def list_figures(program: Program, listed: DramProgram, cycles: int) -> dict[str, Any]:
    """The rate and the traffic of a list that takes so many cycles; per image, as JSON has them."""
    batch = program.batch
    moved = listed.words * WORD_BYTES
    return {
        "batch": batch,
        "cycles": cycles / batch,
        "inferences_per_second": batch * program.hardware.clock_hz / cycles,
        "dram_bytes": moved / batch,
        "dram_share_of_peak": moved / cycles / program.hardware.dram_bytes_per_cycle,
    }


def _waits(program: Program, timeline: DramTimeline) -> dict[int, int]:
    """A run's wait is that of all its layers, in equal parts."""
    steps = [step for step in program.steps if isinstance(step, RunStep)]
    waits, before = Counter[int](), 0
    for span in timeline.spans:
        if span.kind == "run":
            layers = {layer for owned in steps[span.run].owners for layer, _ in owned}
            for layer in layers:
                waits[layer] += (span.begin - before) // len(layers)
            before = span.end
    return dict(waits)


def draw_dram_timeline(path: Path, cost: DramCost, target: str) -> None:
    """Draws a PNG: the core's runs and the DMA's transfers of a list over time, as predicted.

    Parameters
    ----------
    path : Path
        Its folder is made.
    cost : DramCost
    target : str
        For the title.

    Raises
    ------
    InputError
        If matplotlib is not installed.
    """
    figure = blank_figure((FIGURE_SIZE[0], FIGURE_SIZE[1] * 0.55))
    entry, hardware = cost.entry(), cost.program.hardware
    to_ms = 1e3 / hardware.clock_hz
    end = cost.timeline.end * to_ms
    title = f"{cost.program.name} on {target}: {cost.images} in {end:.1f} ms"
    figure.text(0.055, 0.93, title, fontsize=17, fontweight="bold", color=INK)
    text = (
        f"{entry['inferences_per_second']:.1f} inferences per second at"
        f" {hardware.clock_hz / 1e6:.4g} MHz, {entry['dram_bytes'] / 1e6:.1f} MB per inference,"
        f" {entry['dram_share_of_peak']:.0%} of the DRAM's peak rate; predicted"
    )
    figure.text(0.055, 0.87, text, fontsize=11, color=FAINT_INK)
    axes = figure.add_axes((0.175, 0.13, 0.8, 0.68))
    for row, (name, kinds, colour) in enumerate(_ROWS):
        spans = [span for span in cost.timeline.spans if span.kind in kinds]
        bars = [(span.begin * to_ms, (span.end - span.begin) * to_ms) for span in spans]
        axes.broken_barh(bars, (-row - 0.36, 0.72), facecolors=colour, linewidth=0)
        share = _busy(spans) / max(cost.timeline.end, 1)
        axes.text(-0.01 * end, -row, f"{name}\n{share:.0%} of the time", ha="right", va="center")
    axes.set_xlim(0, end)
    axes.set_ylim(-len(_ROWS) + 0.5, 0.5)
    axes.set_yticks([])
    axes.set_xlabel("milliseconds", color=FAINT_INK)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    save_figure(figure, path)


def _busy(spans: list[Span]) -> int:
    return sum(span.end - span.begin for span in spans)
