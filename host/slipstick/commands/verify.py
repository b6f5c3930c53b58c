"""``slipstick verify``: reference runtime, golden model and RTL held against each other."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import console
from ..inputs import load_inputs
from ..loading import configuration_of
from ..targets import DEFAULT_TARGET
from ..verification import CheckedTensor, Comparison, Verifier
from .options import INPUTS_HELP, Json, Limit, Network, SemanticsName, TargetName, check_least
from .run import one_input

RANDOM_IMAGES = 4
RANDOM_RUNS = 32
"""Of a network that keeps something from run to run: one after the other."""


def verify_command(
    model: Network,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", "-i", help=f"{INPUTS_HELP} By default seeded random ones."),
    ] = None,
    target: TargetName = None,
    semantics: SemanticsName = None,
    limit: Limit = None,
    layer_limit: Annotated[int, typer.Option(help="Inputs whose every layer the RTL shows.")] = 20,
    seed: Annotated[int, typer.Option(help="Of random inputs.")] = 0,
    rtl: Annotated[bool, typer.Option(help="Run the compiled RTL too.")] = True,
    rtl_layer: Annotated[
        list[str] | None,
        typer.Option(help="Run only this layer on the RTL; may be given several times."),
    ] = None,
    json: Json = False,
) -> None:
    """Compare reference, golden model and RTL on every layer; exit with 1 if they differ."""
    check_least("--limit", limit, 1)
    check_least("--layer-limit", layer_limit, 0)
    check_least("--seed", seed, 0)
    verifier = Verifier(model, configuration_of(target), semantics)
    if inputs is None:
        usual = RANDOM_RUNS if verifier.program.variables else RANDOM_IMAGES
        feeds = verifier.random_inputs(limit or usual, seed)
    else:
        name = one_input(verifier.program)
        shape = verifier.program.tensors[name].shape
        feeds = {name: load_inputs([inputs], shape).first(limit).x}
    with ExitStack() as bars:

        def progress(what: str, total: int) -> Callable[[int], None]:
            bars.close()
            return bars.enter_context(console.progress(what, total))

        checked = verifier.check(
            feeds, progress, rtl=rtl, layer_limit=layer_limit, rtl_layers=rtl_layer or ()
        )
    total = sum(tensor.mismatches for tensor in checked)
    count = len(next(iter(feeds.values())))
    result = {
        "model": str(model),
        "target": target or DEFAULT_TARGET,
        "fingerprint": verifier.program.fingerprint,
        "semantics": verifier.program.semantics,
        "count": count,
        "state_bytes": verifier.program.state_bytes,
        "layers": [_entry(tensor) for tensor in checked],
        "total_mismatches": total,
    }
    if json:
        console.print_json(result)
    else:
        _show(result)
    if total:
        raise typer.Exit(1)


def _entry(tensor: CheckedTensor) -> dict[str, Any]:
    return {
        "layer": tensor.layer,
        "operator": tensor.operator,
        "where": tensor.where,
        "tensor": tensor.tensor,
        "mismatches": tensor.mismatches,
        "golden_vs_reference": _comparison(tensor.reference),
        "rtl_vs_golden": _comparison(tensor.rtl),
        "reference_vs_runtime": _comparison(tensor.runtime, largest=True),
    }


def _comparison(
    comparison: Comparison | None, *, largest: bool = False
) -> dict[str, int | float] | None:
    if comparison is None:
        return None
    counts: dict[str, int | float] = {
        "inputs": comparison.images,
        "mismatches": comparison.mismatches,
    }
    if not largest:
        return counts
    return {**counts, "elements": comparison.elements, "largest": comparison.largest}


def _show(result: dict[str, Any]) -> None:
    columns = {
        "layer": "left",
        "operator": "left",
        "where": "left",
        "golden ≠ reference": "right",
        "RTL ≠ golden": "right",
    }
    rows = [
        [
            entry["layer"],
            entry["operator"],
            entry["where"],
            _cell(entry["golden_vs_reference"]),
            _cell(entry["rtl_vs_golden"]),
        ]
        for entry in result["layers"]
    ]
    if any(entry["reference_vs_runtime"] for entry in result["layers"]):
        other = "onnxruntime" if result["semantics"] == "onnx" else "exact"
        columns[f"rule ≠ {other}"] = "right"
        for row, entry in zip(rows, result["layers"], strict=True):
            row.append(_cell(entry["reference_vs_runtime"]))
    console.print_table(
        f"{result['model']} on {result['target']}: elements that differ",
        columns,
        rows,
        f"{result['total_mismatches']:,} mismatches on {result['count']} inputs"
        + (", run one after the other with what is kept" if result["state_bytes"] else ""),
    )


def _cell(comparison: dict[str, int | float] | None) -> str | None:
    if comparison is None:
        return None
    told = f"{comparison['mismatches']:,} on {comparison['inputs']}"
    largest = comparison.get("largest")
    return f"{told}, by {largest:.2g} at most" if largest else told
