"""What the ONNX front-end does not read: refused with the node, the value and the rule."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_writer import OnnxWriter
from slipstick.errors import ModelError, UnsupportedError
from slipstick.frontends import load
from slipstick.frontends.onnx import load_onnx_bytes

SHAPE = (1, 4, 6, 6)
OPEN = ("N", 4, 6, 6)


def network(
    operator: str = "Conv", opset: int = 21, shape: tuple[Any, ...] = SHAPE, **options: Any
) -> bytes:
    """x -> the operator, with weights if it has any -> codes."""
    net = OnnxWriter(opset)
    x = net.pair(net.input("x", shape), 0.1)
    more = []
    if operator in ("Conv", "ConvTranspose", "MatMul", "Gemm"):
        sizes = {"Conv": (3, 4, 2, 2), "ConvTranspose": (4, 3, 2, 2)}
        size = sizes.get(operator, (6, 5))
        more = [net.weights(np.ones(size, np.int8), np.float32(0.1))]
    y = net.add(operator, [x, *more], **options)
    return net.to_bytes([net.pair(y, 0.1)])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            network("NonZero"),
            r"NonZero \(node 2 'NonZero_\d+'\), of a result whose size .*, must be one of the"
            r" operators that docs/reference/onnx.md lists, and is not: end the network before it",
        ),
        (network(domain="test.org"), r"of domain 'test.org' must be of a domain in \('', "),
        (network(fancy=3), r"attributes must be auto_pad, .*, not 'fancy' = 3"),
        (network(pads=[-1, 0, 0, 0]), r"pads must be 4 numbers of 0..4096, not \(-1, 0, 0, 0\)"),
        (network(strides=[0, 1]), r"strides must be 2 numbers of 1..4096, not \(0, 1\)"),
        (network(auto_pad="FULL"), "auto_pad must be NOTSET or .*, not 'FULL'"),
        (network(opset=9), "opset must be within 10..[0-9]+, not 9"),
        (network(shape=(1, 4, "height", 6)), r"input 'x': shape must be fixed but for the batch"),
        (network("Transpose", shape=OPEN, perm=[1, 0, 2, 3]), "perm must leave axis 0, the"),
        (network("Softmax", shape=OPEN, axis=0), "axis must not be 0, the batch"),
        (
            network("AveragePool", kernel_shape=[2, 2], dilations=[2, 1], pads=[1, 0, 0, 0]),
            r"pads must be 0 where dilations are \(2, 1\), not \(1, 0, 0, 0\)",
        ),
        (network("MaxPool", kernel_shape=[2, 2], storage_order=1), "storage_order must be 0, "),
        (network("Gemm", shape=(1, 6), transA=1), "transA must be 0 where"),
        (network("Cast", to=10), "to must be 1, not 10"),
        (network("ConvTranspose", auto_pad="FULL"), "auto_pad must be NOTSET or .*, not 'FULL'"),
        (network("Resize", mode="spline"), "mode must be nearest or linear or cubic, not 'spline'"),
        (network("Pad", mode="wrap"), "mode must be constant or reflect or edge, not 'wrap'"),
        (network("DepthToSpace", blocksize=2, mode="RCD"), "mode must be DCR or CRD, not 'RCD'"),
    ],
)  # fmt: skip
def test_unsupported(data: bytes, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        load_onnx_bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (network(group=3), "3 filters of 4 channels in 3 groups must divide evenly among 4 input"),
        (network(kernel_shape=[3, 3]), r"kernel_shape must be that of the weights, \(2, 2\), not"),
        (network(pads=[1.5]), r"pads must be a list of whole numbers, not \(1.5,\)"),
        (network(shape=(1, 4, 1, 1)), "a window of 2 must fit into 1 and padding"),
        (network("Flatten", axis=9), "axis must be within -4..4, not 9"),
        (network("Conv", dilations=[9, 1]), "a window of 10 must fit into 6"),
        (network("ConvTranspose", group=3), "weights of 4 channels must be 3 groups of the 4"),
        (network("ConvTranspose", pads=[9, 9, 9, 9]), "the output's sizes must be within 1..335"),
        (network("ConvTranspose", output_shape=[9]), r"output_shape must be 2 numbers, not \(9,\)"),
    ],
)
def test_malformed(data: bytes, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_onnx_bytes(data)


def changed(change: Callable[[onnx.ModelProto], object]) -> bytes:
    """The network, damaged."""
    model = onnx.ModelProto.FromString(network())
    change(model)
    return model.SerializeToString()


def _cycle(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = model.graph.node[-2].output[0]


def _unknown(model: onnx.ModelProto) -> None:
    model.graph.node[2].input[0] = "nowhere"


def _twice(model: onnx.ModelProto) -> None:
    model.graph.node[1].output[0] = model.graph.node[0].output[0]


def _short(model: onnx.ModelProto) -> None:
    tensor = next(item for item in model.graph.initializer if len(item.dims) == 4)
    tensor.raw_data = tensor.raw_data[:-1]


def _bomb(model: onnx.ModelProto) -> None:
    tensor = next(item for item in model.graph.initializer if len(item.dims) == 4)
    tensor.dims[0] = 1 << 40


def _large(model: onnx.ModelProto) -> None:
    sizes = model.graph.input[0].type.tensor_type.shape.dim
    sizes[2].dim_value = sizes[3].dim_value = 1 << 30


def _scale(model: onnx.ModelProto) -> None:
    for tensor in model.graph.initializer:
        if not tensor.dims and tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(np.array(np.nan, np.float32), tensor.name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_cycle, r"depends on its own output: a cycle"),
        (_unknown, r"Conv \(node 3\) reads|reads 'nowhere', which is no input, no initializer"),
        (_twice, "which must be written once"),
        (_short, r"int8 of shape \(3, 4, 2, 2\) must have 48 bytes, not 47"),
        (_bomb, "must have at most 268435456 elements"),
        (_large, "must have at most 33554432 elements"),
        (_scale, r"scale input 1 '.*' must be within .*, not \[nan\]"),
        (lambda model: model.graph.Clear(), "must have nodes, inputs and outputs"),
        (lambda model: model.graph.output[0].Clear(), "must be a named tensor"),
    ],
)
def test_damaged(change: Callable[[onnx.ModelProto], None], message: str) -> None:
    begin = time.monotonic()
    with pytest.raises((ModelError, UnsupportedError), match=message):
        load_onnx_bytes(changed(change))
    assert time.monotonic() - begin < 1


@pytest.mark.parametrize("operator", ["ConstantOfShape", "Expand", "Tile"])
def test_folding_makes_nothing_huge(operator: str) -> None:
    net = OnnxWriter()
    huge = net.constant([1 << 20, 1 << 20], "int64")
    one = net.constant([[1.0]], "float32")
    made = net.add(operator, [huge] if operator == "ConstantOfShape" else [one, huge])
    y = net.add("Add", [net.pair(net.input("x", SHAPE), 0.1), made])
    with pytest.raises(ModelError, match="constants must make at most 6710.* more elements"):
        load_onnx_bytes(net.to_bytes([net.pair(y, 0.1)]))


@pytest.mark.parametrize(
    ("operator", "options", "message"),
    [
        (
            "Add",
            {},
            "input 0 '.*' must be real numbers, behind DequantizeLinear, and is codes",
        ),
        ("Resize", {"mode": "cubic"}, "mode of codes must be nearest or linear, not 'cubic'"),
    ],
)
def test_codes_are_no_numbers(operator: str, options: dict[str, Any], message: str) -> None:
    net = OnnxWriter()
    q = net.add("QuantizeLinear", [net.input("x", OPEN), *net.scale(0.1, 0)])
    empty = net.constant([], "float32")
    more = [empty, net.constant([1, 1, 2, 2], "float32")] if operator == "Resize" else [q]
    y = net.add("DequantizeLinear", [net.add(operator, [q, *more], **options), *net.scale(0.1, 0)])
    with pytest.raises(UnsupportedError, match=message):
        load_onnx_bytes(net.to_bytes([y]))


def test_float_networks_are_refused() -> None:
    net = OnnxWriter()
    y = net.add("Relu", [net.input("x", SHAPE)])
    with pytest.raises(UnsupportedError, match="must be quantised, and is float: quantise it"):
        load_onnx_bytes(net.to_bytes([y]))


def test_functions_and_sparse_constants_are_refused() -> None:
    function = helper.make_function(
        "local", "Twice", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["y"])],
        [helper.make_opsetid("", 21)],
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match="must hold no functions of its own, not 'Twice'"):
        load_onnx_bytes(changed(lambda model: model.functions.append(function)))
    sparse = onnx.SparseTensorProto()
    with pytest.raises(UnsupportedError, match="must hold dense constants"):
        load_onnx_bytes(changed(lambda model: model.graph.sparse_initializer.append(sparse)))


def test_constants_outside_of_the_file(tmp_path: Path) -> None:
    model = onnx.ModelProto.FromString(network())
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path), save_as_external_data=True, size_threshold=8, location="data.bin")
    inside = load(path)
    assert (tmp_path / "data.bin").exists()
    assert [node.operator for node in inside.nodes if "conv" in node.operator] == ["conv2d"]
    data = path.read_bytes()
    with pytest.raises(ModelError, match="is kept in 'data.bin', and the model came without"):
        load_onnx_bytes(data)
    (tmp_path / "data.bin").write_bytes(b"short")
    with pytest.raises(ModelError, match="'data.bin' must be a file of [0-9]+ bytes, not 5"):
        load(path)
    folder = tmp_path / "deeper"
    folder.mkdir()
    for place in ("../data.bin", str(tmp_path / "data.bin")):
        moved = onnx.ModelProto.FromString(data)
        for tensor in moved.graph.initializer:
            for item in tensor.external_data:
                if item.key == "location":
                    item.value = place
        (folder / "model.onnx").write_bytes(moved.SerializeToString())
        with pytest.raises(ModelError, match="must be kept in the model's folder, not in"):
            load(folder / "model.onnx")


def test_other_files_are_named() -> None:
    with pytest.raises(ModelError, match="is no ONNX file, damaged or cut short|must be an ONNX"):
        load_onnx_bytes(b"\x08\x0a\x12\xff\xff")


def test_what_is_not_read_is_blamed_before_what_is_around_it() -> None:
    """A recurrent layer's transposes move the batch: they are not in the way, it is."""
    net = OnnxWriter(21)
    x = net.pair(net.input("x", (1, 5, 6)), 0.1)
    turned = net.add("Transpose", [x], perm=[1, 0, 2])
    weights = [net.weights(np.ones(size, np.int8), np.float32(0.1)) for size in ((1, 4, 6),) * 2]
    y = net.add("RNN", [turned, *weights], hidden_size=4)
    z = net.add("Hardmax", [y])
    with pytest.raises(UnsupportedError) as caught:
        load_onnx_bytes(net.to_bytes([net.pair(z, 0.1)]))
    assert str(caught.value).endswith(
        ", a recurrent layer, must be one of the operators that docs/reference/onnx.md lists,"
        " and is not, nor Hardmax: run it beside Slipstick"
    )
    assert "RNN (node 5 'RNN_" in str(caught.value)
