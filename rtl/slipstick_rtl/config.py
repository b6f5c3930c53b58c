"""The configuration: all that parameterises the hardware, checked once, with a fingerprint."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .dram.chips import DDR3_HZ, DDR3_RANGE_HZ, Ddr3Chip, DramChip, find_chip
from .engines import ENGINES, EngineTraits
from .isa import ISA_VERSION, WORDS_PER_INSTRUCTION
from .number_formats import FormatTraits, format_traits
from .numbers.lns.array_arithmetic import ArrayArithmetic

PROTOCOL_VERSION = 5
MULTIPLIERS = ("plain", "lut")
DIGITS = 5
"""Signed digits of base 256 that hold any multiplier: a compact engine has a column for each."""

PARAMETER_BITS = 72
"""Bits of a channel's parameters: bias 32, multiplier 32, shift 8."""

TABLE_ENTRY_BYTES = 4

PARAMETER_QUEUE_RESERVE = 4
"""Words of parameters that may be read yet when it is noticed that their queue has no more room."""

WRITE_ARGUMENTS = 4
"""Bytes of a WRITE's payload before its data: space u8, address u24."""

DEPTHWISE_KERNEL = 3
DEPTHWISE_TAPS = DEPTHWISE_KERNEL**2
"""Rows of the array that hold the weights of a depthwise kernel."""

_DMA_LANES = 8
"""Bytes of the activation memory that the DMA moves at once, at most."""

_SHARING = ("activation_bytes", "weight_bytes", "instruction_words")


def power_of_two_within(value: int) -> int:
    """Returns the largest power of two that is at most ``value``; 1 for what is less."""
    return 1 << max(1, value).bit_length() - 1


