"""The compact engine: the instruction set on one single-ported memory, step by step."""
