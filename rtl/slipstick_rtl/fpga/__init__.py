"""Holds what depends on the FPGA family: PLLs, clocks, synthesis scripts, floorplans."""
