"""Writes the weight gradient of a layer for the DMA: images and errors come from DRAM.

The image lies in the activation memory as NHWC. Its pixels are so far apart that a lane of the
reduction is a pixel (1 byte further, modulo R), and an output row is a channel. With a stride along
x, columns of the image that the same columns of the kernel meet are loaded as an image of their
own. The errors are the kernel (:mod:`.kernels`). Kernels times ones are the gradient of the bias.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Opcode, Rounding, TrainingFlag, pack
from slipstick_rtl.link.protocol import Space

from ...compiler.codegen.dram_tensors import DramTensor
from ...compiler.mapping.activation_layout import round_up
from ...compiler.memory.constants import Images
from ...devices.link.regions import pieces
from ...errors import CapacityError
from ...runtime.dram_port import LONGEST_RUN
from ..device.convolutions import sum_bytes
from .gradient_layout import GradientPiece, Shape, place_gradient, share_out
from .kernels import KernelLayout
from .places import box
from .tasks import WAIT, Task

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window

_SUM_BYTES = 4
_INSTRUCTION_WORD = 4
"""Bytes of a word of the instruction memory."""


class GradientProgram:
    """The program of a layer's weight and bias gradient, and its transfers.

    Parameters
    ----------
    image, errors : (height, width, channels)
    window : Window
        The layer's.
    configuration : Configuration
        With ``training`` and DRAM.

    Raises
    ------
    CapacityError
        If it does not fit the memories, or the array has too few columns.
    """

    def __init__(
        self, image: Shape, errors: Shape, window: "Window", configuration: Configuration
    ) -> None:
        if configuration.columns % WORD_BYTES:
            raise CapacityError(
                f"training from DRAM needs columns in multiples of {WORD_BYTES}, not"
                f" {configuration.columns}: errors become weights in whole words"
            )
        self._image, self._errors, self._window = image, errors, window
        self._configuration = configuration
        self._chip = place_gradient(image, errors, window, configuration)
        self.kernels = KernelLayout(configuration, self._chip.errors, self._chip.aligned)
        images = Images(configuration, shares=False)
        values = sum_bytes(configuration.columns)
        self._parameters = [
            images.add_parameters(value, 0, configuration.columns, "gradient") for value in values
        ]
        (self._constants,) = (each.data for each in images.all() if each.space == Space.WEIGHTS)
        self._first_kernel = max(images.words)
        self._parts, self.passes = share_out(window, image[2], self.kernels.tiles, configuration)
        self._check()

    def _check(self) -> None:
        configuration = self._configuration
        activations = self._chip.results + max(map(self._result_bytes, self.passes))
        weights = self._first_kernel + self.kernels.words
        instructions = len(self._code()[0]) // _INSTRUCTION_WORD
        for name, needed, there in (
            ("activation_bytes", activations, configuration.activation_bytes),
            ("weight_words", weights, configuration.weight_words),
            ("instruction_words", instructions, configuration.instruction_words),
        ):
            if needed > there:
                raise CapacityError(
                    f"a weight gradient must fit {name} ({there}), not need {needed}"
                )

    def _size(self, piece: GradientPiece) -> tuple[int, int, int]:
        """Rows, columns and bytes of a pixel of a piece's result."""
        lanes = self._configuration.lanes
        return len(piece.channels), len(piece.columns), round_up(self._outputs(piece), lanes)

    def _outputs(self, piece: GradientPiece) -> int:
        columns = self._configuration.columns
        return min(columns, self._errors[2] - piece.tile * columns)

    def _piece_bytes(self, piece: GradientPiece) -> int:
        rows, columns, pitch = self._size(piece)
        return _SUM_BYTES * rows * columns * pitch

    def _result_bytes(self, some: Sequence[GradientPiece]) -> int:
        return sum(self._piece_bytes(piece) for piece in some)

    @property
    def result_words(self) -> int:
        """Of DRAM, that the results of all passes take."""
        return sum(-(-self._result_bytes(some) // WORD_BYTES) for some in self.passes)

    def _code(self) -> tuple[bytes, list[tuple[int, int, int, int]]]:
        """All streams; for each pass where they begin: those that begin sums, add to them, drain
        nothing, drain all."""
        code, places = bytearray(), []
        halt = pack(POST_FIELDS, {"opcode": Opcode.HALT})
        for some in self.passes:
            starts = []
            for stream in (
                self._convolves(some, accumulate=False),
                self._convolves(some, accumulate=True),
                iter(()),
                self._drains(some),
            ):
                starts.append(len(code) // _INSTRUCTION_WORD)
                code += b"".join(stream) + halt
            places.append((starts[0], starts[1], starts[2], starts[3]))
        return bytes(code), places

    def _convolves(self, some: Sequence[GradientPiece], *, accumulate: bool) -> Iterator[bytes]:
        for bank, piece in enumerate(some):
            for number in range(len(self.kernels.cuts)):
                yield pack(
                    MATRIX_FIELDS,
                    {
                        **self._window_fields(piece, number),
                        "opcode": Opcode.CONVOLVE,
                        "accumulate": accumulate or number > 0,
                        "bank": bank,
                        "parts": self._parts,
                        "align_row": self.kernels.aligned,
                        "weight_address": self._first_kernel
                        + self.kernels.block(number, piece.tile),
                        "reduction_tiles": self.kernels.reduction_tiles(self.kernels.cuts[number]),
                        "channels": 1,
                        "kernel_x": self.kernels.cuts[number][1],
                        "rows": len(piece.channels),
                        "groups": -(-len(piece.columns) // self._configuration.pixels),
                        "whole_words": self._configuration.weight_rows == 1,
                    },
                )

    def _window_fields(self, piece: GradientPiece, number: int) -> dict[str, int]:
        """What a CONVOLVE reads: pixels of the image, or ones."""
        first, count = self.kernels.cuts[number]
        if piece.row is None:
            return {
                "tap_step_x": 1,
                "tap_step_y": count,
                "dilation_x": 1,
                "dilation_y": 1,
                "origin": self._chip.ones,
                "height": self._errors[0],
                "width": count,
                "stride_x": count,
            }
        (stride_y, stride_x), (top, _, left, _) = self._window.stride, self._window.padding
        pixel, line = self._chip.pixel_pitch, self._chip.row_pitch
        column, phase = divmod(piece.columns[0] - left, stride_x)
        y, x = piece.row - top, column + first
        return {
            "tap_step_x": pixel,
            "tap_step_y": stride_y * line,
            "dilation_x": 1,
            "dilation_y": stride_y,
            "origin": self._chip.phases[phase] + y * line + x * pixel + piece.channels[0],
            "origin_y": y,
            "origin_x": x,
            "height": self._image[0],
            "width": self._phase_width(phase),
            "stride_y": 0,
            "stride_x": 1,
            "column_step": pixel,
            "row_step": 1,
        }

    def _phase_width(self, phase: int) -> int:
        return len(range(phase, self._image[1], self._window.stride[1]))

    def _drains(self, some: Sequence[GradientPiece]) -> Iterator[bytes]:
        address, convolved = self._chip.results, 0
        for bank, piece in enumerate(some):
            rows, columns, pitch = self._size(piece)
            convolved += len(self.kernels.cuts)
            for parameters in self._parameters:
                yield pack(
                    POST_FIELDS,
                    {
                        "opcode": Opcode.DRAIN,
                        "wait": convolved,
                        "bank": bank,
                        "parts": self._parts,
                        "rows": rows,
                        "columns": columns,
                        "slices": pitch // self._configuration.lanes,
                        "destination": address,
                        "destination_row_step": columns * pitch,
                        "destination_column_step": pitch,
                        "parameter_address": parameters,
                        "rounding": Rounding.HALF_EVEN,
                        "minimum": -128,
                        "maximum": 127,
                        "table_words": TrainingFlag.AS_BYTES,
                    },
                )
                address += rows * columns * pitch

    def task(
        self,
        image: DramTensor,
        errors: DramTensor,
        batch: int,
        *,
        kernels: int,
        ones: int,
        results: int,
    ) -> Task:
        """Sums over a batch.

        Parameters
        ----------
        image, errors : DramTensor
            The layer's input, for which ``takes_dense_rows``, and the errors of its output.
        batch : int
        kernels : int
            A word of DRAM, from which on ``kernels.dram_words`` are zeros in the beginning.
        ones : int
            A word of DRAM, from which on bytes are 1, one per pixel of the errors.
        results : int
            The word that the results go to.
        """
        code, places = self._code()
        count = self._errors[0] * self._errors[1]
        load = Transfer(operation=Operation.LOAD, chip=self._chip.ones, dram=ones, run_bytes=count)
        transfers = [load]
        for some, (begin, add, nothing, drain) in zip(self.passes, places, strict=True):
            transfers += self._prepare(errors, 0, kernels)
            for number in range(batch):
                transfers += self.kernels.loads(kernels, self._first_kernel)
                transfers += self._image_loads(image, number)
                last = number == batch - 1
                pcs = (add if number else begin, drain if last else nothing)
                transfers.append(Transfer(operation=Operation.RUN, pcs=pcs))
                if not last:
                    # the run reads no errors but as weights: the next ones come meanwhile
                    transfers += self._prepare(errors, number + 1, kernels)
                transfers.append(WAIT)
            size = self._result_bytes(some)
            for first, end in pieces(size, LONGEST_RUN):
                transfers.append(
                    Transfer(
                        operation=Operation.STORE,
                        chip=self._chip.results + first,
                        dram=results + first // WORD_BYTES,
                        run_bytes=end - first,
                    )
                )
            results += -(-size // WORD_BYTES)
        return Task(code, self._constants, tuple(transfers))

    def _prepare(self, errors: DramTensor, number: int, kernels: int) -> Iterator[Transfer]:
        """Lays an image's errors out in DRAM as kernels."""
        yield box(Operation.LOAD, self._chip.errors, errors, number)
        yield from self.kernels.stores(kernels)

    def _image_loads(self, image: DramTensor, number: int) -> Iterator[Transfer]:
        """An image, or what its columns modulo the stride are."""
        height, _, channels = self._image
        for phase, address in self._chip.phases.items():
            columns = self._phase_width(phase)
            if not columns:
                continue
            rows_are_runs = image.dense and channels == 1
            yield Transfer(
                operation=Operation.LOAD,
                chip=address,
                dram=image.place + number * image.words + phase * image.pixel_words,
                run_bytes=columns if rows_are_runs else channels,
                runs=1 if rows_are_runs else columns,
                rows=height,
                chip_run_pitch=self._chip.pixel_pitch,
                chip_row_pitch=self._chip.row_pitch,
                dram_run_pitch=self._window.stride[1] * image.pixel_words,
                dram_row_pitch=image.row_words,
            )

    def sums(self, packed: bytes) -> tuple[np.ndarray, np.ndarray]:
        """The gradients in what ``task`` has stored.

        Parameters
        ----------
        packed : bytes
            ``result_words`` words.

        Returns
        -------
        weights : array of int32, (O, kernel height, kernel width, I)
        bias : array of int32, (O,)
        """
        shape = (self._errors[2], *self._window.kernel, self._image[2])
        weights, bias = np.zeros(shape, np.int32), np.zeros(shape[0], np.int32)
        place = 0
        for some in self.passes:
            begin = place
            for piece in some:
                rows, columns, pitch = self._size(piece)
                count = self._piece_bytes(piece)
                planes = np.frombuffer(packed, np.uint8, count, begin).reshape(_SUM_BYTES, -1)
                values = np.ascontiguousarray(planes.T).view("<i4").reshape(rows, columns, pitch)
                begin += count
                first, outputs = piece.tile * self._configuration.columns, self._outputs(piece)
                values = values[..., :outputs].transpose(2, 1, 0)
                if piece.row is None:
                    bias[first : first + outputs] = values[:, 0, 0]
                    continue
                channels = slice(piece.channels.start, piece.channels.stop)
                columns = slice(piece.columns.start, piece.columns.stop, piece.columns.step)
                weights[first : first + outputs, piece.row, columns, channels] = values
            place += -(-self._result_bytes(some) // WORD_BYTES) * WORD_BYTES
        return weights, bias


def takes_dense_rows(image: DramTensor, window: "Window") -> bool:
    """Whether a gradient can read an image as it lies in DRAM.

    Its pixels must begin with a word each, or its rows be what lies on the chip as well.
    """
    return (
        not image.dense
        or image.channels % WORD_BYTES == 0
        or (image.channels == 1 and window.stride[1] == 1)
    )
