"""The board's DRAM: LiteDRAM's controller, the pins of the chip, and what goes between."""
