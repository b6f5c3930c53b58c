"""A training step as two lists for the DMA: a batch's tensors lie in the board's DRAM."""
