"""The kinds of files that random networks are written as, each with its reference."""

import numpy as np

from ... import kernels
from ...frontends.onnx import load_onnx_bytes, read_network
from ...frontends.onnx.reader import read_model
from ...frontends.tflite import load_tflite_bytes
from ...graph import Graph
from ...operators import find, unary_operators
from ..onnx_agreement import agreements
from ..references import LayerRuntime
from ..tflm_reference import TflmReference
from .drawing import Dialect, Drawer, Parameters
from .layer_values import draw_inputs
from .layers import RecipeError, Shape
from .lns_files import lns_kinds, write_lns
from .network_check import Compared, FileFormat
from .onnx_files import onnx_kinds, write_onnx
from .recipes import Recipe
from .tflite_files import tflite_kinds, write_tflite


def _as_drawn(kind: str, shape: Shape, own: Parameters, rng: np.random.Generator) -> Parameters:
    return own


def _for_onnx(kind: str, shape: Shape, own: Parameters, rng: np.random.Generator) -> Parameters:
    """ONNX has no fused activations, and paddings of any size at each side."""
    changed = {**own, "activation": "none"}
    if kind == "mean":
        changed |= {"axes": (1, 2), "keep_dimensions": True}
    elif kind == "fully_connected":
        changed |= {"keep_dimensions": False}
    elif find(kind).operands == 2 and len(shape) not in (2, 4):
        raise RecipeError(f"{kind} of {shape}")
    if "kernel" in own and kind != "transpose_conv2d" and rng.random() < 0.2:
        extents = [
            (size - 1) * step + 1
            for size, step in zip(own["kernel"], own.get("dilation", (1, 1)), strict=True)
        ]
        changed["padding"] = tuple(
            int(rng.integers(0, extent)) for extent in extents for _ in range(2)
        )
    return changed


def _onnx_file(rng: np.random.Generator) -> dict[str, str]:
    return {
        "dtype": "uint8" if rng.random() < 0.4 else "int8",
        "form": "qdq" if rng.random() < 0.3 else "qoperator",
    }


def _draw_tflite(seed: int, weight_bytes: int) -> Recipe:
    # TensorFlow Lite prescribes some
    fixed = {"softmax": (1 / 256, -128)}
    for function in unary_operators():
        if function.tflite is not None and function.tflite.result is not None:
            fixed[function.name] = function.tflite.result
    dialect = Dialect(
        kinds=tflite_kinds(), fixed_codes=fixed, adapt=_as_drawn, files=lambda rng: {}
    )
    return Drawer(seed, dialect, weight_bytes).draw()


def _draw_onnx(seed: int, weight_bytes: int) -> Recipe:
    dialect = Dialect(kinds=onnx_kinds(), fixed_codes={}, adapt=_for_onnx, files=_onnx_file)
    return Drawer(seed, dialect, weight_bytes).draw()


def _onnx_inputs(recipe: Recipe) -> np.ndarray:
    """Codes as the file takes them: channels first, and of its type."""
    codes = draw_inputs(recipe)
    if codes.ndim == 4:
        codes = np.ascontiguousarray(codes.transpose(0, 3, 1, 2))
    return codes if recipe.dtype == "int8" else (codes.astype(np.int16) + 128).astype(np.uint8)


def _real_inputs(recipe: Recipe) -> np.ndarray:
    """Real numbers that reach over all codes."""
    codes = draw_inputs(recipe).astype(np.float32)
    if codes.ndim == 4:
        codes = np.ascontiguousarray(codes.transpose(0, 3, 1, 2))
    return codes * np.float32(recipe.codes[0])


def _compare_tflm(data: bytes, graph: Graph, inputs: np.ndarray) -> Compared:
    return Compared(TflmReference(data).run_layers(inputs))


def _compare_onnx(data: bytes, graph: Graph, inputs: np.ndarray) -> Compared:
    """The definition's codes, and how far it is from onnxruntime, layer by layer.

    ``onnx_agreement`` says by how many codes each tensor may differ.
    """
    read, sources = read_network(data)
    promised = agreements(read_model(data, "model"), read, sources)
    wrong = tolerated = 0

    def note(name: str, wanted: np.ndarray, actual: np.ndarray) -> None:
        nonlocal wrong, tolerated
        if wanted.size != actual.size or wanted.dtype != actual.dtype:
            wrong += max(wanted.size, actual.size)
            return
        bound = promised[name].bound if name in promised else None
        if bound is None:
            return
        away = np.abs(wanted.astype(np.int64) - actual.reshape(wanted.shape))
        wrong += int((away > bound).sum())
        tolerated += int(((away > 0) & (away <= bound)).sum())

    LayerRuntime(data, graph).differences({graph.inputs[0]: inputs}, note)
    return Compared(kernels.run_graph(graph, [inputs]), wrong, tolerated)


TFLITE = FileFormat(
    "tflite", _draw_tflite, write_tflite, load_tflite_bytes, draw_inputs, _compare_tflm
)
"""TensorFlow Lite files; tflite-micro says the codes of every tensor."""

ONNX = FileFormat("onnx", _draw_onnx, write_onnx, load_onnx_bytes, _onnx_inputs, _compare_onnx)
"""ONNX files; Slipstick's definition says the codes, and is held to onnxruntime."""

FORMATS = {form.name: form for form in (TFLITE, ONNX)}


def logarithmic(number_format: str) -> FileFormat:
    """Returns .onnx files of logarithmic codes: only their definition says what is right."""
    dialect = Dialect(
        kinds=lns_kinds(),
        fixed_codes={},
        adapt=_for_onnx,
        files=lambda rng: {"form": number_format},
    )

    def draw(seed: int, weight_bytes: int) -> Recipe:
        return Drawer(seed, dialect, weight_bytes).draw()

    def compare(data: bytes, graph: Graph, inputs: np.ndarray) -> Compared:
        return Compared(kernels.run_graph(graph, [inputs]))

    return FileFormat(number_format, draw, write_lns, load_onnx_bytes, _real_inputs, compare)
