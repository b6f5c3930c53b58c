"""Writes the weight gradient of a layer for the DMA: images and errors come from DRAM.

The image lies in the activation memory as NHWC. Its pixels are so far apart that a lane of the
reduction is a pixel (1 byte further, modulo R), and an output row is a channel. With a stride along
x, columns of the image that the same columns of the kernel meet are loaded as an image of their
own. The errors are the kernel (:mod:`.kernels`). Kernels times ones are the gradient of the bias.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Opcode, Rounding, TrainingFlag, pack
from slipstick_rtl.link.protocol import Space

from ...compiler.codegen.dram_tensors import DramTensor
from ...compiler.mapping.activation_layout import round_up
from ...compiler.memory.constants import Images
from ...devices.link.regions import pieces
from ...errors import CapacityError
from ..device.convolutions import sum_bytes
from .gradient_layout import (
    GradientPiece,
    GradientPlaces,
    Shape,
    Stripe,
    lay_image,
    share_out,
)
from .gradient_results import GradientResults
from .kernels import Cut, KernelLayout
from .relocation import HALT

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

_INSIDE_PARTS, _INSIDE_BANKS = 2, 4
"""Value of ``parts`` for eight banks, and the banks of each half.

Those of the second half hold sums while other products use the first half.
"""


class GradientProgram:
    """The programs of a layer's weight and bias gradient, and its transfers.

    Parameters
    ----------
    image, errors : (height, width, channels)
    window : Window
        The layer's.
    configuration : Configuration
        With ``training`` and DRAM.
    depthwise : bool
        The layer's. Sums are those of C channels of the input with the same C of the errors, of
        which each channel's with itself count: C times the work, and programs like any other's.

    Members
    -------
    kernels : KernelLayout
    constants : bytes
        For the weight memory.
    passes : list of lists of GradientPiece
        Each sums over the batch in the accumulators.
    results : GradientResults

    Raises
    ------
    CapacityError
        If the array has too few columns, or a row of the kernel does not fit the accumulators.
    """

    def __init__(
        self,
        image: Shape,
        errors: Shape,
        window: "Window",
        configuration: Configuration,
        *,
        depthwise: bool = False,
    ) -> None:
        if configuration.columns % WORD_BYTES:
            raise CapacityError(
                f"training from DRAM needs columns in multiples of {WORD_BYTES}, not"
                f" {configuration.columns}: errors become weights in whole words"
            )
        self._image, self._errors, self._window = image, errors, window
        self._configuration = configuration
        self._layout = lay_image(image, errors, window, configuration)
        grid = self._layout.grid
        self.kernels = KernelLayout(
            configuration,
            errors,
            self._layout.aligned,
            None if grid is None else (grid.rows, grid.columns),
        )
        images = Images(configuration, shares=False)
        values = sum_bytes(configuration.columns)
        self._parameters = [
            images.add_parameters(value, 0, configuration.columns, "gradient") for value in values
        ]
        (self.constants,) = (each.data for each in images.all() if each.space == Space.WEIGHTS)
        self._parts, passes = share_out(
            window, image[2], self.kernels.tiles, configuration, depthwise=depthwise
        )
        self.passes = min(passes, self._by_phases(passes), key=self._loaded_bytes)
        shape = 1 if depthwise else errors[2], *window.kernel, image[2]
        self.results = GradientResults(
            self.passes, shape, grid is not None, configuration, depthwise
        )

    def _by_phases(self, passes: list[list[GradientPiece]]) -> list[list[GradientPiece]]:
        """The same pieces in passes that need fewer parts of the image each."""
        every, most = [piece for some in passes for piece in some], len(passes[0])

        def order(piece: GradientPiece) -> tuple[int, int]:
            (phase,) = self.phases([piece]) or [len(self._layout.phases)]
            return phase, piece.tile

        every.sort(key=order)
        return [every[first : first + most] for first in range(0, len(every), most)]

    @property
    def loaded_bytes(self) -> int:
        """Counts the bytes of images and kernels that are loaded per image."""
        return self._loaded_bytes(self.passes)

    def _loaded_bytes(self, passes: Sequence[Sequence[GradientPiece]]) -> int:
        (whole,) = self.stripes(1)
        kernels = self.kernels.tile_words * self._configuration.weight_word_bytes
        return sum(
            self.stripe_bytes(some, whole) + len(self.tiles(some)) * kernels for some in passes
        )

    def stripes(self, count: int) -> list[Stripe]:
        """Cuts the errors into stripes of equal height, so many at most."""
        rows, layout = self._errors[0], self._layout
        height = round_up(-(-rows // count), layout.stripe_rows)
        return [self._stripe(range(*some)) for some in pieces(rows, height)]

    @property
    def most_stripes(self) -> int:
        """Most stripes that the errors can be cut into."""
        return -(-self._errors[0] // self._layout.stripe_rows)

    def _stripe(self, errors: range) -> Stripe:
        stride = self._window.stride[0] // self._layout.row_stride
        top, kernel, rows = self._window.padding[0], self._window.kernel[0], self._layout.rows
        first = errors.start * stride - top
        behind = (errors.stop - 1) * stride - top + kernel
        begin = min(max(first, 0), rows)
        return Stripe(errors, range(begin, max(min(behind, rows), begin)))

    def phases(self, some: Sequence[GradientPiece]) -> list[int]:
        """The first columns of the parts of an image that a pass needs."""
        left, stride = self._window.padding[2], self._window.stride[1]
        needed = {(piece.columns[0] - left) % stride for piece in some if not piece.is_bias}
        return [phase for phase in self._layout.phases if phase in needed]

    def stripe_bytes(self, some: Sequence[GradientPiece], stripe: Stripe) -> int:
        """Counts the bytes of a stripe of an image on the chip."""
        return len(self.phases(some)) * len(stripe.image) * self._layout.row_pitch

    @property
    def ones_bytes(self) -> int:
        """Counts the ones that the bias's kernels are multiplied with: one per lane."""
        return self._configuration.rows

    def tiles(self, some: Sequence[GradientPiece]) -> range:
        """Returns the tiles of the errors' channels that a pass needs."""
        numbers = [piece.tile for piece in some]
        return range(min(numbers), max(numbers) + 1)

    def convolves(
        self,
        some: Sequence[GradientPiece],
        places: GradientPlaces,
        stripe: Stripe,
        *,
        accumulate: bool,
        inside: bool = False,
    ) -> bytes:
        """The matrix stream of a pass for a stripe, which adds to the sums or begins them.

        ``inside``: in the second half of the accumulators, as ``fits_inside`` has it.
        """
        stream, lowest, kernels = bytearray(), self.tiles(some).start, self.kernels
        for bank, piece in enumerate(some):
            for number, (cut, rows) in enumerate(self._kernel_parts(stripe)):
                word = (piece.tile - lowest) * kernels.tile_words
                word += kernels.cut_word(kernels.cuts.index(cut))
                before = kernels.tiles_before(cut, rows.start)
                size = self.results.size(piece)
                fields = {
                    **self._window_fields(piece, cut, rows, places, stripe, some),
                    "opcode": Opcode.CONVOLVE,
                    "accumulate": accumulate or number > 0,
                    **self._bank(bank, inside=inside),
                    "align_row": kernels.aligned,
                    "weight_address": places.kernels + word + before * kernels.lane_words,
                    "reduction_tiles": kernels.tiles_before(cut, rows.stop) - before,
                    "rows": size[0],
                    "groups": -(-size[1] // self._configuration.pixels),
                }
                stream += pack(MATRIX_FIELDS, fields)
        return bytes(stream)

    def _kernel_parts(self, stripe: Stripe) -> list[tuple[Cut, range]]:
        """Kernels whose sums are added: columns and rows of the errors."""
        grid = self.kernels.grid
        if grid is None:
            return [(cut, stripe.errors) for cut in self.kernels.cuts]
        (cut,), rows = self.kernels.cuts, stripe.errors
        return [(cut, range(y, y + grid[0])) for y in range(rows.start, rows.stop, grid[0])]

    def _window_fields(
        self,
        piece: GradientPiece,
        cut: Cut,
        rows: range,
        places: GradientPlaces,
        stripe: Stripe,
        some: Sequence[GradientPiece],
    ) -> dict[str, int]:
        """Returns what a CONVOLVE reads: pixels of the image, or ones."""
        (first, count), grid = cut, self._layout.grid
        if piece.is_bias:
            # a tile of lanes is the same ones again, as channels of a tap: they come W at a time
            return {
                "channels": self._configuration.rows,
                "kernel_x": 1,
                "whole_words": 1,
                "origin": places.ones,
                "height": 1,
                "width": 1,
            }
        layout, (top, _, left, _) = self._layout, self._window.padding
        stride_y, stride_x = self._window.stride[0] // layout.row_stride, self._window.stride[1]
        pixel, line = layout.pixel_pitch, layout.row_pitch
        column, phase = divmod(piece.columns[0] - left, stride_x)
        y, x = piece.rows[0] - top + rows.start * stride_y, column + first
        part = self.phases(some).index(phase) * len(stripe.image) * line
        origin = places.image + part + (y - stripe.image.start) * line + x * pixel
        down = {"tap_step": stride_y * line, "dilation": stride_y, "origin": y}
        down |= {"stride": int(piece.turned), "step": line if piece.turned else 1}
        down["size"] = layout.rows
        across = {"tap_step": pixel, "dilation": 1, "origin": x, "stride": int(not piece.turned)}
        across |= {"step": 1 if piece.turned else pixel, "size": self._phase_width(phase)}
        # in a grid the array counts the image's rows as columns
        ys, xs = (down, across) if grid is None else (across, down)
        return {
            "channels": 1,
            "kernel_x": count if grid is None else grid.rows,
            "whole_words": self._configuration.weight_rows == 1,
            "origin": origin + piece.channels[0],
            "height": ys["size"],
            "width": xs["size"],
            "row_step": ys["step"],
            "column_step": xs["step"],
            **{
                f"{name}_{axis}": side[name]
                for axis, side in (("y", ys), ("x", xs))
                for name in ("tap_step", "dilation", "origin", "stride")
            },
        }

    def _phase_width(self, phase: int) -> int:
        return len(range(phase, self._image[1], self._window.stride[1]))

    def stream_bytes(self, some: Sequence[GradientPiece]) -> int:
        """Counts the bytes of the instructions with which a pass sums an image."""
        (whole,) = self.stripes(1)
        places = GradientPlaces(0, 0, 0, 0, 0)
        return len(self.convolves(some, places, whole, accumulate=False)) + len(HALT)

    @property
    def fits_inside(self) -> bool:
        """The sums of all images fit the second half of the accumulators, in banks of an eighth."""
        pixels, depth = self._configuration.pixels, self._configuration.accumulator_depth
        return (
            self._configuration.largest_parts == _INSIDE_PARTS
            and len(self.passes) == 1
            and len(self.passes[0]) <= _INSIDE_BANKS
            and all(
                rows * -(-columns // pixels) <= depth >> _INSIDE_PARTS
                for rows, columns, _ in map(self.results.size, self.passes[0])
            )
        )

    def _bank(self, number: int, *, inside: bool) -> dict[str, int]:
        if inside:
            return {"bank": _INSIDE_BANKS + number, "parts": _INSIDE_PARTS}
        return {"bank": number, "parts": self._parts}

    def drains(
        self,
        some: Sequence[GradientPiece],
        places: GradientPlaces,
        stripe: Stripe,
        *,
        inside: bool = False,
    ) -> bytes:
        """The post stream of a pass's last stripe; ``inside``: of a run of its own behind it."""
        address, convolved, stream = places.results, 0, bytearray()
        convolves = 0 if inside else len(self._kernel_parts(stripe))
        for bank, piece in enumerate(some):
            rows, columns, pitch = self.results.size(piece)
            convolved += convolves
            for parameters in self._parameters:
                fields = {
                    "opcode": Opcode.DRAIN,
                    "wait": convolved,
                    **self._bank(bank, inside=inside),
                    "rows": rows,
                    "columns": columns,
                    "slices": pitch // self._configuration.lanes,
                    "destination": address,
                    "destination_row_step": columns * pitch,
                    "destination_column_step": pitch,
                    "parameter_address": places.constants + parameters,
                    "rounding": Rounding.HALF_EVEN,
                    "minimum": -128,
                    "maximum": 127,
                    "table_words": TrainingFlag.AS_BYTES,
                }
                stream += pack(POST_FIELDS, fields)
                address += rows * columns * pitch
        return bytes(stream)

    def image_loads(
        self,
        some: Sequence[GradientPiece],
        image: DramTensor,
        number: int,
        places: GradientPlaces,
        stripe: Stripe,
    ) -> Iterator[Transfer]:
        """A stripe of an image, or what its columns modulo the stride are.

        Parameters
        ----------
        some : sequence of GradientPiece
        image : DramTensor
            For which ``takes_dense_rows``.
        number : int
            Of the image.
        places : GradientPlaces
        stripe : Stripe
        """
        layout, stride, rows = self._layout, self._window.stride[1], len(stripe.image)
        first = image.place + number * image.words
        first += stripe.image.start * layout.row_stride * image.row_words
        rows_are_runs = image.dense and self._image[2] == 1
        for part, phase in enumerate(self.phases(some)):
            columns = self._phase_width(phase)
            if not columns or not rows:
                continue
            if layout.grid is not None:
                # pixels are as far apart as in DRAM
                yield Transfer(
                    operation=Operation.LOAD,
                    chip=places.image,
                    dram=first,
                    run_bytes=image.row_words * WORD_BYTES,
                    rows=rows,
                    chip_row_pitch=layout.row_pitch,
                    dram_row_pitch=image.row_words,
                )
                continue
            yield Transfer(
                operation=Operation.LOAD,
                chip=places.image + part * rows * layout.row_pitch,
                dram=first + phase * image.pixel_words,
                run_bytes=columns if rows_are_runs else self._image[2],
                runs=1 if rows_are_runs else columns,
                rows=rows,
                chip_run_pitch=layout.pixel_pitch,
                chip_row_pitch=layout.row_pitch,
                dram_run_pitch=stride * image.pixel_words,
                dram_row_pitch=layout.row_stride * image.row_words,
            )
