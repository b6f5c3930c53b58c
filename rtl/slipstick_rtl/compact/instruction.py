"""The instruction under way, its fields in registers that CONVOLVE and DRAIN or MAP share."""

from collections import defaultdict
from collections.abc import Mapping

from amaranth.hdl import Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import Configuration
from ..isa import MATRIX_FIELDS, POST_FIELDS, Field
from .coordinates import COORDINATE_BITS

_WORD_BITS = 32

_SHARED = (
    ("weight_address", "table_address"),
    ("origin", "source"),
    ("column_step", "tap_step_x"),
    ("row_step", "tap_step_y"),
    ("tap_step_x", "source_row_step"),
    ("tap_step_y", "source_column_step"),
    ("rows", "rows"),
    ("groups", "columns"),
    ("channels", "taps_x"),
    ("kernel_x", "taps_y"),
    ("reduction_tiles", "slices"),
    ("origin_y", "destination"),
    ("origin_x", "parameter_address"),
    ("height", "destination_row_step"),
    ("width", "destination_column_step"),
    ("stride_y", "minimum"),
    ("stride_x", "maximum"),
    ("padding_value", "zero_point"),
    ("dilation_x", "rounding"),
    ("dilation_y", "use_table"),
    ("diagonal", "shift_taps"),
    ("accumulate", "take_maximum"),
)
"""A register each: the field of CONVOLVE and that of DRAIN, MAP and TABLE that it holds."""


def _widths(configuration: Configuration) -> dict[str, int]:
    """Bits that are kept of fields that are wider than this engine's memories."""
    c = configuration
    address = ceil_log2(c.activation_bytes)
    sides = dict.fromkeys(("origin_y", "origin_x", "height", "width"), COORDINATE_BITS)
    addresses = ("origin", "column_step", "row_step", "tap_step_x", "tap_step_y", "source")
    steps = ("row_step", "column_step")
    return {
        **dict.fromkeys(addresses, address),
        **{f"source_{name}": address for name in steps},
        **{f"destination_{name}": address for name in steps},
        "destination": address,
        "weight_address": ceil_log2(c.weight_words),
        "table_address": ceil_log2(c.weight_words),
        "parameter_address": ceil_log2(c.parameter_words),
        "channels": address,
        **sides,
    }


def _places(fields: Mapping[str, Field]) -> dict[str, int]:
    places, position = {}, 0
    for name, field in fields.items():
        places[name] = position
        position += field.width
    return places


def _layout(
    fields: Mapping[str, Field], names: list[str], widths: Mapping[str, int]
) -> data.StructLayout:
    shapes = {}
    for name in names:
        width = min(fields[name].width, widths.get(name, fields[name].width))
        shapes[name] = signed(width) if fields[name].signed else unsigned(width)
    return data.StructLayout(shapes)


def matrix_layout(configuration: Configuration) -> data.StructLayout:
    """Fields of CONVOLVE, as wide as the engine needs them."""
    names = [matrix for matrix, _ in _SHARED if matrix]
    return _layout(MATRIX_FIELDS, names, _widths(configuration))


def post_layout(configuration: Configuration) -> data.StructLayout:
    """Fields of DRAIN, MAP and TABLE, as wide as the engine needs them."""
    return _layout(POST_FIELDS, [post for _, post in _SHARED if post], _widths(configuration))


class InstructionRegister(wiring.Component):
    """Takes the words of an instruction as they are read from memory.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    word, index, write : In
        Word ``index`` of an instruction.
    is_post : In
        It is of the post stream.
    matrix, post : Out
        The fields, in the same registers: only one of the two has a meaning.
    """

    word: Signal
    index: Signal
    write: Signal
    is_post: Signal
    matrix: data.View
    post: data.View

    def __init__(self, *, configuration: Configuration) -> None:
        super().__init__(
            {
                "word": In(_WORD_BITS),
                "index": In(4),
                "write": In(1),
                "is_post": In(1),
                "matrix": Out(matrix_layout(configuration)),
                "post": Out(post_layout(configuration)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        matrix_places, post_places = _places(MATRIX_FIELDS), _places(POST_FIELDS)
        # bits that come with the same two words have one enable
        groups: dict[tuple[int, int], list[tuple[Value, int, int]]] = defaultdict(list)
        for matrix, post in _SHARED:
            views = [
                Value.cast(view[name]) if name else None
                for view, name in ((self.matrix, matrix), (self.post, post))
            ]
            width = max(len(view) for view in views if view is not None)
            register = Signal(width, name=matrix or post, reset_less=True)
            m.d.comb += [view.eq(register[: len(view)]) for view in views if view is not None]
            for k in range(width):
                place = _bit(views[0], matrix_places.get(matrix, 0), k)
                post_place = _bit(views[1], post_places.get(post, 0), k)
                words = place // _WORD_BITS, post_place // _WORD_BITS
                groups[words].append((register[k], place, post_place))
        for (matrix_word, post_word), bits in groups.items():
            self._take(m, matrix_word, post_word, bits)
        return m

    def _take(
        self, m: Module, matrix_word: int, post_word: int, bits: list[tuple[Value, int, int]]
    ) -> None:
        """The bits that come with one word of a CONVOLVE and one of a DRAIN or MAP; -1: none."""
        with_matrix = (self.index == matrix_word) if matrix_word >= 0 else 0
        with_post = (self.index == post_word) if post_word >= 0 else 0
        with m.If(self.write & Mux(self.is_post, with_post, with_matrix)):
            for bit, matrix_place, post_place in bits:
                matrix_bit = self.word[(matrix_place if matrix_place >= 0 else post_place) % 32]
                post_bit = self.word[(post_place if post_place >= 0 else matrix_place) % 32]
                m.d.sync += bit.eq(Mux(self.is_post, post_bit, matrix_bit))


def _bit(view: Value | None, start: int, k: int) -> int:
    """Returns the place of a field's bit ``k`` in an instruction; -1 if it has none."""
    return start + k if view is not None and k < len(view) else -1
