"""A cluster's workers compress: the bits of the host's compression, and few bytes on the wire."""

import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from slipstick.cluster.opening import open_cluster_pool
from slipstick.cluster.pool import ClusterPool
from slipstick.errors import DeviceError
from slipstick.training.opened_trainer import OpenedTrainer
from slipstick.training.parallel import on_cluster
from slipstick.training.parallel.compression import Coding
from slipstick.training.parallel.crew import Crew, SerialCrew
from slipstick.training.parallel.division import Division
from slipstick.training.parallel.messages import layout_of, message_size
from slipstick.training.parallel.on_cluster import CHAIN_STEPS, ClusterCrew, open_cluster_crew
from slipstick.training.parallel.on_worker import (
    BoardResult,
    PartState,
    compute,
    compute_message,
    unsent_of,
)
from slipstick.training.parallel.trainer import ParallelTrainer
from slipstick_rtl.config import Configuration
from training_crews import (
    INITIAL,
    NETWORK,
    SETUP,
    SHIFT,
    batches,
    check_equal,
    compute_late,
    compute_or_die,
    fail_on_board,
    learn,
    process_of,
)

PARTS = 3
SMALL = Configuration(
    rows=8, columns=8, lanes=8, activation_bytes=1 << 15, weight_bytes=1 << 16, training=1
)
LAYOUT = layout_of(SETUP.trainer())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What becomes of workers: one job finds each file."""
    folder = tmp_path_factory.mktemp("markers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLIPSTICK_TEST_MARKERS", str(folder))
        yield folder
    assert not list(folder.iterdir())


@pytest.fixture(scope="module")
def pool(folder: Path) -> Iterator[ClusterPool]:
    with open_cluster_pool("local:2") as opened:
        yield opened


@pytest.fixture(scope="module")
def crew(pool: ClusterPool) -> Iterator[ClusterCrew]:
    with ClusterCrew(pool, SETUP) as opened:
        yield opened


def trainer_of(crew: Crew | None = None, **options) -> ParallelTrainer:
    """By default the host compresses."""
    crew = crew or SerialCrew(SETUP.trainer())
    return ParallelTrainer(
        NETWORK, SETUP.arithmetic(), INITIAL, **{"crew": crew, "parts": PARTS, **options}
    )


def check_same(found: ParallelTrainer, wanted: ParallelTrainer) -> None:
    """All of a checkpoint, what was left out as well."""
    check_equal(found.arrays(), wanted.arrays())
    assert list(found.arrays()) == list(wanted.arrays())


@pytest.mark.parametrize(
    ("bits", "options"),
    [(8, {}), (4, {}), (2, {"seed": 7}), (1, {}), (4, {"feedback": False})],
    ids=["8", "4", "2", "1", "without feedback"],
)
def test_workers_send_the_hosts_messages(crew: ClusterCrew, bits: int, options: dict) -> None:
    host, many = trainer_of(bits=bits, **options), trainer_of(crew, bits=bits, **options)
    before = crew.received
    learn(host, 4)
    learn(many, 4)
    received = crew.received - before
    check_same(many, host)
    assert many.compression is not None and host.compression is not None
    assert many.compression.messages == host.compression.messages == 3 * PARTS
    assert many.compression.sent == 3 * PARTS * message_size(LAYOUT, bits)
    # the first step is one part of 32 bits
    assert received == many.compression.sent + 4 * LAYOUT.count


def test_chains_end(crew: ClusterCrew, monkeypatch: pytest.MonkeyPatch) -> None:
    """After two steps the host has what parts have not sent."""
    monkeypatch.setattr(on_cluster, "CHAIN_STEPS", 2)
    host, many = trainer_of(bits=2), trainer_of(crew, bits=2)
    for steps, is_kept in ((2, True), (1, False), (1, True), (1, False)):
        learn(host, steps)
        learn(many, steps)
        assert many.compression is not None
        assert isinstance(many.compression.unsent(0), dict) != is_kept
    before = crew.received
    check_same(many, host)
    assert crew.received == before


def test_bytes_on_the_wire(crew: ClusterCrew) -> None:
    """Of gradients, and what a chain's end adds."""
    steps, found = 3, {}
    for bits in (32, 4):
        many = trainer_of(crew, bits=bits)
        learn(many, 1)
        sent, before = crew.sent, crew.received
        learn(many, steps)
        received = (crew.received - before) / steps
        before = crew.received
        many.arrays()
        found[bits] = received + (crew.received - before) / CHAIN_STEPS
        batch, snapshot = batches(1)[0], sum(each.nbytes for each in many.arrays().values())
        # a snapshot once for all parts, and the images
        step = batch.images.nbytes + batch.labels.nbytes
        assert step < (crew.sent - sent) / steps < step + snapshot
    assert found[32] == PARTS * 4 * LAYOUT.count > 6 * found[4]


