"""Wires to the host: UART, SPI, USB, each with a core behind it."""
