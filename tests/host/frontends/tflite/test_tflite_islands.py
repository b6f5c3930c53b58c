"""Float32 arithmetic that converters leave in int8 networks: as tables, or on the host."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from slipstick import kernels
from slipstick.frontends.tflite import load_tflite_bytes
from slipstick.program import Program
from slipstick.verify.tflm_reference import TflmReference
from slipstick.verify.verifier import Verifier
from slipstick.writers import tflite_functions as functions
from slipstick.writers import tflite_moves as moves
from slipstick.writers import tflite_operators as basic
from slipstick.writers import tflite_real as real
from slipstick.writers.tflite import TfliteWriter
from tflm_networks import SMALL, check

EVERY_CODE = np.arange(-128, 128, dtype=np.int8).reshape(1, 16, 16, 1)
SHAPE = EVERY_CODE.shape

FUNCTIONS: dict[str, Callable[[], basic.Operator]] = {
    "ABS": functions.Abs,
    "CEIL": real.Ceil,
    "COS": real.Cos,
    "ELU": functions.Elu,
    "EXP": real.Exp,
    "FLOOR": real.Floor,
    "HARD_SWISH": basic.HardSwish,
    "LEAKY_RELU": lambda: functions.LeakyRelu(alpha=0.3),
    "LOG": real.Log,
    "LOGISTIC": basic.Logistic,
    "NEG": real.Neg,
    "RELU": basic.Relu,
    "RELU6": basic.Relu6,
    "ROUND": real.Round,
    "RSQRT": functions.Rsqrt,
    "SIN": real.Sin,
    "SQRT": real.Sqrt,
    "SQUARE": real.Square,
    "TANH": basic.Tanh,
}
POSITIVE = ("LOG", "RSQRT", "SQRT")
"""What C leaves open of other numbers is this project's choice: see the test of it."""


class Island:
    """A network of codes, float32 in the middle, codes or float32 at its end."""

    def __init__(self, scale: float, zero_point: int, shape: tuple[int, ...] = SHAPE) -> None:
        self.writer, self._shape = TfliteWriter(), shape
        self.writer.tensor("x", shape, scale=scale, zero_point=zero_point)
        self.writer.tensor("0", shape, "float32")
        self.writer.add(basic.Dequantize(), ["x"], ["0"])
        self._count = 0

    def add(self, operator: basic.Operator, *inputs: str) -> str:
        """Appends an operator of float32 numbers; of the last one's if no inputs are named."""
        last, self._count = str(self._count), self._count + 1
        name = self.writer.tensor(str(self._count), self._shape, "float32")
        self.writer.add(operator, inputs or [last], [name])
        return name

    def constant(self, name: str, value: Any) -> str:
        """A constant of float32."""
        data = np.asarray(value, np.float32)
        return self.writer.tensor(name, data.shape, "float32", data=data)

    def codes(self, scale: float, zero_point: int) -> bytes:
        """The file, with an output of codes."""
        self.writer.tensor("y", self._shape, scale=scale, zero_point=zero_point)
        self.writer.add(basic.Quantize(), [str(self._count)], ["y"])
        return self.writer.to_bytes(["x"], ["y"])

    def numbers(self) -> bytes:
        """The file, with a float32 output."""
        return self.writer.to_bytes(["x"], [str(self._count)])


def quantisations(rng: Generator, name: str) -> list[tuple[float, int, float, int]]:
    """(scale, zero point) of codes before and behind a function."""
    made = []
    for span in (0.5, 2.0, 6.0, 20.0):
        zero = -128 if name in POSITIVE else int(rng.integers(-128, 128))
        out = 2.0 ** rng.uniform(-3, 1) * min(span, 8) / 128
        made.append((span / 255 * rng.uniform(0.9, 1.1), zero, out, int(rng.integers(-128, 128))))
    return made


