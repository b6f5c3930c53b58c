"""Real ONNX networks on the golden core: against the rule to the last bit, near onnxruntime."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from shared_data import DATA
from slipstick import InferenceSession
from slipstick.onnx_reference import OnnxReference
from slipstick.verification import Verifier
from slipstick_rtl.config import Configuration

CIFAR = DATA / "data/cifar10/ic01_cifar10_200.npz"
RESNETS = ("resnet8_cifar10_int8_qdq", "resnet8_cifar10_int8_qoperator_perchannel")
MNIST = "mnist_int8_qoperator_pertensor"
IMAGES = 40
MOST_OF_A_LAYER = 1e-4
"""Share of a layer's codes that float32 arithmetic rounds otherwise: ties, and what is near one."""


def model(name: str) -> Path:
    path = DATA / "models" / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there (SLIPSTICK_DATA)")
    return path


def pictures() -> tuple[np.ndarray, np.ndarray]:
    """CIFAR-10 test images as N x C x H x W, and their classes."""
    with np.load(CIFAR) as archive:
        return archive["x"].transpose(0, 3, 1, 2).astype(np.float32), archive["y"]


def digits(name: str, header: int) -> np.ndarray:
    path = DATA / "data/mnist" / f"t10k-{name}-ubyte.gz"
    return np.frombuffer(gzip.decompress(path.read_bytes())[header:], np.uint8)


@pytest.mark.parametrize("name", [*RESNETS, MNIST])
def test_every_layer(name: str) -> None:
    verifier = Verifier(model(name), Configuration())
    if name == MNIST:
        images = digits("images-idx3", 16).reshape(-1, 1, 28, 28)
    else:
        images, _ = pictures()
    feeds = {verifier.program.inputs[0]: images[:IMAGES]}
    checked = verifier.check(feeds, lambda what, count: lambda done: None, rtl=False)
    for tensor in checked:
        assert tensor.mismatches == 0, tensor
        if tensor.operator != "output" and tensor.runtime is not None:
            assert tensor.runtime.mismatches <= max(2, MOST_OF_A_LAYER * tensor.runtime.elements)
            assert tensor.runtime.largest <= 1, tensor
    layers = {tensor.operator for tensor in checked if tensor.where == "device"}
    assert {"conv2d", "fully_connected"} <= layers


@pytest.mark.parametrize("name", RESNETS)
def test_classes_of_pictures(name: str) -> None:
    images, classes = pictures()
    path = model(name)
    with InferenceSession(path, device="model") as session:
        (ours,) = session.run(None, {session.get_inputs()[0].name: images})
    (theirs,) = OnnxReference(path).run(images)
    guesses = ours.argmax(axis=1), theirs.argmax(axis=1)
    # a code that is rounded otherwise early on may turn a class that is all but undecided
    assert (guesses[0] != guesses[1]).sum() <= 1
    assert (guesses[0] == classes).mean() >= 0.85
    assert (np.abs(ours - theirs) < 1e-6).mean() >= 0.99


def test_ten_thousand_digits() -> None:
    path = model(MNIST)
    images = digits("images-idx3", 16).reshape(-1, 1, 28, 28)
    with InferenceSession(path, device="model") as session:
        (ours,) = session.run(None, {session.get_inputs()[0].name: images})
    assert (ours.argmax(axis=1) == digits("labels-idx1", 8)).sum() == 9891
