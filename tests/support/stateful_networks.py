"""Streaming networks as microWakeWord's: frames come run by run, variables hold the last ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from slipstick.writers import tflite_moves as moves
from slipstick.writers import tflite_operators as basic
from slipstick.writers import tflite_state as state
from slipstick.writers.tflite import TfliteWriter
from tflm_cases import codes

FRAMES, FEATURES, CHANNELS = 3, 40, 16
INPUT = (1, FRAMES, FEATURES)

Quantised = tuple[float, int]


@dataclass
class StreamingWriter:
    """Writes a main subgraph whose variables the other one sets.

    Parameters
    ----------
    rng : Generator
        Draws weights and initial values.
    """

    rng: Generator
    main: TfliteWriter = field(default_factory=TfliteWriter)

    def __post_init__(self) -> None:
        self.first = self.main.subgraph()
        self.main.add(state.CallOnce(subgraph=1), [], [])

    def handle(self, name: str) -> str:
        """A variable's handle in the main subgraph."""
        handle = self.main.tensor(f"{name}_handle", (), "resource")
        self.main.add(state.VarHandle(name=name), [], [handle])
        return handle

    def set_first(self, name: str, data: np.ndarray, quantised: Quantised) -> None:
        """What CALL_ONCE assigns to a variable."""
        handle = self.first.tensor(f"{name}_handle", (), "resource")
        self.first.add(state.VarHandle(name=name), [], [handle])
        scale, point = quantised
        value = self.first.tensor(
            f"{name}_first", data.shape, data.dtype.name, scale=scale, zero_point=point, data=data
        )
        self.first.add(state.AssignVariable(), [handle, value], [])

    def window(self, name: str, x: str, shape: Sequence[int], q: Quantised, kept: int) -> str:
        """The last ``kept`` rows of former runs in front of ``x``; the newest ones are kept."""
        _, rows, *rest = shape
        long = (1, kept + rows, *rest)
        self.set_first(name, codes(self.rng, (1, kept, *rest)), q)
        handle = self.handle(name)
        old = self.activation(f"{name}_old", (1, kept, *rest), q)
        self.main.add(state.ReadVariable(), [handle], [old])
        whole = self.activation(f"{name}_whole", long, q)
        self.main.add(moves.Concatenation(axis=1), [old, x], [whole])
        new = self.activation(f"{name}_new", (1, kept, *rest), q)
        rank = len(long)
        bounds = [[0, rows, *[0] * (rank - 2)], list(long), [1] * rank]
        spans = [self.integers(f"{name}_{n}", values) for n, values in enumerate(bounds)]
        self.main.add(moves.StridedSlice(), [whole, *spans], [new])
        self.main.add(state.AssignVariable(), [handle, new], [])
        return whole

    def activation(self, name: str, shape: Sequence[int], q: Quantised, dtype: str = "int8") -> str:
        """A tensor that is computed."""
        return self.main.tensor(name, shape, dtype, scale=q[0], zero_point=q[1])

    def integers(self, name: str, values: Sequence[int]) -> str:
        """A constant of int32."""
        data = np.array(values, np.int32)
        return self.main.tensor(name, data.shape, "int32", data=data)

    def layer(
        self, operator: basic.Operator, x: str, y: str, weights: tuple[int, ...], axis: int
    ) -> None:
        """A layer with random weights and biases, one scale a channel."""
        count = weights[axis]
        # sums of as many products stay within the codes
        size = 70 * np.sqrt(np.prod(weights) / count)
        scales = 2.0 ** self.rng.uniform(-1, 1, count) / size
        filters = self.main.tensor(
            f"{y}_weights",
            weights,
            scale=scales,
            axis=axis,
            data=self.rng.integers(-128, 128, weights),
        )
        data = self.rng.integers(-300, 300, count)
        bias = self.main.tensor(
            f"{y}_bias", (count,), "int32", scale=scales * 0.05, axis=0, data=data
        )
        self.main.add(operator, [x, filters, bias], [y])


def wake_word(rng: Generator) -> bytes:
    """Convolutions over rows of former runs, a depthwise pair, a layer over all that is kept."""
    net = StreamingWriter(rng)
    hidden: Quantised = (0.05, -128)
    picture = (1, FRAMES, 1, FEATURES)
    net.activation("frames", INPUT, (0.1, -128))
    x = net.activation("rows", picture, (0.1, -128))
    net.main.add(basic.Reshape(shape=picture), ["frames", net.integers("rows_shape", picture)], [x])
    whole = net.window("first", x, picture, (0.1, -128), 2)
    made = net.activation("first_made", (1, 1, 1, CHANNELS), hidden)
    convolution = basic.Conv2D(stride=(3, 1), padding="VALID", activation="RELU")
    net.layer(convolution, whole, made, (CHANNELS, 5, 1, FEATURES), 0)
    made = _mixed(net, "mixed", made, hidden)
    for number, kernel in enumerate((5, 9)):
        name = f"block{number}"
        whole = net.window(name, made, (1, 1, 1, CHANNELS), hidden, kernel - 1)
        deep = net.activation(f"{name}_deep", (1, 1, 1, CHANNELS), (0.05, 3))
        net.layer(basic.DepthwiseConv2D(padding="VALID"), whole, deep, (1, kernel, 1, CHANNELS), 3)
        made = net.activation(f"{name}_made", (1, 1, 1, CHANNELS), hidden)
        net.layer(basic.Conv2D(activation="RELU"), deep, made, (CHANNELS, 1, 1, CHANNELS), 0)
    return _tail(net, made, hidden)


