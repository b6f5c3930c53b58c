"""Training steps from DRAM, on the golden model of a core: bit for bit the definition."""

import dataclasses

import numpy as np
import pytest
from slipstick.devices.link import LinkError
from slipstick.devices.model import ModelDevice
from slipstick.errors import CapacityError, UnsupportedError
from slipstick.targets import find_target
from slipstick.training.device.arithmetic import DeviceArithmetic
from slipstick.training.device.products import DeviceProducts
from slipstick.training.device.verify import noisy_pictures
from slipstick.training.dram_step.planning import StepPlan
from slipstick.training.dram_step.schedule import WAIT
from slipstick.training.dram_step.trainer import DramTrainer
from slipstick.training.dram_step.verify import verify_dram_training
from slipstick.training.int8 import Int8Arithmetic
from slipstick.training.network import INPUT, Kind, Layer, TrainingNetwork, initial_parameters
from slipstick.training.networks import digits_cnn, resnet8
from slipstick.training.trainer import Trainer
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES

CHIP = "MT48LC16M16"
PLAIN = dataclasses.replace(find_target("sim-training").configuration, dram=CHIP)
NINTHS = Configuration(
    rows=16,
    columns=8,
    lanes=8,
    activation_bytes=1 << 15,
    weight_bytes=1 << 17,
    weight_rows=4,
    ninth_bits=1,
    halved_tables=1,
    dram=CHIP,
    training=1,
)
PIXELS = Configuration(
    pixels=2,
    rows=8,
    columns=16,
    lanes=4,
    activation_bytes=1 << 15,
    weight_bytes=1 << 17,
    accumulator_depth=64,
    dram=CHIP,
    training=1,
)
SAME = (1, 1, 1, 1)


def branching_network() -> TrainingNetwork:
    """A shortcut, both pools (one leaves a row out), flattening, channels that fill no lanes."""
    layers = (
        Layer("first", Kind.CONVOLUTION, (INPUT,), 6, (3, 3), (1, 1), SAME, True),
        Layer("inner", Kind.CONVOLUTION, ("first",), 6, (3, 3), (1, 1), SAME, True),
        Layer("outer", Kind.CONVOLUTION, ("inner",), 6, (3, 3), (1, 1), SAME),
        Layer("sum", Kind.ADD, ("first", "outer"), relu=True),
        Layer("most", Kind.MAX_POOL, ("sum",), 0, (3, 2), (3, 2)),
        Layer("wide", Kind.CONVOLUTION, ("most",), 8, (2, 1), relu=True),
        Layer("mean", Kind.AVERAGE_POOL, ("wide",), 0, (1, 2), (1, 2)),
        Layer("flat", Kind.FLATTEN, ("mean",)),
        Layer("logits", Kind.CONVOLUTION, ("flat",), 4),
    )
    return TrainingNetwork("branching", (10, 8, 2), layers)


def masking_network() -> TrainingNetwork:
    """A ReLU before flattening, an average of all pixels, and a stride of a 1 x 1 kernel."""
    layers = (
        Layer("first", Kind.CONVOLUTION, (INPUT,), 8, (3, 3), (2, 2), (0, 1, 0, 1), True),
        Layer("second", Kind.CONVOLUTION, ("first",), 8, (1, 1), (2, 2), relu=True),
        Layer("mean", Kind.AVERAGE_POOL, ("second",), 0, (2, 2), (2, 2)),
        Layer("third", Kind.CONVOLUTION, ("mean",), 8, relu=True),
        Layer("flat", Kind.FLATTEN, ("third",)),
        Layer("logits", Kind.CONVOLUTION, ("flat",), 5),
    )
    return TrainingNetwork("masking", (8, 8, 3), layers)


def pooling_network() -> TrainingNetwork:
    """A pool reads the images; a layer's output is added to itself."""
    layers = (
        Layer("most", Kind.MAX_POOL, (INPUT,), 0, (2, 2), (2, 2)),
        Layer("first", Kind.CONVOLUTION, ("most",), 8, (3, 3), (1, 1), SAME, True),
        Layer("twice", Kind.ADD, ("first", "first")),
        Layer("logits", Kind.CONVOLUTION, ("twice",), 3, (4, 4)),
    )
    return TrainingNetwork("pooling", (8, 8, 3), layers)


NETWORKS = {
    "pooling": pooling_network,
    "digits": digits_cnn,
    "branching": branching_network,
    "masking": masking_network,
}


