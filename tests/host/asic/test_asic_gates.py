"""Netlists of cells do what the gateware does: simulated, proved; and both tests can fail."""

from collections.abc import Iterable

import pytest
from slipstick.asic import gate_check, signoff
from slipstick.asic.cell_models import cell_models
from slipstick.asic.gate_check import compare, prove
from slipstick.asic.pdk import Pdk, find_pdk
from slipstick.errors import TargetError
from slipstick_rtl.postprocess.normalizer import Normalizer
from slipstick_sim.netlist.gate_parts import element
from tiny_liberty import tiny_liberty


@pytest.fixture(scope="module")
def pdk(tmp_path_factory: pytest.TempPathFactory) -> Pdk:
    path = tmp_path_factory.mktemp("pdk") / "tiny.lib"
    path.write_text(tiny_liberty())
    return find_pdk(str(path))


def wrong_models(pdk: Pdk, names: Iterable[str]) -> str:
    """Every NAND2 computes an AND."""
    text = cell_models(pdk, names)
    assert "assign Y = ~(A & B);" in text
    return text.replace("assign Y = ~(A & B);", "assign Y = A & B;")


def test_an_element_of_gates_simulates_as_the_gateware(pdk: Pdk) -> None:
    found = compare(element("lns1+2+2"), "element", pdk, cycles=1000)
    assert found.mismatches == 0 and found.cycles == 1000
    assert found.changes > 900 and found.cells > 100


def test_an_element_of_gates_is_proved_equal(pdk: Pdk) -> None:
    prove(element("lns1+2+2"), "element", pdk)
    prove(Normalizer(mantissa_bits=8), "normalizer", pdk)


def test_wrong_gates_are_found(pdk: Pdk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_check, "cell_models", wrong_models)
    message = r"gates of normalizer are not proved equal: (.|\n)*unproven"
    with pytest.raises(TargetError, match=message):
        prove(Normalizer(mantissa_bits=8), "normalizer", pdk)


def test_signoff_says_what_it_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (([], "usage: "), (["nowhere.lib"], "slipstick: PDK must be one of")):
        assert signoff.main(arguments) == 2
        said = capsys.readouterr()
        assert not said.out and said.err.startswith(message) and said.err.count("\n") == 1