def table_program(program: Program) -> None:
    """All of it is one table, on the device where its input does not come from the host."""
    (layer,) = program.layers
    assert (layer.operator, layer.where) == ("lookup", "device")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_islands_are_tables(name: str) -> None:
    for scale, zero, out, out_zero in quantisations(np.random.default_rng(len(name)), name):
        island = Island(scale, zero)
        if name in POSITIVE:
            # 0 has no logarithm
            island.add(basic.Add(), "0", island.constant("c", np.full((1, 1, 1, 1), 0.01)))
        island.add(FUNCTIONS[name]())
        table_program(check(island.codes(out, out_zero), [EVERY_CODE]))


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div", "maximum", "minimum", "difference"])
def test_arithmetic_with_a_number_is_a_table(kind: str) -> None:
    operators = {
        "add": basic.Add(activation="RELU6"),
        "sub": functions.Sub(activation="RELU_N1_TO_1"),
        "mul": functions.Mul(),
        "div": real.Div(),
        "maximum": functions.Maximum(),
        "minimum": functions.Minimum(),
        "difference": functions.SquaredDifference(),
    }
    rng = np.random.default_rng(3)
    for trial in range(4):
        island = Island(2.0 ** rng.uniform(-6, -2), int(rng.integers(-128, 128)))
        number = island.constant("c", np.full((1, 1, 1, 1), rng.normal()))
        pair = ["0", number] if trial % 2 or kind == "div" else [number, "0"]
        island.add(operators[kind], *pair)
        table_program(check(island.codes(0.05, int(rng.integers(-128, 128))), [EVERY_CODE]))


def test_several_functions_that_meet_again_are_one_table() -> None:
    """x times its sigmoid, and then less a number."""
    island = Island(0.06, 11)
    island.add(functions.Mul(), "0", island.add(basic.Logistic()))
    island.add(functions.Sub(), "2", island.constant("c", [[[[0.25]]]]))
    program = check(island.codes(0.03, -90), [EVERY_CODE])
    table_program(program)
    assert program.layers[0].name == "logistic_mul_sub_quantize_4"


def test_numbers_of_their_own_a_channel_stay_with_the_host() -> None:
    shape = (1, 8, 8, 4)
    island = Island(0.06, 11, shape)
    island.add(functions.Mul(), "0", island.constant("c", np.ones((1, 1, 1, 4)) * [1, 2, 3, 4]))
    x = np.random.default_rng(1).integers(-128, 128, shape, dtype=np.int8)
    program = check(island.codes(0.1, 0), [x])
    assert [layer.operator for layer in program.layers] == ["dequantize", "mul", "quantize"]
    assert {layer.where for layer in program.layers} == {"host"}


def test_an_island_between_layers_runs_on_the_device() -> None:
    writer = TfliteWriter()
    rng = np.random.default_rng(5)
    shape = (1, 6, 6, 4)
    writer.tensor("x", shape, scale=0.1)
    for number, (source, result) in enumerate((("x", "a"), ("d", "y"))):
        data = rng.integers(-128, 128, (4, 3, 3, 4), dtype=np.int8)
        weights = writer.tensor(f"w{number}", data.shape, scale=0.01, data=data)
        if source == "d":
            writer.tensor("b", shape, "float32")
            writer.tensor("c", shape, "float32")
            writer.add(basic.Dequantize(), ["a"], ["b"])
            writer.add(functions.Elu(), ["b"], ["c"])
            writer.tensor("d", shape, scale=0.2, zero_point=-90)
            writer.add(basic.Quantize(), ["c"], ["d"])
        writer.tensor(result, shape, scale=0.3, zero_point=3)
        writer.add(basic.Conv2D(), [source, weights], [result])
    images = rng.integers(-128, 128, (2, *shape[1:]), dtype=np.int8)
    program = check(writer.to_bytes(["x"], ["y"]), [images])
    assert [layer.where for layer in program.layers] == ["device"] * 3


def real_differences(data: bytes, *inputs: np.ndarray) -> int:
    """By how many units in the last place tflm's float32 outputs differ from ours, at most."""
    graph = load_tflite_bytes(data)
    wanted = TflmReference(data).run(*inputs)
    values = kernels.run_graph(graph, inputs)
    worst = 0
    for name, expected in zip(graph.outputs, wanted, strict=True):
        ours = values[name].reshape(expected.shape)
        assert ours.dtype == expected.dtype == np.float32
        steps = np.abs(ours.astype(np.float64) - expected) / np.spacing(np.abs(expected))
        worst = max(worst, int(steps.max()))
    return worst