@pytest.mark.parametrize(
    ("network", "configuration"),
    [
        ("digits", PLAIN),
        ("digits", NINTHS),
        ("branching", PLAIN),
        ("branching", PIXELS),
        ("masking", NINTHS),
        ("pooling", PLAIN),
    ],
    ids=[
        "digits",
        "digits, ninth bits",
        "branching",
        "branching, two pixels",
        "masking",
        "pooling",
    ],
)
def test_all_tensors_gradients_and_weights_are_those_of_the_definition(
    network: str, configuration: Configuration
) -> None:
    device = ModelDevice(configuration, check_hazards=True)
    found = verify_dram_training(
        NETWORKS[network](), device, steps=3, batch=2, rate_shift=4, seed=1
    )
    assert found.comparison.mismatches == 0, found.comparison.by_layer
    assert found.parameters.mismatches == 0, found.parameters.by_layer
    assert found.comparison.elements > 2000
    compared = set(found.comparison.by_layer)
    assert {layer.name for layer in NETWORKS[network]().learning} < compared
    assert any(name.startswith("error of ") and "range" not in name for name in compared)


def test_a_residual_network_for_cifar() -> None:
    """ResNet-8: maps wider than a kernel, shortcuts with strides, an average of all pixels."""
    large = find_target("sim-training-large").configuration
    device = ModelDevice(dataclasses.replace(large, dram=CHIP))
    found = verify_dram_training(resnet8(), device, steps=2, batch=1, rate_shift=5, seed=1)
    assert found.comparison.elements > 400_000
    assert found.comparison.mismatches == 0, found.comparison.by_layer
    assert found.parameters.mismatches == 0, found.parameters.by_layer


class _Wrong(ModelDevice):
    """A device whose DRAM changes a byte of each list's results: the first image's logits."""

    def read(self, address: int, count: int) -> bytes:
        data = bytearray(super().read(address, count))
        data[0] ^= 1
        return bytes(data)


def test_a_wrong_byte_is_found() -> None:
    found = verify_dram_training(
        digits_cnn(), _Wrong(PLAIN), steps=2, batch=2, rate_shift=4, seed=1
    )
    assert found.comparison.mismatches > 0 and found.parameters.mismatches > 0


def test_little_crosses_the_link() -> None:
    """Images, weights and errors go up, logits and sums come down."""
    network, batch = digits_cnn(), 8
    initial, data = initial_parameters(network, 1), noisy_pictures(digits_cnn(), 32, 1)
    from_dram, by_products = ModelDevice(PLAIN), ModelDevice(PLAIN)
    trainers = (
        (from_dram, DramTrainer(network, from_dram, initial)),
        (
            by_products,
            Trainer(network, DeviceArithmetic(DeviceProducts(by_products)), initial),
        ),
    )
    moved = []
    for device, trainer in trainers:
        before = list[tuple[int, int]]()
        for step in range(3):
            before.append((device.bytes_up, device.bytes_down))
            some = slice(step * batch, (step + 1) * batch)
            trainer.step(data.images[some], data.labels[some], 4)
        up, down = before[-1]
        moved.append((device.bytes_up - up, device.bytes_down - down))
    (up, down), (up_before, down_before) = moved
    # of 1,898 parameters, bytes go up forward and backward, and sums of 4 bytes come down
    assert up < 8_000 < up_before / 25 and down < 9_500 < down_before / 4


def test_batches_tests_and_checkpoints_in_any_order() -> None:
    """A batch of another size, an evaluation and a restored trainer do not disturb the bits."""
    network, data = digits_cnn(), noisy_pictures(digits_cnn(), 32, 2)
    initial = initial_parameters(network, 2)
    device = ModelDevice(PLAIN)
    ours, golden = (
        DramTrainer(network, device, initial),
        Trainer(network, Int8Arithmetic(), initial),
    )
    steps_from_dram = 0
    for number, count in enumerate((2, 4, 2, 1, 4)):
        some = slice(4 * number, 4 * number + count)
        ours.step(data.images[some], data.labels[some], 4)
        golden.step(data.images[some], data.labels[some], 4)
        if number == 1:
            test = data.images[:3], data.labels[:3]
            assert ours.evaluate(*test) == golden.evaluate(*test)
        if number == 2:
            steps_from_dram, arrays = ours.from_dram, ours.arrays()
            ours = DramTrainer(network, device, initial)
            ours.restore(arrays)
    # the first trainer's first step had no ranges; those of the restored one had
    assert (steps_from_dram, ours.from_dram) == (2, 2)
    wanted = golden.arrays()
    for name, array in ours.arrays().items():
        np.testing.assert_array_equal(array, wanted[name])


