"""The memory test: sound DRAMs pass, and each fault is found and named."""

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from faulty_dram import faulty_device
from slipstick.benchmarks.faults.transport import Fault, FaultyTransport, RandomPlan
from slipstick.devices.link import LinkDevice, Patience
from slipstick.devices.link.transport import LoopbackTransport
from slipstick.devices.model import ModelDevice
from slipstick.devices.simulation import SimulationDevice
from slipstick.errors import InputError
from slipstick.runtime.dram_port import DramPort
from slipstick.runtime.memory_test import MemoryReport, MemoryTest, Verdict
from slipstick.runtime.memory_test.cells import MOST_FAULTS
from slipstick.runtime.memory_test.pattern import Pattern, spans
from slipstick.runtime.memory_test.verdict import name_bits
from slipstick_rtl.config import Configuration
from slipstick_rtl.dram.chips import CHIPS
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint

CONFIGURATION = Configuration(
    rows=8,
    columns=8,
    lanes=8,
    activation_bytes=1 << 13,
    weight_bytes=1 << 14,
    instruction_words=1 << 11,
    dram="MT48LC16M16",
)
"""As of tests/sim/test_core_with_dram.py, so that its RTL is compiled once."""
COVERED = 1 << 16
PARTS = ["data lines", "address lines", "random pattern", "its inverse"]
BYTES = CHIPS[CONFIGURATION.dram].bytes


def report_of(
    device: LinkDevice,
    covered_bytes: int | None = COVERED,
    pause: Callable[[float], object] = lambda seconds: None,
) -> MemoryReport:
    with closing(device):
        test = MemoryTest(device, covered_bytes=covered_bytes, pause=pause)
        return test.run(lambda what, total: lambda count: None)


def by_name(report: MemoryReport) -> dict[str, Verdict]:
    assert [verdict.name for verdict in report.verdicts] == PARTS
    return {verdict.name: verdict for verdict in report.verdicts}


def failed(report: MemoryReport) -> set[str]:
    assert not report.passed and report.bandwidth is None
    return {verdict.name for verdict in report.verdicts if verdict.passed is False}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("covered", [8, 4096, 4104, COVERED, 3_000_000])
def test_a_sound_memory_passes(chip: str, covered: int) -> None:
    configuration = replace(CONFIGURATION, dram=chip, activation_bytes=1 << 10)
    report = report_of(ModelDevice(configuration), covered)
    assert all(verdict.passed for verdict in by_name(report).values()) and report.passed
    assert not any(verdict.faults for verdict in report.verdicts)
    # the model has no clock
    assert report.bandwidth is None


