"""Models of DRAM chips that check what is done to them."""
