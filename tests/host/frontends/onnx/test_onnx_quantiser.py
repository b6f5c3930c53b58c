"""Networks of the usual kinds, as onnxruntime's static quantiser writes them, layer by layer."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoder_network import quantised
from float_networks import NETWORKS
from onnx_checks import check, on_device
from onnxruntime.quantization import QuantFormat, QuantType

RNG = np.random.default_rng(13)
FORMS: dict[str, dict[str, Any]] = {
    "QDQ, int8, a scale a channel": {"per_channel": True},
    "QDQ, uint8": {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QUInt8},
    "QDQ, int8 and symmetric": {"extra_options": {"ActivationSymmetric": True}},
    "QOperator, uint8 by int8": {
        "quant_format": QuantFormat.QOperator,
        "activation_type": QuantType.QUInt8,
        "per_channel": True,
    },
    "QOperator, int8": {"quant_format": QuantFormat.QOperator},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer(name: str, form: str, tmp_path: Path) -> None:
    make, shape = NETWORKS[name]
    x = RNG.normal(0, 1, (16, *shape)).astype(np.float32)
    graph = check(quantised(make(), x[:8], tmp_path, **FORMS[form]), x[8:])
    assert {"conv2d", "depthwise_conv2d"} & on_device(graph)
