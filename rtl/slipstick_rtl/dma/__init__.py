"""The DMA: executes a program's transfers and runs from DRAM, while the host looks on."""
