"""New operators through the public extension points alone: docs/how-to/add-operator.md."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from slipstick import kernels, operators
from slipstick.compiler import compile_graph
from slipstick.compiler.ir.operations import Map
from slipstick.compiler.ir.requantization import Requantization, float_product
from slipstick.compiler.ir.views import Views, scale_and_zero
from slipstick.compiler.lower import table as lowerings
from slipstick.compiler.lower.pooling import Run, pool_map
from slipstick.devices.model import ModelDevice
from slipstick.errors import UnsupportedError
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.frontends.semantics import with_semantics
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.graph import Graph, Node, Tensor
from slipstick.kernels import table
from slipstick.kernels.onnx.pooling import pooling_kernel
from slipstick.kernels.onnx.real import from_real, to_real
from slipstick.kernels.onnx.scaling import code_range, factor_parts, to_codes
from slipstick.kernels.tflite.matrix import pad_image, tap
from slipstick.kernels.tflite.scaling import scalar
from slipstick.operators import Pooling, Tflite, Unary
from slipstick.program.steps import HostStep
from slipstick.runtime.executor import Execution
from slipstick.targets import find_target
from slipstick.verify.random_networks.formats import FORMATS, logarithmic
from slipstick.writers import tflite_operators
from slipstick.writers.tflite import TfliteWriter

BENT = Unary(
    name="bent_identity",
    doc="x + (sqrt(x^2 + 1) - 1) / 2.",
    function=lambda x, a: x + a["bend"] * (np.sqrt(x * x + 1) - 1) / 2,
    # more often than all others together
    share=60.0,
    onnx="BentIdentity",
    defaults={"bend": 1.0},
    # a name of the schema that Slipstick does not read
    tflite=Tflite(code="SIGN", in_tflm=False),
    tabulated=True,
)

SUM = Pooling(name="sum_pool2d", doc="The sum of each window.", share=60.0, onnx="SumPool")

CONFIGURATION = find_target("sim-medium").configuration


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leaves no operator behind for other tests."""
    tables: list[dict[Any, Any]] = [operators.OPERATORS, operators.FUNCTIONS, operators.TFLITE]
    tables += [table.TFLM, table.ONNX, table.LNS, *lowerings.MAKERS.values()]
    copies = [dict(each) for each in tables]
    yield
    for each, copy in zip(tables, copies, strict=True):
        each.clear()
        each.update(copy)


def register_sum() -> None:
    """What a module of kernels and a module of lowerings would hold."""
    operators.register(SUM)

    @pooling_kernel(SUM)
    def sum_pool2d(
        x: np.ndarray, source: Tensor, output: Tensor, attributes: Mapping[str, Any]
    ) -> np.ndarray:
        coded = source.quantization is not None and output.quantization is not None
        centred = x.astype(np.int64) - scalar(source.quantization)[1] if coded else None
        numbers = to_real(x, source) if centred is None else centred
        padded = pad_image(numbers, attributes["padding"], 0)
        total = np.zeros((len(x), *output.shape[1:]), padded.dtype)
        for origin in np.ndindex(attributes["window"]):
            total += tap(padded, origin, attributes["stride"], output.shape[1:3])
        if not coded:
            return from_real(total, output, attributes)
        return to_codes(total, _factor(source, output), output, attributes)

    @lowerings.lowers(SUM.name, arithmetics=(lowerings.ONNX,))
    def make_sum_pool(node: Node, graph: Graph, views: Views) -> Map:
        source, result = views.activation(node.inputs[0]), views.activation(node.outputs[0])
        parts = factor_parts(_factor(source, result))

        def rescale(down: Run, across: Run) -> Requantization:
            bias = np.array([-down[2] * across[2] * scale_and_zero(source)[1]])
            clamp = code_range(node.attributes)
            return float_product(*parts, bias, scale_and_zero(result)[1], clamp)

        return pool_map(node, views, rescale)


def _factor(source: Tensor, output: Tensor) -> np.ndarray:
    assert source.quantization is not None and output.quantization is not None
    ratio = source.quantization.scale / output.quantization.scale
    return ratio.astype(np.float32)


