"""Every proof there is."""

from typing import Any

import pytest
from slipstick_sim.formal.registry import Proof, all_proofs
from slipstick_sim.formal.runner import run_proof

SLOW = {
    "blocked_slices",
    "command_processor",
    "request_reader_goes_on",
    "rounding_shifter_float_negative",
}
"""Take long; ``make formal`` proves them as well."""


def _proof(proof: Proof) -> Any:
    marks = [pytest.mark.thorough] if proof.name in SLOW else []
    return pytest.param(proof, id=proof.name, marks=marks)


@pytest.mark.parametrize("proof", [_proof(proof) for proof in all_proofs()])
def test_proof(proof: Proof) -> None:
    result = run_proof(proof)
    assert result.passed, result.explain()
