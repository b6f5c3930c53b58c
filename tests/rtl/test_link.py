"""The link's parameters; its behaviour is held to the golden endpoint by ``bench_link``."""

import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.frame_receiver import FrameReceiver
from slipstick_rtl.link.link import Link
from slipstick_rtl.link.payload_ring import PayloadRing


@pytest.mark.parametrize("cycles", [0, -5])
def test_a_timeout_must_be_a_cycle_at_least(cycles: int) -> None:
    with pytest.raises(ValueError, match=f"timeout_cycles must be at least 1, not {cycles}"):
        Link(configuration=Configuration(), timeout_cycles=cycles)


@pytest.mark.parametrize("size", [0, 1, 48])
def test_a_payload_must_be_a_power_of_two(size: int) -> None:
    with pytest.raises(ValueError, match=f"payload_bytes must be a power of two.*not {size}"):
        FrameReceiver(payload_bytes=size, timeout_cycles=9)


@pytest.mark.parametrize("depth", [2, 12])
def test_a_ring_must_be_a_power_of_two(depth: int) -> None:
    with pytest.raises(
        ValueError, match=f"depth must be a power of two of at least 4, not {depth}"
    ):
        PayloadRing(depth=depth)