def onnx_file(kind: str, **options: Any) -> bytes:
    """Codes, two operators of one kind between codes, codes."""
    constants, nodes = [], []
    for name, scale in (("a", 0.05), ("b", 0.2)):
        constants.append(helper.make_tensor(f"{name}_scale", TensorProto.FLOAT, [], [scale]))
        constants.append(helper.make_tensor(f"{name}_zero", TensorProto.INT8, [], [3]))
    own, made = ["a_scale", "a_zero"], ["b_scale", "b_zero"]
    nodes += [
        helper.make_node("DequantizeLinear", ["x", *own], ["x_real"]),
        helper.make_node(kind, ["x_real"], ["y_real"], **options),
        helper.make_node("QuantizeLinear", ["y_real", *made], ["y"]),
        helper.make_node("DequantizeLinear", ["y", *made], ["y_again"]),
        helper.make_node(kind, ["y_again"], ["z_real"], **options),
        helper.make_node("QuantizeLinear", ["z_real", *made], ["z"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.INT8, (1, 4, 9, 8))
    z = helper.make_tensor_value_info("z", TensorProto.INT8, None)
    graph = helper.make_graph(nodes, "new", [x], [z], constants)
    opsets = [helper.make_opsetid("", 21)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def run_on_device(graph: Graph, *, host: int = 0) -> dict[str, np.ndarray]:
    """Compiles a network, and runs it on the golden model; its tensors equal the kernels'."""
    program = compile_graph(graph, CONFIGURATION)
    assert sum(isinstance(step, HostStep) for step in program.steps) == host
    (name,) = graph.inputs
    shape = graph.tensors[name].shape
    x = np.random.default_rng(7).integers(-128, 128, shape).astype(np.int8)
    made = Execution(program, ModelDevice(CONFIGURATION)).infer_batch({name: x})
    wanted = kernels.run_graph(graph, [x])
    for tensor in made:
        np.testing.assert_array_equal(made[tensor], wanted[tensor])
    return wanted


def bent(x: np.ndarray, scales: tuple[float, float], bend: float) -> np.ndarray:
    """Codes of zero point 3 through the function, in float64."""
    real = scales[0] * (x.astype(np.float64) - 3)
    value = real + bend * (np.sqrt(real * real + 1) - 1) / 2
    return np.clip(np.rint(value / scales[1]) + 3, -128, 127)


def test_unary_of_onnx_is_a_table_on_the_device() -> None:
    with pytest.raises(UnsupportedError, match="BentIdentity"):
        load_onnx_bytes(onnx_file("BentIdentity"))
    operators.register(BENT)
    graph = load_onnx_bytes(onnx_file("BentIdentity", bend=0.5))
    assert [node.operator for node in graph.nodes].count("lookup") == 2
    # the host turns pictures at both ends
    values = run_on_device(graph, host=graph_moves(graph))
    x, y = values["x"], values["y"]
    if x.shape != y.shape:
        x = x.transpose(0, 2, 3, 1)
    assert np.abs(bent(x, (0.05, 0.2), 0.5) - y).max() <= 1


def graph_moves(graph: Graph) -> int:
    """Transpositions, which the host does."""
    return sum(node.operator == "transpose" for node in graph.nodes)


def test_unary_of_tflite_and_in_both_semantics() -> None:
    operators.register(BENT)
    writer = TfliteWriter()
    x = writer.tensor("x", (1, 4, 9, 8), scale=0.05, zero_point=3)
    y = writer.tensor("y", (1, 4, 9, 8), scale=0.2, zero_point=3)
    writer.add(tflite_operators.function(BENT), [x], [y])
    graph = load_tflite_bytes(writer.to_bytes([x], [y]))
    assert [node.operator for node in graph.nodes] == [BENT.name]
    for own in (graph, with_semantics(graph, "onnx")):
        values = run_on_device(own)
        assert np.abs(bent(values["x"], (0.05, 0.2), 1.0) - values["y"]).max() <= 1


@pytest.mark.parametrize("form", ["tflite", "onnx"])
def test_unary_is_drawn_for_random_networks(form: str) -> None:
    operators.register(BENT)
    recipes = [FORMATS[form].draw(seed, CONFIGURATION.weight_bytes) for seed in range(12)]
    assert any(layer.kind == BENT.name for recipe in recipes for layer in recipe.layers)
    for recipe in recipes:
        graph = FORMATS[form].load(FORMATS[form].write(recipe))
        if any(layer.kind == BENT.name for layer in recipe.layers):
            kernels.run_graph(graph, [FORMATS[form].inputs(recipe)])
            compile_graph(graph, CONFIGURATION, effort=0)


def test_pooling_of_onnx_runs_on_the_device() -> None:
    register_sum()
    graph = load_onnx_bytes(onnx_file("SumPool", kernel_shape=[2, 3], strides=[1, 1]))
    assert [node.operator for node in graph.nodes].count(SUM.name) == 2
    values = run_on_device(graph, host=graph_moves(graph))
    x = np.asarray(values["x"]).reshape(1, 4, 9, 8)
    real = 0.05 * (x.astype(np.float64) - 3)
    windows = np.lib.stride_tricks.sliding_window_view(real, (2, 3), axis=(2, 3))
    wanted = np.clip(np.rint(windows.sum(axis=(4, 5)) / 0.2) + 3, -128, 127)
    y = values["y"]
    made = y if y.shape == wanted.shape else y.transpose(0, 3, 1, 2)
    assert np.abs(wanted - made).max() <= 1


@pytest.mark.parametrize("form", [*FORMATS, "lns1+3+4"])
def test_pooling_is_drawn_for_random_networks_of_its_files(form: str) -> None:
    register_sum()
    files = FORMATS.get(form) or logarithmic(form)
    target = find_target("sim-medium" if form in FORMATS else f"sim-{form}")
    recipes = [files.draw(seed, CONFIGURATION.weight_bytes) for seed in range(12)]
    drawn = [recipe for recipe in recipes if any(own.kind == SUM.name for own in recipe.layers)]
    # it has no name in TensorFlow Lite
    assert bool(drawn) == (form != "tflite")
    for recipe in drawn:
        graph = files.load(files.write(recipe))
        kernels.run_graph(graph, [files.inputs(recipe)])
        compile_graph(graph, target.configuration, effort=0)


def test_pooling_without_kernel_or_lowering() -> None:
    operators.register(SUM)
    graph = load_onnx_bytes(onnx_file("SumPool", kernel_shape=[2, 3]))
    with pytest.raises(UnsupportedError, match="operator must be one of .*, not sum_pool2d"):
        kernels.run_graph(graph, [np.zeros((1, 4, 9, 8), np.int8)])
    program = compile_graph(graph, CONFIGURATION)
    reasons = {layer.why for layer in program.layers if layer.name.startswith("SumPool")}
    assert reasons == {"the device has no such operator"}


def test_gaps_need_a_record_of_their_own() -> None:
    register_sum()
    with pytest.raises(UnsupportedError, match=r"dilations must be 1, not \(2, 1\)"):
        load_onnx_bytes(onnx_file("SumPool", kernel_shape=[2, 3], dilations=[2, 1]))


def test_names_are_registered_once() -> None:
    operators.register(BENT)
    with pytest.raises(ValueError, match="'bent_identity'"):
        operators.register(BENT)
    rival = Unary(name="rival", doc="x.", function=lambda x, _: x, onnx="Relu")
    with pytest.raises(ValueError, match="'rival'"):
        operators.register(rival)
    assert "rival" not in operators.OPERATORS


def naming(*names: str) -> list[str]:
    """Modules of the host in which one of some names stands."""
    host = Path(operators.__file__).parents[1]
    return [
        str(module.relative_to(host))
        for module in sorted(host.rglob("*.py"))
        if any(name in module.read_text() for name in names)
    ]


def test_an_operator_is_named_in_few_files() -> None:
    for name in ("softsign", "softplus", "mish", "selu", "hard_sigmoid", "thresholded_relu"):
        record = operators.OPERATORS[name]
        assert isinstance(record, Unary)
        assert naming(f'"{name}"', f'"{record.onnx}"') == ["operators/functions.py"]
    everywhere = naming("max_pool2d", "MAX_POOL", '"MaxPool"', "MaxPool2D")
    # Training has layers of its own, with gradients: they are counted apart.
    training = [module for module in everywhere if module.startswith("training/")]
    assert len(training) <= 10
    assert len(everywhere) - len(training) <= 6
