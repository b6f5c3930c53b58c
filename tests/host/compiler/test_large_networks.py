"""A network of 37 million weights is compiled quickly, and equals the reference to the last bit."""

import numpy as np
import pytest
from make_vgg import make
from slipstick.loading import compile_file
from slipstick.session import InferenceSession
from slipstick.verify.tflm_reference import TflmReference


@pytest.fixture(scope="module")
def vgg(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("large") / "vgg16.tflite"
    network = make(side=32)
    assert network.weights > 37_000_000
    path.write_bytes(network.to_bytes())
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
