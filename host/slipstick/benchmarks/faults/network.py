"""A network so small that an inference takes some hundred cycles: what fault suites run."""

from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
from slipstick_rtl.config import Configuration

from ...compiler import compile_graph
from ...devices import open_device
from ...graph import Graph, Node, Quantization, Tensor
from ...program import Program
from ...runtime.executor import Execution, Values

HARDWARE = Configuration(
    rows=4,
    columns=4,
    lanes=4,
    activation_bytes=1 << 13,
    weight_bytes=1 << 10,
    accumulator_depth=16,
    instruction_words=128,
    payload_bytes=64,
)
"""With short frames: more of them, and more places for a fault between two of them."""

COMPACT = replace(HARDWARE, engine="compact", rows=2, columns=8, lanes=1, parameter_words=16)
"""The same for the other engine, whose end of the link is another as well."""

STREAMED = replace(HARDWARE, instruction_words=64, activation_bytes=1 << 15)
"""With so few instructions that the network does not fit, and is streamed while it runs."""

HARDWARE_OF = {"compact": COMPACT, "streamed": STREAMED}
"""By the name of the board, where it is not ``HARDWARE``."""

_SIDE, _CHANNELS, _CLASSES = 5, 4, 6
SAMPLES = 8


@dataclass(frozen=True)
class Work:
    """A program, inputs of one sample each, and all that the golden model shows for each."""

    program: Program
    feeds: list[Values]
    expected: list[Values]


def small_network() -> Graph:
    """A convolution with relu, and a fully connected layer over what it gives."""
    draw = np.random.default_rng(7)

    def tensor(name: str, shape: tuple[int, ...], scale: float, data: bool = False) -> Tensor:
        values = draw.integers(-127, 128, shape).astype(np.int8) if data else None
        quantization = Quantization(np.array([scale]), np.array([0]))
        return Tensor(name, shape, "int8", quantization, values)

    inner = _SIDE - 2
    tensors = (
        tensor("image", (1, _SIDE, _SIDE, _CHANNELS), 0.02),
        tensor("kernel", (_CHANNELS, 3, 3, _CHANNELS), 0.01, data=True),
        tensor("features", (1, inner, inner, _CHANNELS), 0.1),
        tensor("matrix", (_CLASSES, inner * inner * _CHANNELS), 0.01, data=True),
        tensor("classes", (1, _CLASSES), 0.2),
    )
    slide = {"stride": (1, 1), "dilation": (1, 1), "padding": (0, 0, 0, 0), "groups": 1}
    nodes = (
        Node("convolve", "conv2d", ("image", "kernel", ""), ("features",), {**slide, **_RELU}),
        Node("classify", "fully_connected", ("features", "matrix", ""), ("classes",), _PLAIN),
    )
    names = {each.name: each for each in tensors}
    return Graph("small", ("image",), ("classes",), names, nodes)


_RELU = {"activation": "relu"}
_PLAIN = {"activation": "none", "keep_dimensions": False}


def small_work(seed: int = 3, hardware: Configuration = HARDWARE) -> Work:
    """The network compiled for ``hardware``, with random inputs."""
    program = compile_graph(small_network(), hardware)
    draw = np.random.default_rng(seed)
    shape = program.tensors["image"].shape
    feeds: list[Values] = [
        {"image": draw.integers(-128, 128, shape).astype(np.int8)} for _ in range(SAMPLES)
    ]
    with closing(open_device("model", program.hardware)) as device:
        execution = Execution(program, device)
        return Work(program, feeds, [execution.infer(feed) for feed in feeds])
