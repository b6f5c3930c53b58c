"""ECP5: its PLL, netlist changes, floorplans of DSP blocks and block RAMs."""
