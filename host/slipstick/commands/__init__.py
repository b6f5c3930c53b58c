"""The command line's commands, one a file; :mod:`slipstick.cli` joins them."""
