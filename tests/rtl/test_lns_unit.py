"""The logarithmic unit's latencies, as documented, and the formats that it refuses."""

import pytest
from slipstick_rtl.numbers.lns.formats import Lns
from slipstick_rtl.numbers.lns.unit.adder import LogAdder
from slipstick_rtl.numbers.lns.unit.lns_unit import LnsUnit


@pytest.mark.parametrize(
    ("lns", "alone", "compensated"),
    [(Lns(3, 4), 6, 18), (Lns(6, 6), 6, 18), (Lns(6, 7), 14, 50), (Lns(1, 14), 14, 50)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_latency_follows_from_the_adders(lns: Lns, alone: int, compensated: int) -> None:
    assert LnsUnit(lns=lns, compensated=False).latency == alone
    assert LnsUnit(lns=lns).latency == compensated
    assert compensated - alone == 3 * LogAdder(lns).latency


@pytest.mark.parametrize("make", [LogAdder, lambda lns: LnsUnit(lns=lns)])
def test_formats_too_fine_for_the_multiplier_are_refused(make) -> None:
    with pytest.raises(ValueError, match=r"at most 14 fraction bits.*not 15 \(lns1\+4\+15\)"):
        make(Lns(4, 15))
