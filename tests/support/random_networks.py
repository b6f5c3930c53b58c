"""Small random int8 networks as graphs, for tests of the compiler."""

from typing import Any

import numpy as np
from slipstick.graph import Graph, Node, Quantization, Tensor

ACTIVATIONS = ("none", "relu", "relu6", "relu_n1_to_1")


class NetworkBuilder:
    """Adds one layer after another to a graph; every tensor gets its own scale.

    Parameters
    ----------
    seed : int
    height, width, channels : int
        Of the input.
    """

    def __init__(self, seed: int, height: int, width: int, channels: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors: dict[str, Tensor] = {}
        self.nodes: list[Node] = []
        self.last = self.activation("input", (1, height, width, channels))

    def activation(self, name: str, shape: tuple[int, ...], like: str = "") -> str:
        """A new int8 tensor, with the quantisation of another if that is named."""
        quantization = self.tensors[like].quantization if like else None
        if quantization is None:
            scale = np.array([self.rng.uniform(0.01, 0.1)])
            quantization = Quantization(scale, np.array([self.rng.integers(-128, 127)]))
        self.tensors[name] = Tensor(name, shape, "int8", quantization)
        return name

    def shape(self, name: str = "") -> tuple[int, ...]:
        """The shape of a tensor, of the last one without a name."""
        return self.tensors[name or self.last].shape

    def node(self, operator: str, inputs: tuple[str, ...], output: str, **attributes: Any) -> str:
        """Adds a node; what it makes is the last tensor now."""
        self.nodes.append(
            Node(f"{operator}_{len(self.nodes)}", operator, inputs, (output,), attributes)
        )
        self.last = output
        return output

    def _name(self) -> str:
        return f"t{len(self.nodes)}"

    def _weights(self, shape: tuple[int, ...], axis: int, spread: float) -> tuple[str, str]:
        """Weights and bias, with a scale a channel whose factors differ by 2^spread."""
        name, count = f"w{len(self.nodes)}", shape[axis]
        reduction = float(np.prod(shape)) / count
        scale = 2.0 ** self.rng.uniform(-spread, spread, count) / 100 / np.sqrt(reduction)
        data = self.rng.integers(-127, 128, shape).astype(np.int8)
        quantization = Quantization(scale, np.zeros(count, np.int64), axis)
        self.tensors[name] = Tensor(name, shape, "int8", quantization, data)
        bias = self.rng.integers(-3000, 3000, count).astype(np.int32)
        self.tensors[name + "b"] = Tensor(name + "b", (count,), "int32", None, bias)
        return name, name + "b"

    def _slide(self, window: tuple[int, int], dilation: tuple[int, int] = (1, 1)) -> dict[str, Any]:
        """Random stride and padding under which a window fits, and the output's sides."""
        stride = tuple(int(s) for s in self.rng.integers(1, 4, 2))
        spans = [(size - 1) * step + 1 for size, step in zip(window, dilation, strict=True)]
        padding, sides = [], []
        for span, side, step in zip(spans, self.shape()[1:3], stride, strict=True):
            before, after = (int(p) for p in self.rng.integers(0, span, 2))
            after += max(0, span - side - before - after)
            if after >= span:
                before, after = span - 1, span - 1
            padding += [before, after]
            sides.append((side + before + after - span) // step + 1)
        return {"stride": stride, "padding": tuple(padding), "sides": tuple(sides)}

    def conv2d(self, outputs: int, kernel: tuple[int, int], groups: int = 1, **changes: Any) -> str:
        """A convolution; ``changes`` replace random attributes, ``sides`` the output's."""
        dilation = (int(self.rng.integers(1, 3)), int(self.rng.integers(1, 3)))
        chosen = {"dilation": dilation, **self._slide(kernel, dilation), **changes}
        sides = chosen.pop("sides")
        spread = chosen.pop("spread", 1.0)
        weights = self._weights((outputs, *kernel, self.shape()[3] // groups), 0, spread)
        activation = chosen.pop("activation", str(self.rng.choice(ACTIVATIONS)))
        source, result = self.last, self.activation(self._name(), (1, *sides, outputs))
        return self.node(
            "conv2d", (source, *weights), result, groups=groups, activation=activation, **chosen
        )

    def same_conv2d(self, kernel: int, outputs: int) -> str:
        """A convolution that keeps height and width; kernel is odd."""
        pad = kernel // 2
        return self.conv2d(
            outputs,
            (kernel, kernel),
            stride=(1, 1),
            dilation=(1, 1),
            padding=(pad,) * 4,
            sides=self.shape()[1:3],
        )

    def depthwise(self, kernel: tuple[int, int], multiplier: int) -> str:
        """A depthwise convolution."""
        chosen = self._slide(kernel)
        sides = chosen.pop("sides")
        outputs = self.shape()[3] * multiplier
        weights = self._weights((1, *kernel, outputs), 3, 1.0)
        source, result = self.last, self.activation(self._name(), (1, *sides, outputs))
        return self.node(
            "depthwise_conv2d", (source, *weights), result, groups=self.shape(source)[3],
            multiplier=multiplier, activation=str(self.rng.choice(ACTIVATIONS)),
            dilation=(1, 1), **chosen,
        )  # fmt: skip

    def fully_connected(self, outputs: int) -> str:
        """A fully connected layer over all of the last tensor."""
        weights = self._weights((outputs, int(np.prod(self.shape()))), 0, 1.0)
        source, result = self.last, self.activation(self._name(), (1, outputs))
        return self.node(
            "fully_connected", (source, *weights), result, activation="relu", keep_dimensions=False
        )

    def add(self, other: str) -> str:
        """The sum of the last tensor and another of its shape."""
        source, result = self.last, self.activation(self._name(), self.shape())
        activation = str(self.rng.choice(ACTIVATIONS))
        return self.node("add", (source, other), result, activation=activation)

    def mul(self, other: str) -> str:
        """The product of the last tensor and another of its shape, or a vector of its channels."""
        sources = [self.last, other]
        if self.rng.integers(0, 2):
            sources.reverse()
        shape = max((self.shape(name) for name in sources), key=np.prod)
        result = self.activation(self._name(), shape)
        activation = str(self.rng.choice(ACTIVATIONS))
        return self.node("mul", tuple(sources), result, activation=activation)

    def pool(self, operator: str, window: tuple[int, int]) -> str:
        """A pool within the input: every window meets it."""
        chosen = self._slide(window)
        sides = chosen.pop("sides")
        source = self.last
        result = self.activation(self._name(), (1, *sides, self.shape()[3]), like=source)
        activation = str(self.rng.choice(ACTIVATIONS))
        return self.node(
            operator, (source,), result, window=window, activation=activation, **chosen
        )

    def unary(self, operator: str, *, same_scale: bool = False) -> str:
        """A function of one code."""
        source = self.last
        result = self.activation(self._name(), self.shape(), like=source if same_scale else "")
        return self.node(operator, (source,), result)

    def pad(self, amount: int) -> str:
        """Padding of height and width by the code of zero."""
        source, (_, height, width, channels) = self.last, self.shape()
        shape = (1, height + amount, width + 2 * amount, channels)
        result = self.activation(self._name(), shape, like=source)
        quantization = self.tensors[source].quantization
        assert quantization is not None
        padding = ((0, 0), (amount, 0), (amount, amount), (0, 0))
        value = int(quantization.zero_point[0])
        return self.node("pad", (source,), result, padding=padding, value=value)

    def reshape(self, shape: tuple[int, ...]) -> str:
        """The same elements in another shape."""
        source = self.last
        result = self.activation(self._name(), shape, like=source)
        return self.node("reshape", (source,), result, shape=shape)

    def mean(self, *, keep_dimensions: bool = False) -> str:
        """The mean over height and width."""
        ones, channels = (1, 1) if keep_dimensions else (), self.shape()[3]
        source, result = self.last, self.activation(self._name(), (1, *ones, channels))
        return self.node("mean", (source,), result, axes=(1, 2), keep_dimensions=keep_dimensions)

    def softmax(self) -> str:
        """The one layer that only the host knows."""
        source, result = self.last, self._name()
        quantization = Quantization(np.array([1 / 256]), np.array([-128]))
        self.tensors[result] = Tensor(result, self.shape(), "int8", quantization)
        return self.node("softmax", (source,), result, beta=1.0)

    def graph(self, *outputs: str) -> Graph:
        """The network; its output is the last tensor unless others are named."""
        return Graph("random", ("input",), outputs or (self.last,), self.tensors, tuple(self.nodes))

    def images(self) -> np.ndarray:
        """A random input."""
        return self.rng.integers(-128, 128, self.shape("input")).astype(np.int8)


def _grow(builder: NetworkBuilder) -> None:
    """One random layer, or a residual block, that suits the last tensor."""
    rng = builder.rng
    _, height, width, channels = builder.shape()
    kernel = (int(rng.integers(1, min(4, height) + 1)), int(rng.integers(1, min(4, width) + 1)))
    match int(rng.integers(0, 10)):
        case 0 | 1:
            builder.conv2d(int(rng.integers(1, 21)), kernel)
        case 2:
            builder.depthwise(kernel, 1)
        case 3:
            builder.depthwise(kernel, int(rng.integers(2, 4)))
        case 4:
            groups = next(g for g in (3, 2, 1) if channels % g == 0)
            builder.conv2d(groups * int(rng.integers(1, 8)), kernel, groups)
        case 5:
            shortcut = builder.last
            builder.same_conv2d(3, channels)
            builder.add(shortcut)
        case 6:
            block, outputs = builder.last, int(rng.integers(1, 12))
            main = builder.same_conv2d(3, outputs)
            builder.last = block
            builder.same_conv2d(1, outputs)
            builder.add(main)
        case 7:
            builder.pool(str(rng.choice(["average_pool2d", "max_pool2d"])), kernel)
        case 8:
            _function(builder)
        case 9:
            builder.pad(1)


def _function(builder: NetworkBuilder) -> None:
    rng = builder.rng
    operator = str(rng.choice(["relu", "relu6", "logistic", "tanh", "hard_swish"]))
    builder.unary(operator, same_scale=bool(rng.integers(0, 2)))


def join_functions(builder: NetworkBuilder) -> None:
    """Functions of the last tensor that meet again, as in SiLU."""
    rng, names = builder.rng, [builder.last]
    for _ in range(int(rng.integers(1, 4))):
        if rng.integers(0, 2):
            builder.last = str(rng.choice(names))
        if len(names) == 1 or rng.integers(0, 2):
            _function(builder)
        else:
            _join(builder, str(rng.choice(names)))
        names.append(builder.last)
    _join(builder, str(rng.choice(names[:-1])))


def _join(builder: NetworkBuilder, other: str) -> None:
    if builder.rng.integers(0, 2):
        builder.mul(other)
    else:
        builder.add(other)


def _product(builder: NetworkBuilder) -> None:
    """A gate, of a layer beside it, or squeeze-and-excitation: a gate per channel."""
    block, (*_, channels) = builder.last, builder.shape()
    if builder.rng.integers(0, 2):
        builder.mean(keep_dimensions=True)
        builder.same_conv2d(1, int(builder.rng.integers(1, 9)))
    builder.same_conv2d(1, channels)
    if builder.rng.integers(0, 2):
        builder.unary("logistic")
    builder.mul(block)


def random_network(seed: int, *, functions: bool = False, products: bool = False) -> NetworkBuilder:
    """A network of one to five layers or blocks, and perhaps a head; ``functions`` or ``products``
    behind most."""
    rng = np.random.default_rng(seed)
    sizes = (int(size) for size in rng.integers((2, 2, 1), (11, 11, 12)))
    builder = NetworkBuilder(seed + 1, *sizes)
    for _ in range(int(rng.integers(1, 6))):
        _grow(builder)
        if functions and rng.integers(0, 4):
            (_function, join_functions)[int(rng.integers(0, 2))](builder)
        if products and rng.integers(0, 4):
            _product(builder)
    match int(rng.integers(0, 4)):
        case 1:
            builder.fully_connected(int(rng.integers(1, 20)))
            builder.softmax()
        case 2:
            builder.mean()
            builder.fully_connected(int(rng.integers(1, 20)))
        case 3:
            builder.reshape((1, int(np.prod(builder.shape()))))
            builder.fully_connected(5)
    return builder


def some_outputs(builder: NetworkBuilder) -> tuple[str, ...]:
    """The last tensor and, now and then, others."""
    made = [node.outputs[0] for node in builder.nodes]
    chosen = [name for name in made if builder.rng.random() < 0.15]
    return tuple(dict.fromkeys([*chosen, builder.last]))
