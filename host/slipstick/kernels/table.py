"""The tables of kernels, one per arithmetic: kernels stand in them by operator, or by family.

The registries and the modules of pooling fill them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import Graph, Node
from ..operators import Family

Operands = Sequence[Any]
"""A node's inputs in their order: arrays, and None for an absent one."""

Kernel = Callable[[Node, Graph, Operands], np.ndarray]

Table = dict[str | Family, Kernel]

TFLM: Table = {}
"""TensorFlow Lite's integer arithmetic."""

ONNX: Table = {}
"""ONNX's, in float32."""

LNS: Table = {}
"""Table of logarithmic codes; what is not here is ONNX's."""
