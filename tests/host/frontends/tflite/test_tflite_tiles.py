"""TILE, alone and as Keras 3 writes nearest upsampling with it: no runtime but LiteRT has it."""

from pathlib import Path

import numpy as np
import pytest
from slipstick import kernels
from slipstick.compiler import compile_graph
from slipstick.devices import open_device
from slipstick.errors import ModelError, SlipstickError, UnsupportedError
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.program import Program
from slipstick.session import InferenceSession
from slipstick.verify.references import Definition, open_references
from slipstick.writers import tflite_operators as basic
from slipstick.writers import tflite_real as real
from slipstick.writers.tflite import TfliteWriter
from tflm_networks import SMALL, described, integers, network

SAME = 0.5, 3


def check(data: bytes, x: np.ndarray, expected: np.ndarray) -> Program:
    """Kernels and golden session give the codes that are expected; returns the program."""
    graph = load_tflite_bytes(data)
    name = graph.outputs[0]
    np.testing.assert_array_equal(kernels.run_graph(graph, [x])[name], expected)
    program = compile_graph(graph, SMALL)
    with InferenceSession(program, open_device("model", SMALL)) as session:
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], expected)
    return program


class Upsampling:
    """A convolution of one tap that copies, and what is appended to it."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.writer = TfliteWriter()
        channels = shape[3]
        eye = np.eye(channels).reshape(channels, 1, 1, channels)
        self.writer.tensor("x", shape, scale=0.5, zero_point=3)
        self.writer.tensor("w", eye.shape, scale=1.0, data=eye)
        self.last = self.tensor(shape)
        self.writer.tensor("b", (channels,), "int32", scale=0.5, data=np.zeros(channels))
        self.writer.add(basic.Conv2D(), ["x", "w", "b"], [self.last])

    def tensor(self, shape: tuple[int, ...]) -> str:
        name = f"t{len(self.writer._tensors)}"
        return self.writer.tensor(name, shape, scale=0.5, zero_point=3)

    def reshape(self, *shape: int) -> None:
        before, self.last = self.last, self.tensor(shape)
        self.writer.add(basic.Reshape(shape=shape), [before], [self.last])

    def tile(self, multiples: tuple[int, ...], *shape: int) -> None:
        before, self.last = self.last, self.tensor(shape)
        times = self.writer.tensor(
            f"m{self.last}", (len(multiples),), "int32", data=np.array(multiples)
        )
        self.writer.add(real.Tile(), [before, times], [self.last])

    def rows(self, height: int, width: int, channels: int, times: int) -> None:
        """Each row several times, as Keras 3's repeat along axis 1."""
        self.reshape(1, height, 1, width, channels)
        self.tile((1, 1, times, 1, 1), 1, height, times, width, channels)

    def columns(self, height: int, width: int, channels: int, times: int) -> None:
        """Each column several times, from the shape that the rows left."""
        self.reshape(1, height, width, 1, channels)
        self.tile((1, 1, 1, times, 1), 1, height, width, times, channels)

    def done(self) -> bytes:
        return self.writer.to_bytes(["x"], [self.last])


