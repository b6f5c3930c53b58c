"""The compiled core from Python: whole transfers and runs, never a call per clock cycle."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray
from slipstick_rtl.accelerator import EVENTS
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import DEFAULT_TIMEOUT_CYCLES, WAIT_TIMEOUTS

from ..dram.violation import Violation, violation_of
from .build import accelerator_library

EVENT = np.dtype([("cycle", "<u8"), ("kind", "<u8")])
"""An entry of the event log; ``kind`` is an index into ``EVENT_NAMES``."""

EVENT_NAMES = tuple(EVENTS.members)

_TOP_SCOPE = "TOP"
"""Scope that Verilator puts around a design in its waveforms."""

_SIGNATURES = {
    "core_new": (ctypes.c_void_p, ()),
    "core_free": (None, (ctypes.c_void_p,)),
    "core_reset": (None, (ctypes.c_void_p,)),
    "core_select": (None, (ctypes.c_void_p, ctypes.c_int)),
    "core_disturb": (None, (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)),
    "core_bit_length": (None, (ctypes.c_void_p, ctypes.c_uint64)),
    "core_disturbances": (None, (ctypes.c_void_p, ctypes.c_void_p)),
    "core_send": (
        ctypes.c_size_t,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64),
    ),
    "core_receive": (
        ctypes.c_size_t,
        (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64),
    ),
    "core_wait_idle": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint64)),
    "core_run_cycles": (None, (ctypes.c_void_p, ctypes.c_uint64)),
    "core_set_wire": (None, (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_uint64)),
    "core_plan": (
        None,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_uint64),
    ),
    "core_run_until": (None, (ctypes.c_void_p, ctypes.c_uint64)),
    "core_lost": (ctypes.c_uint64, (ctypes.c_void_p,)),
    "core_taken": (ctypes.c_uint64, (ctypes.c_void_p,)),
    "core_stamps": (None, (ctypes.c_void_p, ctypes.c_void_p)),
    "core_record": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)),
    "core_end_record": (None, (ctypes.c_void_p,)),
    "core_violation": (ctypes.c_int, (ctypes.c_void_p,)),
    "core_cycles": (ctypes.c_uint64, (ctypes.c_void_p,)),
    "core_available": (ctypes.c_size_t, (ctypes.c_void_p,)),
    "core_events": (ctypes.c_size_t, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)),
}


DISTURBANCES = ("glitch", "bits inverted", "break")
"""Disturbances of a line: it is inverted for less than half a bit; for up to three bits; or it is
low for 10 to 25 bits."""

_PARTS = 256


class SimulationError(RuntimeError):
    """The simulated core did not do in time what it was asked to; the message has the cycles."""


class CompiledCore:
    """One simulated core, reset and ready.

    Parameters
    ----------
    library : Path
        As ``build_library`` returns it.

    Raises
    ------
    OSError
        If the library cannot be loaded.
    """

    def __init__(self, library: Path) -> None:
        self._core: int | None = None
        self._library = ctypes.CDLL(str(library))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self._library, name, None)
            if function is None:
                raise OSError(f"{library} must be a compiled core, and lacks {name}")
            function.restype = result
            function.argtypes = arguments
        self._core = self._library.core_new()

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        directory: Path | None = None,
        timeout_cycles: int = DEFAULT_TIMEOUT_CYCLES,
        label: str = "",
    ) -> "CompiledCore":
        """The core with this configuration; builds its library the first time (a minute)."""
        return cls(accelerator_library(configuration, directory, timeout_cycles, label))

    def offer(self, data: bytes, max_cycles: int) -> int:
        """Offers bytes to ``i``, one a cycle; returns how many the core has taken."""
        return self._library.core_send(self._open(), data, len(data), max_cycles)

    def send(self, data: bytes, max_cycles: int) -> None:
        """Offers bytes to ``i``, one a cycle; SimulationError if the core has not taken them."""
        sent = self.offer(data, max_cycles)
        if sent != len(data):
            raise SimulationError(
                f"the core took {sent} of {len(data)} bytes in {max_cycles} cycles"
            )

    def receive(self, count: int, max_cycles: int) -> bytes:
        """``count`` bytes that ``o`` gave, or the fewer that had come after ``max_cycles``."""
        buffer = ctypes.create_string_buffer(max(count, 1))
        got = self._library.core_receive(self._open(), buffer, count, max_cycles)
        self._check_dram()
        return buffer.raw[:got]

    def _check_dram(self) -> None:
        """SimulationError if something was done to the DRAM chip that its data sheet forbids."""
        violation = violation_of(self._library.core_violation(self._open()))
        if violation is not Violation.NONE:
            raise SimulationError(f"the DRAM's {violation.name} was broken: {violation.rule}")

    def transact(self, data: bytes, count: int, max_cycles: int) -> bytes:
        """Sends bytes and returns the next ``count`` that come.

        Raises
        ------
        SimulationError
            If either takes longer than ``max_cycles``.
        """
        self.send(data, max_cycles)
        answer = self.receive(count, max_cycles)
        if len(answer) != count:
            raise SimulationError(
                f"the core gave {len(answer)} of {count} bytes in {max_cycles} cycles"
            )
        return answer

    def select(self, selected: bool) -> None:
        """Drives the chip select of an SPI core from the next cycle on; others have none."""
        self._library.core_select(self._open(), selected)

    def disturb(self, seed: int, mean_cycles: int) -> None:
        """Disturbs, from now on, both lines of a core behind its UART; other cores have none.

        Parameters
        ----------
        seed : int
            Of when and how.
        mean_cycles : int
            From one disturbance of a line to its next; 0 ends them.
        """
        self._library.core_disturb(self._open(), seed, mean_cycles)

    def set_bit_cycles(self, cycles: float) -> None:
        """Sets the cycles of a bit at the other end of a core's UART, where they differ from its
        own, to 1/256 of a cycle; ValueError if they are not at least 1."""
        if not cycles >= 1:
            raise ValueError(f"a bit must last at least 1 cycle, not {cycles}")
        self._library.core_bit_length(self._open(), round(cycles * _PARTS))

    @property
    def disturbances(self) -> dict[str, int]:
        """Counts the disturbances of both lines together, by the names of ``DISTURBANCES``."""
        counts = (ctypes.c_uint64 * (2 * len(DISTURBANCES)))()
        self._library.core_disturbances(self._open(), ctypes.addressof(counts))
        return {
            name: counts[k] + counts[k + len(DISTURBANCES)] for k, name in enumerate(DISTURBANCES)
        }

    def wait_idle(self, max_cycles: int) -> bool:
        """Runs while ``running`` is high; False if it still is after ``max_cycles``."""
        return bool(self._library.core_wait_idle(self._open(), max_cycles))

    def run_cycles(self, count: int) -> None:
        """Runs for some clock cycles."""
        self._library.core_run_cycles(self._open(), count)

    @contextmanager
    def recording(self, path: Path, scope: str = "") -> Iterator[None]:
        """Records signals in the cycles in which the core runs, while the body does.

        The file is what the library writes, with a cycle for its unit of time: SAIF, how often each
        signal changes, or VCD, all values.

        Parameters
        ----------
        path : Path
        scope : str
            Only the signals of one instance, by its names from the top module on with points
            between, without those within; by default all.

        Raises
        ------
        SimulationError
            If the file cannot be written; if the library records nothing, as those of
            ``activity_library`` do, or the core has recorded since its last reset.
        """
        try:
            path.touch()
        except OSError as error:
            raise SimulationError(
                f"the core's activity cannot be written to {path}: {error.strerror}"
            ) from None
        hierarchy = f"{_TOP_SCOPE}.{scope}" if scope else ""
        if not self._library.core_record(self._open(), str(path).encode(), hierarchy.encode()):
            raise SimulationError(
                f"the core's activity cannot be recorded in {path}: its library must be one that"
                " records, and does so once"
            )
        try:
            yield
        finally:
            self._library.core_end_record(self._open())

    def reset(self) -> None:
        """Begins anew, as after configuration: all memories hold zeros, and what was received and
        not asked for is dropped. Cycles count on."""
        self._library.core_reset(self._open())

    @property
    def cycles(self) -> int:
        """Clock cycles since the core was made."""
        return self._library.core_cycles(self._open())

    @property
    def available(self) -> int:
        """Bytes that came and were not asked for yet."""
        return self._library.core_available(self._open())

    def set_wire(self, depth: int, *, holds_back: bool, byte_cycles: float) -> None:
        """The wire of a library that ``paced_library`` built; others have none.

        Parameters
        ----------
        depth : int
            Bytes that wait at most for the core to take them.
        holds_back : bool
            A byte that finds no room waits on the wire; otherwise it is lost.
        byte_cycles : float
            Cycles that a byte from the core takes on the wire.
        """
        self._library.core_set_wire(self._open(), depth, holds_back, round(byte_cycles * _PARTS))

    def plan(self, data: bytes, cycle: int, byte_cycles: float) -> None:
        """Bytes that come in ``byte_cycles`` each, from a cycle on; behind those planned before."""
        self._library.core_plan(self._open(), data, len(data), cycle, round(byte_cycles * _PARTS))

    def run_until(self, cycle: int) -> tuple[bytes, NDArray[np.uint64]]:
        """Runs up to a cycle, or until bytes have come from a core behind a paced wire.

        Returns
        -------
        (bytes, array of uint64)
            What came, and the cycle at which each byte had passed the wire.
        """
        self._library.core_run_until(self._open(), cycle)
        stamps = np.zeros(self.available, np.uint64)
        self._library.core_stamps(self._open(), stamps.ctypes.data)
        return self.receive(len(stamps), 0), stamps

    @property
    def lost(self) -> int:
        """Bytes that found a full queue on a paced wire that cannot hold back."""
        return self._library.core_lost(self._open())

    @property
    def taken(self) -> int:
        """Bytes that the core has taken from a paced wire."""
        return self._library.core_taken(self._open())

    def take_events(self) -> NDArray[np.void]:
        """The events since the last call, an array of ``EVENT`` in the order of their cycles."""
        core = self._open()
        events = np.zeros(self._library.core_events(core, None, 0), EVENT)
        if events.size:
            self._library.core_events(core, events.ctypes.data, events.size)
        return events

    def close(self) -> None:
        """Frees the core; it is of no more use."""
        if self._core is not None:
            self._library.core_free(self._core)
            self._core = None

    def __enter__(self) -> "CompiledCore":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _open(self) -> int:
        if self._core is None:
            raise SimulationError("the simulated core is closed")
        return self._core


class CompiledTransport:
    """A compiled core as a transport of link frames; it satisfies the host's ``Transport``.

    Time passes for the core only while it is waited for: a second is ``cycles_per_second`` cycles.

    Parameters
    ----------
    core : CompiledCore
        Closed together with the transport.
    cycles_per_second : int
        About what the library simulates in a second, so that timeouts keep their meaning.
    byte_cycles : int
        The longest that the core takes for a byte.
    """

    def __init__(
        self, core: CompiledCore, *, cycles_per_second: int = 1_000_000, byte_cycles: int = 16
    ) -> None:
        if cycles_per_second < 1:
            raise ValueError(f"cycles_per_second must be positive, not {cycles_per_second}")
        self._core = core
        self._cycles_per_second = cycles_per_second
        self._byte_cycles = byte_cycles

    @property
    def core(self) -> CompiledCore:
        """The core, for its cycles and events."""
        return self._core

    def send(self, data: bytes) -> None:
        """Sends all bytes; SimulationError if the core takes none for longer than a run may keep
        it from them."""
        longest = 2 * WAIT_TIMEOUTS * DEFAULT_TIMEOUT_CYCLES
        self._core.send(data, longest + self._byte_cycles * len(data))

    def receive(self, count: int, timeout_seconds: float) -> bytes:
        """``count`` bytes, or the fewer that came within the time."""
        return self._core.receive(count, self._cycles(timeout_seconds))

    def pause(self, seconds: float) -> None:
        """Lets the core work until its program ends, or a second if ``seconds`` is less."""
        self._core.wait_idle(self._cycles(max(seconds, 1.0)))

    def close(self) -> None:
        """Frees the core."""
        self._core.close()

    def _cycles(self, seconds: float) -> int:
        return max(1, round(seconds * self._cycles_per_second))
