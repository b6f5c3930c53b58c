"""Measures networks' accuracy in logarithmic formats, after training, beside float and int8."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import (
    LARGEST_INTEGER_BITS,
    LARGEST_OPERAND_BITS,
    ArrayArithmetic,
)
from slipstick_rtl.numbers.lns.formats import SMALLEST_BITS, Lns

from ... import kernels
from ...benchmarks.suite import shared_folder
from ...data.inputs import Samples, load_inputs, load_labels
from ...errors import InputError
from ...frontends.onnx import load_onnx_bytes
from ...quantize import FloatNetwork
from .emulation import Emulation
from .log_sums import LogSumEmulation
from .mixed import MixedEmulation

LARGEST_EMULATED_BITS = 16

CHUNK = 16
"""Images that are run together: their tensors fit a second-level cache."""

FORMATS = tuple(
    f"lns1+{integer}+{bits - 1 - integer}"
    for bits in range(LARGEST_OPERAND_BITS, SMALLEST_BITS - 1, -1)
    for integer in range(min(LARGEST_INTEGER_BITS, bits - 1), 0, -1)
)
"""All that an array has."""

WIDE_FORMATS = tuple(f"lns1+4+{fraction}" for fraction in range(4, 12))
"""Formats of 9 to 16 bits, which are emulated."""

ALL_FORMATS = tuple(
    f"lns1+{integer}+{bits - 1 - integer}"
    for bits in range(SMALLEST_BITS, LARGEST_EMULATED_BITS + 1)
    for integer in range(1, bits)
)
"""Formats of as many bits as may have their sums emulated."""

LOG_SUM_FORMATS = (
    *("lns1+2+2", "lns1+3+2", "lns1+3+3", "lns1+3+4", "lns1+4+3", "lns1+4+4", "lns1+4+5"),
    "lns1+4+6",
    *("lns1+5+6", "lns1+6+6", "lns1+6+7", "lns1+6+8", "lns1+6+9", "lns1+5+10"),
)
"""Those of them that the price list has."""

MIXED_FORMATS = ("lns1+4+0", "lns1+3+1", "lns1+2+2", "lns1+3+2")
"""Formats of weights that multiply activations of int8; those that the price list has."""

Advance = Callable[[int], object]


@dataclass(frozen=True)
class Task:
    """A float network with labelled images.

    Parameters
    ----------
    name : str
    model : str
        A file of the folder ``models`` of :func:`slipstick.benchmarks.suite.shared_folder`.
    images, labels : str
        Files of its folder ``data``.
    calibration : str
        Likewise, whose first ``calibrating`` images the quantisers see.
    calibrating : int
    """

    name: str
    model: str
    images: str
    labels: str
    calibration: str
    calibrating: int


TASKS = (
    Task(
        "ResNet-8",
        "resnet8_cifar10_fp32.onnx",
        "cifar10/ic01_cifar10_200.npz",
        "cifar10/ic01_cifar10_200.npz",
        "cifar10/ic01_cifar10_200.npz",
        100,
    ),
    Task(
        "MNIST CNN",
        "mnist-8.onnx",
        "mnist/t10k-images-idx3-ubyte.gz",
        "mnist/t10k-labels-idx1-ubyte.gz",
        "mnist/train-images-idx3-ubyte.gz",
        200,
    ),
)


FLOAT, INT8 = "float", "int8"
"""Names of the arithmetics that formats are compared with."""


class Accuracy:
    """A task, loaded.

    Parameters
    ----------
    task : Task
    limit : int, optional
        Images, at most.

    Raises
    ------
    InputError
        If a file is not there.
    """

    def __init__(self, task: Task, limit: int | None = None) -> None:
        folder = shared_folder()
        model, data = folder / "models" / task.model, folder / "data"
        for place in (model, *(data / name for name in (task.images, task.calibration))):
            if not place.exists():
                raise InputError(f"{place} must be there for {task.name} (SLIPSTICK_DATA)")
        self.task, self._network = task, FloatNetwork(model)
        self._file = model
        self._emulation: Emulation | None = None
        self._log_sums: LogSumEmulation | None = None
        self._mixed: MixedEmulation | None = None
        shown = load_inputs([data / task.images], self._network.shape).first(limit)
        self.samples = Samples(shown.x.astype(np.float32), shown.names)
        self._labels = load_labels(data / task.labels)[: len(shown)]
        calibration = load_inputs([data / task.calibration], self._network.shape)
        self._samples = calibration.first(task.calibrating).x

    def __len__(self) -> int:
        return len(self.samples)

    def in_float(self) -> float:
        """Measures the accuracy of the float network in onnxruntime, in %."""
        import onnxruntime

        session = onnxruntime.InferenceSession(str(self._file), providers=["CPUExecutionProvider"])
        name = session.get_inputs()[0].name
        scores = [np.asarray(session.run(None, {name: x[None]})[0]) for x in self.samples.x]
        return self._percent(np.concatenate(scores))

    def quantised(self, lns: Lns | None) -> bytes:
        """The network in an array's format, or in onnxruntime's int8 for None, as ONNX."""
        if lns is None:
            return self._network.quantize(self._samples)
        return self._network.quantize_logarithmic(self._samples, ArrayArithmetic(lns))

    def in_int8(self, advance: Advance) -> float:
        """Measures the accuracy of onnxruntime's int8 network, in %."""
        return self._run(self.quantised(None), advance)

    def in_logarithms(self, name: str, advance: Advance) -> float:
        """Measures the accuracy of the network in an array's format, in %."""
        return self._run(self.quantised(Lns.parse(name)), advance)

    def emulated(self, name: str, advance: Advance) -> float:
        """Measures the network in float32 with operands of a wide format: accuracy in %."""
        if self._emulation is None:
            self._emulation = Emulation(self._network, self._samples)
        return self._all(partial(self._emulation.run, Lns.parse(name)), advance)

    def in_log_sums(self, name: str, advance: Advance) -> float:
        """Measures the accuracy of the network with products and sums of a format, in %."""
        if self._log_sums is None:
            self._log_sums = LogSumEmulation(self._network, self._samples)
        return self._all(partial(self._log_sums.run, Lns.parse(name)), advance)

    def in_mixed(self, name: str, advance: Advance) -> float:
        """Measures the network with weights of a format and activations of int8: accuracy in %."""
        if self._mixed is None:
            self._mixed = MixedEmulation(self._network, self._samples)
        return self._all(partial(self._mixed.run, Lns.parse(name)), advance)

    def percent(self, variant: "Variant", advance: Advance, name: str) -> float:
        """Measures the accuracy of ``FLOAT``, ``INT8``, or a format in a variant, in %."""
        if name == FLOAT:
            return self.in_float()
        if name == INT8:
            return self.in_int8(advance)
        run = {
            Variant.ARRAY: self.in_logarithms,
            Variant.WIDE: self.emulated,
            Variant.LOG_SUMS: self.in_log_sums,
            Variant.LINEAR_ACTIVATIONS: self.in_mixed,
        }[variant]
        return run(name, advance)

    def _run(self, data: bytes, advance: Advance) -> float:
        graph = load_onnx_bytes(data)
        return self._all(lambda x: kernels.run_graph(graph, [x])[graph.outputs[0]], advance)

    def _all(self, run: Callable[[np.ndarray], np.ndarray], advance: Advance) -> float:
        scores = []
        for start in range(0, len(self), CHUNK):
            x = self.samples.x[start : start + CHUNK]
            scores.append(run(x))
            advance(len(x))
        return self._percent(np.concatenate(scores))

    def _percent(self, scores: np.ndarray) -> float:
        classes = scores.reshape(len(scores), -1).argmax(axis=1)
        return round(100 * float((classes == self._labels).mean()), 4)


