"""The compact engine: the instruction set on one single-ported memory, one instruction at a time."""
