"""Tests the cells of a DRAM: fills it, waits, and lets the DMA compare checksums."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES, DmaStatus
from slipstick_rtl.dram.chips import DramChip
from slipstick_rtl.link.protocol import DeviceStatus

from ...devices.link import LinkError
from ..dram_port import DramPort
from .pattern import Pattern, Span, spans
from .verdict import Fault, Verdict

MOST_FAULTS = 8
"""Faulty blocks after which a pass ends."""

Progress = Callable[[str, int], Callable[[int], object]]
"""Told what begins and how many bytes it has; returns what is to be told how many more are done."""


class CellTest:
    """Fills the memory with a pattern and checks it; no data go over the link.

    Parameters
    ----------
    port : DramPort
    chip : DramChip
    covered_bytes : int
        As for ``spans``.
    wait_seconds : float
        From the end of filling to the first check.
    pause : callable
        Lets so many seconds pass.
    """

    def __init__(
        self,
        port: DramPort,
        chip: DramChip,
        covered_bytes: int,
        wait_seconds: float,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._port, self._chip = port, chip
        # a block is half a stage, and no longer than a run
        self._stage_bytes = min(port.device.configuration.activation_bytes, 2 * port.stage_bytes)
        self._spans = list(spans(chip.bytes, covered_bytes, self._stage_bytes))
        self._wait_seconds, self._pause = wait_seconds, pause

    def check(self, name: str, progress: Progress, *, inverted: bool) -> Verdict:
        """Fills, waits and checks.

        Raises
        ------
        LinkError
            If the device does not answer.
        """
        pattern = Pattern(self._stage_bytes, inverted=inverted)
        total = sum(span.bytes for span in self._spans)
        crcs = self._fill(pattern, progress(f"{name}: filling", total))
        self._pause(self._wait_seconds)
        faulty = list[tuple[Span, Fault]]()
        checked, advance = 0, progress(f"{name}: checking", total)
        for span, crc in zip(self._spans, crcs, strict=True):
            if len(faulty) >= MOST_FAULTS:
                break
            if not self._is_sound(span, crc):
                faulty += self._examine(pattern, span, MOST_FAULTS - len(faulty))
            checked += span.bytes
            advance(span.bytes)
        # only now: whatever is written may change what has not been checked
        faults = tuple(self._try_again(pattern, block, fault) for block, fault in faulty)
        detail = self._tell(faults, checked, total)
        return Verdict(name=name, passed=not faults, detail=detail, faults=faults)

    def _tell(self, faults: Sequence[Fault], checked: int, total: int) -> str:
        if not faults:
            return f"{total:,} bytes kept for {self._wait_seconds:g} s"
        ended = "" if checked == total else f", of which {checked:,} were looked at"
        blocks = "1 faulty block" if len(faults) == 1 else f"{len(faults)} faulty blocks"
        if len(faults) == MOST_FAULTS:
            blocks = f"at least {blocks}"
        return f"{blocks} in {total:,} bytes{ended}; {faults[0]}"

    def _fill(self, pattern: Pattern, advance: Callable[[int], object]) -> list[int]:
        """Returns the checksum of each span."""
        crcs, staged = list[int](), -1
        for span in self._spans:
            if span.stage != staged:
                self._port.stage(pattern.stage(span.stage))
                staged = span.stage
            self._port.give(span.store())
            # the host's part of the work, while the DMA does its own
            crcs.append(pattern.crc(span))
            check_executed(self._port.finish())
            advance(span.bytes)
        return crcs

    def _is_sound(self, span: Span, crc: int) -> bool:
        self._port.give(span.load(crc))
        status = self._port.finish()
        if status.dma is not DmaStatus.MEMORY_CORRUPT:
            check_executed(status)
            return True
        # until then the DMA drops what it is given
        self._port.device.reset()
        return False

    def _examine(self, pattern: Pattern, span: Span, most: int) -> list[tuple[Span, Fault]]:
        """The faulty blocks of a span, at most so many."""
        faulty = list[tuple[Span, Fault]]()
        for block in span.split():
            if len(faulty) < most and not self._is_sound(block, pattern.crc(block)):
                faulty.append((block, self._compare(pattern, block)))
        return faulty or [(span, self._fault(span))]

    def _compare(self, pattern: Pattern, block: Span) -> Fault:
        """Reads a block over the link."""
        expected = np.frombuffer(pattern.contents(block), "<u8")
        found = np.frombuffer(self._port.read(block.word, block.bytes), "<u8")
        wrong = np.flatnonzero(expected != found)
        if not len(wrong):
            return self._fault(block)
        first = int(wrong[0])
        return self._fault(
            block,
            address=WORD_BYTES * (block.word + first),
            expected=int(expected[first]),
            found=int(found[first]),
            wrong_words=len(wrong),
        )

    def _try_again(self, pattern: Pattern, block: Span, fault: Fault) -> Fault:
        """Writes a faulty block once more, and reads it at once."""
        if fault.address is None:
            return fault
        expected = pattern.contents(block)
        self._port.submit_write(block.word, expected)
        right = self._port.read(block.word, block.bytes) == expected
        return dataclasses.replace(fault, right_again=right)

    def _fault(self, span: Span, **found: Any) -> Fault:
        return Fault(
            block=WORD_BYTES * span.word,
            block_bytes=span.bytes,
            data_bits=self._chip.data_bits,
            **found,
        )


def check_executed(status: DeviceStatus) -> None:
    """Raises LinkError if the DMA has not executed what it was given."""
    if status.dma is DmaStatus.OK:
        return
    raise LinkError(
        status.dma.name,
        "the DMA did not execute the memory test's instructions: the link, or the gateware, is"
        " faulty",
    )
