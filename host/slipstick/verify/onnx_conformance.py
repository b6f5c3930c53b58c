"""ONNX's conformance cases of single operators, run through ``slipstick.backend``.

The cases come with the package ``onnx``. Those of operators that the front-end reads either pass or
are listed in ``conformance_table``.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnx

from ..backend import Representation, as_array, device_name
from ..errors import SlipstickError
from ..frontends.onnx.operators import handlers
from .onnx_conformance_table import UNSUPPORTED

TYPES = next(iter(UNSUPPORTED))
"""The reason of cases in types that Slipstick does not have."""


@dataclass(frozen=True)
class Case:
    """One case.

    Parameters
    ----------
    name : str
        ONNX's, without ``test_``.
    model : ModelProto
    data : sequence of (inputs, outputs)
    relative, absolute : float
        How far an output may be off.
    reason : str
        Why it is listed as unsupported; "" if it must pass.
    """

    name: str
    model: onnx.ModelProto
    data: Sequence[tuple[Sequence[object], Sequence[object]]]
    relative: float
    absolute: float
    reason: str

    def run(self, device: str = "CPU") -> None:
        """Runs it.

        Raises
        ------
        SlipstickError
            If it is refused.
        AssertionError
            If an output is of another type or shape, or too far off.
        """
        network = Representation(self.model, device_name(device))
        try:
            for inputs, outputs in self.data:
                made = network.run(list(inputs))
                for value, expected in zip(made, map(as_array, outputs), strict=True):
                    assert value.dtype == expected.dtype, (value.dtype, expected.dtype)
                    assert value.shape == expected.shape, (value.shape, expected.shape)
                    np.testing.assert_allclose(value, expected, self.relative, self.absolute)
        finally:
            network.close()

    def outcome(self, device: str = "CPU") -> str:
        """Runs the case; returns "" if it passed, else why not."""
        try:
            self.run(device)
        except (SlipstickError, AssertionError) as error:
            return (str(error) or type(error).__name__).strip()
        return ""


@cache
def cases() -> tuple[Case, ...]:
    """All cases whose operators the front-end reads; they are made once."""
    from onnx.backend.test.loader import load_model_tests

    reasons = {name: reason for reason, names in UNSUPPORTED.items() for name in names}
    with warnings.catch_warnings():
        # that some of them overflow is what they are about
        warnings.simplefilter("ignore")
        loaded = load_model_tests(kind="node")
    made = []
    known = set(handlers())
    for case in loaded:
        assert case.model is not None and case.data_sets is not None
        if {(node.domain, node.op_type) for node in case.model.graph.node} <= known:
            name = case.name.removeprefix("test_")
            made.append(
                Case(
                    name,
                    case.model,
                    case.data_sets,
                    case.rtol,
                    case.atol,
                    reasons.get(name, ""),
                )
            )
    return tuple(made)


@dataclass(frozen=True)
class Report:
    """Tells how the cases ended.

    Parameters
    ----------
    passed : tuple of str
    failed : mapping of str
        Cases that are not listed, and what is wrong with them.
    listed : mapping of tuple of str
        Those that are listed and do not pass, by the reason.
    stale : tuple of str
        Those that are listed, and pass.
    """

    passed: tuple[str, ...]
    failed: Mapping[str, str]
    listed: Mapping[str, tuple[str, ...]]
    stale: tuple[str, ...]

    def lines(self) -> list[str]:
        """The report as text."""
        listed = sum(map(len, self.listed.values()))
        count = len(self.passed) + len(self.failed) + listed
        other = len(self.listed.get(TYPES, ()))
        made = [
            f"{len(self.passed)} of {count} node cases pass, {listed} are listed as unsupported",
            f"{len(self.passed)} of {count - other} cases in types that Slipstick has",
        ]
        made += [f"{len(names):5} {reason}" for reason, names in self.listed.items()]
        made += [f"FAILED {name}: {problem}" for name, problem in self.failed.items()]
        return made + [f"LISTED, AND PASSES: {name}" for name in self.stale]


def report(device: str = "CPU") -> Report:
    """Runs all cases."""
    passed, failed, stale = [], {}, []
    listed: dict[str, list[str]] = {reason: [] for reason in UNSUPPORTED}
    for case in cases():
        problem = case.outcome(device)
        if not problem:
            passed.append(case.name)
            stale += [case.name] if case.reason else []
        elif case.reason:
            listed[case.reason].append(case.name)
        else:
            failed[case.name] = problem
    by_reason = {reason: tuple(names) for reason, names in listed.items()}
    return Report(tuple(passed), failed, by_reason, tuple(stale))
