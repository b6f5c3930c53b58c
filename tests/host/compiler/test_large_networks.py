"""Large networks are compiled quickly, and equal the reference to the last bit."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from make_network import (
    Made,
    make_efficientnet_b0,
    make_mobilenet_v3_small,
    make_resnet50,
    make_vgg16,
)
from slipstick.compiler.codegen.dram_list import find_dram_program
from slipstick.loading import compile_file
from slipstick.program import Program
from slipstick.session import InferenceSession
from slipstick.targets import find_target
from slipstick.verify.tflm_reference import TflmReference

SIDE = 64


@pytest.fixture(scope="module")
def vgg(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("large") / "vgg16.tflite"
    network = make_vgg16(side=32)
    assert network.weights > 37_000_000
    path.write_bytes(network.data)
    return str(path)


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> str:
    """With a quarter of the channels."""
    path = tmp_path_factory.mktemp("large") / "resnet50.tflite"
    network = make_resnet50(side=SIDE, width=16)
    assert network.weights > 1_900_000
    path.write_bytes(network.data)
    return str(path)


def test_vgg_equals_the_reference(vgg: str) -> None:
    program = compile_file(vgg, "sim-medium")
    device = [layer for layer in program.layers if layer.where == "device"]
    assert len(device) == 13 + 5 + 3
    assert sum(layer.macs for layer in device) == program.macs > 330_000_000
    assert program.transferred().loaded > 37_000_000
    image = np.random.default_rng(0).integers(-128, 128, (1, 32, 32, 3)).astype(np.int8)
    with InferenceSession(program, "model") as session:
        (codes,) = session.run(None, {"image": image})
    (expected,) = TflmReference(vgg).run(image)
    assert len(np.unique(expected)) > 50
    np.testing.assert_array_equal(codes, expected)


def compare_resnet(program: Program, path: str) -> None:
    """As many images as the program computes together."""
    shape = program.batch, SIDE, SIDE, 3
    images = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    with InferenceSession(program, "model") as session:
        (codes,) = session.run_batch(None, {"image": images})
    (expected,) = TflmReference(path).run(images)
    assert len(np.unique(expected)) > 50
    np.testing.assert_array_equal(codes, expected)


def test_resnet_equals_the_reference(resnet: str) -> None:
    program = compile_file(resnet, "sim-medium")
    device = [layer for layer in program.layers if layer.where == "device"]
    assert len(device) == 53 + 16 + 1 + 1 + 1
    compare_resnet(program, resnet)


@pytest.mark.parametrize("batch", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_resnet_from_dram_equals_the_reference(resnet: str, batch: int) -> None:
    plain = find_target("ulx3s-85f-sdram").configuration
    hardware = dataclasses.replace(plain, activation_bytes=1 << 13, weight_bytes=1 << 15)
    program = compile_file(resnet, hardware, batch=batch)
    assert find_dram_program(program) is not None
    compare_resnet(program, resnet)


@pytest.mark.parametrize(
    ("make", "side", "gates"),
    [
        (functools.partial(make_mobilenet_v3_small, blocks=4), SIDE, 2),
        # the first mean is of more than the chip holds
        pytest.param(
            functools.partial(make_efficientnet_b0, stages=2), 96, 3, marks=pytest.mark.thorough
        ),
    ],
    ids=["mobilenet-v3", "efficientnet"],
)
def test_squeeze_and_excitation_stays_on_the_device(
    make: Callable[..., Made], side: int, gates: int, tmp_path: Path
) -> None:
    """The first blocks from DRAM, in one run: gates multiply maps by vectors."""
    path = tmp_path / "network.tflite"
    path.write_bytes(make(side=side).data)
    program = compile_file(str(path), "ulx3s-45f-sdram")
    assert {layer.where for layer in program.layers} == {"device"}
    assert [layer.operator for layer in program.layers].count("mul") == gates
    assert find_dram_program(program) is not None
    image = np.random.default_rng(0).integers(-128, 128, (1, side, side, 3)).astype(np.int8)
    with InferenceSession(program, "model") as session:
        (codes,) = session.run(None, {"image": image})
    (expected,) = TflmReference(str(path)).run(image)
    assert len(np.unique(expected)) > 50
    np.testing.assert_array_equal(codes, expected)
