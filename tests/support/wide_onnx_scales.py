"""ONNX networks of one operator of codes whose scales are any that float32 can say."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from onnx_writer import MICROSOFT, OnnxWriter
from tflm_cases import zero_point

Case = tuple[bytes, np.ndarray]
"""A file and its input."""

PICTURE = (1, 5, 6, 5)


def wide_scale(rng: Generator) -> float:
    """Within 1e-9..1e9, seldom a far border."""
    if rng.random() < 0.08:
        return float(rng.choice([1e-30, 1e30, 1e-20, 1e20]))
    return float(10 ** rng.uniform(-9, 9))


def near(rng: Generator, real: float) -> float:
    """About a scale, two thirds of the time; else any."""
    if rng.random() < 0.35:
        return wide_scale(rng)
    spread = float(rng.choice([2.0, 12.0, 40.0]))
    return float(np.clip(real * 2 ** rng.uniform(-spread, spread), 1e-30, 1e30))


class _Codes(OnnxWriter):
    """A network whose only input are codes of a random scale."""

    def __init__(self, rng: Generator, shape: tuple[int, ...] = PICTURE) -> None:
        super().__init__()
        self.rng, self.shape = rng, shape
        self.own_scale = wide_scale(rng)
        self.x = self.input("x", shape, "int8")
        self.own = self.parts(self.own_scale)

    def parts(self, scale: float) -> list[str]:
        """Scale and zero point."""
        return self.scale(scale, zero_point(self.rng), "int8")

    def kernel(self, *shape: int, axis: int = 0) -> tuple[list[str], float]:
        """Codes, scale and zero point; and about the scale."""
        about = wide_scale(self.rng)
        count = () if self.rng.random() < 0.5 else (shape[axis],)
        scale = np.clip(about * 2.0 ** self.rng.uniform(-20, 20, count), 1e-30, 1e30)
        codes = self.rng.integers(-128, 128, shape, dtype=np.int8)
        points = np.zeros(count, np.int8)
        return [self.constant(codes), *self.scale(scale, points, "int8")], about

    def case(self, y: str) -> Case:
        codes = self.rng.integers(-128, 128, (3, *self.shape[1:]), dtype=np.int8)
        return self.to_bytes([y], "int8"), codes


def conv(rng: Generator) -> Case:
    """QLinearConv."""
    net = _Codes(rng)
    kernel, about = net.kernel(3, 5, 2, 3)
    top = near(rng, float(np.clip(net.own_scale * about * 1000, 1e-30, 1e30)))
    inputs = [net.x, *net.own, *kernel, *net.parts(top)]
    if rng.random() < 0.7:
        most = int(rng.choice([100, 1 << 20, (1 << 30) - 1]))
        inputs.append(net.constant(rng.integers(-most, most, 3), "int32"))
    return net.case(net.add("QLinearConv", inputs))


def matmul(rng: Generator) -> Case:
    """QLinearMatMul."""
    net = _Codes(rng, (1, 5, 7))
    kernel, about = net.kernel(7, 6, axis=1)
    top = near(rng, float(np.clip(net.own_scale * about * 1000, 1e-30, 1e30)))
    return net.case(net.add("QLinearMatMul", [net.x, *net.own, *kernel, *net.parts(top)]))


def gemm(rng: Generator) -> Case:
    """QGemm."""
    net = _Codes(rng, (1, 9))
    kernel, about = net.kernel(7, 9)
    top = near(rng, float(np.clip(net.own_scale * about * 1000, 1e-30, 1e30)))
    bias = net.constant(rng.integers(-3000, 3000, 7), "int32")
    inputs = [net.x, *net.own, *kernel, bias, *net.parts(top)]
    return net.case(net.add("QGemm", inputs, domain=MICROSOFT, transB=1))


def pair(operator: str) -> Callable[[Generator], Case]:
    """QLinearAdd or QLinearMul, of an activation and one derived from it."""

    def made(rng: Generator) -> Case:
        net = _Codes(rng)
        second = near(rng, net.own_scale)
        real = net.own_scale * second if operator == "QLinearMul" else max(net.own_scale, second)
        top = near(rng, float(np.clip(real, 1e-30, 1e30)))
        turned = net.add("Transpose", [net.x], perm=[0, 3, 2, 1])
        inputs = [net.x, *net.own, turned, *net.parts(second), *net.parts(top)]
        return net.case(net.add(operator, inputs, domain=MICROSOFT))

    return made


def one(operator: str, least: float = 0.0, **options: Any) -> Callable[[Generator], Case]:
    """An operator of one activation; ``least`` is the smallest scale of its result."""

    def made(rng: Generator) -> Case:
        net = _Codes(rng)
        inputs = [net.x, *net.own, *net.parts(max(near(rng, net.own_scale), least))]
        return net.case(net.add(operator, inputs, domain=MICROSOFT, **options))

    return made


def rescaled(rng: Generator) -> Case:
    """DequantizeLinear and QuantizeLinear."""
    net = _Codes(rng)
    y = net.add("DequantizeLinear", [net.x, *net.own])
    y = net.add("QuantizeLinear", [y, *net.parts(near(rng, net.own_scale))])
    return net.case(y)


# onnxruntime's sigmoid has absolute errors of float32's size: codes much finer show them
CASES: Mapping[str, Callable[[Generator], Case]] = {
    "QLinearConv": conv,
    "QLinearMatMul": matmul,
    "QGemm": gemm,
    "QLinearAdd": pair("QLinearAdd"),
    "QLinearMul": pair("QLinearMul"),
    "QLinearAveragePool": one("QLinearAveragePool", kernel_shape=[3, 2]),
    "QLinearGlobalAveragePool": one("QLinearGlobalAveragePool"),
    "QLinearSigmoid": one("QLinearSigmoid", least=1e-3),
    "QLinearLeakyRelu": one("QLinearLeakyRelu", alpha=0.2),
    "QuantizeLinear": rescaled,
}
"""Networks of each operator of codes that has scales to compute with."""
