"""``slipstick quantize``: a float ONNX network becomes an int8 or a logarithmic one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from .. import console
from ..data.inputs import load_inputs
from ..errors import InputError, TargetError
from ..loading import configuration_of
from ..program import Program
from ..quantize import FORMATS, FloatNetwork
from ..targets import DEFAULT_TARGET, find_target
from .compile import layer_entry
from .options import INPUTS_HELP, Json, Limit, TargetName, check_least


class Method(StrEnum):
    """Methods that find ranges from the numbers that were seen."""

    MINMAX = "minmax"
    ENTROPY = "entropy"
    PERCENTILE = "percentile"


Calibration = Annotated[
    list[Path] | None,
    typer.Option("--calibrate", "-i", help=f"Typical inputs. {INPUTS_HELP}", show_default=False),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help="int8 codes around float operators (qdq), or operators of codes (qoperator), whose"
        " sums onnxruntime computes exactly, too;"
        " logarithmic codes of 5 to 8 bits (lns5 to lns8), or of I and F (lns1+I+F).",
    ),
]
MethodName = Annotated[
    Method | None,
    typer.Option(
        "--method", help="int8: how ranges follow from the numbers seen; by default minmax."
    ),
]
InputCodes = Annotated[
    int | None,
    typer.Option(
        "--input-codes",
        help="Logarithms: codes of each number of the input, 1 or 2; by default 2 of those"
        " with fewer than 4 fraction bits.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class Codes:
    """Codes of a network's numbers.

    Parameters
    ----------
    form : str
        As ``--format`` has it.
    arithmetic : ArrayArithmetic or None
        Of a logarithmic format; None of an int8 one.
    per_tensor : bool
    method : Method or None
        These two of int8.
    input_codes : int or None
        Of logarithms.

    Raises
    ------
    InputError
        If an option belongs to the other kind of codes.
    """

    form: str
    arithmetic: ArrayArithmetic | None
    per_tensor: bool
    method: Method | None
    input_codes: int | None

    def __post_init__(self) -> None:
        if self.arithmetic is not None and (self.per_tensor or self.method is not None):
            raise InputError(
                f"--per-tensor and --method must not be given with --format {self.form}: its scales"
                " are chosen by their errors"
            )
        if self.arithmetic is None and self.input_codes is not None:
            raise InputError(f"--input-codes must not be given with --format {self.form}")
        if self.input_codes not in (None, 1, 2):
            raise InputError(f"--input-codes must be 1 or 2, not {self.input_codes}")

    @property
    def way(self) -> str:
        """Names the method that finds ranges from the numbers that were seen."""
        return "squared error" if self.arithmetic else (self.method or Method.MINMAX).value

    @property
    def target(self) -> str | None:
        """Names the target of the network unless the user names one; None: the default one."""
        return f"sim-{self.form}" if self.arithmetic else None

    def output(self, model: Path) -> Path:
        """The file to write unless one is named."""
        return model.with_name(f"{model.stem}_{self.form if self.arithmetic else 'int8'}.onnx")

    def quantize(self, network: FloatNetwork, inputs: np.ndarray) -> bytes:
        """The file of the quantised network."""
        if self.arithmetic is not None:
            return network.quantize_logarithmic(inputs, self.arithmetic, self.input_codes)
        return network.quantize(
            inputs, form=self.form, method=self.way, per_channel=not self.per_tensor
        )


def quantize_command(
    model: Annotated[Path, typer.Argument(help="A float .onnx network.")],
    files: Annotated[
        list[Path] | None, typer.Argument(help="More inputs, as --calibrate.", show_default=False)
    ] = None,
    calibrate: Calibration = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="By default MODEL_int8.onnx, MODEL_lns8.onnx, ... beside it."
        ),
    ] = None,
    per_tensor: Annotated[
        bool, typer.Option("--per-tensor", help="int8: one scale for all of a layer's weights.")
    ] = False,
    form: Format = "qdq",
    method: MethodName = None,
    input_codes: InputCodes = None,
    limit: Limit = None,
    target: TargetName = None,
    json: Json = False,
) -> None:
    """Quantise a float ONNX network by typical inputs, to int8 or to logarithms."""
    check_least("--limit", limit, 1)
    codes = Codes(form, _arithmetic(form), per_tensor, method, input_codes)
    paths = [*(calibrate or []), *(files or [])]
    if not paths:
        raise InputError("calibration needs at least one file: --calibrate FILE")
    place = output or codes.output(model)
    if place.exists() and model.exists() and place.samefile(model):
        raise InputError(f"--output must be another file than the network, not {place}")
    network = FloatNetwork(model)
    samples = load_inputs(paths, network.shape).first(limit)
    target = target or codes.target
    with console.waiting(f"quantising {model.name} with {len(samples)} inputs"):
        data = codes.quantize(network, samples.x)
        program = _compiled(data, place, target)
    place.write_bytes(data)
    result = {
        "model": str(model),
        "output": str(place),
        "bytes": len(data),
        **_figures(codes, len(samples), program, target),
    }
    if json:
        console.print_json(result)
    else:
        _show(result)


def _figures(codes: Codes, samples: int, program: Program, target: str | None) -> dict[str, Any]:
    """Lists the figures of the codes, the samples and the program, as ``--json`` has them."""
    return {
        "format": codes.form,
        "method": codes.way,
        "per_channel": not codes.per_tensor,
        "count": samples,
        "target": target or DEFAULT_TARGET,
        "macs": program.macs,
        "predicted_cycles": program.predicted_cycles,
        "layers": [layer_entry(program, layer) for layer in program.layers],
    }


def _show(result: Mapping[str, Any]) -> None:
    layers = result["layers"]
    on_device = sum(layer["where"] == "device" for layer in layers)
    console.print_line(
        f"{result['output']}: {result['bytes']:,} bytes, {result['format']}, ranges by"
        f" {result['method']} of {result['count']} inputs; {on_device} of {len(layers)} layers run"
        " on the device"
    )


def _arithmetic(form: str) -> ArrayArithmetic | None:
    """Finds the arithmetic of a logarithmic format; None for an int8 one."""
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
