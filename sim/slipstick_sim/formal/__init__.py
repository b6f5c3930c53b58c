"""Proofs: properties of components that hold in every state, by SymbiYosys and an SMT solver."""
