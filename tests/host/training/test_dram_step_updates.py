"""Weights that the device updates in its DRAM: bit for bit those of the definition."""

import dataclasses
import itertools

import numpy as np
import pytest
from late_dma import late_device
from slipstick.devices.link import LinkError
from slipstick.devices.model import ModelDevice
from slipstick.errors import StateLostError
from slipstick.targets import find_target
from slipstick.training.arithmetic import Rate
from slipstick.training.device.verify import noisy_batches, noisy_pictures
from slipstick.training.dram_step import recorder
from slipstick.training.dram_step.byte_loads import byte_loads
from slipstick.training.dram_step.trainer import DramTrainer
from slipstick.training.dram_step.weight_copies import (
    PROBES,
    WeightCopy,
    find_weights,
    probe,
    weight_bytes,
)
from slipstick.training.int8 import Int8Arithmetic
from slipstick.training.network import Initial, TrainingNetwork, initial_parameters
from slipstick.training.networks import digits_cnn, resnet8
from slipstick.training.trainer import Trainer
from slipstick_rtl.dma.transfer import (
    MASTER_WORDS,
    TRANSFER_BYTES,
    WORD_BYTES,
    Operation,
    Target,
    Transfer,
)
from slipstick_sim.golden.dma import GoldenDma
from step_networks import CHIP, SHAPES, random_network

PLAIN = SHAPES["8x8"]
EVERY = tuple(SHAPES)


def check_equal(ours: Trainer, wanted: Trainer) -> None:
    """All that training changes."""
    found = ours.arrays()
    for name, array in wanted.arrays().items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def learn_alike(
    network: TrainingNetwork, device: ModelDevice, *, steps: int, batch: int, shift: int, seed: int
) -> DramTrainer:
    """Takes steps on the device and by the definition, and compares what both learn."""
    initial = initial_parameters(network, seed)
    ours, wanted = (
        DramTrainer(network, device, initial),
        Trainer(network, Int8Arithmetic(), initial),
    )
    for some in noisy_batches(network, steps, batch, seed):
        found = ours.step(some.images, some.labels, shift)
        right = wanted.step(some.images, some.labels, shift)
        assert (found.loss, found.right, found.ranges) == (right.loss, right.right, right.ranges)
        for name, gradient in right.gradients.items():
            np.testing.assert_array_equal(found.gradients[name].bias, gradient.bias)
    assert ours.from_dram == steps - 1
    check_equal(ours, wanted)
    return ours


@pytest.mark.parametrize("shape", EVERY)
@pytest.mark.parametrize("seed", range(4))
def test_random_networks_learn_as_the_definition_says(shape: str, seed: int) -> None:
    """The lists keep their order also where runs end as late as they may."""
    device = late_device(SHAPES[shape])
    ours = learn_alike(
        random_network(seed, shape), device, steps=4, batch=1 << seed % 3, shift=4 + seed, seed=seed
    )
    # where the rows of sums are no whole words, the host updates
    assert ours.updated in ((0, 3) if SHAPES[shape].lanes % WORD_BYTES else (3,))


def test_a_residual_network_for_cifar() -> None:
    large = find_target("sim-training-large").configuration
    device = ModelDevice(dataclasses.replace(large, dram=CHIP), check_hazards=True)
    assert learn_alike(resnet8(), device, steps=2, batch=1, shift=4, seed=1).updated == 1


def test_neither_weights_nor_their_gradients_cross_the_link() -> None:
    """Images, biases and errors go up; logits, ranges and gradients of biases come down."""
    network, moved = digits_cnn(), list[tuple[int, int]]()
    data = noisy_pictures(network, 32, 1)
    for on_device in (True, False):
        device = ModelDevice(PLAIN)
        initial = initial_parameters(network, 1)
        trainer, before = DramTrainer(network, device, initial, on_device=on_device), (0, 0)
        for first in range(0, 32, 8):
            before = device.bytes_up, device.bytes_down
            some = slice(first, first + 8)
            trainer.step(data.images[some], data.labels[some], 4)
        assert trainer.updated == 3 * on_device
        moved.append((device.bytes_up - before[0], device.bytes_down - before[1]))
    (up, down), (up_by_host, down_by_host) = moved
    assert up < up_by_host / 2 and down < down_by_host / 8


class _Learners:
    """A trainer on a device, and the definition's, which take the same steps."""

    def __init__(self, seed: int, *, momentum: int = 0, master_bits: int = 16) -> None:
        self.network = digits_cnn()
        self.initial: Initial = initial_parameters(self.network, seed)
        self.data = noisy_pictures(self.network, 64, seed)
        self.device = ModelDevice(PLAIN)
        self.ours = DramTrainer(
            self.network, self.device, self.initial, master_bits=master_bits, momentum=momentum
        )
        arithmetic = Int8Arithmetic(master_bits, momentum)
        self.wanted = Trainer(self.network, arithmetic, self.initial)
        self._first = 0

    def step(self, count: int = 2, shift: int = 4) -> None:
        """The next images."""
        some = slice(self._first, self._first + count)
        self._first += count
        for trainer in (self.ours, self.wanted):
            trainer.step(self.data.images[some], self.data.labels[some], shift)


