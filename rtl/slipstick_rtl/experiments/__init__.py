"""Gateware for studies only; no accelerator contains it."""
