"""``slipstick quantize``: a float ONNX network becomes an int8 or a logarithmic one."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from .. import console
from ..errors import InputError, TargetError
from ..inputs import load_inputs
from ..loading import configuration_of
from ..program import Program
from ..quantize import FORMATS, FloatNetwork
from ..targets import DEFAULT_TARGET, find_target
from .compile import layer_entry
from .options import INPUTS_HELP, Json, Limit, TargetName, check_least


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
        typer.Option(
            "--output", "-o", help="By default MODEL_int8.onnx, MODEL_lns8.onnx, ... beside it."
        ),
    ] = None,
    per_tensor: Annotated[
        bool, typer.Option("--per-tensor", help="int8: one scale for all of a layer's weights.")
    ] = False,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="int8 codes around float operators (qdq) or operators of codes (qoperator);"
            " logarithmic codes of 5 to 8 bits (lns5 to lns8), or of I and F (lns1+I+F).",
        ),
    ] = "qdq",
    method: Annotated[
        Method | None,
        typer.Option(
            "--method", help="int8: how ranges follow from the numbers seen; by default minmax."
        ),
    ] = None,
    input_codes: Annotated[
        int | None,
        typer.Option(
            "--input-codes",
            help="Logarithms: codes of each number of the input, 1 or 2; by default 2 of those"
            " with fewer than 4 fraction bits.",
            show_default=False,
        ),
    ] = None,
    limit: Limit = None,
    target: TargetName = None,
    json: Json = False,
) -> None:
    """Quantise a float ONNX network by typical inputs, to int8 or to logarithms."""
    check_least("--limit", limit, 1)
    arithmetic = _arithmetic(form)
    _check_options(form, arithmetic, per_tensor, method, input_codes)
    paths = [*(calibrate or []), *(files or [])]
    if not paths:
        raise InputError("calibration needs at least one file: --calibrate FILE")
    place = output or model.with_name(f"{model.stem}_{form if arithmetic else 'int8'}.onnx")
    if place.exists() and model.exists() and place.samefile(model):
        raise InputError(f"--output must be another file than the network, not {place}")
    network = FloatNetwork(model)
    samples = load_inputs(paths, network.shape).first(limit)
    with console.waiting(f"quantising {model.name} with {len(samples)} inputs"):
        if arithmetic is None:
            way = (method or Method.MINMAX).value
            data = network.quantize(samples.x, form=form, method=way, per_channel=not per_tensor)
        else:
            way, target = "squared error", target or f"sim-{form}"
            data = network.quantize_logarithmic(samples.x, arithmetic, input_codes)
        program = _compiled(data, place, target)
    place.write_bytes(data)
    result = {
        "model": str(model),
        "output": str(place),
        "bytes": len(data),
        "format": form,
        "method": way,
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
        f"{place}: {len(data):,} bytes, {form}, ranges by {way} of"
        f" {len(samples)} inputs; {on_device} of {len(program.layers)} layers run on the device"
    )


def _check_options(
    form: str,
    arithmetic: ArrayArithmetic | None,
    per_tensor: bool,
    method: Method | None,
    input_codes: int | None,
) -> None:
    """Refuses options of the other kind of codes."""
    if arithmetic is not None and (per_tensor or method is not None):
        raise InputError(
            f"--per-tensor and --method must not be given with --format {form}: its scales are"
            " chosen by their errors"
        )
    if arithmetic is None and input_codes is not None:
        raise InputError(f"--input-codes must not be given with --format {form}")
    if input_codes not in (None, 1, 2):
        raise InputError(f"--input-codes must be 1 or 2, not {input_codes}")


def _arithmetic(form: str) -> ArrayArithmetic | None:
    """Of a logarithmic format; None of an int8 one."""
    if form in FORMATS:
        return None
    try:
        arithmetic = find_target(f"sim-{form}").configuration.logarithmic
    except TargetError:
        arithmetic = None
    if arithmetic is None:
        raise InputError(
            f"--format must be {', '.join(FORMATS)}, lns5, lns6, lns7, lns8, or lns1+I+F of 5 to 8"
            f" bits and I to 4, not {form!r}"
        )
    return arithmetic


def _compiled(data: bytes, place: Path, target: str | None) -> Program:
    """The program of the new network: what Slipstick does not run is not written."""
    from ..compiler import compile_graph
    from ..frontends.onnx import load_onnx_bytes

    return compile_graph(load_onnx_bytes(data, place.stem), configuration_of(target))
