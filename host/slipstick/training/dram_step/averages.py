"""Writes averages of windows as maps (MAP): the post-processor adds what it reads."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from slipstick_rtl.config import Configuration

from ...program.steps import Placement
from ..device.program import Drain
from .maps import MapWriter
from .relocation import Built, Streams

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

Shape = tuple[int, int, int]
_LOADING_CYCLES = 8
"""Cycles to load a tile's weights, beside its words: a tile of few pixels takes as long."""


@dataclass(frozen=True)
class AverageSpec:
    """An average that is to be computed: the sums of windows.

    Parameters
    ----------
    window : Window
        Without padding.
    shape : (rows, columns, channels)
        Of the result.
    drain : Drain
        What becomes of the sums, with one entry for all channels.
    """

    window: "Window"
    shape: Shape
    drain: Drain

    def write(self, source: Placement, result: Placement, configuration: Configuration) -> Built:
        """Its program.

        Parameters
        ----------
        source : Placement
            Bytes behind a pixel's channels are 0.
        result : Placement
        configuration : Configuration
            With ``training``.
        """
        stride_y, stride_x = self.window.stride
        maps = MapWriter(configuration, self.shape)
        maps.add(
            (source.address, stride_y * source.row_pitch, stride_x * source.pixel_pitch),
            (result.address, result.row_pitch, result.pixel_pitch),
            taps_y=self.window.kernel[0],
            taps_x=self.window.kernel[1],
            tap_step_y=source.row_pitch,
            tap_step_x=source.pixel_pitch,
            **maps.finish(self.drain.values, self.drain.flags),
        )
        program = maps.program()
        return Built(Streams.of(program.code, program.pcs), program.constants)


def suits_maps(window: "Window", shape: Shape, configuration: Configuration) -> bool:
    """Returns whether maps take fewer cycles than a convolution with ones, about.

    Parameters
    ----------
    window : Window
    shape : (rows, columns, channels)
        Of the result.
    configuration : Configuration
    """
    if any(window.padding):
        return False
    pixels, taps = shape[0] * shape[1], window.kernel[0] * window.kernel[1]
    slices = -(-shape[2] // configuration.lanes)
    tiles = -(-shape[2] // configuration.columns) * -(
        -taps * configuration.columns // configuration.rows
    )
    tile = max(pixels, configuration.tile_words + _LOADING_CYCLES)
    return pixels * slices * (taps + 1) < max(tiles * tile, pixels * slices)
