"""Small transformer encoders as float ONNX networks, and onnxruntime's quantiser for them."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from onnx_writer import OnnxWriter

TOKENS, WIDTH, HEADS, INNER, CLASSES = 12, 32, 4, 64, 5
WORDS = 30
PICTURE = (3, 16, 16)
"""Of a vision transformer: patches of 4 x 4 pixels are its tokens."""


class Encoder(OnnxWriter):
    """A float network of encoder layers with random weights.

    Parameters
    ----------
    seed : int
    fused : bool
        Whether normalisation and GELU are one operator each, or what older exporters write.
    masked : bool
        Whether a token sees those before it alone.
    """

    def __init__(self, seed: int, *, fused: bool, masked: bool = False) -> None:
        super().__init__(20 if fused else 13)
        self._rng = np.random.default_rng(seed)
        self._fused, self._masked = fused, masked

    def numbers(self, *shape: int, scale: float = 0.0, middle: float = 0.0) -> str:
        """A constant of random numbers."""
        values = self._rng.normal(middle, scale or shape[0] ** -0.5, shape)
        return self.constant(values.astype(np.float32))

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """A product with a matrix, and a bias."""
        made = self.add("MatMul", [x, self.numbers(inputs, outputs)])
        return self.add("Add", [made, self.numbers(outputs, scale=0.1)])

    def _float(self, value: float) -> str:
        return self.constant(value, "float32")

    def _list(self, *values: int) -> str:
        return self.constant(values, "int64")

    def normalized(self, x: str) -> str:
        """Layer normalisation."""
        scale = self.numbers(WIDTH, scale=0.1, middle=1)
        bias = self.numbers(WIDTH, scale=0.1)
        if self._fused:
            return self.add("LayerNormalization", [x, scale, bias], axis=-1)
        centred = self.add("Sub", [x, self.add("ReduceMean", [x], axes=[-1])])
        square = self.add("Pow", [centred, self._float(2)])
        variance = self.add("ReduceMean", [square], axes=[-1])
        deviation = self.add("Sqrt", [self.add("Add", [variance, self._float(1e-5)])])
        made = self.add("Div", [centred, deviation])
        return self.add("Add", [self.add("Mul", [made, scale]), bias])

    def gelu(self, x: str) -> str:
        """GELU."""
        if self._fused:
            return self.add("Gelu", [x])
        inner = self.add("Erf", [self.add("Div", [x, self._float(2**0.5)])])
        made = self.add("Mul", [x, self.add("Add", [inner, self._float(1)])])
        return self.add("Mul", [made, self._float(0.5)])

    def attention(self, x: str, tokens: int) -> str:
        """Multi-head attention of tokens to one another."""
        shape = self._list(0, tokens, HEADS, WIDTH // HEADS)
        parts = [self.add("Reshape", [self.linear(x, WIDTH, WIDTH), shape]) for _ in range(3)]
        query, value = (self.add("Transpose", [parts[i]], perm=[0, 2, 1, 3]) for i in (0, 2))
        key = self.add("Transpose", [parts[1]], perm=[0, 2, 3, 1])
        scores = self.add("MatMul", [query, key])
        scores = self.add("Div", [scores, self._float((WIDTH // HEADS) ** 0.5)])
        if self._masked:
            seen = self.constant(np.tri(tokens, dtype=bool)[np.newaxis, np.newaxis])
            scores = self.add("Where", [seen, scores, self._float(-20)])
        mixed = self.add("MatMul", [self.add("Softmax", [scores], axis=-1), value])
        mixed = self.add("Transpose", [mixed], perm=[0, 2, 1, 3])
        return self.linear(self.add("Reshape", [mixed, self._list(0, tokens, WIDTH)]), WIDTH, WIDTH)

    def layer(self, x: str, tokens: int) -> str:
        """Attention and a network of each token, each with a shortcut."""
        x = self.normalized(self.add("Add", [x, self.attention(x, tokens)]))
        inner = self.gelu(self.linear(x, WIDTH, INNER))
        return self.normalized(self.add("Add", [x, self.linear(inner, INNER, WIDTH)]))

    def of_words(self, layers: int = 1) -> bytes:
        """Encoder layers over the numbers of words, and a class of the first one's."""
        words = self.input("x", ("N", TOKENS), "int64")
        x = self.add("Gather", [self.numbers(WORDS, WIDTH, scale=0.7), words])
        x = self.add("Add", [x, self.numbers(1, TOKENS, WIDTH, scale=0.3)])
        for _ in range(layers):
            x = self.layer(x, TOKENS)
        return self._classes(self.add("Gather", [x, self.constant(0, "int64")], axis=1))

    def of_tokens(self, layers: int = 2) -> bytes:
        """Encoder layers over N x TOKENS x WIDTH, and a class of the mean."""
        x = self.input("x", ("N", TOKENS, WIDTH))
        x = self.add("Add", [x, self.numbers(1, TOKENS, WIDTH, scale=0.3)])
        for _ in range(layers):
            x = self.layer(x, TOKENS)
        axes: Any = ([x, self._list(1)], {}) if self._fused else ([x], {"axes": [1]})
        mean = self.add("ReduceMean", axes[0], keepdims=0, **axes[1])
        return self._classes(mean)

    def of_pictures(self, layers: int = 1) -> bytes:
        """A vision transformer: patches by a convolution, and a token for the class."""
        x = self.input("x", ("N", *PICTURE))
        kernel = self.numbers(WIDTH, 3, 4, 4, scale=0.15)
        x = self.add("Conv", [x, kernel, self.numbers(WIDTH, scale=0.1)], strides=[4, 4])
        patches = PICTURE[1] * PICTURE[2] // 16
        x = self.add("Reshape", [x, self._list(0, WIDTH, patches)])
        x = self.add("Transpose", [x], perm=[0, 2, 1])
        x = self.add("Concat", [self.numbers(1, 1, WIDTH, scale=0.5), x], axis=1)
        x = self.add("Add", [x, self.numbers(1, patches + 1, WIDTH, scale=0.3)])
        for _ in range(layers):
            x = self.layer(x, patches + 1)
        return self._classes(self.add("Gather", [x, self.constant(0, "int64")], axis=1))

    def _classes(self, x: str) -> bytes:
        y = self.add("Gemm", [x, self.numbers(WIDTH, CLASSES), self.numbers(CLASSES)])
        return self.to_bytes([y])


@contextmanager
def _silent() -> Iterator[None]:
    """Without the quantiser's advice."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def quantised(data: bytes, samples: np.ndarray, folder: Path, **options: Any) -> bytes:
    """onnxruntime's static quantisation, QDQ, int8 unless ``options`` say otherwise."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self._left = iter(samples)

        def get_next(self) -> Any:
            sample = next(self._left, None)
            return None if sample is None else {"x": sample[np.newaxis]}

    given = {
        "quant_format": QuantFormat.QDQ,
        "activation_type": QuantType.QInt8,
        "weight_type": QuantType.QInt8,
        **options,
    }
    before, after = folder / "float.onnx", folder / "int8.onnx"
    before.write_bytes(data)
    with _silent():
        quantize_static(str(before), str(after), Reader(), **given)
    return after.read_bytes()


def quantised_dynamically(
    data: bytes, folder: Path, *, unsigned: bool = False, **options: Any
) -> bytes:
    """onnxruntime's dynamic quantisation."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    before, after = folder / "float.onnx", folder / "int8.onnx"
    before.write_bytes(data)
    kind = QuantType.QUInt8 if unsigned else QuantType.QInt8
    with _silent():
        quantize_dynamic(str(before), str(after), weight_type=kind, **options)
    return after.read_bytes()
