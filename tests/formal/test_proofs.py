"""Every proof there is."""

import pytest
from slipstick_sim.formal.registry import Proof, all_proofs
from slipstick_sim.formal.runner import run_proof

PROOFS = all_proofs()


@pytest.mark.parametrize("proof", PROOFS, ids=[proof.name for proof in PROOFS])
def test_proof(proof: Proof) -> None:
    result = run_proof(proof)
    assert result.passed, result.explain()
