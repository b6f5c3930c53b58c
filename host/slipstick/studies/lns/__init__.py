"""Measures the accuracy of networks in logarithmic (LNS) numbers."""
