"""Writes the program of a product: instructions, weights and places, for one image's run."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Opcode, Rounding, TrainingFlag, pack
from slipstick_rtl.link.protocol import Space

from ...compiler.codegen.convolution import ConvolutionEmitter, Rectangle, Site
from ...compiler.ir.operations import Convolution, View
from ...compiler.ir.requantization import Requantization
from ...compiler.mapping.activation_layout import assign_pitches, make_buffers, round_up
from ...compiler.mapping.reduction import ChannelTile
from ...compiler.memory.constants import Images
from ...errors import CapacityError
from ...program.steps import Placement
from .convolutions import RESULT, SOURCE, Lattice, sum_bytes

_WORD = 4
"""Bytes of a word of the instruction memory."""


@dataclass(frozen=True)
class Drain:
    """Describes how sums are drained; each drain has a result of its own.

    Parameters
    ----------
    values : Requantization
    flags : TrainingFlag
    again : bool
        It writes over the result of the one before.
    """

    values: Requantization
    flags: TrainingFlag = TrainingFlag(0)
    again: bool = False


@dataclass(frozen=True)
class Product:
    """A program in the device's terms.

    Parameters
    ----------
    code : bytes
        Both streams.
    pcs : (int, int)
        Their first words.
    constants : bytes
        Weights and parameters, from the weight memory's first unit on.
    source : Placement
    results : tuple of Placement
        One per drain that does not write again.
    mask : Placement
        Of the bytes that MASKED drains read.
    """

    code: bytes
    pcs: tuple[int, int]
    constants: bytes
    source: Placement
    results: tuple[Placement, ...]
    mask: Placement


@dataclass(frozen=True)
class Accumulation:
    """Tells which pass of a sum over several runs it is.

    Parameters
    ----------
    first : bool
        The accumulators begin at 0.
    last : bool
        They are drained.
    """

    first: bool = True
    last: bool = True


@dataclass(frozen=True)
class PartConvolutions:
    """Convolutions whose sums are added, and which pixels of the result they make.

    Parameters
    ----------
    convolutions : sequence of Convolution
        Of one input and one output.
    lattice : Lattice
    """

    convolutions: Sequence[Convolution]
    lattice: Lattice = Lattice()


@dataclass(frozen=True)
class Piece:
    """Describes the values that a bank of accumulators holds.

    Parameters
    ----------
    part, tile : int
    rectangle : Rectangle
        Of the part's pixels.
    """

    part: int
    tile: int
    rectangle: Rectangle


class ProductWriter:
    """Places a product's tensors, and writes its instructions.

    Parameters
    ----------
    parts : sequence of PartConvolutions
        Of one input.
    result : (height, width, channels)
    drains : sequence of Drain
    configuration : Configuration
        With ``training``.

    Raises
    ------
    CapacityError
        If it does not fit the memories.
    """

    def __init__(
        self,
        parts: Sequence[PartConvolutions],
        result: tuple[int, int, int],
        drains: Sequence[Drain],
        configuration: Configuration,
    ) -> None:
        self._configuration, self._drains, self._parts = configuration, drains, parts
        self._images = Images(configuration, shares=False)
        every = [each for part in parts for each in part.convolutions]
        self._source, self._results, self._mask = self._place(every, View(*result))
        self._emitters = [
            [self._emitter(each, part) for each in part.convolutions] for part in parts
        ]
        self._parameters = [
            {
                (tile.first, tile.count): self._images.add_parameters(
                    drain.values, tile.first, tile.count, "product"
                )
                for emitters in self._emitters
                for tile in emitters[0].tiles
            }
            for drain in drains
        ]
        self.pieces = [
            Piece(number, tile, rectangle)
            for number, part in enumerate(parts)
            for tile, rectangle in itertools.product(
                range(len(self._emitters[number][0].tiles)),
                _cut(part.convolutions[0].output, configuration),
            )
        ]
        """Contents of the banks of accumulators, one after the other."""

    def _emitter(self, convolution: Convolution, part: PartConvolutions) -> ConvolutionEmitter:
        place = part.lattice.within(self._results[0], convolution.output)
        site = Site((self._source,), place, (SOURCE,), RESULT)
        return ConvolutionEmitter(
            convolution, 0, site, self._images, self._configuration, keeps=False
        )

    def _place(
        self, convolutions: Sequence[Convolution], result: View
    ) -> tuple[Placement, tuple[Placement, ...], Placement]:
        views = {SOURCE: convolutions[0].input, RESULT: result}
        buffers = make_buffers(convolutions, views, {RESULT})
        assign_pitches(convolutions, buffers, self._configuration)
        for part in self._parts:
            # pixels of a lattice are a placement of their own, whose rows hold their columns
            (step_y, step_x), columns = part.lattice.step, part.convolutions[0].output.width
            least = -(-columns * step_x // step_y) * buffers[RESULT].pixel_pitch
            buffers[RESULT].row_pitch = max(buffers[RESULT].row_pitch, least)
        step = max(self._configuration.lanes, self._configuration.rows)
        source, end = buffers[SOURCE].placed(0), round_up(buffers[SOURCE].bytes, step)
        results = []
        for drain in self._drains:
            if not drain.again:
                results.append(buffers[RESULT].placed(end))
                end = round_up(end + buffers[RESULT].bytes, step)
        mask = buffers[RESULT].placed(end)
        if any(TrainingFlag.MASKED in drain.flags for drain in self._drains):
            end += buffers[RESULT].bytes
        if end > self._configuration.activation_bytes:
            raise CapacityError(
                f"a product's tensors must fit activation_bytes"
                f" ({self._configuration.activation_bytes}), not {end} bytes"
            )
        return source, tuple(results), mask

    @property
    def banks(self) -> int:
        """Pieces whose sums the accumulators hold at once, for sums over several runs."""
        return 2

    def values(self, piece: Piece) -> tuple[slice, slice, slice]:
        """Returns the values of the result that a piece is: rows, columns, channels."""
        tile, rectangle = self._emitters[piece.part][0].tiles[piece.tile], piece.rectangle
        rows, columns = self._parts[piece.part].lattice.pixels(rectangle.rows, rectangle.columns)
        return rows, columns, slice(tile.first, tile.first + tile.count)

    def write(
        self, pieces: Sequence[Piece] | None = None, accumulation: Accumulation = Accumulation()
    ) -> Product:
        """The program of some pieces, by default all.

        Parameters
        ----------
        pieces : sequence of Piece, optional
            At most ``banks`` for a sum over several runs.
        accumulation : Accumulation
        """
        matrix, post = bytearray(), bytearray()
        drained, convolved = [0], 0
        for number, piece in enumerate(self.pieces if pieces is None else pieces):
            bank = number % self.banks
            wait = drained[max(0, number + 1 - self.banks)]
            emitters = self._emitters[piece.part]
            made = [list(each.emit(piece.rectangle, piece.tile, bank, 0)) for each in emitters]
            for turn, (convolve, *_) in enumerate(made):
                fields = {
                    **convolve.fields,
                    "accumulate": bool(turn) or not accumulation.first,
                    "bank": bank,
                    "wait": wait,
                }
                matrix += pack(MATRIX_FIELDS, fields)
            convolved += len(made)
            tile = emitters[0].tiles[piece.tile]
            drains = list(self._drain(made[0][1].fields, tile)) if accumulation.last else []
            for fields in drains:
                post += pack(POST_FIELDS, {**fields, "bank": bank, "wait": convolved})
            drained.append(drained[-1] + len(drains))
        halt = pack(POST_FIELDS, {"opcode": Opcode.HALT})
        matrix += halt
        code = bytes(matrix) + bytes(post) + halt
        if len(code) > _WORD * self._configuration.instruction_words:
            raise CapacityError(
                f"a product's program must fit instruction_words"
                f" ({self._configuration.instruction_words}), not {len(code) // _WORD} words"
            )
        (constants,) = (i.data for i in self._images.all() if i.space == Space.WEIGHTS)
        pcs = (0, len(matrix) // _WORD)
        return Product(code, pcs, constants, self._source, self._results, self._mask)

    def _drain(self, template: Mapping[str, int], tile: ChannelTile) -> Iterator[dict[str, int]]:
        result = -1
        for number, drain in enumerate(self._drains):
            result += not drain.again
            offset = template["destination"] - self._results[0].address
            fields = {
                **template,
                "destination": self._results[result].address + offset,
                "parameter_address": self._parameters[number][tile.first, tile.count],
                "rounding": Rounding.HALF_EVEN,
                "zero_point": 0,
                "minimum": drain.values.minimum,
                "maximum": drain.values.maximum,
                "table_words": drain.flags,
            }
            if TrainingFlag.MASKED in drain.flags:
                fields["source"] = self._mask.address + offset
                for name in ("row_step", "column_step"):
                    fields[f"source_{name}"] = template[f"destination_{name}"]
            yield fields


def notes_program(configuration: Configuration) -> Product:
    """Reads the lanes' notes, L bytes for each byte of them, from address 0 on; forgets them."""
    images, lanes = Images(configuration, shares=False), configuration.lanes
    values = sum_bytes(lanes)
    post = bytearray()
    for number, value in enumerate(values):
        last = TrainingFlag.NOTED if number == len(values) - 1 else TrainingFlag(0)
        fields = {
            "opcode": Opcode.DRAIN,
            "rows": 1,
            "columns": 1,
            "slices": 1,
            "destination": number * lanes,
            "parameter_address": images.add_parameters(value, 0, lanes, "notes"),
            "rounding": Rounding.HALF_EVEN,
            "minimum": -128,
            "maximum": 127,
            "table_words": TrainingFlag.NOTES | TrainingFlag.AS_BYTES | last,
        }
        post += pack(POST_FIELDS, fields)
    halt = pack(POST_FIELDS, {"opcode": Opcode.HALT})
    (constants,) = (image.data for image in images.all() if image.space == Space.WEIGHTS)
    place = Placement(0, len(values) * lanes, lanes, 1, len(values), lanes)
    code = bytes(halt) + bytes(post) + halt
    return Product(code, (0, len(halt) // _WORD), constants, place, (place,), place)


def _cut(output: View, configuration: Configuration) -> list[Rectangle]:
    """Rectangles that a bank of accumulators holds: whole rows if one fits."""
    words, pixels = configuration.accumulator_depth, configuration.pixels
    across = -(-output.width // pixels)
    rows = max(1, words // across)
    columns = output.width if across <= words else words * pixels
    return [
        Rectangle((y, min(y + rows, output.height)), (x, min(x + columns, output.width)))
        for y in range(0, output.height, rows)
        for x in range(0, output.width, columns)
    ]


def with_sums(convolution: Convolution) -> Convolution:
    """A convolution whose sums are added to those of others."""
    return dataclasses.replace(convolution, accumulates=True)
