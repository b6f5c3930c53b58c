"""Counts the elements that differ in a verification, by tensor, and in sum."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .onnx_agreement import Agreement


@dataclass(frozen=True)
class Comparison:
    """Elements that differ, over all images that were compared.

    Parameters
    ----------
    images, elements : int
        What was compared.
    mismatches : int
    largest : float
        By how much an element differs at most; infinite if type or number do.
    """

    images: int
    mismatches: int
    elements: int = 0
    largest: float = 0.0

    def plus(self, images: int, wanted: np.ndarray, actual: np.ndarray) -> "Comparison":
        """With more that was compared."""
        if wanted.dtype != actual.dtype or wanted.size != actual.size:
            count, largest = max(wanted.size, actual.size), math.inf
        else:
            away = np.abs(np.subtract(wanted, actual.reshape(wanted.shape), dtype=np.float64))
            count, largest = int((away != 0).sum()), float(away.max(initial=0))
        return Comparison(
            self.images + images,
            self.mismatches + count,
            self.elements + wanted.size,
            max(self.largest, largest),
        )

    def joined(self, other: "Comparison") -> "Comparison":
        """With what was compared elsewhere."""
        return Comparison(
            self.images + other.images,
            self.mismatches + other.mismatches,
            self.elements + other.elements,
            max(self.largest, other.largest),
        )


@dataclass(frozen=True)
class CheckedTensor:
    """A layer, a variable at the beginning of each run, or an output of the whole network.

    Parameters
    ----------
    layer, operator, where : str
        ``operator`` is "variable", or "output" for the network's outputs, run by the ordinary
        program.
    tensor : str
    reference : Comparison or None
        The golden model against the reference; None where that has no such tensor.
    rtl : Comparison or None
        The compiled RTL against the golden model; None where it was not asked for.
    runtime : Comparison or None
        Where the reference is ONNX's rule, that against onnxruntime, which rounds in float32: of a
        layer on the runtime's inputs, of an output from end to end. Where it is that of logarithmic
        codes, that against the nearest codes of exact results. Of float32 results of a C library's
        functions, that against tflm. It is no mismatch.
    optimised : Comparison or None
        Of an output: onnxruntime with all of its optimisations against itself without any.
    rule_optimised : Comparison or None
        Of an output: the rule against onnxruntime with all of its optimisations.
    agreement : Agreement or None
        By how much a layer's ``runtime`` may differ, as far as that is known.
    """

    layer: str
    operator: str
    where: str
    tensor: str
    reference: Comparison | None
    rtl: Comparison | None
    runtime: Comparison | None = None
    optimised: Comparison | None = None
    rule_optimised: Comparison | None = None
    agreement: Agreement | None = None

    def plus(self, other: "CheckedTensor") -> "CheckedTensor":
        """With the comparisons of other images."""
        return replace(
            self,
            reference=_joined(self.reference, other.reference),
            rtl=_joined(self.rtl, other.rtl),
            runtime=_joined(self.runtime, other.runtime),
            optimised=_joined(self.optimised, other.optimised),
            rule_optimised=_joined(self.rule_optimised, other.rule_optimised),
        )

    @property
    def mismatches(self) -> int:
        """All differing elements."""
        return sum(part.mismatches for part in (self.reference, self.rtl) if part is not None)


def _joined(one: Comparison | None, other: Comparison | None) -> Comparison | None:
    return other if one is None else one if other is None else one.joined(other)


class Tally:
    """Comparisons by tensor, of all links of the chain."""

    def __init__(self) -> None:
        self.reference: dict[str, Comparison] = {}
        self.rtl: dict[str, Comparison] = {}
        self.runtime: dict[str, Comparison] = {}
        self.optimised: dict[str, Comparison] = {}
        self.rule_optimised: dict[str, Comparison] = {}

    def checked(
        self,
        names: tuple[str, str, str, str],
        agreement: Agreement | None = None,
    ) -> CheckedTensor:
        """A tensor of (layer, operator, where, tensor) with what was compared of it."""
        layer, operator, where, tensor = names
        return CheckedTensor(
            layer,
            operator,
            where,
            tensor,
            self.reference.get(tensor),
            self.rtl.get(tensor),
            self.runtime.get(tensor),
            self.optimised.get(tensor),
            self.rule_optimised.get(tensor),
            agreement,
        )


def runtime_summary(checked: Iterable[CheckedTensor]) -> Mapping[str, Any] | None:
    """Returns how far the rule drifts from onnxruntime, and onnxruntime from itself.

    Parameters
    ----------
    checked : iterable of CheckedTensor

    Returns
    -------
    mapping or None
        ``layers``: the rule against onnxruntime without optimisations, each layer on onnxruntime's
        own inputs; ``outputs``: the same from end to end; ``runtime_outputs``: onnxruntime's
        optimised session against the one without; ``optimised_outputs``: the rule against the
        optimised one. Each has ``elements``, ``mismatches`` and ``largest``, or is None where it
        was not compared. ``differing_layers`` counts layers, ``beyond_bound`` those that differ
        by more than their agreement says. None where nothing was compared.
    """
    checked = list(checked)
    outputs = [tensor for tensor in checked if tensor.operator == "output"]
    layers = [tensor for tensor in checked if tensor.operator != "output"]
    if not any(tensor.runtime is not None for tensor in checked):
        return None
    beyond = [
        tensor.layer
        for tensor in layers
        if tensor.runtime is not None
        and tensor.agreement is not None
        and tensor.agreement.bound is not None
        and tensor.runtime.largest > tensor.agreement.bound
    ]
    return {
        "layers": _total(tensor.runtime for tensor in layers),
        "differing_layers": sum(
            bool(tensor.runtime and tensor.runtime.mismatches) for tensor in layers
        ),
        "beyond_bound": beyond,
        "outputs": _total(tensor.runtime for tensor in outputs),
        "runtime_outputs": _total(tensor.optimised for tensor in outputs),
        "optimised_outputs": _total(tensor.rule_optimised for tensor in outputs),
    }


def _total(comparisons: Iterable[Comparison | None]) -> dict[str, int | float] | None:
    found = [comparison for comparison in comparisons if comparison is not None]
    if not found:
        return None
    return {
        "elements": sum(comparison.elements for comparison in found),
        "mismatches": sum(comparison.mismatches for comparison in found),
        "largest": max(comparison.largest for comparison in found),
    }
