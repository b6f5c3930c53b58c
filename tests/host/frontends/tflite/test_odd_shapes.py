"""Every operator with tensors of every rank: read or refused, never an unforeseen exception."""

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from slipstick.errors import SlipstickError
from slipstick.verify.fuzz.onnx import check_onnx
from slipstick.verify.fuzz.onnx_seeds import onnx_networks
from slipstick.verify.fuzz.tflite import check_tflite
from slipstick.verify.fuzz.tflite_seeds import tflite_networks
from slipstick.verify.fuzz.tflite_tables import write_model

SHAPES = [
    *itertools.accumulate(((), (1,), (1,), (1,), (1,), (1,)), lambda a, b: (*a, *b)),
    *((2,), (3, 2), (2, 3, 2), (3, 2, 1, 2), (1, 3, 2, 2, 1)),
    *((0,), (0, 2), (3, 0, 2), (3, 2, 0, 3)),
]


def tried(check: Callable[[bytes, random.Random], str], data: bytes) -> str:
    """What becomes of a file."""
    try:
        return check(data, random.Random(1))
    except SlipstickError as error:
        assert str(error).strip() and "\n" not in str(error)
        return "refused"


def odd_onnx() -> Iterator[bytes]:
    for network in onnx_networks():
        for place, shape in itertools.product(range(len(network.graph.initializer)), SHAPES):
            model = onnx.ModelProto()
            model.CopyFrom(network)
            item = model.graph.initializer[place]
            array = numpy_helper.to_array(item)
            made = np.resize(array, shape) if array.size else np.zeros(shape, array.dtype)
            item.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(made), item.name))
            if not shape:
                del item.dims[:]
            yield model.SerializeToString()
        for place, shape in itertools.product(range(len(network.graph.input)), (*SHAPES, (1, -3))):
            model = onnx.ModelProto()
            model.CopyFrom(network)
            sizes = model.graph.input[place].type.tensor_type.shape.dim
            del sizes[:]
            for size in shape:
                sizes.add().dim_value = size
            yield model.SerializeToString()


def odd_tflite() -> Iterator[bytes]:
    for network in tflite_networks():
        for place, shape in itertools.product(range(len(network.tensors)), (*SHAPES, (1, -3))):
            tensors = list(network.tensors)
            item = tensors[place]
            data = item.data
            if data is not None:
                count = int(np.prod([max(size, 0) for size in shape]))
                data = np.resize(data, count * np.dtype(item.dtype).itemsize)
            tensors[place] = dataclasses.replace(item, shape=shape, data=data)
            yield write_model(dataclasses.replace(network, tensors=tuple(tensors)))


def test_the_networks_are_good_as_they_are() -> None:
    for network in tflite_networks():
        assert tried(check_tflite, write_model(network)) != "refused"
    refused = [n for n in onnx_networks() if tried(check_onnx, n.SerializeToString()) == "refused"]
    # two operators have no form between codes
    assert len(refused) <= 2


def test_onnx() -> None:
    outcomes = [tried(check_onnx, data) for data in odd_onnx()]
    assert 100 < outcomes.count("refused") < len(outcomes) - 100


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_tflite() -> None:
    outcomes = [tried(check_tflite, data) for data in odd_tflite()]
    assert 100 < outcomes.count("refused") < len(outcomes)
