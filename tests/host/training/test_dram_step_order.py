"""Lists in an order that moves data during runs: random networks, and runs that end late."""

import itertools

import numpy as np
import pytest
from late_dma import late_device
from slipstick.devices.model import ModelDevice
from slipstick.training.dram_step.chip import Lifetime, allocate
from slipstick.training.dram_step.cutting import cut
from slipstick.training.dram_step.effects import Access, Memory, Step
from slipstick.training.dram_step.listing import Listed, Listing
from slipstick.training.dram_step.schedule import schedule
from slipstick.training.dram_step.trainer import DramTrainer
from slipstick.training.dram_step.verify import verify_dram_training
from slipstick.training.network import initial_parameters
from slipstick.training.networks import digits_cnn, resnet8
from slipstick_rtl.dma.transfer import GROUP_CELLS, Operation, Target, Transfer
from step_networks import LARGE, SHAPES, random_network


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(5))
def test_random_networks(seed: int, shape: str) -> None:
    """All that is stored is that of the definition, whether runs end at once or late."""
    for late, batch, keeps in ((False, 2, True), (True, (1, 4)[seed % 2], False)):
        configuration = SHAPES[shape]
        device = late_device(configuration) if late else ModelDevice(configuration)
        found = verify_dram_training(
            random_network(10 * seed + len(shape), shape),
            device,
            steps=2,
            batch=batch,
            rate_shift=4,
            seed=seed,
            keeps=keeps,
        )
        assert found.comparison.mismatches == 0, found.comparison.by_layer
        assert found.parameters.mismatches == 0, found.parameters.by_layer


def test_a_residual_network_whose_runs_end_late() -> None:
    found = verify_dram_training(
        resnet8(), late_device(LARGE), steps=2, batch=2, rate_shift=5, seed=1, keeps=False
    )
    assert found.comparison.mismatches == 0, found.comparison.by_layer
    assert found.parameters.mismatches == 0, found.parameters.by_layer


def check_order(steps: list[Step], order: list[int | None]) -> None:
    """Steps that touch the same bytes keep their order, with a WAIT behind a run that is one."""
    place, waits = dict[int, int](), [at for at, number in enumerate(order) if number is None]
    for at, number in enumerate(order):
        if number is not None:
            place[number] = at
    assert sorted(place) == list(range(len(steps)))
    runs = [number for number, step in enumerate(steps) if step.runs]
    for first, second in zip(runs, runs[1:], strict=False):
        assert any(place[first] < at < place[second] for at in waits)
    for later, step in enumerate(steps):
        for earlier, before in enumerate(steps[:later]):
            if any(one.meets(other) for one in step.accesses for other in before.accesses):
                assert place[earlier] < place[later]
                if before.runs:
                    assert any(place[earlier] < at < place[later] for at in waits)


def bytes_moved(transfer: Transfer) -> set[tuple[int, int]]:
    """Bytes of the chip and of DRAM that belong together; the weight memory's are eight a group."""
    unit = 1 if transfer.target is Target.ACTIVATIONS else GROUP_CELLS
    found = set[tuple[int, int]]()
    for row, run in np.ndindex(transfer.rows, transfer.runs):
        chip = transfer.chip * unit + row * transfer.chip_row_pitch + run * transfer.chip_run_pitch
        word = transfer.dram + row * transfer.dram_row_pitch + run * transfer.dram_run_pitch
        found |= {(chip + k, 8 * word + k) for k in range(transfer.run_bytes)}
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
@pytest.mark.parametrize(
    "transfer",
    [
        Transfer(
            operation=Operation.STORE,
            chip=64,
            dram=9,
            run_bytes=16,
            runs=5,
            rows=7,
            chip_run_pitch=32,
            chip_row_pitch=200,
            dram_run_pitch=3,
            dram_row_pitch=20,
        ),
        Transfer(
            operation=Operation.LOAD,
            chip=3,
            run_bytes=5,
            runs=11,
            chip_run_pitch=33,
            dram_run_pitch=1,
        ),
        Transfer(operation=Operation.STORE, chip=16, dram=2, run_bytes=1001),
        Transfer(operation=Operation.LOAD, target=Target.CELLS, chip=6, dram=1, run_bytes=480),
    ],
    ids=["rows", "runs", "bytes", "cells"],
)
def test_parts_of_a_transfer_move_the_same_bytes(transfer: Transfer, count: int) -> None:
    parts = list(cut(transfer, count, SHAPES["8x8"]))
    moved = [bytes_moved(part) for part in parts]
    assert set[tuple[int, int]]().union(*moved) == bytes_moved(transfer)
    assert sum(map(len, moved)) == len(bytes_moved(transfer))
    assert (len(parts) > 1) == (count > 1)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_needed_at_a_time_does_not_meet(seed: int) -> None:
    """Works are repeated for each image: what is stored late meets the next image's first works."""
    generator = np.random.default_rng(seed)
    draw, count = generator.integers, 8
    lifetimes = list[Lifetime]()
    for _ in range(20):
        first = int(draw(count))
        around = int(draw(4)), int(draw(4))
        last = int(draw(first, count))
        lifetimes.append(Lifetime(int(draw(1, 500)), first, last, around[0], around[1]))
    for share in (0.0, 0.5, 1.0):
        places, end = allocate(lifetimes, count, share, 32)
        works = [each.works(count, share) for each in lifetimes]
        for one, other in itertools.combinations(range(20), 2):
            begins, ends = (
                max(places[one], places[other]),
                min(places[n] + lifetimes[n].size for n in (one, other)),
            )
            assert begins >= ends or not works[one] & works[other]
        assert end == max(p + each.size for p, each in zip(places, lifetimes, strict=True))
        assert all(place % 32 == 0 for place in places)


@pytest.mark.parametrize("seed", range(10))
def test_random_steps(seed: int) -> None:
    """Few places, so that most steps meet; more of them than may pass each other."""
    generator = np.random.default_rng(seed)
    steps = list[Step]()
    for _ in range(600 if seed == 0 else 150):
        accesses = list[Access]()
        for _ in range(int(generator.integers(1, 4))):
            begin = int(generator.integers(0, 60 if seed % 2 else 2000))
            memory = Memory(int(generator.integers(4)))
            accesses.append(Access(memory, begin, begin + 4, bool(generator.integers(2))))
        operation = [Operation.LOAD, Operation.RUN][int(generator.random() < 0.3)]
        cycles = int(generator.integers(10, 1000))
        steps.append(Step(Transfer(operation=operation), accesses, cycles))
    check_order(steps, schedule(steps))


def test_lists_of_a_step_keep_what_meets_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """And many moves are made during runs."""
    found = list[tuple[list[Step], list[int | None]]]()
    finish = Listing.finish

    def check(self: Listing) -> Listed:
        found.append((self.steps, schedule(self.steps)))
        return finish(self)

    monkeypatch.setattr(Listing, "finish", check)
    network = digits_cnn()
    trainer = DramTrainer(network, ModelDevice(SHAPES["8x8"]), initial_parameters(network, 1))
    trainer._plan(4, None)
    assert len(found) == 2
    for steps, order in found:
        check_order(steps, order)
        during, running = 0, False
        for number in order:
            if number is None:
                running = False
            elif steps[number].runs:
                running = True
            else:
                during += running
        moves = sum(not step.runs for step in steps)
        assert during > moves // 4