def test_every_byte_is_written_twice() -> None:
    """Both values of every bit, and nothing is left out."""
    seen = list[np.ndarray]()
    device = ModelDevice(CONFIGURATION)
    dma = device._core.dma
    assert dma is not None
    report = report_of(device, None, lambda seconds: seen.append(dma.dram.copy()))
    assert report.passed
    first, second = seen
    assert np.array_equal(first ^ 0xFF, second)
    blocks = first.reshape(-1, CONFIGURATION.activation_bytes // 2)
    assert len({block.tobytes() for block in blocks}) == len(blocks)


@pytest.mark.parametrize("covered", [8, 16, 4088, 100_000, BYTES - 8, BYTES])
@pytest.mark.parametrize("stage", [1 << 10, 1 << 13, 1 << 17])
def test_spans_cover_both_ends(covered: int, stage: int) -> None:
    places = list[tuple[int, int]]()
    pattern = Pattern(stage, inverted=False)
    windows = set()
    for span in spans(BYTES, covered, stage):
        assert span.bytes <= 1 << 20 and span.block_bytes <= stage // 2
        for block in span.split():
            assert block.offset + block.block_bytes <= stage
            windows.add((block.stage, block.offset))
            places.append((8 * block.word, 8 * block.word + block.bytes))
        if covered <= 100_000:
            assert len(pattern.contents(span)) == span.bytes
    assert len(windows) == len(places)
    joined = list[tuple[int, int]]()
    for begin, end in places:
        if joined and joined[-1][1] == begin:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
    half = 8 * (covered // 16)
    halves = [(0, covered - half), (BYTES - half, BYTES)]
    if covered > BYTES // 2:
        assert joined == ([(0, BYTES)] if covered == BYTES else halves)
    else:
        assert joined == [(begin, end) for begin, end in halves if begin < end]


STUCK = {
    "0": (lambda words: words & ~np.uint16(1 << 5), "data bit 5 stuck at 0"),
    "1": (lambda words: words | np.uint16(1 << 11), "data bit 11 stuck at 1"),
    "several": (lambda words: words & np.uint16(0x1FE7), "data bits 3, 4 and 13 to 15 stuck at 0"),
    "no DRAM": (lambda words: words | np.uint16(0xFFFF), "data bits 0 to 15 stuck at 1"),
}


@pytest.mark.parametrize("case", STUCK)
def test_stuck_data_lines(case: str) -> None:
    data, message = STUCK[case]
    device, _ = faulty_device(CONFIGURATION, data=data)
    report = report_of(device)
    assert failed(report) >= {"data lines", "random pattern", "its inverse"}
    assert by_name(report)["data lines"].detail == message
    # the sound bits tell whether the address lines are
    assert by_name(report)["address lines"].passed is (None if case == "no DRAM" else True)


@pytest.mark.parametrize("joined", [np.bitwise_and, np.bitwise_or])
@pytest.mark.parametrize(("low", "high"), [(2, 9), (0, 1), (7, 15)])
def test_shorted_data_lines(joined: np.ufunc, low: int, high: int) -> None:
    def data(words: np.ndarray) -> np.ndarray:
        wide = words.astype(np.int64)
        both = joined(wide >> low, wide >> high) & 1
        return (wide & ~(1 << low | 1 << high) | both << low | both << high).astype(np.uint16)

    device, _ = faulty_device(CONFIGURATION, data=data)
    report = report_of(device)
    found = by_name(report)
    assert found["data lines"].detail == f"data bits {low} and {high} shorted: they carry the same"
    assert failed(report) == {"data lines", "random pattern", "its inverse"}
    assert all(set(fault.wrong_lines) <= {low, high} for fault in found["its inverse"].faults)


def test_an_open_data_line() -> None:
    """It reads as what was last on it: the inverse of what is expected."""
    device, cells = faulty_device(CONFIGURATION)
    dma = device._core.dma
    assert dma is not None
    store, load = dma._store, dma._words
    bus = [0]

    def write(transfer) -> None:
        store(transfer)
        bus[0] = int(cells[4 * (transfer.dram + transfer.words) - 1]) & 1 << 6

    def read(place: int, count: int) -> np.ndarray:
        words = load(place, count).view(np.uint16)
        return (words & ~np.uint16(1 << 6) | np.uint16(bus[0])).view(np.uint8)

    dma._store, dma._words = write, read  # pyright: ignore
    detail = by_name(report_of(device))["data lines"].detail
    assert detail.startswith("data bit 6 wrong in ")


def without(bit: int, level: int) -> Callable[[np.ndarray], np.ndarray]:
    """A bit of the address that has no effect."""
    return lambda places: places & ~(1 << bit) | level << bit


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize(
    ("bit", "told"),
    [
        (0, "pin A0 has no effect (column bit 0)"),
        (1, "pin A1 has no effect (column bit 1)"),
        (5, "pin A5 has no effect (column bit 5)"),
        (8, "pin A8 has no effect (column bit 8)"),
        (9, "pin BA0 has no effect (bank bit 0)"),
        (10, "pin BA1 has no effect (bank bit 1)"),
        (11, "pin A0 has no effect (row bit 0)"),
        (23, "pin A12 has no effect (row bit 12)"),
    ],
)
def test_address_lines_without_effect(bit: int, told: str, level: int) -> None:
    device, _ = faulty_device(CONFIGURATION, address=without(bit, level))
    report = report_of(device)
    verdict = by_name(report)["address lines"]
    assert verdict.detail.startswith(f"{told}: one word is at addresses 0x00000000 and ")
    assert f"0x{2 << bit:08x}" in verdict.detail
    assert by_name(report)["data lines"].passed
    assert "address lines" in failed(report)


def test_an_address_pin_without_effect() -> None:
    """Rows and columns go over the same pins: it takes two bits."""
    device, _ = faulty_device(
        CONFIGURATION, address=lambda places: without(3, 0)(without(14, 0)(places))
    )
    detail = by_name(report_of(device))["address lines"].detail
    assert detail.startswith("pin A3 has no effect (column bit 3, row bit 3): one word is at ")


@pytest.mark.parametrize("joined", [np.bitwise_and, np.bitwise_or])
@pytest.mark.parametrize(("low", "high"), [(2, 4), (9, 20), (0, 23)])
def test_shorted_address_lines(joined: np.ufunc, low: int, high: int) -> None:
    def address(places: np.ndarray) -> np.ndarray:
        both = joined(places >> low, places >> high) & 1
        return places & ~(1 << low | 1 << high) | both << low | both << high

    device, _ = faulty_device(CONFIGURATION, address=address)
    report = report_of(device)
    detail = by_name(report)["address lines"].detail
    assert re.match(r"pins \w+, \w+ have no effect, or are shorted \(\w+ bit \d+, \w+", detail)
    assert "address lines" in failed(report)


def test_aliases_that_only_the_whole_memory_shows() -> None:
    """Words that are one, but none of those that the address lines' test writes."""
    device, _ = faulty_device(
        CONFIGURATION, address=lambda places: np.where(places == 10_003, 8_003, places)
    )
    report = report_of(device)
    assert failed(report) == {"random pattern", "its inverse"}
    (fault,) = by_name(report)["random pattern"].faults
    assert fault.address == 8_003 // 4 * 8 and fault.wrong_words == 1


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize("address", [0, 20_003, COVERED // 2 - 1, BYTES - 32_000, BYTES - 1])
def test_a_cell_that_flips(address: int, inverted: bool) -> None:
    device, cells = faulty_device(CONFIGURATION)
    waits = list[float]()

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 1 + inverted:
            cells.view(np.uint8)[address] ^= 0x10

    report = report_of(device, pause=pause)
    assert waits == [1.0, 1.0]
    name = PARTS[2 + inverted]
    assert failed(report) == {name}
    (fault,) = by_name(report)[name].faults
    assert fault.address == address // 8 * 8 and fault.wrong_words == 1
    assert fault.expected ^ fault.found == 0x10 << 8 * (address % 8)
    assert fault.wrong_lines == [4 + 8 * (address % 2)]
    assert fault.right_again and "it loses its contents" in str(fault)
    assert f"address 0x{fault.address:08x}" in by_name(report)[name].detail


def test_a_cell_that_cannot_be_written() -> None:
    device, cells = faulty_device(CONFIGURATION)
    dma = device._core.dma
    assert dma is not None
    store = dma._store

    def store_but_one(transfer) -> None:
        store(transfer)
        cells[5_000] |= 1

    dma._store = store_but_one  # pyright: ignore
    report = report_of(device)
    # one of the patterns has a one there
    (name,) = failed(report)
    (fault,) = by_name(report)[name].faults
    assert fault.address == 10_000 and fault.wrong_lines == [0] and not fault.right_again
    assert "wrong again" in str(fault)


def test_contents_that_decay() -> None:
    """A block of many words, and its neighbours are sound."""
    device, cells = faulty_device(CONFIGURATION)

    def pause(seconds: float) -> None:
        cells[4_096:7_000] = 0

    report = report_of(device, pause=pause)
    assert failed(report) == {"random pattern", "its inverse"}
    (fault, second) = by_name(report)["random pattern"].faults
    assert (fault.block, fault.block_bytes, fault.address) == (8_192, 4_096, 8_192)
    assert fault.wrong_words == 512 and fault.found == 0 and fault.right_again
    assert (second.block, second.wrong_words) == (12_288, 214)
    assert "2 faulty blocks" in by_name(report)["random pattern"].detail


def test_a_pass_ends_after_some_faults() -> None:
    device, cells = faulty_device(CONFIGURATION)

    def pause(seconds: float) -> None:
        cells[::256] ^= 1

    report = report_of(device, 1 << 20, pause)
    verdict = by_name(report)["random pattern"]
    assert len(verdict.faults) == MOST_FAULTS
    assert f"at least {MOST_FAULTS} faulty blocks in 1,048,576 bytes, of which" in verdict.detail
    blocks = [fault.block for fault in verdict.faults]
    assert blocks == [4_096 * k for k in range(MOST_FAULTS)]


def test_reading_that_fails_once() -> None:
    """The checksum was wrong, and all is right when it is looked at."""
    device, _ = faulty_device(CONFIGURATION)
    dma = device._core.dma
    assert dma is not None
    words, ready = dma._words, list[bool]()

    def read(place: int, count: int) -> np.ndarray:
        found = words(place, count)
        if ready and place == 512:
            ready.clear()
            found[7] ^= 1
        return found

    dma._words = read  # pyright: ignore
    report = report_of(device, pause=lambda seconds: ready.append(True) if not ready else None)
    assert failed(report) >= {"random pattern"}
    fault, *_ = by_name(report)["random pattern"].faults
    assert fault.address is None and "reading is unreliable" in str(fault)
    assert fault.entry()["address"] is None


def test_a_line_that_loses_frames() -> None:
    """Nothing is taken for a fault of the DRAM."""
    endpoint = Endpoint(CONFIGURATION, GoldenCore(CONFIGURATION))
    plan = RandomPlan(5, {Fault.FLIP: 0.05, Fault.DROP: 0.05})
    line = FaultyTransport(LoopbackTransport(endpoint), plan)
    patience = Patience(timeout_seconds=0.1, silence_seconds=0.0, retries=30)
    device = LinkDevice(line, configuration=CONFIGURATION, patience=patience)
    assert report_of(device).passed
    assert sum(line.counts.values()) > 5


def test_what_is_refused() -> None:
    plain = replace(CONFIGURATION, dram="")
    with pytest.raises(InputError, match=r"hardware \w+ \(1x8x8\) has no DRAM"):
        MemoryTest(ModelDevice(plain))
    for count in (0, -8, 12, BYTES + 8):
        message = rf"covered_bytes must be a multiple of 8 within 8\.\.{BYTES} .*, not {count}"
        with pytest.raises(InputError, match=message):
            MemoryTest(ModelDevice(CONFIGURATION), covered_bytes=count)


def test_names_of_bits() -> None:
    assert name_bits("data bit", [3]) == "data bit 3"
    assert name_bits("data bit", [4, 3]) == "data bits 3 and 4"
    assert name_bits("data bit", [0, 1, 2, 5, 7, 8]) == "data bits 0 to 2, 5, 7 and 8"


@pytest.mark.thorough
def test_the_rtl() -> None:
    """With LiteDRAM's controller, and a chip that checks its timing; lists show the bandwidth."""
    report = report_of(SimulationDevice(CONFIGURATION), 1 << 14)
    assert report.passed, [verdict.detail for verdict in report.verdicts]
    assert report.bandwidth is not None
    entry = report.bandwidth.entry()
    assert entry["peak_mb_per_s"] == 200.0
    assert 0.8 < entry["read_share_of_peak"] < 1 and 0.8 < entry["write_share_of_peak"] < 1
    assert entry["read_mb_per_s"] == pytest.approx(200 * entry["read_share_of_peak"])


def test_a_fault_on_the_rtl() -> None:
    """The chip is simulated and sound: what lies in it is changed by another transfer."""
    device = SimulationDevice(CONFIGURATION)
    port = DramPort(device)
    changed = list[bytes]()

    def pause(seconds: float) -> None:
        word = bytes(port.read(700, 8))
        changed.append(word)
        port.submit_write(700, bytes([word[0] ^ 2]) + word[1:])
        port.finish()

    report = report_of(device, 1 << 14, pause)
    assert failed(report) == {"random pattern", "its inverse"}
    for name, word in zip(PARTS[2:], changed, strict=True):
        (fault,) = by_name(report)[name].faults
        assert fault.address == 5_600 and fault.wrong_words == 1 and fault.right_again
        assert fault.expected == int.from_bytes(word, "little")
        assert fault.expected ^ fault.found == 2
