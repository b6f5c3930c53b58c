"""Descriptors of boards: each module here lists those of one product as ``BOARDS``.

A new board is a new module. Nothing else names it: :mod:`slipstick_rtl.toplevel.registry` lists the
modules of this package. They are imported without Amaranth, which only ``Board.platform`` loads.
"""
