"""Drivers and monitors: cocotb coroutines that move data in and out of a bench."""