EXACT = ("ABS", "CEIL", "FLOOR", "HARD_SWISH", "LEAKY_RELU", "NEG", "RELU", "RELU6", "ROUND")
EXACT += ("RSQRT", "SQRT", "SQUARE")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_tail_of_float32_runs_on_the_host(name: str) -> None:
    worst = 0
    for scale, zero, _, _ in quantisations(np.random.default_rng(len(name)), name):
        island = Island(scale, zero)
        if name in POSITIVE:
            island.add(basic.Add(), "0", island.constant("c", np.full((1, 1, 1, 1), 0.01)))
        island.add(FUNCTIONS[name]())
        worst = max(worst, real_differences(island.numbers(), EVERY_CODE))
    # a C library's own rounding
    assert worst <= (0 if name in EXACT else 2)


def test_softmax_and_dense_tails() -> None:
    rng = np.random.default_rng(8)
    x = rng.integers(-128, 128, (5, 12), dtype=np.int8)
    for operator in (basic.Softmax(beta=0.7), functions.LogSoftmax()):
        island = Island(0.05, 4, (1, 12))
        island.add(operator)
        assert real_differences(island.numbers(), x) <= 4
        check_codes = Island(0.05, 4, (1, 12))
        check_codes.add(operator)
        check(check_codes.codes(1 / 16, 127), [x])
    for activation in ("NONE", "RELU"):
        island = Island(0.05, 4, (1, 12))
        weights, bias = rng.normal(size=(12, 12)), rng.normal(size=12)
        inputs = ["0", island.constant("w", weights), island.constant("b", bias)]
        island.add(basic.FullyConnected(activation=activation), *inputs)
        check(island.numbers(), [x])


def test_float32_that_is_moved() -> None:
    writer = TfliteWriter()
    writer.tensor("x", (1, 4, 6), scale=0.1, zero_point=3)
    for name, shape in (("a", (1, 4, 6)), ("b", (1, 6, 4)), ("c", (1, 12, 4)), ("d", (1, 48))):
        writer.tensor(name, shape, "float32")
    order = writer.tensor("p", (3,), "int32", data=np.array([0, 2, 1]))
    writer.add(basic.Dequantize(), ["x"], ["a"])
    writer.add(moves.Transpose(), ["a", order], ["b"])
    writer.add(moves.Concatenation(axis=1), ["b", "b"], ["c"])
    writer.add(basic.Reshape(shape=(1, 48)), ["c"], ["d"])
    axis = writer.tensor("axis", (1,), "int32", data=np.array([1]))
    writer.tensor("y", (1,), "int32")
    writer.add(functions.ArgMax(), ["d", axis], ["y"])
    x = np.random.default_rng(1).integers(-128, 128, (3, 4, 6), dtype=np.int8)
    check(writer.to_bytes(["x"], ["d", "y"]), [x])


def test_what_c_leaves_open() -> None:
    """NaN is the lowest code; what is infinite clamps, as it does not where C converts it."""
    island = Island(0.1, 0)
    island.add(real.Log())
    graph = load_tflite_bytes(island.codes(0.05, 10))
    codes = kernels.run_graph(graph, [EVERY_CODE])["y"].reshape(-1)
    assert set(codes[:129]) == {-128} and codes[255] == round(np.log(12.7) / 0.05) + 10
    island = Island(0.1, 0)
    island.add(functions.Rsqrt())
    graph = load_tflite_bytes(island.codes(0.05, 10))
    codes = kernels.run_graph(graph, [EVERY_CODE])["y"].reshape(-1)
    assert set(codes[:128]) == {-128} and codes[128] == 127


def test_verify_shows_by_how_much_a_tail_differs(tmp_path: Path) -> None:
    """A C library's last bit is no mismatch; the codes before it are held to tflm's."""
    island = Island(0.02, 4)
    island.add(basic.Tanh())
    island.add(real.Neg())
    path = tmp_path / "tail.tflite"
    path.write_bytes(island.numbers())
    verifier = Verifier(path, SMALL)
    checked = verifier.check({"x": EVERY_CODE}, lambda *_: lambda _: None, rtl=False)
    lines = {line.layer: line for line in checked}
    assert sum(line.mismatches for line in checked) == 0
    assert lines["dequantize_0"].runtime is None and lines["dequantize_0"].reference is not None
    for name in ("tanh_1", "neg_2", "2"):
        runtime = lines[name].runtime
        # two units in the last place of numbers below 1
        assert runtime is not None and runtime.elements == 256 and runtime.largest <= 2**-23
