"""``slipstick quantize``: a float ONNX network becomes an int8 one."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .. import console
from ..errors import InputError
from ..inputs import load_inputs
from ..loading import configuration_of
from ..program import Program
from ..quantize import FloatNetwork
from ..targets import DEFAULT_TARGET
from .compile import layer_entry
from .options import INPUTS_HELP, Json, Limit, TargetName, check_least


class Form(StrEnum):
    """How the file writes what it computes with codes."""

    QDQ = "qdq"
    QOPERATOR = "qoperator"


class Method(StrEnum):
    """How ranges follow from the numbers that were seen."""

    MINMAX = "minmax"
    ENTROPY = "entropy"
    PERCENTILE = "percentile"


def quantize_command(
    model: Annotated[Path, typer.Argument(help="A float .onnx network.")],
    files: Annotated[
        list[Path] | None, typer.Argument(help="More inputs, as --calibrate.", show_default=False)
    ] = None,
    calibrate: Annotated[
        list[Path] | None,
        typer.Option(
            "--calibrate", "-i", help=f"Typical inputs. {INPUTS_HELP}", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="By default MODEL_int8.onnx beside the model."),
    ] = None,
    per_tensor: Annotated[
        bool, typer.Option("--per-tensor", help="One scale for all of a layer's weights.")
    ] = False,
    form: Annotated[
        Form, typer.Option("--format", help="Codes around float operators, or operators of codes.")
    ] = Form.QDQ,
    method: Annotated[
        Method, typer.Option("--method", help="How ranges follow from the numbers seen.")
    ] = Method.MINMAX,
    limit: Limit = None,
    target: TargetName = None,
    json: Json = False,
) -> None:
    """Quantise a float ONNX network to int8, by onnxruntime's quantiser and typical inputs."""
    check_least("--limit", limit, 1)
    paths = [*(calibrate or []), *(files or [])]
    if not paths:
        raise InputError("calibration needs at least one file: --calibrate FILE")
    place = output or model.with_name(f"{model.stem}_int8.onnx")
    if place.exists() and model.exists() and place.samefile(model):
        raise InputError(f"--output must be another file than the network, not {place}")
    network = FloatNetwork(model)
    samples = load_inputs(paths, network.shape).first(limit)
    with console.waiting(f"quantising {model.name} with {len(samples)} inputs"):
        data = network.quantize(
            samples.x, form=form.value, method=method.value, per_channel=not per_tensor
        )
        program = _compiled(data, place, target)
    place.write_bytes(data)
    result = {
        "model": str(model),
        "output": str(place),
        "bytes": len(data),
        "format": form.value,
        "method": method.value,
        "per_channel": not per_tensor,
        "count": len(samples),
        "target": target or DEFAULT_TARGET,
        "macs": program.macs,
        "predicted_cycles": program.predicted_cycles,
        "layers": [layer_entry(program, layer) for layer in program.layers],
    }
    if json:
        console.print_json(result)
        return
    on_device = sum(layer.where == "device" for layer in program.layers)
    console.print_line(
        f"{place}: {len(data):,} bytes, {form.value}, ranges by {method.value} of"
        f" {len(samples)} inputs; {on_device} of {len(program.layers)} layers run on the device"
    )


def _compiled(data: bytes, place: Path, target: str | None) -> Program:
    """The program of the new network: what Slipstick does not run is not written."""
    from ..compiler import compile_graph
    from ..frontends.onnx import load_onnx_bytes

    return compile_graph(load_onnx_bytes(data, place.stem), configuration_of(target))
