"""A float ONNX network for scikit-learn's handwritten digits, which every machine has.

Its convolutions are random ones, a shortcut around one of them; the last layer is a regression.
"""

import functools
from pathlib import Path

import numpy as np
import onnxruntime
from float_networks import FloatNetwork
from sklearn.linear_model import RidgeClassifier
from slipstick.examples.digits import CODES_PER_LEVEL, load_digits
from slipstick.studies.lns.accuracy import Task

MODEL = "digits.onnx"
TASK = Task(
    "digits CNN", MODEL, "digits/held_out.npz", "digits/held_out.npz", "digits/train.npz", 40
)
CHANNELS = 12
FEATURES = CHANNELS * 4 * 4


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images of shape (images, 1, 8, 8), in grey levels, and labels: for training, held out."""
    train_x, train_y, held_out_x, held_out_y = load_digits()

    def levels(codes: np.ndarray) -> np.ndarray:
        return ((codes.astype(np.float32) + 128) / CODES_PER_LEVEL).transpose(0, 3, 1, 2)

    return levels(train_x), train_y, levels(held_out_x), held_out_y


@functools.cache
def digits_network() -> bytes:
    """The network; of the images that it was not trained on it tells 98 %."""
    x, y, _, _ = digits()
    session = onnxruntime.InferenceSession(_network(None, None))
    regression = RidgeClassifier(alpha=100)
    features = [np.asarray(session.run(None, {"x": image[None]})[0]) for image in x]
    regression.fit(np.concatenate(features), y)
    return _network(regression.coef_, regression.intercept_)


def _network(weights: np.ndarray | None, bias: np.ndarray | None) -> bytes:
    """Up to the features, if there are no weights."""
    net = FloatNetwork()
    x = net.conv(net.input("x", (1, 1, 8, 8)), 1, CHANNELS)
    x = net.add("Relu", [net.add("Add", [x, net.conv(x, CHANNELS, CHANNELS, act="")])])
    x = net.add("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Reshape", [x, net.list(1, FEATURES)])
    if weights is not None and bias is not None:
        operands = [net.constant(array.astype(np.float32)) for array in (weights, bias)]
        x = net.add("Gemm", [x, *operands], transB=1)
    return net.to_bytes([x])


def write_digits(folder: Path) -> None:
    """A folder for ``SLIPSTICK_DATA`` that has all files of ``TASK``."""
    train_x, train_y, held_out_x, held_out_y = digits()
    for name in ("models", "data/digits"):
        (folder / name).mkdir(parents=True)
    (folder / "models" / MODEL).write_bytes(digits_network())
    np.savez(folder / "data/digits/train.npz", x=train_x, y=train_y)
    np.savez(folder / "data/digits/held_out.npz", x=held_out_x, y=held_out_y)
