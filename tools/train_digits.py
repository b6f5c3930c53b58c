"""Trains the embedded digits network, quantises it and writes it with its figures.

Run: ``python tools/train_digits.py``; needs the extra ``train`` (PyTorch). The same seed on
the same versions gives the same file.
"""

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import platform
from pathlib import Path

import numpy as np
import torch
from float_layers import INPUT, FloatLayer, run_float
from quantize_layers import Codes, quantize
from slipstick.examples import digits
from slipstick.writers import tflite_operators as ops
from tflite_micro.python.tflite_micro import runtime
from torch import nn

INPUT_CODES = Codes(1 / (digits.BRIGHTEST * digits.CODES_PER_LEVEL), -128)
BATCH = 32
PEAK_LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-3
PACKAGES = ("numpy", "torch", "scikit-learn", "flatbuffers", "tflite", "tflite-micro")


class DigitsNetwork(nn.Module):
    """A residual block, then a depthwise separable one: 8x8x1 to ten logits."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.residual = nn.Conv2d(16, 16, 3, padding=1)
        self.down = nn.Conv2d(16, 32, 3, stride=2)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.pointwise = nn.Conv2d(32, 32, 1)
        self.logits = nn.Linear(2 * 2 * 32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits of images of shape (images, 1, 8, 8)."""
        x = self.stem(x).relu()
        x = (x + self.residual(x)).relu()
        # stride 2 on 8 rows: TensorFlow Lite pads below and to the right alone
        x = self.down(nn.functional.pad(x, (0, 1, 0, 1))).relu()
        x = self.depthwise(x).relu()
        x = nn.functional.avg_pool2d(self.pointwise(x).relu(), 2)
        return self.logits(x.permute(0, 2, 3, 1).flatten(1))

    def layers(self) -> list[FloatLayer]:
        """The network as TensorFlow Lite would run it, NHWC, with a softmax at its end."""
        relu = ops.Conv2D(activation="RELU")
        narrow = ops.Conv2D(activation="RELU", stride=(2, 2))
        separable = ops.DepthwiseConv2D(activation="RELU")
        pool = ops.AveragePool2D(window=(2, 2), stride=(2, 2))
        return [
            _convolution("stem", relu, INPUT, self.stem),
            _convolution("residual", ops.Conv2D(), "stem", self.residual),
            FloatLayer("sum", ops.Add(activation="RELU"), ("stem", "residual")),
            _convolution("down", narrow, "sum", self.down),
            _convolution("depthwise", separable, "down", self.depthwise),
            _convolution("pointwise", relu, "depthwise", self.pointwise),
            FloatLayer("pool", pool, ("pointwise",)),
            FloatLayer("flat", ops.Reshape(shape=(1, 128)), ("pool",)),
            FloatLayer(
                "logits",
                ops.FullyConnected(),
                ("flat",),
                _array(self.logits.weight),
                _array(self.logits.bias),
            ),
            FloatLayer("probabilities", ops.Softmax(), ("logits",)),
        ]


def _array(parameter: torch.Tensor | None) -> np.ndarray:
    if parameter is None:
        raise ValueError("every layer of the digits network must have a bias")
    return parameter.detach().numpy()


def _convolution(name: str, operator: ops.Conv2D, source: str, conv: nn.Conv2d) -> FloatLayer:
    # PyTorch has OIHW, and (O, 1, H, W) for depthwise; TensorFlow Lite OHWI and 1HWO
    order = (1, 2, 3, 0) if isinstance(operator, ops.DepthwiseConv2D) else (0, 2, 3, 1)
    weights = np.ascontiguousarray(_array(conv.weight).transpose(order))
    return FloatLayer(name, operator, (source,), weights, _array(conv.bias))