def most_weight_rows(rows: int) -> int:
    """Returns the largest W that so many rows can have: a power of two, at most R / 4, or 1."""
    return power_of_two_within(rows // 4)


def _is_power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


_ADDED = ("dram", "dram_clock_hz", "drain_tables", "products", "silicon")
"""Fields that descriptions of configurations leave out where there is no such thing: programs and
bitstreams are older than these."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """Shape, number format, memories and clock of one accelerator.

    Parameters
    ----------
    pixels : int
        P, output pixels that share each weight; a power of two.
    rows : int
        R, reduction elements (kernel taps x channels) a cycle; a power of two, or three times one
        with the pipelined engine.
    columns : int
        C, output channels computed together; a power of two.
    lanes : int
        L, results the post-processor finishes a cycle; a power of two, at most rows and columns.
    number_format : str
        What a processing element multiplies and adds, and what bytes of activations and weights
        mean: "int8", or a logarithmic format of at most 8 bits, "lns1+I+F"
        (:mod:`.numbers.lns.array_arithmetic`), of a pipelined engine.
    multiplier : str
        Back-end of the processing elements' multipliers: one of ``MULTIPLIERS``; "plain" is a
        ``*``, which FPGA tools map to DSP blocks, "lut" is made for look-up tables. A logarithmic
        format has one kind only, and that is called "plain".
    packed_rows : int
        The array's first rows, whose multipliers are "packed" instead: two columns' products share
        one DSP block. 0 with a logarithmic format.
    activation_bytes : int
        Size of the activation memory, a power of two.
    weight_bytes : int
        Size of the weight memory (weights, tables and parameters), a power of two.
    weight_rows : int
        W, rows of the array whose weights are read in one cycle: a word of the weight memory is
        W x C bytes. A power of two, at most rows / 4.
    ninth_bits : int
        1: each byte of the weight memory has a ninth bit, as block RAMs have it, and these hold the
        parameters; 0: parameters lie between the weights.
    halved_tables : int
        1: two lanes share one of the post-processor's look-up tables, and a tap that is looked up
        takes two cycles; 0: each lane has its own.
    drain_tables : int
        1: a DRAIN may send its results through the tables, so that a function of one code costs no
        MAP; 0: it may not. Only with a table for each lane of a pipelined engine.
    products : int
        1: a MAP may multiply two activations, by a multiplier of 18 x 18 bits in each lane; 0: it
        may not. Only a pipelined engine with int8.
    accumulator_depth : int
        Pixel groups in each of the two accumulator banks, a power of two.
    parameter_words : int
        Entries of a compact engine's parameter memory, each holding (bias, multiplier, shift) of a
        channel; otherwise 0, as parameters lie in the weight memory.
    instruction_words : int
        Size of the instruction memory in 32-bit words, a power of two.
    payload_bytes : int
        Longest payload of a link frame, a power of two. It holds a weight word and its address.
    engine : str
        How instructions are executed: one of ``ENGINES``. "pipelined": both streams at once, every
        memory with its own ports. "compact", for chips whose large memories have one port: one
        memory holds instructions, weights and activations, one instruction is executed at a time,
        and the array's multipliers requantise. It has one pixel, one lane and one accumulator bank,
        its windows are ``aligned``, and its memories need not be powers of two.
    dram : str
        The chips behind the DMA, by their name in :mod:`.dram.chips`; empty: there is no DMA. Only
        a pipelined engine of at most 8 lanes can have one.
    dram_clock_hz : int
        Clock of DDR3's controller, 40 to 100 million; the chip's is twice as fast. 0: 75 million
        (``DDR3_HZ``). 0 with SDRAM, which has the core's clock.
    training : int
        1: the post-processor does what gradients need besides (:class:`.isa.TrainingFlag`); 0: it
        does not. Only a pipelined engine with int8.
    silicon : int
        1: for standard cells: without the registers that only DSP blocks want, and with enables for
        what rests, memories and lanes, so that their clocks can be gated; 0: for an FPGA. Only a
        pipelined engine.
    clock_hz : int
        Clock that the target is built for; a throughput in seconds is computed from it.

    Raises
    ------
    TypeError
        If a field is of the wrong type.
    ValueError
        If a field breaks its rule; the message names the field, the rule and the value.
    """

    pixels: int = 1
    rows: int = 16
    columns: int = 16
    lanes: int = 8
    number_format: str = "int8"
    multiplier: str = "plain"
    packed_rows: int = 0
    activation_bytes: int = 1 << 17
    weight_bytes: int = 1 << 19
    weight_rows: int = 1
    ninth_bits: int = 0
    halved_tables: int = 0
    accumulator_depth: int = 512
    parameter_words: int = 0
    instruction_words: int = 1 << 14
    payload_bytes: int = 1024
    engine: str = "pipelined"
    dram: str = ""
    dram_clock_hz: int = 0
    training: int = 0
    drain_tables: int = 0
    products: int = 0
    silicon: int = 0
    clock_hz: int = 100_000_000

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            kind = str if field.type is str or field.type == "str" else int
            if not isinstance(value, kind) or isinstance(value, bool):
                raise TypeError(f"{field.name} must be {kind.__name__}, not {value!r}")
        if self.engine not in ENGINES:
            raise ValueError(f"engine must be one of {tuple(ENGINES)}, not {self.engine!r}")
        self._check_sizes()
        self._check_array()
        self._check_dram()
        self._check_int8_only()
        if self.clock_hz <= 0:
            raise ValueError(f"clock_hz must be positive, not {self.clock_hz}")

    def _check_sizes(self) -> None:
        traits = self.traits
        bounds = {
            "pixels": traits.pixels,
            "rows": (traits.smallest_rows, 64),
            "columns": (4, 64),
            "lanes": traits.lanes,
            "activation_bytes": (1 << 10, 1 << 23),
            "weight_bytes": (1 << 10, 1 << 24),
            "accumulator_depth": (16, 4096),
            "weight_rows": (1, 1 if traits.shares_memory else self.rows // 4),
            "instruction_words": (64, 1 << 16),
            "payload_bytes": (64, 1 << 15),
        }
        for name, (low, high) in bounds.items():
            value = getattr(self, name)
            # memories that share one are cut between any two words of C
            shared = traits.shares_memory and name in _SHARING
            if shared and value % self.columns:
                raise ValueError(
                    f"{name} must be a multiple of columns ({self.columns}), not {value}"
                )
            threefold = name == "rows" and traits.overlaps_streams
            third, rest = divmod(value, 3)
            taken = _is_power_of_two(third if threefold and not rest else value)
            if not shared and not taken:
                rule = "a power of two" + (", or three times one" if threefold else "")
                raise ValueError(f"{name} must be {rule}, not {value}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be within {low}..{high}, not {value}")
        least = self.weight_unit_bytes + WRITE_ARGUMENTS
        if self.payload_bytes < least:
            raise ValueError(
                f"payload_bytes must be at least {least}, a weight word of"
                f" {self.weight_unit_bytes} bytes and its address, not {self.payload_bytes}"
            )
        self._check_parameters()

    def _check_parameters(self) -> None:
        words, engine = self.parameter_words, self.engine
        own = self.traits.has_parameter_memory
        if own and not (_is_power_of_two(words) and 16 <= words <= 1 << 16):
            raise ValueError(f"parameter_words must be a power of two, 16..65536, not {words}")
        if not own and words:
            raise ValueError(
                f'parameter_words must be 0 with engine "{engine}", whose parameters lie in the'
                f" weight memory, not {words}"
            )
        for name in ("ninth_bits", "halved_tables", "drain_tables", "silicon"):
            if getattr(self, name) not in (0, 1):
                raise ValueError(f"{name} must be 0 or 1, not {getattr(self, name)}")
        if self.halved_tables and self.traits.requantises_in_array:
            raise ValueError(f'halved_tables must be 0 with engine "{engine}", not 1')
        if self.silicon and not (self.traits.overlaps_streams and self.multiplier == "plain"):
            raise ValueError(
                f"silicon must be 0 with engine {engine!r} and multiplier {self.multiplier!r},"
                " not 1"
            )
        if self.silicon and self.packed_rows:
            raise ValueError(f"packed_rows must be 0 with silicon, not {self.packed_rows}")
        if self.drain_tables and (self.halved_tables or not self.traits.overlaps_streams):
            raise ValueError(
                f"drain_tables must be 0 with engine {engine!r} and halved_tables"
                f" {self.halved_tables}, not 1"
            )
        if self.ninth_bits and (own or self.weight_word_bytes % 8):
            raise ValueError(
                'ninth_bits must be 0 with engine "compact" and with weight words of'
                f" {self.weight_word_bytes} bytes, no multiple of 8"
            )
        if self.ninth_bits and PARAMETER_BITS % self.weight_rows:
            raise ValueError(
                f"weight_rows must divide {PARAMETER_BITS} with ninth_bits, not {self.weight_rows}"
            )

    def _check_array(self) -> None:
        requantises = self.traits.requantises_in_array
        if requantises and self.columns < self.rows + DIGITS - 1:
            raise ValueError(
                f"columns must be at least rows + {DIGITS - 1} ({self.rows + DIGITS - 1}) with"
                f' engine "{self.engine}", not {self.columns}'
            )
        if requantises and self.multiplier != "plain":
            raise ValueError(
                f'multiplier must be "plain" with engine "{self.engine}", not {self.multiplier!r}'
            )
        if self.lanes > min(self.rows, self.columns):
            raise ValueError(
                f"lanes must be at most rows ({self.rows}) and columns ({self.columns}),"
                f" not {self.lanes}"
            )
        if self.multiplier not in MULTIPLIERS:
            raise ValueError(f"multiplier must be one of {MULTIPLIERS}, not {self.multiplier!r}")
        if not 0 <= self.packed_rows <= (0 if requantises else self.rows):
            raise ValueError(
                f"packed_rows must be within 0..{self.rows} (rows), and 0 with engine"
                f' "compact", not {self.packed_rows}'
            )
        self._check_format()

    def _check_dram(self) -> None:
        chip, asked, (least, most) = self.dram_chip, self.dram_clock_hz, DDR3_RANGE_HZ
        if asked and not isinstance(chip, Ddr3Chip):
            raise ValueError(f"dram_clock_hz must be 0 without DDR3, not {asked}")
        if asked and not least <= asked <= most:
            raise ValueError(f"dram_clock_hz must be 0 or within {least}..{most}, not {asked}")
        if chip is None:
            return
        if not self.traits.overlaps_streams or self.lanes > _DMA_LANES:
            raise ValueError(
                f"dram must be empty with engine {self.engine!r} and {self.lanes} lanes, not"
                f" {self.dram!r}: a DMA needs a pipelined engine of at most {_DMA_LANES} lanes"
            )

    def _check_int8_only(self) -> None:
        for name in ("training", "products"):
            value = getattr(self, name)
            if value not in (0, 1):
                raise ValueError(f"{name} must be 0 or 1, not {value}")
            if value and (not self.traits.overlaps_streams or self.logarithmic is not None):
                raise ValueError(
                    f"{name} must be 0 with engine {self.engine!r} and number_format"
                    f" {self.number_format!r}, not 1: only a pipelined engine with int8 has it"
                )
        if self.training and self.banks != self.rows:
            raise ValueError(
                f"training must be 0 with rows that are no power of two ({self.rows}), not 1"
            )

    def _check_format(self) -> None:
        taken = self.format
        most = self.rows if taken.uses_dsp_blocks else 0
        for name, known in (
            ("engine", taken.engines),
            ("multiplier", taken.multipliers),
            ("packed_rows", range(most + 1)),
        ):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be {known[0]!r} with number_format {self.number_format!r},"
                    f" not {getattr(self, name)!r}"
                )

    @property
    def dram_chip(self) -> DramChip | None:
        """The chips behind the DMA; None if there is none."""
        return find_chip(self.dram) if self.dram else None

    @property
    def dram_peak(self) -> int:
        """Bytes per second that the pins of the DRAM can move, or 0."""
        chip = self.dram_chip
        if chip is None:
            return 0
        return chip.peak_bytes_per_second(
            2 * self.ddr3_hz if isinstance(chip, Ddr3Chip) else self.clock_hz
        )

    def with_dram(self, chip: str) -> "Configuration":
        """Returns the same core with another DRAM, whose clock is the usual one; "" is for none."""
        clock = self.dram_clock_hz if chip == self.dram else 0
        return dataclasses.replace(self, dram=chip, dram_clock_hz=clock)

    @property
    def ddr3_hz(self) -> int:
        """Clock of DDR3's controller."""
        return self.dram_clock_hz or DDR3_HZ

    @property
    def dram_bytes_per_cycle(self) -> float:
        """The same per cycle of the core."""
        return self.dram_peak / self.clock_hz

    @property
    def format(self) -> FormatTraits:
        """Codes, bounds and needs of the number format."""
        return format_traits(self.number_format)

    @property
    def logarithmic(self) -> ArrayArithmetic | None:
        """The arithmetic of a logarithmic number format; None for int8."""
        return self.format.arithmetic

    @property
    def kept_padding(self) -> int:
        """Returns the code that the row above a depthwise CONVOLVE's first has with ``kept_rows``.

        It is the code of zero of an unsigned activation's int8, or of a logarithm.
        """
        return self.format.padding_code

    @property
    def traits(self) -> EngineTraits:
        """Abilities and bounds of the engine."""
        return ENGINES[self.engine]

    @property
    def accumulator_banks(self) -> int:
        """Banks that instructions may name, from 0 up."""
        return self.traits.accumulator_banks

    @property
    def largest_parts(self) -> int:
        """Most that instructions may have in ``parts``.

        With several pixels each bank is a single memory: while the array adds to one half of it,
        the other cannot be read.
        """
        return 2 if self.pixels == 1 and self.traits.overlaps_streams else 0

    @property
    def aligned(self) -> bool:
        """The lanes of a tile are one tap's, R bytes from a multiple of R on: one word of memory.

        Otherwise any R bytes that lie in different banks, as the array's rows follow each other.
        """
        return self.traits.aligned

    @property
    def largest_side(self) -> int:
        """Rows, or columns, that an input may have, and its padding."""
        return (1 << self.traits.coordinate_bits - 1) - 1

    @property
    def takes_pairs(self) -> bool:
        """A tile of half as many lanes can work on two vectors in a cycle."""
        return (
            not self.aligned
            and self.pixels == 1
            and self.banks == self.rows
            and 2 * self.packed_rows < self.rows
        )

    @property
    def takes_depthwise(self) -> bool:
        """Each column can convolve a channel of its own: the rows behind the packed ones take its
        taps from one another, and a vector has two bytes of each channel."""
        behind = self.rows - self.packed_rows
        return (
            not self.aligned
            and self.pixels == 1
            and self.rows >= 2 * self.columns
            and behind >= DEPTHWISE_TAPS
        )

    @property
    def rows_together(self) -> int:
        """Rows of the array that share each register of sums: 2 for standard cells, whose clock is
        slower than an element. They are of neighbouring chains, so that their weights come
        together, and of the same half where halves can work on vectors of their own."""
        chains = 4 if self.takes_pairs else 2
        joined = self.silicon and not self.takes_depthwise and self.weight_rows % chains == 0
        return 2 if joined else 1

    def chain_start(self, chain: int) -> int:
        """Returns the rows' cycles that go by in the array above the chain's first row."""
        return chain // self.rows_together * self.tile_words

    @property
    def windows(self) -> int:
        """Windows of the input that are read in a cycle: one a pixel, or two with ``pairs``."""
        return 2 if self.takes_pairs else self.pixels

    @property
    def macs_per_cycle(self) -> int:
        """Multiply-accumulates a cycle at full use, P x R x C."""
        return self.pixels * self.rows * self.columns

    @property
    def element_multipliers(self) -> int:
        """Multipliers of the array that FPGA tools map to DSP blocks; logarithms need none."""
        if not self.format.uses_dsp_blocks:
            return 0
        plain = self.rows - self.packed_rows if self.multiplier == "plain" else 0
        return self.pixels * (plain * self.columns + self.packed_rows * self.columns // 2)

    @property
    def tables(self) -> int:
        """Look-up tables of the post-processor."""
        return self.lanes >> self.halved_tables

    @property
    def table_codes(self) -> int:
        """Entries of half a look-up table: one for each byte, or for each code of a logarithm.

        Both halves are at least a word of the weight memory.
        """
        halves = self.weight_word_bytes // TABLE_ENTRY_BYTES
        return max(2 * (self.format.largest + 1), min(halves // 2, 1 << 8))

    @property
    def banks(self) -> int:
        """Byte-wide banks of the activation memory, B: R, or the next power of two."""
        return 1 << (self.rows - 1).bit_length()

    @property
    def slots(self) -> int:
        """Groups of L banks side by side in the activation memory."""
        return self.banks // self.lanes

    @property
    def tile_words(self) -> int:
        """Words of the weight memory that hold a tile's weights."""
        return self.rows // self.weight_rows

    @property
    def weight_word_bytes(self) -> int:
        """Bytes of a word of the weight memory, W x C, ninth bits not counted."""
        return self.weight_rows * self.columns

    @property
    def weight_words(self) -> int:
        """Depth of the weight memory in words."""
        return self.weight_bytes // self.weight_word_bytes

    @property
    def weight_unit_bytes(self) -> int:
        """Counts the bytes of a weight word over the link: its own, or nine for each eight."""
        return self.weight_word_bytes * (8 + self.ninth_bits) // 8

    @cached_property
    def parameter_block_words(self) -> int:
        """Words of the weight memory for C channels' parameters; 0 if these have a memory."""
        if self.traits.has_parameter_memory:
            return 0
        bits = self.weight_rows * (1 if self.ninth_bits else 8)
        return -(-PARAMETER_BITS // bits)

    @property
    def parameter_queue_words(self) -> int:
        """Words that the parameters' queue holds: two blocks and a reserve, 1 less than 2^n."""
        least = 2 * self.parameter_block_words + PARAMETER_QUEUE_RESERVE
        return (1 << max(least.bit_length(), 5)) - 1

    @property
    def parameter_bytes(self) -> int:
        """Bytes of one parameter word of a compact engine: bias 4, multiplier 4, shift 1."""
        return PARAMETER_BITS // 8

    @property
    def instructions(self) -> int:
        """Instructions that the instruction memory holds."""
        return self.instruction_words // WORDS_PER_INSTRUCTION

    @property
    def shape(self) -> str:
        """The array's shape as people write it, ``PxRxC``."""
        return f"{self.pixels}x{self.rows}x{self.columns}"

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, ready for JSON; without those of ``dram``, ``drain_tables``,
        ``products`` and ``silicon`` that are not set."""
        fields = dataclasses.asdict(self)
        return {name: value for name, value in fields.items() if name not in _ADDED or value}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Configuration":
        """The configuration that ``to_dict`` described; ValueError for other fields than its."""
        if not isinstance(fields, dict):
            raise TypeError(f"a configuration must be a mapping, not {type(fields).__name__}")
        names = {field.name for field in dataclasses.fields(cls)}
        odd = sorted(names ^ {*_ADDED, *map(str, fields)})
        if odd:
            raise ValueError(f"a configuration must have exactly the known fields, not {odd}")
        return cls(**fields)

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that name this hardware: configuration, ISA and link protocol.

        The clock is left out: the same hardware at another clock runs the same programs.
        """
        fields = self.to_dict()
        del fields["clock_hz"]
        # as it was before there was this field
        if not self.training:
            del fields["training"]
        meaning: list[Any] = [ISA_VERSION, PROTOCOL_VERSION, fields]
        # once tables had an entry for every byte, with all formats
        if self.table_codes < 1 << 8:
            meaning.append(self.table_codes)
        text = json.dumps(meaning, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
