"""Netlists after synthesis: models of FPGA cells, and portable Verilog."""
