"""Checks one random network: golden model against the reference, and RTL against golden model."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from slipstick_rtl.config import Configuration

from ...compiler import compile_graph
from ...compiler.scheduling.interleave_search import INTERLEAVING_EFFORT
from ...devices import open_device
from ...errors import SlipstickError
from ...graph import Graph
from ...program.alternate import at_second_place
from ...runtime.executor import Execution
from .decisions import decisions
from .recipes import Recipe

QUICK_EFFORTS = (0, 0, 0, 800)
"""Instructions that the compiler issues in trials, by turns: a hundredth of its usual effort, or
none beyond the first few ways."""

FULL_EFFORT_EVERY = 200
"""One network of so many is compiled with the usual effort, as users compile it."""

HAZARDS_EVERY = 5
"""One network of so many runs in several legal orders of the two instruction streams."""

Values = dict[str, np.ndarray]


@dataclass(frozen=True)
class Outcome:
    """The result of one network.

    Parameters
    ----------
    seed : int
    status : str
        "equal", "differs", "refused", or "failed" for an error that no user should meet.
    reason : str
        Of a refusal or failure: its message, with numbers and names replaced.
    mismatches, elements : int
        Codes that differ, of those compared with the reference.
    rtl_mismatches : int or None
        Codes of the compiled RTL that differ from the golden model's; None: it was not run.
    tolerated : int
        Codes that differ from the runtime by one where only that is promised.
    taken : frozenset of str
        Decisions of the compiler.
    """

    seed: int
    status: str
    reason: str = ""
    mismatches: int = 0
    elements: int = 0
    rtl_mismatches: int | None = None
    tolerated: int = 0
    taken: frozenset[str] = field(default=frozenset())

    @property
    def is_finding(self) -> bool:
        """Tells whether something is wrong with Slipstick."""
        return self.status in ("differs", "failed")


@dataclass(frozen=True)
class Compared:
    """Holds a reference's values of a network's tensors, and counts of differing codes.

    Parameters
    ----------
    values : mapping of array by name
        Tensors that the golden model must equal.
    mismatches, tolerated : int
        Codes of the definition that differ from a runtime's beyond, and within, what is promised.
    """

    values: Values
    mismatches: int = 0
    tolerated: int = 0


@dataclass(frozen=True)
class FileFormat:
    """A kind of file that networks are written as.

    Parameters
    ----------
    name : str
        "tflite" or "onnx".
    draw : callable
        Draws the recipe of a seed, for hardware with so many bytes for weights.
    write : callable
        Writes a recipe as a file; RecipeError if it does not describe a network.
    load : callable
        Reads a file as a graph.
    inputs : callable
        Draws the batch of input codes that a recipe's network takes.
    compare : callable
        Runs the reference on a file, its graph and a batch of input codes.
    """

    name: str
    draw: Callable[[int, int], Recipe]
    write: Callable[[Recipe], bytes]
    load: Callable[[bytes], Graph]
    inputs: Callable[[Recipe], np.ndarray]
    compare: Callable[[bytes, Graph, np.ndarray], Compared]


@cache
def _device(kind: str, configuration: Configuration, hazards: bool) -> Any:
    if hazards:
        from ...devices.model import ModelDevice

        return ModelDevice(configuration, check_hazards=True)
    return open_device(kind, configuration)


def check(
    recipe: Recipe, form: FileFormat, configuration: Configuration, *, rtl: bool = False
) -> Outcome:
    """Writes, compiles and runs a network, at both its places, and compares its tensors.

    Parameters
    ----------
    recipe : Recipe
    form : FileFormat
    configuration : Configuration
    rtl : bool
        Whether the compiled RTL runs too.

    Raises
    ------
    RecipeError
        If the recipe does not describe a network.
    """
    data, inputs = form.write(recipe), form.inputs(recipe)
    try:
        graph = form.load(data)
        full = recipe.seed % FULL_EFFORT_EVERY == 0
        quick = QUICK_EFFORTS[recipe.seed % len(QUICK_EFFORTS)]
        effort = INTERLEAVING_EFFORT if full else quick
        program = compile_graph(graph, configuration, effort=effort)
        compared = form.compare(data, graph, inputs)
        hazards = recipe.seed % HAZARDS_EVERY == 0 and recipe.images == 1
        device = _device("model", configuration, hazards)
        feeds = {program.inputs[0]: inputs}
        golden = Execution(program, device).infer_batch(feeds)
        mismatches, elements = _differences(compared.values, golden)
        if program.alternate is not None:
            second = Execution(at_second_place(program), device).infer_batch(feeds)
            mismatches += _differences(golden, second)[0]
        found = None
        if rtl:
            simulation = _device("sim", configuration, False)
            shown = Execution(program, simulation).infer_batch(feeds)
            found, _ = _differences(golden, shown)
    except SlipstickError as error:
        return Outcome(recipe.seed, _kind_of(error), plain_reason(error))
    except Exception as error:
        # any other error is a finding of its own: it must not end the campaign
        return Outcome(recipe.seed, "failed", f"{type(error).__name__}: {plain_reason(error)}")
    mismatches += compared.mismatches
    wrong = mismatches or found
    return Outcome(
        recipe.seed,
        "differs" if wrong else "equal",
        mismatches=mismatches,
        elements=elements,
        rtl_mismatches=found,
        tolerated=compared.tolerated,
        taken=decisions(program, graph),
    )


def _kind_of(error: SlipstickError) -> str:
    """A network may be refused; but a program that was compiled must run."""
    from ...errors import DeviceError, ModelError, UnsupportedError

    if isinstance(error, UnsupportedError | ModelError):
        return "refused"
    refused = isinstance(error, DeviceError) and "reference runtime" in str(error)
    return "refused" if refused else "failed"


def plain_reason(error: Exception) -> str:
    """Returns a message without its numbers and names, so that equal reasons count together."""
    text = re.sub(r"'[^']*'", "'...'", str(error).splitlines()[0] if str(error) else "")
    text = re.sub(r"\b[tc]\d+(_\w+)?\b", "T", text)
    return re.sub(r"-?\d+(\.\d+)?(e-?\d+)?", "N", text)[:160]


def _differences(wanted: Values, actual: Values) -> tuple[int, int]:
    """Codes that differ, of how many, in tensors that both have."""
    mismatches = elements = 0
    for name in wanted.keys() & actual.keys():
        first, second = wanted[name], actual[name]
        elements += first.size
        if first.size != second.size or first.dtype != second.dtype:
            mismatches += max(first.size, second.size)
        else:
            mismatches += int((first != second.reshape(first.shape)).sum())
    return mismatches, elements
