"""Networks by hand: the MNIST CNN, ResNet-8, and DS-CNN."""

from .network import INPUT, Kind, Layer, TrainingNetwork

_SAME = (1, 1, 1, 1)
_BEHIND = (0, 1, 0, 1)
"""Padding of a 3 x 3 window with stride 2, as TensorFlow's "same" has it for even sizes."""


def mnist_cnn() -> TrainingNetwork:
    """The topology of ``mnist-8.onnx``: 5x5x8, maxima of 2x2, 5x5x16, maxima of 3x3, 256-10."""
    layers = (
        Layer("conv1", Kind.CONVOLUTION, (INPUT,), 8, (5, 5), (1, 1), (2, 2, 2, 2), True),
        Layer("pool1", Kind.MAX_POOL, ("conv1",), 0, (2, 2), (2, 2)),
        Layer("conv2", Kind.CONVOLUTION, ("pool1",), 16, (5, 5), (1, 1), (2, 2, 2, 2), True),
        Layer("pool2", Kind.MAX_POOL, ("conv2",), 0, (3, 3), (3, 3)),
        Layer("flat", Kind.FLATTEN, ("pool2",)),
        Layer("dense", Kind.CONVOLUTION, ("flat",), 10),
    )
    return TrainingNetwork("mnist-cnn", (28, 28, 1), layers)


def digits_cnn() -> TrainingNetwork:
    """A small network for pictures of 8 x 8: 3x3x8, 3x3x16 with stride 2, maxima of 2x2, 64-10."""
    layers = (
        Layer("conv1", Kind.CONVOLUTION, (INPUT,), 8, (3, 3), (1, 1), _SAME, True),
        Layer("conv2", Kind.CONVOLUTION, ("conv1",), 16, (3, 3), (2, 2), _BEHIND, True),
        Layer("pool", Kind.MAX_POOL, ("conv2",), 0, (2, 2), (2, 2)),
        Layer("flat", Kind.FLATTEN, ("pool",)),
        Layer("dense", Kind.CONVOLUTION, ("flat",), 10),
    )
    return TrainingNetwork("digits-cnn", (8, 8, 1), layers)


def resnet8() -> TrainingNetwork:
    """ResNet-8 of MLPerf Tiny for CIFAR-10, without normalisation: 12.5 M MACs per image."""
    layers = [Layer("conv1", Kind.CONVOLUTION, (INPUT,), 16, (3, 3), (1, 1), _SAME, True)]
    last = "conv1"
    for block, channels in enumerate((16, 32, 64), start=1):
        stride, padding = ((1, 1), _SAME) if block == 1 else ((2, 2), _BEHIND)
        first, second = f"block{block}a", f"block{block}b"
        layers += [
            Layer(first, Kind.CONVOLUTION, (last,), channels, (3, 3), stride, padding, True),
            Layer(second, Kind.CONVOLUTION, (first,), channels, (3, 3), (1, 1), _SAME),
        ]
        short = last
        if block > 1:
            short = f"short{block}"
            layers.append(Layer(short, Kind.CONVOLUTION, (last,), channels, (1, 1), stride))
        last = f"block{block}"
        layers.append(Layer(last, Kind.ADD, (short, second), relu=True))
    layers += [
        Layer("pool", Kind.AVERAGE_POOL, (last,), 0, (8, 8), (8, 8)),
        Layer("dense", Kind.CONVOLUTION, ("pool",), 10),
    ]
    return TrainingNetwork("resnet8", (32, 32, 3), tuple(layers))


def ds_cnn(classes: int = 12) -> TrainingNetwork:
    """DS-CNN of MLPerf Tiny for key words: 49 x 10 features, four depthwise pairs of layers."""
    layers = [Layer("conv1", Kind.CONVOLUTION, (INPUT,), 64, (10, 4), (2, 2), (4, 5, 1, 1), True)]
    last = "conv1"
    for pair in range(1, 5):
        deep, wide = f"depth{pair}", f"point{pair}"
        layers += [
            Layer(deep, Kind.DEPTHWISE, (last,), 0, (3, 3), (1, 1), _SAME, True),
            Layer(wide, Kind.CONVOLUTION, (deep,), 64, relu=True),
        ]
        last = wide
    layers += [
        Layer("pool", Kind.AVERAGE_POOL, (last,), 0, (25, 5), (25, 5)),
        Layer("dense", Kind.CONVOLUTION, ("pool",), classes),
    ]
    return TrainingNetwork("ds-cnn", (49, 10, 1), tuple(layers))
