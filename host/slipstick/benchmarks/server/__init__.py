"""Measures ``slipstick serve``: latency, throughput, malformed requests, a soak."""