class Variant(Enum):
    """Ways in which a network is logarithmic."""

    ARRAY = auto()
    """Codes of an array, bit for bit; the others are emulated."""

    WIDE = auto()
    LOG_SUMS = auto()
    LINEAR_ACTIVATIONS = auto()

    @property
    def usual(self) -> Sequence[str]:
        """Formats that are measured if none is named."""
        return {
            Variant.ARRAY: FORMATS,
            Variant.WIDE: WIDE_FORMATS,
            Variant.LOG_SUMS: LOG_SUM_FORMATS,
            Variant.LINEAR_ACTIVATIONS: MIXED_FORMATS,
        }[self]

    @property
    def known(self) -> Sequence[str]:
        """Formats that may be named."""
        # sums of any format can be emulated
        return ALL_FORMATS if self is Variant.LOG_SUMS else self.usual


def measure(
    accuracy: Accuracy,
    formats: Sequence[str],
    advance: Advance,
    variant: Variant = Variant.ARRAY,
    percent_of: Callable[[str], float] | None = None,
) -> dict[str, Any]:
    """A task's accuracy in float, int8 and each format, and what that is less than int8's.

    Parameters
    ----------
    accuracy : Accuracy
    formats : sequence of str
    advance : callable
        Told how many more images are done.
    variant : Variant
    percent_of : callable, optional
        Measures one of ``FLOAT``, ``INT8`` and the formats; by default this process does.
    """
    if percent_of is None:
        percent_of = partial(accuracy.percent, variant, advance)
    int8 = percent_of(INT8)
    entries = []
    for name in formats:
        percent = percent_of(name)
        entries.append(
            {
                "format": name,
                "bits": Lns.parse(name).bits,
                "accuracy_percent": percent,
                "points_below_int8": round(int8 - percent, 4),
            }
        )
    task = accuracy.task
    return {
        "network": task.name,
        "model": task.model,
        "images": len(accuracy),
        "calibration": f"first {task.calibrating} of {Path(task.calibration).name}",
        "float_percent": percent_of(FLOAT),
        "int8_percent": int8,
        "formats": entries,
    }


def measure_one(task: Task, limit: int | None, variant: Variant, name: str) -> float:
    """One number of ``measure``: the accuracy in ``FLOAT``, ``INT8`` or a format, in %.

    A job of its own for another process, which needs the same data there.
    """
    return _loaded(task, limit).percent(variant, lambda count: None, name)


@lru_cache(maxsize=len(TASKS))
def _loaded(task: Task, limit: int | None) -> Accuracy:
    return Accuracy(task, limit)
