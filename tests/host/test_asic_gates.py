"""Netlists of cells do what the gateware does: simulated, proved; and both tests can fail."""

from pathlib import Path

import pytest
from slipstick.asic import gate_check
from slipstick.asic.cell_models import cell_models
from slipstick.asic.gate_check import compare, prove
from slipstick.asic.pdk import Pdk, find_pdk
from slipstick.errors import TargetError
from slipstick_rtl.array.processing_element import ProcessingElement
from slipstick_rtl.config import Configuration
from slipstick_rtl.numbers.number_format import number_format
from slipstick_rtl.postprocess.normalizer import Normalizer
from tiny_liberty import tiny_liberty


@pytest.fixture(scope="module")
def pdk(tmp_path_factory: pytest.TempPathFactory) -> Pdk:
    path = tmp_path_factory.mktemp("pdk") / "tiny.lib"
    path.write_text(tiny_liberty())
    return find_pdk(str(path))


def element(name: str = "lns1+2+2") -> ProcessingElement:
    """One processing element."""
    configuration = Configuration(rows=4, columns=4, lanes=4, number_format=name)
    return ProcessingElement(number_format=number_format(configuration), pixels=1, rows_above=1)


def wrong_models(pdk: Pdk, names: object) -> str:
    """Every NAND2 computes an AND."""
    text = cell_models(pdk, set(pdk.cells) if names is None else names)  # type: ignore[arg-type]
    assert "assign Y = ~(A & B);" in text
    return text.replace("assign Y = ~(A & B);", "assign Y = A & B;")


def test_an_element_of_gates_simulates_as_the_gateware(pdk: Pdk) -> None:
    found = compare(element(), "element", pdk, cycles=1000)
    assert found.mismatches == 0 and found.cycles == 1000
    assert found.changes > 900 and found.cells > 100


def test_an_element_of_gates_is_proved_equal(pdk: Pdk) -> None:
    prove(element(), "element", pdk)
    prove(Normalizer(mantissa_bits=8), "normalizer", pdk)


def test_wrong_gates_are_found(pdk: Pdk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_check, "cell_models", wrong_models)
    assert compare(element(), "element", pdk, cycles=50).mismatches > 0
    with pytest.raises(TargetError, match="gates of element are not proved equal: .*[Uu]nproven"):
        prove(element(), "element", pdk)


def test_a_library_that_cannot_be_modelled_is_refused(tmp_path: Path) -> None:
    text = tiny_liberty().replace('function : "!(A B)";', 'function : "!(A B)"; three_state : "A";')
    (tmp_path / "tiny.lib").write_text(text.replace("cell (NAND2)", "cell (NAND2)"))
    with pytest.raises(TargetError, match="cell NAND2 must drive its output|no cell for"):
        compare(element(), "element", find_pdk(str(tmp_path / "tiny.lib")), cycles=10)