def picture(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(-128, 128, shape, dtype=np.int8)


@pytest.mark.parametrize(
    ("shape", "down", "across"),
    [((3, 5, 4), 2, 2), ((1, 1, 7), 5, 3), ((6, 2, 4), 3, 1), ((4, 1, 9), 1, 4), ((2, 7, 1), 7, 7)],
)
def test_keras_upsampling_is_one_copy_on_the_device(
    shape: tuple[int, int, int], down: int, across: int
) -> None:
    height, width, channels = shape
    for merged in (True, False):
        network = Upsampling((1, *shape))
        if down > 1:
            network.rows(*shape, down)
            if not merged or across == 1:
                network.reshape(1, height * down, width, channels)
        if across > 1:
            network.columns(height * down, width, channels, across)
            network.reshape(1, height * down, width * across, channels)
        x = picture(2, *shape)
        program = check(network.done(), x, x.repeat(down, axis=1).repeat(across, axis=2))
        layers = [(layer.operator, layer.where) for layer in program.layers]
        assert layers[:2] == [("conv2d", "device"), ("resize_nearest", "device")]
        assert set(layers[2:]) <= {("reshape", "device")}


def test_a_layer_reads_what_is_enlarged() -> None:
    network = Upsampling((1, 4, 3, 4))
    network.rows(4, 3, 4, 2)
    network.columns(8, 3, 4, 2)
    network.reshape(1, 8, 6, 4)
    kernel = network.writer.tensor("k", (4, 2, 2, 4), scale=1 / 4, data=np.ones((4, 2, 2, 4)))
    y = network.writer.tensor("y", (1, 8, 6, 4), scale=9.0)
    network.writer.add(basic.Conv2D(), [network.last, kernel], [y])
    network.last = y
    data, x = network.done(), picture(2, 4, 3, 4)
    program = check(data, x, kernels.run_graph(load_tflite_bytes(data), [x])["y"])
    assert {layer.where for layer in program.layers} == {"device"}
    assert sum(layer.operator == "resize_nearest" for layer in program.layers) == 1


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_tiles_of_one_axis_are_concatenations(axis: int) -> None:
    shape = [1, 3, 2, 8]
    network = Upsampling((1, 3, 2, 8))
    multiples = [1, 1, 1, 1]
    multiples[axis], shape[axis] = 3, shape[axis] * 3
    network.tile(tuple(multiples), *shape)
    x = picture(2, 3, 2, 8)
    program = check(network.done(), x, np.tile(x, multiples))
    assert [layer.operator for layer in program.layers] == ["conv2d", "concatenation"]
    assert program.layers[1].where == "device"


def test_random_tiles() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        rank = int(rng.integers(2, 6))
        shape = (1, *rng.integers(1, 5, rank - 1).tolist())
        times = (1, *rng.integers(1, 4, rank - 1).tolist())
        out = tuple(int(size * count) for size, count in zip(shape, times, strict=True))
        tensors = [described(shape, SAME), integers(times)]
        writer = network(real.Tile(), tensors, [described(out, SAME)])
        graph = load_tflite_bytes(writer)
        x = rng.integers(-128, 128, (3, *shape[1:]), dtype=np.int8)
        wanted = np.tile(x, times)
        np.testing.assert_array_equal(kernels.run_graph(graph, [x])["y0"], wanted)
        program = compile_graph(graph, SMALL)
        with InferenceSession(program, open_device("model", SMALL)) as session:
            np.testing.assert_array_equal(session.run(None, {"x0": x})[0], wanted)


def test_verify_holds_tiles_to_their_definition(tmp_path: Path) -> None:
    network = Upsampling((1, 4, 3, 4))
    network.rows(4, 3, 4, 2)
    network.reshape(1, 8, 3, 4)
    path = tmp_path / "tile.tflite"
    path.write_bytes(network.done())
    reference, runtime = open_references(path)
    assert isinstance(reference, Definition) and runtime is None
    x = picture(1, 4, 3, 4)
    shown = reference.run_layers(x)[network.last]
    np.testing.assert_array_equal(shown, x.repeat(2, axis=1))


REFUSED: list[tuple[tuple[int, ...], tuple[int, ...], type[SlipstickError], str]] = [
    ((2, 1), (2, 4), UnsupportedError, "the multiple of axis 0, the batch, must be 1, not 2"),
    ((1, 0), (1, 4), ModelError, r"multiples must be at least 1, not \(1, 0\)"),
    ((1, 3), (1, 4), ModelError, r"output 'y0' must be \(1, 12\), not \(1, 4\)"),
    ((1, 1, 1), (1, 4), ModelError, "multiples 'x1' must be 2 numbers, not 3"),
]


@pytest.mark.parametrize(("multiples", "out", "error", "message"), REFUSED)
def test_refused(
    multiples: tuple[int, ...], out: tuple[int, ...], error: type[SlipstickError], message: str
) -> None:
    tensors = [described((1, 4), SAME), integers(multiples)]
    with pytest.raises(error, match=rf"TILE \(operator 0, output 'y0'\): {message}"):
        load_tflite_bytes(network(real.Tile(), tensors, [described(out, SAME)]))


def test_many_times_stay_with_the_host() -> None:
    """A copy of the device has at most 64 parts; none is made of a million."""
    tensors = [described((1, 1, 4), SAME), integers((1, 1 << 20, 1))]
    data = network(real.Tile(), tensors, [described((1, 1 << 20, 4), SAME)])
    program = compile_graph(load_tflite_bytes(data), SMALL)
    assert [(layer.operator, layer.where) for layer in program.layers] == [("tile", "host")]