def test_figures_of_a_cluster(pool: ClusterPool) -> None:
    with ClusterCrew(pool, SETUP) as crew:
        many = trainer_of(crew, bits=1)
        opened = OpenedTrainer(many, ExitStack(), Division(), "workers", crew=crew)
        learn(many, 2)
        figures = opened.figures()
    assert figures["workers"] == 2
    assert figures["gradient_bytes_per_step"] == many.message_bytes
    assert figures["bytes_from_workers_per_step"] == crew.received / 2
    assert figures["bytes_to_workers_per_step"] == crew.sent / 2 > batches(1)[0].images.nbytes
    assert crew.received == 4 * LAYOUT.count + many.message_bytes


def test_checkpoints_go_on_anywhere(crew: ClusterCrew) -> None:
    one, wanted = trainer_of(crew, bits=2), trainer_of(bits=2)
    learn(one, 3)
    learn(wanted, 3)
    kept = one.arrays()
    others = trainer_of(crew, bits=2), trainer_of(bits=2), one
    learn(wanted, 2)
    for other in others:
        other.restore(kept)
        learn(other, 2)
        check_same(other, wanted)


def test_what_is_left_out_is_lost_with_the_crew(pool: ClusterPool) -> None:
    with ClusterCrew(pool, SETUP) as crew:
        many = trainer_of(crew, bits=4)
        learn(many, 2)
    with pytest.raises(DeviceError, match="the crew is closed: what its workers have kept is lost"):
        many.arrays()


def test_killed_workers_change_no_bit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signal 9 in the middle of a step, and between two steps."""
    monkeypatch.setattr(on_cluster, "compute", compute_or_die)
    wanted = trainer_of(bits=2)
    with open_cluster_pool("local:2") as pool, ClusterCrew(pool, SETUP) as crew:
        many = trainer_of(crew, bits=2)
        learn(many, 3)
        (folder / "die").touch()
        learn(many, 1)
        assert not list(folder.iterdir())
        again = crew.given_again
        os.kill(pool.pick(process_of, kept_of(many).state).result(), signal.SIGKILL)
        learn(many, 2)
        for steps in (3, 1, 2):
            learn(wanted, steps)
        check_same(many, wanted)
        assert 1 <= again < crew.given_again


def kept_of(trainer: ParallelTrainer) -> on_cluster.KeptState:
    assert trainer.compression is not None
    kept = trainer.compression.unsent(0)
    assert isinstance(kept, on_cluster.KeptState)
    return kept


def test_a_late_job_is_done_twice(
    pool: ClusterPool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_cluster, "compute", compute_late)
    wanted = trainer_of(bits=1)
    with ClusterCrew(pool, SETUP, patience=0.1) as crew:
        many = trainer_of(crew, bits=1)
        learn(many, 3)
        before = crew.given_again

        def let_go() -> None:
            """Ends the job that waits, when one was given again."""
            while not (folder / "waiting").exists() or crew.given_again == before:
                time.sleep(0.02)
            (folder / "waiting").unlink()

        (folder / "late").touch()
        waiter = threading.Thread(target=let_go)
        waiter.start()
        learn(many, 2)
        waiter.join()
        for steps in (3, 2):
            learn(wanted, steps)
        check_same(many, wanted)


def test_boards_of_a_cluster_that_fail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_cluster, "compute_on_board", fail_on_board)
    wanted = trainer_of(bits=4, parts=2)
    with open_cluster_crew("local:1", SETUP, device="model", configuration=SMALL) as crew:
        many = trainer_of(crew, bits=4, parts=2)
        for number, batch in enumerate(batches(3)):
            if number:
                (folder / f"fail{number}").touch()
            for trainer in (wanted, many):
                trainer.step(batch.images[:4], batch.labels[:4], SHIFT)
        assert crew.given_again == 2 and crew.bytes_moved > 0
        check_same(many, wanted)


def test_a_step_that_is_lost_does_not_depend_on_a_board() -> None:
    """Dask does it again on a board that fails: the next one has the same bits."""

    def fail(*needed: object) -> BoardResult:
        return BoardResult("tcp://board", problem="no answer")

    trainer, coding = SETUP.trainer(), Coding(LAYOUT, 2)
    needed = SETUP, trainer.arrays(), batches(1)[0].images, batches(1)[0].labels, ()
    states: list[PartState] = []
    for fates in ((compute, compute, compute), (fail, fail, compute)):
        state: PartState | None = None
        for step, fate in enumerate(fates):
            state = compute_message(fate, coding, 1, step, state or {}, *needed)
            assert isinstance(state.found, bytes) == (fate is compute)
        assert state is not None
        # as it travels
        states.append(pickle.loads(pickle.dumps(state)))
    assert states[0].found == states[1].found
    for number, (left, exponent) in unsent_of(states[0]).items():
        np.testing.assert_array_equal(unsent_of(states[1])[number][0], left)
        assert unsent_of(states[1])[number][1] == exponent
