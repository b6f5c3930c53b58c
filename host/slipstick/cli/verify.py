"""``slipstick verify``: reference runtime, golden model and RTL held against each other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from slipstick_rtl.config import Configuration

from .. import console
from ..cluster.checks import check_independent
from ..cluster.opening import open_cluster_pool, prepare_device
from ..data.inputs import load_inputs
from ..errors import InputError
from ..loading import configuration_of
from ..runtime.executor import Values
from ..targets import DEFAULT_TARGET
from ..verify.comparisons import runtime_summary
from ..verify.verifier import CheckedTensor, Comparison, Verifier
from .completion import complete_network
from .options import (
    INPUTS_HELP,
    ClusterName,
    Json,
    Limit,
    SemanticsName,
    TargetName,
    check_least,
    refuse_beside_cluster,
)
from .run import one_input
from .verify_random import Request, refuse, verify_random

RANDOM_IMAGES = 4
RANDOM_RUNS = 32
"""Runs of a network that keeps something from run to run: one after the other."""


class RandomFormat(StrEnum):
    """The file that random networks are written as."""

    TFLITE = "tflite"
    ONNX = "onnx"


def verify_command(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="A quantised .tflite or .onnx network; with --random none.",
            autocompletion=complete_network,
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option("--inputs", "-i", help=f"{INPUTS_HELP} By default seeded random ones."),
    ] = None,
    target: TargetName = None,
    semantics: SemanticsName = None,
    limit: Limit = None,
    layer_limit: Annotated[int, typer.Option(help="Inputs whose every layer the RTL shows.")] = 20,
    seed: Annotated[int, typer.Option(help="Of random inputs.")] = 0,
    rtl: Annotated[
        int | None,
        typer.Option(help="With --random: so many of the networks run on the compiled RTL too."),
    ] = None,
    no_rtl: Annotated[bool, typer.Option("--no-rtl", help="Do not run the compiled RTL.")] = False,
    rtl_layer: Annotated[
        list[str] | None,
        typer.Option(help="Run only this layer on the RTL; may be given several times."),
    ] = None,
    random: Annotated[
        int | None,
        typer.Option(help="Check so many random networks instead of a file."),
    ] = None,
    form: Annotated[
        RandomFormat | None,
        typer.Option("--format", help="With --random: the kind of file; by default both by turns."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="With --random: processes; by default one per processor.")
    ] = None,
    output: Annotated[
        Path, typer.Option(help="With --random: folder for the smallest files that are wrong.")
    ] = Path("random-networks"),
    report: Annotated[
        Path | None, typer.Option(help="With --random: JSON file for the figures.")
    ] = None,
    cluster: ClusterName = None,
    json: Json = False,
) -> None:
    """Compare reference, golden model and RTL on every layer; exit with 1 if they differ.

    With --random N, N networks are drawn and compared instead of one that is given.
    """
    check_least("--limit", limit, 1)
    check_least("--layer-limit", layer_limit, 0)
    check_least("--seed", seed, 0)
    if random is not None:
        given = {"MODEL": model, "--inputs": inputs, "--semantics": semantics, "--limit": limit}
        refuse(given | {"--rtl-layer": rtl_layer}, "cannot stand beside --random")
        refuse_beside_cluster(cluster, {"--jobs": jobs})
        request = Request(random, seed, target, form, rtl or 0, jobs, output, report, cluster)
        verify_random(request, json=json)
        return
    refuse({"--rtl": rtl, "--format": form, "--jobs": jobs, "--report": report}, "needs --random N")
    if model is None:
        raise InputError("verify needs a network's file, or --random N")
    verifier = Verifier(model, configuration_of(target), semantics)
    feeds = _feeds(verifier, inputs, limit, seed)
    if cluster is None:
        checked = _check(verifier, feeds, not no_rtl, layer_limit, rtl_layer or ())
    else:
        check_independent(verifier.program)
        asked = (str(model), configuration_of(target), semantics, not no_rtl, layer_limit)
        checked = _check_elsewhere(cluster, feeds, *asked, tuple(rtl_layer or ()))
    result = _result(verifier, checked, len(next(iter(feeds.values()))))
    result = {"model": str(model), "target": target or DEFAULT_TARGET, **result}
    if json:
        console.print_json(result)
    else:
        _show(result)
    if result["total_mismatches"]:
        raise typer.Exit(1)


def _check(
    verifier: Verifier, feeds: Values, rtl: bool, layer_limit: int, rtl_layers: Sequence[str]
) -> list[CheckedTensor]:
    with ExitStack() as bars:

        def progress(what: str, total: int) -> Callable[[int], None]:
            bars.close()
            return bars.enter_context(console.progress(what, total))

        return verifier.check(
            feeds, progress, rtl=rtl, layer_limit=layer_limit, rtl_layers=rtl_layers
        )


def _check_elsewhere(
    cluster: str,
    feeds: Values,
    model: str,
    configuration: Configuration,
    semantics: str | None,
    rtl: bool,
    layer_limit: int,
    rtl_layers: tuple[str, ...],
) -> list[CheckedTensor]:
    """Some images per job."""
    if rtl:
        prepare_device("sim", configuration)
    with (
        open_cluster_pool(cluster, [model]) as pool,
        console.progress("comparing", len(next(iter(feeds.values())))) as advance,
    ):
        from ..cluster import verification

        request = verification.Request(
            model, configuration, semantics, rtl, layer_limit, rtl_layers
        )
        return verification.check_images(pool, request, feeds, advance)


def _feeds(verifier: Verifier, inputs: Path | None, limit: int | None, seed: int) -> Values:
    """Inputs from a file, or random ones."""
    if inputs is None:
        usual = RANDOM_RUNS if verifier.program.variables else RANDOM_IMAGES
        return verifier.random_inputs(limit or usual, seed)
    name = one_input(verifier.program)
    shape = verifier.program.tensors[name].shape
    return {name: load_inputs([inputs], shape).first(limit).x}


def _result(verifier: Verifier, checked: Sequence[CheckedTensor], count: int) -> dict[str, Any]:
    program = verifier.program
    result: dict[str, Any] = {
        "fingerprint": program.fingerprint,
        "semantics": program.semantics,
        "count": count,
        "state_bytes": program.state_bytes,
        "layers": [_entry(tensor) for tensor in checked],
        "total_mismatches": sum(tensor.mismatches for tensor in checked),
    }
    if program.semantics == "onnx":
        result["onnxruntime"] = runtime_summary(checked)
        result["saturating_nodes"] = list(verifier.saturating)
    return result


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
        "bound": None if tensor.agreement is None else tensor.agreement.bound,
        "reason": None if tensor.agreement is None else tensor.agreement.reason,
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
        other = {"onnx": "onnxruntime", "tflm": "tflm"}.get(result["semantics"], "exact")
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
    if result.get("onnxruntime"):
        for line in _drift(result):
            console.print_line(line)


def _drift(result: dict[str, Any]) -> Iterator[str]:
    """Sentences on how far the rule and onnxruntime, which rounds in float32, are apart."""
    found = result["onnxruntime"]
    layers = found["layers"]
    if layers:
        yield (
            f"rule against onnxruntime: {_differing(layers, 'layer codes')}, in"
            f" {found['differing_layers']} layers, each on onnxruntime's own inputs"
        )
    if found["outputs"]:
        yield f"from end to end: {_differing(found['outputs'], 'outputs')}"
    if found["runtime_outputs"]:
        yield (
            "onnxruntime with its optimisations against itself without:"
            f" {_differing(found['runtime_outputs'], 'outputs')}; against the rule:"
            f" {_differing(found['optimised_outputs'], 'outputs')}"
        )
    if found["beyond_bound"]:
        yield f"more than float32 explains: {', '.join(found['beyond_bound'])}"
    if layers and layers["mismatches"] and not result["saturating_nodes"]:
        yield (
            "onnxruntime sums real numbers in float32 there (docs/reference/onnx.md); a network of"
            " operators of codes has exact sums: slipstick quantize --format qoperator"
        )
    if result["saturating_nodes"]:
        yield (
            "onnxruntime is no reference on this machine: without VNNI it saturates sums of uint8"
            f" by int8 products in {', '.join(result['saturating_nodes'])}"
        )


def _differing(comparison: dict[str, int | float] | None, what: str) -> str:
    if comparison is None:
        return f"no {what} compared"
    text = f"{comparison['mismatches']:,} of {comparison['elements']:,} {what} differ"
    return text + (f", by at most {comparison['largest']:.6g}" if comparison["mismatches"] else "")


def _cell(comparison: dict[str, int | float] | None) -> str | None:
    if comparison is None:
        return None
    told = f"{comparison['mismatches']:,} on {comparison['inputs']}"
    largest = comparison.get("largest")
    return f"{told}, by {largest:.2g} at most" if largest else told