def shift(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each image moved by -1, 0 or 1 pixels each way, the background following.

    Parameters
    ----------
    images : array, shape (images, 8, 8, 1)
    rng : numpy.random.Generator
    """
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    rows, columns = rng.integers(0, 3, (2, len(images), 1, 1))
    steps = np.arange(8)
    index = np.arange(len(images))[:, None, None]
    return padded[index, rows + steps[:, None], columns + steps]


def train(x: np.ndarray, y: np.ndarray, seed: int, epochs: int) -> DigitsNetwork:
    """Adam with a one-cycle rate on shifted images; the last weights are taken, none are chosen.

    Parameters
    ----------
    x : array of float32, shape (images, 8, 8, 1)
    y : array of int64, shape (images,)
    seed : int
    epochs : int
    """
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    rng = np.random.default_rng(seed)
    network = DigitsNetwork()
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=WEIGHT_DECAY)
    steps = epochs * (len(x) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_LEARNING_RATE, steps)
    for epoch in range(epochs):
        order = rng.permutation(len(x))
        images, labels = shift(x[order], rng), torch.from_numpy(y[order])
        pixels = torch.from_numpy(np.ascontiguousarray(images.transpose(0, 3, 1, 2)))
        total = 0.0
        for start in range(0, len(x) - BATCH + 1, BATCH):
            batch = slice(start, start + BATCH)
            loss = nn.functional.cross_entropy(network(pixels[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}/{epochs}: loss {total / (len(x) // BATCH):.4f}", flush=True)
    return network


def reference_accuracy(model: bytes, x: np.ndarray, y: np.ndarray) -> float:
    """Share of images that tflm, the reference runtime, classifies rightly.

    Parameters
    ----------
    model : bytes
    x : array of int8, shape (images, 8, 8, 1)
    y : array of int64, shape (images,)
    """
    interpreter = runtime.Interpreter.from_bytes(model)
    right = 0
    for image, label in zip(x, y, strict=True):
        interpreter.set_input(image[np.newaxis], 0)
        interpreter.invoke()
        right += int(np.argmax(interpreter.get_output(0)) == label)
    return right / len(y)


def count_macs(layers: list[FloatLayer], x: np.ndarray) -> int:
    """Multiply-accumulates of one inference; ``x`` is an image of shape (1, 8, 8, 1)."""
    activations = run_float(layers, x)
    macs = 0
    for layer in layers:
        if layer.weights is not None:
            pixels = activations[layer.name].size // activations[layer.name].shape[-1]
            macs += layer.weights.size * pixels
    return macs


def main() -> None:
    """Trains, quantises, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--output", type=Path, default=digits.MODEL)
    options = parser.parse_args()

    train_x, train_y, held_out_x, held_out_y = digits.load_digits()
    scale = np.float32(INPUT_CODES.scale)

    def real(codes: np.ndarray) -> np.ndarray:
        return (codes.astype(np.float32) - INPUT_CODES.zero_point) * scale

    layers = train(real(train_x), train_y, options.seed, options.epochs).layers()
    model = quantize(layers, real(train_x), INPUT_CODES, "digits, trained by Slipstick")
    guesses = run_float(layers, real(held_out_x))["probabilities"].argmax(axis=-1)
    parameters = sum(
        a.size for layer in layers for a in (layer.weights, layer.bias) if a is not None
    )
    figures = {
        "command": f"python tools/train_digits.py --seed {options.seed} --epochs {options.epochs}",
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "seed": options.seed,
        "epochs": options.epochs,
        "split_seed": digits.SPLIT_SEED,
        "train_count": len(train_y),
        "held_out_count": len(held_out_y),
        "float_accuracy": float(np.mean(guesses == held_out_y)),
        "int8_accuracy": reference_accuracy(model, held_out_x, held_out_y),
        "int8_train_accuracy": reference_accuracy(model, train_x, train_y),
        "int8_accuracy_by": "tflite-micro",
        "macs": count_macs(layers, real(train_x[:1])),
        "parameters": parameters,
        "bytes": len(model),
        "sha256": hashlib.sha256(model).hexdigest(),
        "versions": {"python": platform.python_version()}
        | {name: importlib.metadata.version(name) for name in PACKAGES},
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_bytes(model)
    text = json.dumps(figures, indent=2)
    options.output.with_suffix(".json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