def test_batches_of_other_sizes_and_steps_of_the_host_between() -> None:
    """Wherever the weights are, a step goes on from the newest."""
    both = _Learners(2)
    for count in (2, 4, 2, 2, 1, 4, 4):
        both.step(count)
    assert both.ours.updated == 6
    for trainer in (both.ours, both.wanted):
        part = trainer.gradients(both.data.images[:4], both.data.labels[:4])
        trainer.apply([part], 3)
    both.step()
    arrays = both.ours.arrays()
    check_equal(both.ours, both.wanted)
    both.step()
    for trainer in (both.ours, both.wanted):
        trainer.restore(arrays)
    both.step()
    both.step()
    test = both.data.images[:3], both.data.labels[:3]
    assert both.ours.evaluate(*test) == both.wanted.evaluate(*test)
    check_equal(both.ours, both.wanted)


@pytest.mark.parametrize("settings", [{"momentum": 2}, {"master_bits": 8}])
def test_the_host_updates_what_the_device_cannot(settings: dict[str, int]) -> None:
    both = _Learners(3, **settings)
    for _ in range(3):
        both.step()
    assert both.ours.from_dram == 2 and both.ours.updated == 0
    check_equal(both.ours, both.wanted)


def test_the_host_updates_layers_that_probes_cannot_tell_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder, "MOST_WEIGHTS", 100)
    both = _Learners(3)
    for _ in range(3):
        both.step()
    assert both.ours.from_dram == 2 and both.ours.updated == 0
    check_equal(both.ours, both.wanted)


@pytest.mark.parametrize("shift", [-30, 25])
def test_rates_beyond_what_a_shift_can_say(shift: int) -> None:
    """A shift to the left is the host's; with one above 31 nothing is learned."""
    both = _Learners(4)
    for _ in range(3):
        both.step(shift=4)
    before = both.ours.arrays()
    both.step(shift=shift)
    assert both.ours.updated == (2 if shift < 0 else 3)
    check_equal(both.ours, both.wanted)
    still = all(
        np.array_equal(array, before[name])
        for name, array in both.ours.arrays().items()
        if name.endswith("masters")
    )
    assert still == (shift > 0)
    both.step()
    check_equal(both.ours, both.wanted)


@pytest.mark.parametrize("entry", [0, 1])
@pytest.mark.parametrize("read", [True, False])
def test_a_step_that_fails(entry: int, read: bool) -> None:
    """Weights that only the device has are lost if it fails while it updates them, else not."""
    both = _Learners(5)
    for _ in range(3):
        both.step()
    if read:
        both.ours.arrays()
    dma = both.device._core.dma
    assert dma is not None
    place = WORD_BYTES * both.ours._plans[-1].entries[entry]
    good = dma.dram[place : place + TRANSFER_BYTES].copy()
    # an operation that there is none of, in the list that begins there
    dma.dram[place] |= 0x0F
    with pytest.raises(LinkError, match="BAD_TRANSFER|a training step from its DRAM"):
        both.ours.step(both.data.images[:2], both.data.labels[:2], 4)
    dma.dram[place : place + TRANSFER_BYTES] = good
    if entry == 1 and not read:
        for lost in (both.ours.arrays, both.step):
            with pytest.raises(StateLostError, match="go on from a checkpoint"):
                lost()
        both.ours.restore(both.wanted.arrays())
        return
    both.step()
    both.step()
    check_equal(both.ours, both.wanted)


def test_a_wrong_update_is_seen() -> None:
    """The comparison above can fail: here one weight of each UPDATE learns nothing."""

    class Wrong(GoldenDma):
        def _update(self, transfer: Transfer) -> None:
            place = transfer.dram * WORD_BYTES
            before = self.dram[place : place + WORD_BYTES].copy()
            super()._update(transfer)
            self.dram[place : place + WORD_BYTES] = before

    device = ModelDevice(PLAIN)
    dma = device._core.dma
    assert dma is not None
    device._core.dma = Wrong(dma.dram, dma.chip, dma.ninth_bits, dma.training)
    with pytest.raises(AssertionError):
        learn_alike(digits_cnn(), device, steps=4, batch=4, shift=0, seed=1)


def test_only_loads_of_weights_have_no_crc() -> None:
    both = _Learners(6)
    both.step()
    both.step()
    plan = both.ours._plans[-1]
    masters = [each for each in plan.recorded.gradients.values() if each.masters is not None]
    assert len(masters) == len(both.network.learning)
    copies = _unpacked(plan._copies)
    written = {
        word
        for each in copies
        if each.operation is Operation.STORE
        for word in range(each.dram, each.dram + each.words)
    }
    first, loads = plan.first, 0
    for listed in plan._listed:
        begin = (listed.entry - first) * WORD_BYTES
        for load in _unpacked(bytes(listed.contents[begin:])):
            if load.operation is Operation.LOAD and load.dram >= plan.first:
                loads += 1
                words = range(load.dram, load.dram + load.words)
                assert load.checked == written.isdisjoint(words)
        first += len(listed.contents) // WORD_BYTES
    assert loads > 10