def test_a_plan_is_kept_while_weights_and_ranges_change() -> None:
    """Only the constants of its lists change, and the bits stay those of the definition."""
    network, data = digits_cnn(), noisy_pictures(digits_cnn(), 32, 6)
    initial = initial_parameters(network, 6)
    ours = DramTrainer(network, ModelDevice(PLAIN), initial)
    golden = Trainer(network, Int8Arithmetic(), initial)
    plans, ranges = list[StepPlan](), set[tuple[tuple[str, int], ...]]()
    for step in range(8):
        some = slice(4 * step, 4 * step + 4)
        for trainer in (ours, golden):
            trainer.step(data.images[some], data.labels[some], 2)
        if step:
            plans.append(ours._plans[-1])
            ranges.add(tuple(sorted(golden.arithmetic.ranges.items())))
    assert all(plan is plans[0] for plan in plans)
    assert len(ranges) > 2
    wanted = golden.arrays()
    for name, array in ours.arrays().items():
        np.testing.assert_array_equal(array, wanted[name])


def test_the_last_layers_alone() -> None:
    """Errors go back no further than the first layer that learns."""
    network, data = digits_cnn(), noisy_pictures(digits_cnn(), 8, 3)
    initial, learning = initial_parameters(network, 3), network.last_learning(1)
    ours = DramTrainer(network, ModelDevice(PLAIN), initial, learning, momentum=2)
    golden = Trainer(network, Int8Arithmetic(momentum=2), initial, learning)
    for step in range(3):
        some = slice(2 * step, 2 * step + 2)
        ours.step(data.images[some], data.labels[some], 4)
        golden.step(data.images[some], data.labels[some], 4)
    assert not any(name.startswith("error of ") for name in ours.tensors())
    wanted = golden.arrays()
    for name, array in ours.arrays().items():
        np.testing.assert_array_equal(array, wanted[name])


def depthwise_network(kernel: tuple[int, int], channels: int) -> TrainingNetwork:
    """Two depthwise layers, one with a stride, and more channels than columns of an array."""
    pads = kernel[0] // 2, (kernel[0] - 1) // 2, kernel[1] // 2, (kernel[1] - 1) // 2
    layers = (
        Layer("first", Kind.CONVOLUTION, (INPUT,), channels, (3, 3), (1, 1), SAME, True),
        Layer("deep", Kind.DEPTHWISE, ("first",), 0, kernel, (1, 1), pads, True),
        Layer("point", Kind.CONVOLUTION, ("deep",), channels, relu=True),
        Layer("deeper", Kind.DEPTHWISE, ("point",), 0, (3, 3), (2, 2), (0, 1, 0, 1)),
        Layer("logits", Kind.CONVOLUTION, ("deeper",), 3, (4, 4)),
    )
    return TrainingNetwork("deep", (8, 8, 2), layers)


@pytest.mark.parametrize(
    ("configuration", "kernel", "channels"),
    [(PLAIN, (3, 3), 20), (NINTHS, (5, 2), 12), (PIXELS, (1, 3), 24), (PLAIN, (2, 4), 3)],
    ids=["three tiles", "ninth bits", "two pixels", "three channels"],
)
def test_depthwise_layers_learn(
    configuration: Configuration, kernel: tuple[int, int], channels: int
) -> None:
    """Learns by sums of channels with each other; those of each with itself count."""
    network = depthwise_network(kernel, channels)
    initial, data = initial_parameters(network, 5), noisy_pictures(network, 8, 5)
    found = verify_dram_training(
        network,
        ModelDevice(configuration, check_hazards=True),
        steps=3,
        batch=2,
        rate_shift=3,
        seed=5,
    )
    assert found.comparison.mismatches == found.parameters.mismatches == 0
    ours = DramTrainer(network, ModelDevice(configuration), initial)
    golden = Trainer(network, Int8Arithmetic(), initial)
    before = {name: array.copy() for name, array in golden.arrays().items()}
    for step in range(3):
        some = slice(2 * step, 2 * step + 2)
        ours.step(data.images[some], data.labels[some], 3)
        golden.step(data.images[some], data.labels[some], 3)
    assert (ours.from_dram, ours.updated) == (2, 2 if configuration.lanes == 8 else 0)
    wanted = golden.arrays()
    for name, array in ours.arrays().items():
        np.testing.assert_array_equal(array, wanted[name])
    deep = [name for name in wanted if "deep" in name and "masters" in name]
    assert deep and all((wanted[name] != before[name]).any() for name in deep)


def test_errors_go_back_through_a_depthwise_layer_that_does_not_learn() -> None:
    network = depthwise_network((3, 3), 8)
    initial, data = initial_parameters(network, 5), noisy_pictures(network, 8, 5)
    learning = ("first", "logits")
    ours = DramTrainer(network, ModelDevice(PLAIN), initial, learning, master_bits=8)
    golden = Trainer(network, Int8Arithmetic(master_bits=8), initial, learning)
    for step in range(3):
        some = slice(2 * step, 2 * step + 2)
        ours.step(data.images[some], data.labels[some], 3)
        golden.step(data.images[some], data.labels[some], 3)
    assert ours.from_dram == 2
    wanted = golden.arrays()
    for name, array in ours.arrays().items():
        np.testing.assert_array_equal(array, wanted[name])


