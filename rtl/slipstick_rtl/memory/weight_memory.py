"""The weight memory: words of W x C bytes for parameters, the weight loader and table loads."""

import math

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from ..config import Configuration
from ..dma.layouts import WEIGHT_GROUP
from ..latencies import BLOCK_COLUMNS, WEIGHT_READ_LATENCY, weight_skew
from ..link.layouts import ByteWrite
from ..primitives.delay import delay
from ..primitives.fanout import copies_of
from ..primitives.resting import momentary_memory, read_register, registered

_MEMORY_CYCLES = 3
"""Block RAM, its output register, and one on the way; before them addresses are on theirs."""

_GROUP_CELLS, _GROUP_BYTES = 8, 9
"""Cells of nine bits, two blocks' words, and the bytes over the link that hold them."""

_Writes = tuple[list[Value], list[Value], list[Value]]
"""Addresses and words that the blocks get in turn, and each block's enables."""


_NINE_BIT_WORDS = 2048
"""Words of nine bits that a block RAM holds. Deeper memories are made of several here, not by
synthesis: each has its own output register, and the choice between them comes behind."""


class WeightBlock(wiring.Component):
    """Four columns of one chain: a word a cycle out, _MEMORY_CYCLES after its address.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    write_address, write_word, write_enables : In
        An enable a byte; with ninth bits one for all.
    address : In
    enable : In
        The address is somebody's. Only with ``silicon``: otherwise a word is read in every cycle.
    word : Out
    """

    write_address: Signal
    write_word: Signal
    write_enables: Signal
    address: Signal
    enable: Signal
    word: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._silicon = configuration.silicon
        self._words = words = configuration.weight_words
        ninth = configuration.ninth_bits
        self._depth = min(words, _NINE_BIT_WORDS) if ninth else words
        bits, width = ceil_log2(words), BLOCK_COLUMNS * (8 + ninth)
        super().__init__(
            {
                "write_address": In(bits),
                "write_word": In(width),
                "write_enables": In(1 if ninth else BLOCK_COLUMNS),
                "address": In(bits),
                **({"enable": In(1)} if configuration.silicon else {}),
                "word": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        width, bits = len(self.word), ceil_log2(self._depth)
        granularity = width // len(self.write_enables)
        words, asked = [], self.enable if self._silicon else None
        for k in range(self._words // self._depth):
            m.submodules[f"memory_{k}"] = memory = momentary_memory(
                width, self._depth, silicon=self._silicon
            )
            writer, reader = memory.write_port(granularity=granularity), memory.read_port()
            m.d.comb += [
                writer.addr.eq(self.write_address[:bits]),
                writer.data.eq(self.write_word),
                writer.en.eq(Mux(self.write_address[bits:] == k, self.write_enables, 0)),
                reader.en.eq(1 if asked is None else asked),
                reader.addr.eq(self.address[:bits]),
            ]
            words.append(read_register(m, reader.data, asked, f"read_{k}"))
        chosen = delay(m, self.address[bits:], 2, "chosen", reset_less=True)
        word = Array(words)[chosen] if len(words) > 1 else words[0]
        if asked is not None:
            asked = delay(m, asked, _MEMORY_CYCLES - 2, "asked")
        m.d.comb += self.word.eq(read_register(m, word, asked, "word"))
        return m


class WeightMemory(wiring.Component):
    """One word a cycle out, for one of three readers; one byte a cycle in.

    The memory is W x C / 4 blocks, each as wide as a block RAM. Each gets the reader's address as
    late as the array wants its bytes: ``weight_skew``.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    write, write_enable : In
        A byte from the link. With ninth bits each nine bytes, from offset 0 up and in order, are
        eight cells of nine bits.
    parameter_reads, loader_reads, table_reads : In(stream)
        Word addresses; each waits for those before it.
    parameters_urgent : In
        If not, the parameters' wait for the loader's.
    parameter_taken, table_taken : Out
        A transfer of that stream.
    data, ninth : Out
        [W][C] bytes and ninth bits; those of chain s, column j of a word come
        WEIGHT_READ_LATENCY + weight_skew(configuration, s, j) cycles after the transfer. Without
        ninth bits these are 0.
    dma_writes : In(stream of WEIGHT_GROUP)
        Only with DRAM: eight cells at once; not while the link has written a part of a unit. Words
        of four bytes get the halves of a group one after the other.
    """

    write: data.View
    write_enable: Signal
    parameter_taken: Signal
    table_taken: Signal
    ninth: data.View
    data: data.View
    parameter_reads: stream.Interface
    parameters_urgent: Signal
    loader_reads: stream.Interface
    table_reads: stream.Interface
    dma_writes: stream.Interface

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._address_bits = ceil_log2(c.weight_words)

        def word(bits: int) -> data.ArrayLayout:
            return data.ArrayLayout(data.ArrayLayout(bits, c.columns), c.weight_rows)

        dma = {"dma_writes": In(stream.Signature(WEIGHT_GROUP))} if c.dram else {}
        super().__init__(
            {
                **dma,
                "write": In(ByteWrite),
                "write_enable": In(1),
                "parameter_reads": In(stream.Signature(24)),
                "parameters_urgent": In(1),
                "loader_reads": In(stream.Signature(24)),
                "table_reads": In(stream.Signature(24)),
                "parameter_taken": Out(1),
                "table_taken": Out(1),
                "data": Out(word(8)),
                "ninth": Out(word(1)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        c = self._configuration
        ways, wanted = self._address_ways(m)
        writes = self._write_cells(m) if c.ninth_bits else self._write_bytes(m)
        groups = c.columns // BLOCK_COLUMNS
        if c.ninth_bits:
            writes = _spread(m, platform, writes, groups)
        addresses, words, enables = writes
        for block in range(c.weight_rows * groups):
            chain, first = block // groups, block % groups * BLOCK_COLUMNS
            m.submodules[f"block_{chain}_{first}"] = memory = WeightBlock(configuration=c)
            m.d.comb += [
                memory.write_address.eq(addresses[block % len(addresses)]),
                memory.write_word.eq(words[block % len(words)]),
                memory.write_enables.eq(enables[block]),
                memory.address.eq(ways[weight_skew(c, chain, first)]),
            ]
            if c.silicon:
                m.d.comb += memory.enable.eq(wanted[weight_skew(c, chain, first)])
            for k in range(BLOCK_COLUMNS):
                cell = memory.word.word_select(k, 8 + c.ninth_bits)
                m.d.comb += self.data[chain][first + k].eq(cell[:8])
                if c.ninth_bits:
                    m.d.comb += self.ninth[chain][first + k].eq(cell[8])
        return m

    def _address_ways(self, m: Module) -> tuple[list[Value], list[Value]]:
        """The address of the reader whose turn it is, and whether it is somebody's, by the cycles
        that they are late."""
        c = self._configuration
        parameters, loader, tables = self.parameter_reads, self.loader_reads, self.table_reads
        address = Signal(self._address_bits)
        m.d.comb += [
            parameters.ready.eq(self.parameters_urgent | ~loader.valid),
            loader.ready.eq(~(parameters.valid & self.parameters_urgent)),
            tables.ready.eq(~parameters.valid & ~loader.valid),
            self.parameter_taken.eq(parameters.valid & parameters.ready),
            self.table_taken.eq(tables.valid & tables.ready),
            address.eq(Mux(parameters.valid, parameters.payload, tables.payload)),
        ]
        with m.If(loader.valid & loader.ready):
            m.d.comb += address.eq(loader.payload)
        early = WEIGHT_READ_LATENCY - _MEMORY_CYCLES
        latest = weight_skew(c, c.weight_rows - 1, c.columns - 1)
        read = (loader.valid & loader.ready) | self.parameter_taken | self.table_taken

        def late(value: Value, name: str, of: list[Value]) -> list[Value]:
            """Each where one of ``of`` is 1 before it; always, if there are none."""
            names = [*(f"{name}_{k}" for k in range(early))]
            names += [f"{name}_late_{k}_0" for k in range(latest)]
            ways = [value]
            for k, each in enumerate(names):
                ways.append(registered(m, ways[-1], of[k] if of else None, each))
            return ways

        reading = late(read, "read", []) if c.silicon else []
        return late(address, "address", reading)[early:], reading[early:]

    def _write_bytes(self, m: Module) -> _Writes:
        """A byte is there some cycles later: long before a program can be started."""
        size = self._configuration.weight_word_bytes
        enables = Signal(size)
        m.d.comb += enables.eq(Mux(self.write_enable, 1 << self.write.offset[: ceil_log2(size)], 0))
        late = delay(m, enables, 1, "write_enables")
        byte = delay(m, self.write.data, 1, "write_data")
        address = delay(m, self.write.address[: self._address_bits], 1, "write_address")
        blocks = range(size // BLOCK_COLUMNS)
        if self._configuration.dram:
            return self._write_groups(m, address, byte, late)
        return (
            [address],
            [byte.replicate(BLOCK_COLUMNS)],
            [late.word_select(k, BLOCK_COLUMNS) for k in blocks],
        )

    def _write_groups(self, m: Module, address: Value, byte: Value, late: Value) -> _Writes:
        """Bytes of the link, or a group's: two blocks have them, or one has a half at a time."""
        given, size = self.dma_writes, len(late)
        halves = size < _GROUP_CELLS
        upper = Signal()
        group = given.payload.address
        taken = Signal()
        m.d.comb += taken.eq(given.valid & ~self.write_enable)
        half_bits = 8 * BLOCK_COLUMNS
        cells = [given.payload.cells[:half_bits], given.payload.cells[half_bits:]]
        if halves:
            m.d.comb += given.ready.eq(taken & upper)
            with m.If(taken):
                m.d.sync += upper.eq(~upper)
            cells = [Mux(upper, cells[1], cells[0])]
            place, which = Cat(upper, group), Const(0, 1)
        else:
            m.d.comb += given.ready.eq(taken)
            which_bits = ceil_log2(size // _GROUP_CELLS)
            place, which = group[which_bits:], group[:which_bits]
        by_dma = delay(m, taken, 1, "dma_writes")
        where = delay(m, place[: self._address_bits], 1, "dma_address")
        chosen = delay(m, which, 1, "dma_group") if len(which) else Const(0, 1)
        words = [delay(m, word, 1, f"dma_cells_{k}") for k, word in enumerate(cells)]
        per_group = len(cells)
        return (
            [Mux(by_dma, where, address)],
            [Mux(by_dma, word, byte.replicate(BLOCK_COLUMNS)) for word in words],
            [
                late.word_select(k, BLOCK_COLUMNS)
                | (by_dma & (chosen == k // per_group)).replicate(BLOCK_COLUMNS)
                for k in range(size // BLOCK_COLUMNS)
            ],
        )

    def _write_cells(self, m: Module) -> _Writes:
        """Nine bytes are collected, and written to two blocks at once."""
        groups = self._configuration.weight_word_bytes // _GROUP_CELLS
        enable = delay(m, self.write_enable, 1, "write_enable")
        first = delay(m, self.write.offset == 0, 1, "write_first")
        byte = delay(m, self.write.data, 1, "write_data")
        collected = Signal(8 * _GROUP_BYTES, reset_less=True)
        next_place, next_group = Signal(range(_GROUP_BYTES)), Signal(range(groups + 1))
        place, group = Signal.like(next_place), Signal.like(next_group)
        ends, whole = Signal(), Signal()
        m.d.comb += [
            place.eq(Mux(first, 0, next_place)),
            group.eq(Mux(first, 0, next_group)),
            ends.eq(place == _GROUP_BYTES - 1),
        ]
        m.d.sync += whole.eq(enable & ends)
        address = delay(m, self.write.address[: self._address_bits], 2, "write_address")
        written = delay(m, group, 1, "write_group")
        if self._configuration.dram:
            address, written = self._collect_group(m, enable, collected, whole, address, written)
        with m.If(enable):
            m.d.sync += [
                collected.eq(Cat(collected[8:], byte)),
                next_place.eq(Mux(ends, 0, place + 1)),
                next_group.eq(group + ends),
            ]
        half = len(collected) // 2
        return (
            [address],
            [collected[:half], collected[half:]],
            [(whole & (written == block // 2)) for block in range(2 * groups)],
        )

    def _collect_group(
        self,
        m: Module,
        enable: Value,
        collected: Signal,
        whole: Signal,
        address: Value,
        written: Value,
    ) -> tuple[Value, Value]:
        """A group of the DMA is collected at once, while no byte of the link is on its way."""
        given, groups = self.dma_writes, self._configuration.weight_word_bytes // _GROUP_CELLS
        taken, bits = Signal(), ceil_log2(groups)
        m.d.comb += [taken.eq(given.valid & ~self.write_enable & ~enable), given.ready.eq(taken)]
        cells, ninth = given.payload.cells, given.payload.ninth
        with m.If(taken):
            m.d.sync += [
                whole.eq(1),
                collected.eq(
                    Cat(Cat(cells.word_select(k, 8), ninth[k]) for k in range(_GROUP_CELLS))
                ),
            ]
        by_dma = delay(m, taken, 1, "dma_writes")
        where = delay(m, given.payload.address, 1, "dma_group")
        return (
            Mux(by_dma, where[bits:][: self._address_bits], address),
            Mux(by_dma, where[:bits], written) if bits else written,
        )


def _spread(m: Module, platform: object, writes: _Writes, groups: int) -> _Writes:
    """A cycle later, in registers of their own for each group of columns: many blocks are all over
    the chip."""
    (address,), words, enables = writes
    count = math.lcm(groups, len(words))

    def near(value: Value, name: str) -> Value:
        return copies_of(m, platform, value, name)

    return (
        [near(address, f"write_address_{group}") for group in range(groups)],
        [near(words[k % len(words)], f"write_word_{k}") for k in range(count)],
        [near(enable, f"write_enable_{block}") for block, enable in enumerate(enables)],
    )