def _mixed(net: StreamingWriter, name: str, x: str, q: Quantised) -> str:
    """Two depthwise convolutions of unlike lengths, each over half of the channels."""
    half = CHANNELS // 2
    whole = net.window(name, x, (1, 1, 1, CHANNELS), q, 6)
    parts = [net.activation(f"{name}_part{n}", (1, 7, 1, half), q) for n in (0, 1)]
    sizes, axis = net.integers(f"{name}_sizes", [half, half]), net.integers(f"{name}_axis", [3])
    net.main.add(moves.SplitV(count=2), [whole, sizes, axis], parts)
    last = net.activation(f"{name}_last", (1, 3, 1, half), q)
    spans = [
        net.integers(f"{name}_last_{n}", values)
        for n, values in enumerate(([0, 4, 0, 0], [1, 7, 1, half], [1] * 4))
    ]
    net.main.add(moves.StridedSlice(), [parts[1], *spans], [last])
    made = [net.activation(f"{name}_deep{n}", (1, 1, 1, half), q) for n in (0, 1)]
    for source, result, kernel in ((parts[0], made[0], 7), (last, made[1], 3)):
        net.layer(basic.DepthwiseConv2D(padding="VALID"), source, result, (1, kernel, 1, half), 3)
    joined = net.activation(f"{name}_joined", (1, 1, 1, CHANNELS), q)
    net.main.add(moves.Concatenation(axis=3), made, [joined])
    return joined


def _tail(net: StreamingWriter, made: str, hidden: Quantised) -> bytes:
    whole = net.window("tail", made, (1, 1, 1, CHANNELS), hidden, 4)
    flat = net.activation("flat", (1, 5 * CHANNELS), hidden)
    net.main.add(
        basic.Reshape(shape=(1, 5 * CHANNELS)),
        [whole, net.integers("flat_shape", (1, 5 * CHANNELS))],
        [flat],
    )
    logit = net.activation("logit", (1, 1), (0.06, 10))
    net.layer(basic.FullyConnected(), flat, logit, (1, 5 * CHANNELS), 0)
    likely = net.activation("likely", (1, 1), (1 / 256, -128))
    net.main.add(basic.Logistic(), [logit], [likely])
    net.activation("output", (1, 1), (1 / 256, 0), "uint8")
    net.main.add(basic.Quantize(), [likely], ["output"])
    return net.main.to_bytes(["frames"], ["output"])


def random_streaming(rng: Generator) -> tuple[bytes, tuple[int, ...]]:
    """A chain of layers over rows that are kept, of random sizes, and its input's shape."""
    net = StreamingWriter(rng)
    rows, channels = int(rng.integers(1, 4)), int(rng.integers(1, 21))
    width = int(rng.choice([1, 1, 2, 5]))
    shape, quantised = (1, rows, width, channels), (0.1, int(rng.integers(-128, 128)))
    made, first = net.activation("x", shape, quantised), shape[1:]
    for number in range(int(rng.integers(1, 5))):
        name, kept = f"layer{number}", int(rng.integers(1, 6))
        whole = net.window(name, made, shape, quantised, kept)
        rest = rows + kept - int(rng.integers(1, kept + rows + 1)) + 1
        kernel, quantised = rows + kept - rest + 1, (0.1, int(rng.integers(-128, 128)))
        operator, weights, axis = _random_layer(rng, channels, kernel)
        rows, channels = rest, weights[axis]
        shape = (1, rows, width, channels)
        made = net.activation(f"{name}_made", shape, quantised)
        net.layer(operator, whole, made, weights, axis)
        if rng.random() < 0.4:
            # what is kept of a layer may be an operand of the next
            total = net.activation(f"{name}_sum", shape, quantised)
            net.main.add(basic.Add(), [made, made], [total])
            made = total
    return net.main.to_bytes(["x"], [made]), first


def _random_layer(
    rng: Generator, channels: int, kernel: int
) -> tuple[basic.Operator, tuple[int, ...], int]:
    activation = str(rng.choice(["NONE", "RELU"]))
    if rng.random() < 0.5:
        operator = basic.DepthwiseConv2D(padding="VALID", activation=activation)
        return operator, (1, kernel, 1, channels), 3
    filters = int(rng.integers(1, 21))
    operator = basic.Conv2D(padding="VALID", activation=activation)
    return operator, (filters, kernel, 1, channels), 0


def delay(
    read: Mapping[str, object] | None = None,
    first: np.ndarray | None = None,
    shape: tuple[int, ...] = (1, 4),
) -> StreamingWriter:
    """The smallest: what goes in comes out one run later, plus what goes in now."""
    net = StreamingWriter(np.random.default_rng(1))
    if first is None:
        first = np.arange(int(np.prod(shape)), dtype=np.int8).reshape(shape)
    net.set_first("line", first, (0.5, 3))
    net.activation("x", shape, (0.5, 3))
    handle = net.handle("line")
    described = {"shape": shape, "dtype": "int8", "scale": 0.5, "zero_point": 3, **(read or {})}
    old = net.main.tensor("old", **described)
    net.main.add(state.ReadVariable(), [handle], [old])
    net.activation("y", shape, (0.5, 3))
    net.main.add(basic.Add(), ["x", old], ["y"])
    net.main.add(state.AssignVariable(), [handle, "x"], [])
    return net
