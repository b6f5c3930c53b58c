"""The benchmark of bulk transfers measures the wires that have a report, and no other."""

import pytest
from slipstick.benchmarks import wire
from slipstick.devices.simulated_boards import Physical
from slipstick.errors import InputError


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Physical]:
    """Wires in the place of whose measurement something returns 0."""
    found = list[Physical]()

    def measure(physical: Physical) -> int:
        assert physical in wire.REPORTS
        found.append(physical)
        return 0

    monkeypatch.setattr(wire, "_measure", measure)
    return found


def test_all_wires_with_a_report_are_measured(
    measured: list[Physical], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["wire"])
    assert wire.main() == 0
    assert measured == [Physical.UART, Physical.SPI]


def test_a_wire_can_be_chosen(measured: list[Physical], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["wire", "spi"])
    assert wire.main() == 0
    assert measured == [Physical.SPI]


@pytest.mark.parametrize("name", [Physical.ETHERNET, "i2c"])
def test_a_wire_without_a_report_is_refused(
    name: str, measured: list[Physical], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["wire", name])
    with pytest.raises(InputError, match=f"wires must be of uart, spi, not {name}"):
        wire.main()
    assert measured == []
