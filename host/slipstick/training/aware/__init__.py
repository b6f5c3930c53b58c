"""Quantisation-aware training: a network learns while its numbers are rounded to a format.

Master weights are float32 on the host; the network that comes out is an ordinary file.
"""

from .formats import NAMED, AwareFormat, find_format
from .network_file import NetworkFile
from .tuning import AwareRecipe, StepFigures, Tuned, fine_tune

__all__ = [
    "NAMED",
    "AwareFormat",
    "AwareRecipe",
    "NetworkFile",
    "StepFigures",
    "Tuned",
    "fine_tune",
    "find_format",
]
