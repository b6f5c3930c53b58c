"""The compiler: a graph and a configuration make a program."""

from .compile import compile_graph

__all__ = ["compile_graph"]