@pytest.mark.parametrize("code", ["MEMORY_CORRUPT", "BAD_TRANSFER"])
def test_a_damaged_list_ends_the_step(code: str) -> None:
    """The host is told; the next step writes all again, and goes on from the same weights."""
    network, data = digits_cnn(), noisy_pictures(digits_cnn(), 8, 4)
    initial, device = initial_parameters(network, 4), ModelDevice(PLAIN)
    ours = DramTrainer(network, device, initial)
    golden = Trainer(network, Int8Arithmetic(), initial)
    for trainer in (ours, golden):
        for _ in range(2):
            trainer.step(data.images[:2], data.labels[:2], 4)
    dma = device._core.dma
    assert dma is not None
    # no step changes these: the program that copies the images, which is first, and WAITs
    contents = WORD_BYTES * ours._plans[-1].first
    place = contents + 5
    if code == "BAD_TRANSFER":
        place = contents + dma.dram[contents:][: 1 << 17].tobytes().rindex(WAIT.pack())
    dma.dram[place] ^= 0x0A
    before = ours.arrays()
    with pytest.raises(LinkError, match="a training step from its DRAM") as caught:
        ours.step(data.images[2:4], data.labels[2:4], 4)
    assert caught.value.code == code
    for name, array in ours.arrays().items():
        np.testing.assert_array_equal(array, before[name])
    for trainer in (ours, golden):
        trainer.step(data.images[2:4], data.labels[2:4], 4)
    wanted = golden.arrays()
    for name, array in ours.arrays().items():
        np.testing.assert_array_equal(array, wanted[name])
    assert ours.from_dram == 2


def _learn(network: TrainingNetwork, configuration: Configuration, batch: int = 1) -> None:
    trainer = DramTrainer(network, ModelDevice(configuration), initial_parameters(network, 1))
    # a step before would have made these ranges
    golden = Trainer(network, Int8Arithmetic(), initial_parameters(network, 1))
    data = noisy_pictures(network, batch, 1)
    golden.gradients(data.images, data.labels)
    trainer.arithmetic.ranges = dict(golden.arithmetic.reports)
    trainer.step(data.images, data.labels, 4)


def _network(*layers: Layer, shape: tuple[int, int, int] = (4, 4, 2)) -> TrainingNetwork:
    return TrainingNetwork("refused", shape, (*layers, _dense(layers[-1].name)))


def _dense(name: str) -> Layer:
    return Layer("logits", Kind.CONVOLUTION, (name,), 3, (4, 4))


def _convolution(name: str, source: str) -> Layer:
    return Layer(name, Kind.CONVOLUTION, (source,), 2, (3, 3), (1, 1), SAME, True)


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            _network(
                _convolution("first", INPUT),
                Layer("most", Kind.MAX_POOL, ("first",), 0, (3, 3), (1, 1), SAME),
            ),
            r"'most': a pool .* windows side by side, without padding, not \(3, 3\) with stride",
        ),
        (
            _network(
                _convolution("first", INPUT),
                Layer("sum", Kind.ADD, ("first", "first")),
                Layer("more", Kind.ADD, ("first", "sum")),
            ),
            "'first': .* read each tensor at most twice, not 3 times",
        ),
        (
            TrainingNetwork(
                "flattened",
                (4, 4, 2),
                (
                    _convolution("first", INPUT),
                    Layer("flat", Kind.FLATTEN, ("first",)),
                    Layer("logits", Kind.CONVOLUTION, ("flat",), 3),
                ),
            ),
            "flattened in DRAM must have channels in multiples of 8, not 2 and 32",
        ),
    ],
    ids=["overlapping pool", "three readers", "flattened channels"],
)
def test_networks_that_are_refused(network: TrainingNetwork, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        _learn(network, PLAIN)


def test_hardware_that_is_refused() -> None:
    network = digits_cnn()
    initial = initial_parameters(network, 1)
    without = find_target("sim-training").configuration
    with pytest.raises(CapacityError, match="needs a target with DRAM"):
        DramTrainer(network, ModelDevice(without), initial)
    with pytest.raises(CapacityError, match="training = 1"):
        DramTrainer(network, ModelDevice(dataclasses.replace(PLAIN, training=0)), initial)
    narrow = dataclasses.replace(PLAIN, columns=4, lanes=4, weight_rows=1)
    with pytest.raises(CapacityError, match="columns in multiples of 8, not 4"):
        _learn(network, narrow)
    small = dataclasses.replace(PLAIN, activation_bytes=1 << 10)
    with pytest.raises(CapacityError, match=r"activation_bytes \(1024\)"):
        _learn(network, small)
