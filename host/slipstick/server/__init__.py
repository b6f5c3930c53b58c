"""Serves networks to other programs: Open Inference Protocol V2 over REST and gRPC, and a page."""
