"""LSTMs as TensorFlow's converter quantises them, with random weights."""

from typing import Any

import numpy as np
from numpy.random import Generator
from slipstick.writers import tflite_operators as basic
from slipstick.writers import tflite_state as state
from slipstick.writers.tflite import TfliteWriter
from tflm_cases import codes, zero_point

GATES = ("input", "forget", "cell", "output")


def add_lstm(
    writer: TfliteWriter,
    rng: Generator,
    x: tuple[str, int, float],
    y: str,
    steps: int,
    units: int,
    hidden: tuple[float, int],
    *,
    power: int = -11,
    options: dict[str, Any] | None = None,
    changes: dict[int, str] | None = None,
) -> None:
    """An LSTM from ``x``, (name, its width, its scale), to ``y``, which it declares."""
    name, width, scale = x
    inputs = [name]
    for source, count, unit in (("x", width, scale), ("h", units, hidden[0])):
        for gate in GATES:
            # sums of a few units
            size = float(2 ** rng.uniform(-1, 2) / (unit * 70 * 70 * np.sqrt(count)))
            data = codes(rng, (units, count))
            inputs.append(writer.tensor(f"{y}_{source}_{gate}", data.shape, scale=size, data=data))
    inputs += [""] * 3
    for gate in GATES:
        data = rng.integers(-2000, 2000, units)
        inputs.append(writer.tensor(f"{y}_{gate}_bias", (units,), "int32", scale=1e-4, data=data))
    inputs += [""] * 2
    kept = {"shape": (1, units), "variable": True}
    inputs.append(writer.tensor(f"{y}_hidden", scale=hidden[0], zero_point=hidden[1], **kept))
    inputs.append(writer.tensor(f"{y}_cells", dtype="int16", scale=2.0**power, **kept))
    inputs += [""] * 4
    for place, other in (changes or {}).items():
        inputs[place] = other
    writer.tensor(y, (1, steps, units), scale=hidden[0], zero_point=hidden[1])
    writer.add(state.SequenceLstm(**(options or {})), inputs, [y])


def random_lstm(rng: Generator, **more: Any) -> tuple[bytes, tuple[int, ...]]:
    """A network of one LSTM, and its input's shape."""
    steps, width, units = (int(rng.integers(1, high)) for high in (5, 20, 12))
    writer = TfliteWriter()
    scale = float(2 ** rng.uniform(-8, -3))
    writer.tensor("x", (1, steps, width), scale=scale, zero_point=zero_point(rng))
    hidden = float(rng.choice([1 / 128, 2 ** rng.uniform(-9, -6)])), zero_point(rng)
    options = {"cell_clip": float(rng.choice([0.0, 0.0, 0.5, 10.0]))}
    power = int(rng.integers(-15, -7))
    add_lstm(
        writer, rng, ("x", width, scale), "y", steps, units, hidden, power=power, options=options
    )
    return writer.to_bytes(["x"], ["y"]), (steps, width)


def two_lstms(rng: Generator) -> bytes:
    """Two in a row, and a layer on the device behind them."""
    writer = TfliteWriter()
    writer.tensor("x", (1, 4, 10), scale=0.05, zero_point=-3)
    add_lstm(writer, rng, ("x", 10, 0.05), "a", 4, 12, (1 / 128, 0))
    add_lstm(writer, rng, ("a", 12, 1 / 128), "b", 4, 8, (1 / 128, 5))
    writer.tensor("flat", (1, 32), scale=1 / 128, zero_point=5)
    shape = np.array([1, 32], np.int32)
    writer.add(
        basic.Reshape(shape=(1, 32)), ["b", writer.tensor("s", (2,), "int32", data=shape)], ["flat"]
    )
    data = codes(rng, (6, 32))
    writer.tensor("w", data.shape, scale=0.01, data=data)
    bias = rng.integers(-900, 900, 6)
    writer.tensor("c", (6,), "int32", scale=0.01 / 128, data=bias)
    writer.tensor("y", (1, 6), scale=0.05, zero_point=1)
    writer.add(basic.FullyConnected(), ["flat", "w", "c"], ["y"])
    return writer.to_bytes(["x"], ["y"])
