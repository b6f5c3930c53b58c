"""The reference runtime, TensorFlow Lite Micro, behind the names of the graph."""

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..errors import DeviceError, InputError
from ..frontends.files import read_file
from ..frontends.tflite.reader import read_model, unique_names

ARENA_BYTES = 1 << 20
"""Bytes that the runtime needs beside the tensors, with room to spare."""

_ITEM_BYTES = {"int8": 1, "uint8": 1, "int16": 2, "int32": 4, "float32": 4}


class TflmReference:
    """A .tflite network on TensorFlow Lite Micro, which keeps every layer's tensor.

    What the network keeps from run to run, the runtime does: the images of a batch, and those of
    one call and the next, follow each other in time until ``reset_state``.

    Parameters
    ----------
    model : path or bytes

    Raises
    ------
    ModelError
        If the file cannot be read or is malformed.
    DeviceError
        If the package is missing, or the runtime refuses the network; it tells its reason on the
        standard error.
    """

    def __init__(self, model: str | Path | bytes) -> None:
        data = model if isinstance(model, bytes) else read_file(model)
        self._name = "model" if isinstance(model, bytes) else Path(model).stem
        # the runtime trusts its input and would crash: the strict reader goes first
        self._model = read_model(data, self._name)
        self._names = unique_names(self._model)
        self._check_readable()
        self._data = data
        self._interpreter = _interpreter(data, self._arena_bytes(), self._name)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the network's inputs."""
        return tuple(self._names[index] for index in self._model.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the network's outputs."""
        return tuple(self._names[index] for index in self._model.outputs)

    def run(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """Runs the network on each image of a batch.

        Parameters
        ----------
        inputs : arrays
            One an input, of the input's type; with the input's shape, without its batch, or with a
            batch of any size.

        Returns
        -------
        list of arrays
            One an output, with the batch in the leading axis.

        Raises
        ------
        InputError
            If an input is of another shape or type.
        """
        layers = self._run(inputs, self._model.outputs)
        return [layers[name] for name in self.outputs]

    def reset_state(self) -> None:
        """The next run begins as the first one did."""
        # the runtime's own reset does not call again what is called once
        self._interpreter = _interpreter(self._data, self._arena_bytes(), self._name)

    def run_layers(self, *inputs: np.ndarray) -> dict[str, np.ndarray]:
        """As ``run``, but returns every tensor that an operator writes, by name, and each variable
        tensor as it was before each run."""
        tensors = self._model.tensors
        written = [index for operator in self._model.operators for index in operator.outputs]
        written = [index for index in written if tensors[index].dtype != "resource"]
        written += [tensor.index for tensor in tensors if tensor.variable]
        return self._run(inputs, written)

    def _run(self, inputs: Sequence[np.ndarray], wanted: Sequence[int]) -> dict[str, np.ndarray]:
        described = [
            (self._names[index], self._model.tensors[index]) for index in self._model.inputs
        ]
        batches = single_images(self._name, described, inputs)
        results: dict[int, list[np.ndarray]] = {index: [] for index in wanted}
        kept = {index for index in results if self._model.tensors[index].variable}
        for images in zip(*batches, strict=True):
            for position, image in enumerate(images):
                self._interpreter.set_input(np.ascontiguousarray(image), position)
            for index in kept:
                results[index].append(self._shown(index))
            self._interpreter.invoke()
            for index in results.keys() - kept:
                results[index].append(self._shown(index))
        return {self._names[index]: np.concatenate(values) for index, values in results.items()}

    def _shown(self, index: int) -> np.ndarray:
        # a copy, as the next run writes over it; a scalar has no axis to lay batches along
        return np.atleast_1d(self._interpreter.GetTensor(index, 0)["tensor_data"]).copy()

    def _arena_bytes(self) -> int:
        """Room for all activations at once, twice over as the runtime aligns and pads them."""
        return ARENA_BYTES + sum(
            2 * _ITEM_BYTES.get(tensor.dtype, 8) * math.prod(max(size, 1) for size in tensor.shape)
            for part in (self._model, *self._model.others)
            for tensor in part.tensors
            # what a variable holds is as large as a tensor that is assigned to it
            if tensor.data is None or part is not self._model
        )

    def _check_readable(self) -> None:
        for tensor in self._model.tensors:
            if tensor.outside:
                raise DeviceError(
                    f"the reference runtime does not read {self._name}: the contents of tensor"
                    f" {tensor.index} must be in the file's tables, and are behind them"
                )
        for operator in self._model.operators:
            if operator.name == "DEPTHWISE_CONV_2D" and -1 in operator.inputs:
                raise DeviceError(
                    f"the reference runtime crashes on {self._name}: {operator.name} (operator"
                    f" {operator.index}) has an absent bias written as -1, and must leave it out"
                )


def _interpreter(data: bytes, arena_bytes: int, name: str) -> Any:
    try:
        from tflite_micro.python.tflite_micro import runtime
    except ImportError as error:
        raise DeviceError(
            "the reference runtime needs the package tflite-micro: install slipstick[reference]"
            " (pip install --pre tflite-micro)"
        ) from error
    try:
        return runtime.Interpreter.from_bytes(
            data,
            arena_size=arena_bytes,
            intrepreter_config=runtime.InterpreterConfig.kPreserveAllTensors,
        )
    except (RuntimeError, ValueError) as error:
        raise DeviceError(f"the reference runtime refuses {name}: {error}") from error


class Described(Protocol):
    """Describes an input."""

    @property
    def shape(self) -> tuple[int, ...]:
        """With a batch of 1."""
        ...

    @property
    def dtype(self) -> str:
        """By NumPy's name."""
        ...


def single_images(
    network: str, described: Collection[tuple[str, Described]], inputs: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Each input of a reference as an array of single-image batches.

    Parameters
    ----------
    network : str
        For messages.
    described : collection of (name, tensor)
        The network's inputs, in their order.
    inputs : sequence of arrays
        One an input: with the input's shape, without its batch, or with a batch of any size.

    Raises
    ------
    InputError
        If their number, or the shape or type of one, is wrong, or the batches differ.
    """
    if len(inputs) != len(described):
        raise InputError(f"{network} takes {len(described)} inputs, not {len(inputs)}")
    batches = []
    for (name, tensor), value in zip(described, inputs, strict=True):
        single = tensor.shape[1:]
        batch = value[None] if value.shape == single else value
        if value.dtype != tensor.dtype or batch.shape[1:] != single or not len(batch):
            raise InputError(
                f"input {name} must be {tensor.dtype} of shape {tensor.shape} or a batch of"
                f" that, not {value.dtype} of shape {value.shape}"
            )
        batches.append(batch[:, None])
    if len({len(batch) for batch in batches}) > 1:
        raise InputError(
            f"inputs must have one batch size, not {[len(batch) for batch in batches]}"
        )
    return batches
