"""Hardware and random networks for training steps from DRAM."""

import dataclasses

import numpy as np
from slipstick.targets import find_target
from slipstick.training.network import INPUT, Kind, Layer, TrainingNetwork
from slipstick_rtl.config import Configuration

CHIP = "MT48LC16M16"
SAME = (1, 1, 1, 1)
LARGE = dataclasses.replace(find_target("sim-training-large").configuration, dram=CHIP)
SHAPES = {
    "8x8": dataclasses.replace(find_target("sim-training").configuration, dram=CHIP),
    "8x8, little memory": Configuration(
        rows=8,
        columns=8,
        lanes=8,
        activation_bytes=1 << 13,
        weight_bytes=1 << 15,
        instruction_words=1 << 11,
        accumulator_depth=64,
        dram=CHIP,
        training=1,
    ),
    "32x16, ninth bits": dataclasses.replace(
        LARGE, ninth_bits=1, halved_tables=1, activation_bytes=1 << 15, weight_bytes=1 << 17
    ),
    "2x8x16": Configuration(
        pixels=2,
        rows=8,
        columns=16,
        lanes=4,
        activation_bytes=1 << 15,
        weight_bytes=1 << 17,
        accumulator_depth=64,
        dram=CHIP,
        training=1,
    ),
}


def random_network(seed: int, shape_name: str = "8x8") -> TrainingNetwork:
    """Convolutions, depthwise too, shortcuts and pools of any size that a step from DRAM allows.

    Their channels are so few that sums fit the memories of the shape, product by product, too.
    """
    generator = np.random.default_rng(seed)
    draw = generator.integers
    shape = (int(draw(5, 12)), int(draw(5, 12)), int(draw(1, 5)))
    layers, last = list[Layer](), INPUT
    size, channels = shape[:2], shape[2]
    for number in range(int(draw(2, 5))):
        name, kind = f"layer{number}", int(draw(6)) if number else 0
        if kind == 1:
            inner = Layer(f"{name}a", Kind.CONVOLUTION, (last,), channels, (3, 3), (1, 1), SAME)
            layers += [inner, Layer(name, Kind.ADD, (last, inner.name), relu=bool(draw(2)))]
        elif kind in (2, 3) and min(size) >= 4:
            window = [(2, 2), (1, 2), (2, 1)][int(draw(3))]
            pool = Kind.MAX_POOL if kind == 2 else Kind.AVERAGE_POOL
            layers.append(Layer(name, pool, (last,), 0, window, window))
            size = size[0] // window[0], size[1] // window[1]
        else:
            kernel = (int(draw(1, 4)), int(draw(1, 4)))
            stride = (int(draw(1, 3)), int(draw(1, 3)))
            pads = tuple(int(draw(0, kernel[side // 2])) for side in range(4))
            padding = pads[0], pads[1], pads[2], pads[3]
            deep = kind == 5
            outputs = channels if deep else int(draw(1, 17 if "little" in shape_name else 21))
            found = [
                (size[axis] + padding[2 * axis] + padding[2 * axis + 1] - kernel[axis])
                // stride[axis]
                + 1
                for axis in (0, 1)
            ]
            if min(found) < 2:
                continue
            size, channels = (found[0], found[1]), outputs
            layers.append(
                Layer(
                    name,
                    Kind.DEPTHWISE if deep else Kind.CONVOLUTION,
                    (last,),
                    0 if deep else channels,
                    kernel,
                    stride,
                    padding,
                    bool(draw(2)),
                )
            )
        last = name
    layers.append(Layer("logits", Kind.CONVOLUTION, (last,), int(draw(2, 12)), size))
    return TrainingNetwork(f"random {seed}", shape, tuple(layers))