def _unpacked(packed: bytes) -> list[Transfer]:
    places = range(0, len(packed), TRANSFER_BYTES)
    return [Transfer.unpack(packed[first : first + TRANSFER_BYTES]) for first in places]


def _sources(load: Transfer) -> dict[int, int]:
    """The byte of DRAM that each byte of the activation memory has behind a LOAD."""
    found = dict[int, int]()
    turned = load.target is Target.TURNED
    for row, run, byte in itertools.product(
        range(load.rows), range(load.runs), range(load.run_bytes)
    ):
        chip = load.chip + row * load.chip_row_pitch + run * load.chip_run_pitch + byte
        word, place = (byte, run) if turned else (run, byte)
        dram = load.dram + row * load.dram_row_pitch + word * load.dram_run_pitch
        found[chip] = dram * WORD_BYTES + place
    return found


def _loaded(chip: np.ndarray, sources: np.ndarray) -> int:
    """Checks that LOADs bring each byte to its place, once, and no others; counts them."""
    found, count = dict[int, int](), 0
    for load in byte_loads(chip, sources):
        brought = _sources(Transfer.unpack(load.pack()))
        assert found.keys().isdisjoint(brought)
        found |= brought
        count += 1
    assert found == dict(zip(chip.tolist(), sources.tolist(), strict=True))
    return count


@pytest.mark.parametrize("seed", range(60))
def test_bytes_come_to_their_places(seed: int) -> None:
    """Kernels in any order of axes, with gaps; weights twice; and places without any order."""
    generator = np.random.default_rng(seed)
    axes = [int(count) for count in generator.integers(1, 12, 3)] + [int(generator.integers(1, 4))]
    numbers = np.arange(np.prod(axes)).reshape(axes)
    turned = numbers.transpose(generator.permutation(4))
    some = turned[::-1].reshape(-1) if seed % 3 == 0 else turned.reshape(-1)
    if seed % 5 == 0:
        some = generator.permutation(some)
    if seed % 4 == 0:
        some = np.concatenate([some, some])
    chip = np.sort(generator.choice(2 * some.size, some.size, replace=False))
    if seed % 2:
        chip = np.arange(some.size) + np.arange(some.size) // axes[-1] * 3
    elif seed % 3:
        chip = np.arange(some.size)
    sources = weight_bytes(some) if seed % 7 else some + 5
    assert _loaded(chip, sources) <= some.size


def test_orders_of_a_kernel_take_few_loads() -> None:
    """Forward, 16 outputs side by side; backward, 16 inputs side by side."""
    numbers = np.arange(32 * 9 * 64).reshape(32, 9, 4, 16)
    sources = weight_bytes(numbers)
    forward = sources.transpose(2, 1, 0, 3).reshape(-1)
    # a row has outputs, inputs in blocks of 16, and taps
    backward = sources.reshape(2, 16, 9, 64).transpose(0, 2, 3, 1).reshape(-1)
    chip = np.arange(sources.size)
    assert _loaded(chip, forward) <= 36
    assert _loaded(chip, backward) <= 160


def test_weights_are_found_by_their_probes() -> None:
    """Among other bytes, and in any number that a layer may have."""
    generator = np.random.default_rng(1)
    shape = (256, 3, 3, 256)
    count = int(np.prod(shape))
    order = generator.permutation(count)[:5000]
    places = np.sort(generator.choice(20_000, 5000, replace=False))
    blocks = list[bytes]()
    other = generator.integers(0, 256, 20_000, np.uint8)
    for number in range(PROBES):
        block = other.copy()
        block[places] = probe(shape, number).reshape(-1)[order].view(np.uint8)
        blocks.append(block.tobytes())
    found, numbers = find_weights(blocks)
    np.testing.assert_array_equal(found, places)
    np.testing.assert_array_equal(numbers, order)


def test_a_copy_larger_than_the_activation_memory_comes_in_parts() -> None:
    """And bytes between the weights stay as they are."""
    size = 9 * PLAIN.activation_bytes // 8
    words = size // WORD_BYTES + 200
    generator = np.random.default_rng(2)
    places = np.sort(generator.choice(size, size // 40, replace=False))
    sources = weight_bytes(generator.permutation(len(places))) + words * WORD_BYTES
    copy = WeightCopy(100, places, sources)
    device = ModelDevice(PLAIN)
    dma = device._core.dma
    assert dma is not None
    count = (words + MASTER_WORDS * len(places)) * WORD_BYTES
    dma.dram[:count] = generator.integers(0, 256, count, np.uint8)
    wanted = dma.dram[100 * WORD_BYTES :][:size].copy()
    wanted[places] = dma.dram[copy.sources]
    for transfer in copy.transfers(PLAIN):
        dma.execute(transfer.pack())
    np.testing.assert_array_equal(dma.dram[100 * WORD_BYTES :][:size], wanted)


def test_the_rate_s_shift_is_that_of_the_definition() -> None:
    arithmetic = Int8Arithmetic()
    assert arithmetic.update_shift(-8, -25, Rate(4, 8)) == -8 - 8 + 25 + 4 + 3
