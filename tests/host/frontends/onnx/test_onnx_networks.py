"""Real ONNX networks on the golden core: as the rule and onnxruntime to the last bit.

But where onnxruntime sums products in float32 (QDQ), its sums' own errors turn a near tie at times.
"""

import gzip
from pathlib import Path

import numpy as np
import pytest
from shared_data import shared
from slipstick import InferenceSession
from slipstick.verify.onnxruntime_reference import OnnxReference
from slipstick.verify.verifier import Verifier
from slipstick_rtl.config import Configuration

pytestmark = pytest.mark.borrows

QDQ = "resnet8_cifar10_int8_qdq"
RESNETS = (QDQ, "resnet8_cifar10_int8_qoperator_perchannel")
MNIST = "mnist_int8_qoperator_pertensor"
IMAGES = 40
MOST_OF_A_LAYER = 1e-5
"""Share of a layer's codes of QDQ that a float32 sum rounds otherwise: what is near a tie."""

MOST_OF_MEANS = 0.005
"""Of means of 64 codes between equal scales: a quarter of those that are ties."""


def model(name: str) -> Path:
    return shared(f"models/{name}.onnx")


def pictures() -> tuple[np.ndarray, np.ndarray]:
    """CIFAR-10 test images as N x C x H x W, and their classes."""
    with np.load(shared("data/cifar10/ic01_cifar10_200.npz")) as archive:
        return archive["x"].transpose(0, 3, 1, 2).astype(np.float32), archive["y"]


def digits(name: str, header: int) -> np.ndarray:
    path = shared(f"data/mnist/t10k-{name}-ubyte.gz")
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
            share = MOST_OF_MEANS if tensor.operator == "average_pool2d" else MOST_OF_A_LAYER
            most = max(2, share * tensor.runtime.elements) if name == QDQ else 0
            assert tensor.runtime.mismatches <= most, tensor
            assert tensor.runtime.largest <= 1, tensor
    layers = {tensor.operator for tensor in checked if tensor.where == "device"}
    assert {"conv2d", "fully_connected"} <= layers


@pytest.mark.parametrize("name", RESNETS)
def test_classes_of_pictures(name: str) -> None:
    path = model(name)
    images, classes = pictures()
    with InferenceSession(path, device="model") as session:
        (ours,) = session.run(None, {session.get_inputs()[0].name: images})
    (theirs,) = OnnxReference(path).run(images)
    # docs/reference/onnx.md: of QDQ one image of 200 is of another class, and 20 have other codes
    assert (ours.argmax(axis=1) != theirs.argmax(axis=1)).sum() <= (1 if name == QDQ else 0)
    assert (ours.argmax(axis=1) == classes).mean() >= 0.84
    differing = np.unique(np.nonzero(ours != theirs)[0])
    assert len(differing) <= (20 if name == QDQ else 0)
    assert np.abs(ours - theirs).max() <= 21 / 256


def test_fused_codes_are_the_rules() -> None:
    """onnxruntime makes operators of codes of QDQ, where it is allowed to: then none differs."""
    path = model(QDQ)
    images, _ = pictures()
    with InferenceSession(path, device="model") as session:
        (ours,) = session.run(None, {session.get_inputs()[0].name: images})
    (theirs,) = OnnxReference(path, fused=True).run(images)
    np.testing.assert_array_equal(ours, theirs)


def test_ten_thousand_digits() -> None:
    path = model(MNIST)
    images = digits("images-idx3", 16).reshape(-1, 1, 28, 28)
    with InferenceSession(path, device="model") as session:
        (ours,) = session.run(None, {session.get_inputs()[0].name: images})
    assert (ours.argmax(axis=1) == digits("labels-idx1", 8)).sum() == 9891
