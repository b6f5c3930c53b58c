"""Makes DRAIN's, MAP's and TABLE's memory requests: taps and table entries in, results out."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2, exact_log2

from ..config import Configuration
from ..postprocess.addresses import AddressGenerator
from .instruction import post_layout
from .nest import Turns
from .product import passes

_IN_FLIGHT_BITS = 4


class Destination(wiring.Component):
    """The address of the next result, which trails the nest.

    Members
    -------
    fields : In
    load, advance : In
    address : Out
    """

    fields: data.View
    load: Signal
    advance: Signal
    address: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._bits = ceil_log2(configuration.activation_bytes)
        fields = {"fields": In(post_layout(configuration)), "address": Out(self._bits)}
        super().__init__({**fields, "load": In(1), "advance": In(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.columns = columns = Turns(width=12)
        m.submodules.rows = rows = Turns(width=12)
        m.submodules.addresses = addresses = AddressGenerator(width=self._bits, levels=3)
        fields = self.fields
        m.d.comb += [
            columns.count.eq(fields.columns),
            columns.restart.eq(self.load),
            columns.advance.eq(self.advance),
            rows.count.eq(fields.rows),
            rows.restart.eq(self.load),
            rows.advance.eq(self.advance & columns.last),
            addresses.load.eq(self.load),
            addresses.origin.eq(fields.destination),
            addresses.steps[0].eq(fields.destination_column_step),
            addresses.steps[1].eq(fields.destination_row_step),
            addresses.steps[2].eq(1),
            addresses.advance.eq(self.advance),
            addresses.ends.eq(Cat(columns.last, columns.last & rows.last)),
            self.address.eq(addresses.address),
        ]
        return m


class Results(wiring.Component):
    """Steps the nest through DRAIN and MAP, and writes results in the cycles between.

    A result takes ``passes`` cycles or its taps', whichever is more; the first of them, the slot,
    is when one that has become complete may be written. A channel ends when all its results are
    written, as its parameters must hold until then.

    Parameters
    ----------
    configuration : Configuration

    Members
    -------
    fields : In
    start : In
        Strobe, in a cycle in which the nest is loaded.
    draining : In
        It is DRAIN, not MAP.
    tap_row_end, tap_end, rows_end, end, channel : In
        The nest's.
    hold : In
        The link waits for the memory: begin no result.
    step : Out
        The nest goes on.
    reading_tap : Out
        A byte is read at the nest's address.
    look_up : Out
        The byte has come; with ``use_table`` its entry is read.
    odd : Out
        The tap looks into the table's second half.
    combine, combine_first : Out
        The tap is ready: an accumulator of column ``column``, a byte, or a table's entry.
    column : Out
    complete : Out
        The tap was its result's last.
    parameter : Out
        Address of the channel's parameters.
    load_digits : Out
        They are there: the multipliers take them.
    done : In
        A result is there in this cycle.
    write, address : Out
        It, or the one before, is written.
    finished : Out
        Strobe: everything is written.
    """

    fields: data.View
    start: Signal
    draining: Signal
    tap_row_end: Signal
    tap_end: Signal
    rows_end: Signal
    end: Signal
    channel: Signal
    hold: Signal
    step: Signal
    reading_tap: Signal
    look_up: Signal
    odd: Signal
    combine: Signal
    combine_first: Signal
    column: Signal
    complete: Signal
    parameter: Signal
    load_digits: Signal
    done: Signal
    write: Signal
    address: Signal
    finished: Signal

    def __init__(self, *, configuration: Configuration) -> None:
        self._configuration = c = configuration
        self._destination = Destination(configuration=c)
        # results that have begun and are not written, and that one of them is complete
        self._in_flight = Signal(_IN_FLIGHT_BITS)
        self._pending = Signal()
        self._begin = Signal()
        self._wait = Signal(range(max(passes(c), 2)))
        # the next tap: its result's first, of the table's second half; the one before: the last
        self._first = Signal()
        self._odd = Signal()
        self._last = Signal()
        # all results of the channel have begun, and it is the instruction's last channel
        self._issued = Signal()
        self._final = Signal()
        inputs = ("start", "draining", "tap_row_end", "tap_end", "rows_end", "end", "hold", "done")
        outputs = ("step", "reading_tap", "look_up", "odd", "combine", "combine_first")
        outputs += ("complete", "load_digits", "write", "finished")
        columns = exact_log2(c.columns)
        super().__init__(
            {
                "fields": In(post_layout(c)),
                **dict.fromkeys(inputs, In(1)),
                **dict.fromkeys(outputs, Out(1)),
                "channel": In(columns),
                "column": Out(columns),
                "parameter": Out(exact_log2(c.parameter_words)),
                "address": Out(self._destination.address.shape()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.destination = self._destination
        self._count_results(m)
        self._follow_nest(m)
        with m.FSM():
            with m.State("rest"), m.If(self.start):
                m.d.sync += [self._first.eq(1), self._odd.eq(0), self._issued.eq(0)]
                m.d.sync += self.parameter.eq(self.fields.parameter_address)
                m.next = "parameters"
            with m.State("parameters"):
                m.next = "digits"
            with m.State("digits"):
                m.d.comb += self.load_digits.eq(1)
                m.next = "slot"
            with m.State("slot"):
                self._use_slot(m)
            with m.State("accumulator"):
                m.d.sync += self._wait.eq(self._wait - 1)
                with m.If(self._wait == 0):
                    m.next = "slot"
            with m.State("tap"):
                m.d.comb += [self.reading_tap.eq(1), self.step.eq(1)]
                m.next = "look up"
            with m.State("look up"):
                m.d.comb += self.look_up.eq(1)
                m.next = "tap"
                with m.If(self._last):
                    m.next = "slot"
        self._combine(m)
        return m

    def _count_results(self, m: Module) -> None:
        """Counts the results under way, and gives the address of the next one to be written."""
        destination = self._destination
        m.d.comb += [
            destination.fields.eq(self.fields),
            destination.load.eq(self.start),
            destination.advance.eq(self.write),
            self.address.eq(destination.address),
        ]
        with m.If(self.done):
            m.d.sync += self._pending.eq(1)
        with m.Elif(self.write):
            m.d.sync += self._pending.eq(0)
        m.d.sync += self._in_flight.eq(self._in_flight + self._begin - self.write)

    def _follow_nest(self, m: Module) -> None:
        """Keeps the nest's flags of a step, as they are needed after it."""
        with m.If(self.step):
            m.d.sync += [
                self._first.eq(self.tap_end),
                self._odd.eq(~self._odd & ~self.tap_row_end),
                self.odd.eq(self._odd),
                self._issued.eq(self.rows_end),
                self._final.eq(self.end),
                self._last.eq(self.tap_end),
            ]

    def _use_slot(self, m: Module) -> None:
        """Write the result that is complete, and begin the next one or end the channel."""
        m.d.comb += self.write.eq(self._pending)
        m.d.sync += self._wait.eq(passes(self._configuration) - 2)
        with m.If(self._issued):
            with m.If(self._in_flight == 0):
                self._end_channel(m)
        with m.Elif(~self.hold):
            m.d.comb += self._begin.eq(1)
            with m.If(self.draining):
                m.d.comb += self.step.eq(1)
                m.next = "accumulator"
            with m.Else():
                m.next = "tap"

    def _end_channel(self, m: Module) -> None:
        """Go to the next channel's parameters, if there is one."""
        m.d.sync += [self._issued.eq(0), self.parameter.eq(self.parameter + self.draining)]
        m.next = "parameters"
        with m.If(self._final):
            m.d.comb += self.finished.eq(1)
            m.next = "rest"

    def _combine(self, m: Module) -> None:
        """A tap is combined a cycle after its look-up, an accumulator a cycle after its read."""
        begins = Signal()
        with m.If(self.step):
            m.d.sync += begins.eq(self._first)
        reading = self.step & self.draining
        m.d.sync += [
            self.combine.eq(reading | self.look_up),
            self.combine_first.eq(Mux(self.draining, 1, begins)),
            self.complete.eq(reading | self.look_up & self._last),
            self.column.eq(self.channel),
        ]
