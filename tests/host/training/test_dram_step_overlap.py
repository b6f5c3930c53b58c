"""What overlaps in steps from DRAM: pieces, gradients among other works, and faults in the order.

The golden model executes runs as late as they may be. So a LOAD over bytes that a run still reads,
and a STORE of bytes that a run has not written yet, change what is compared.
"""

import dataclasses
from collections.abc import Callable, Sequence

import pytest
from late_dma import late_device
from slipstick.devices.model import ModelDevice
from slipstick.errors import SlipstickError
from slipstick.targets import find_target
from slipstick.training.device.comparison import Comparison
from slipstick.training.dram_step import schedule as scheduling
from slipstick.training.dram_step.chains import ChainLister
from slipstick.training.dram_step.effects import Access, Memory, Step
from slipstick.training.dram_step.inner import InnerGradient, InnerLister
from slipstick.training.dram_step.pieces import plans
from slipstick.training.dram_step.relocation import Streams, behind
from slipstick.training.dram_step.schedule import best_schedule, schedule
from slipstick.training.dram_step.segment_choice import SegmentChooser
from slipstick.training.dram_step.timeline import predict_list
from slipstick.training.dram_step.verify import verify_dram_training
from slipstick.training.network import INPUT, Kind, Layer, TrainingNetwork
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import Operation, Transfer
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Opcode, pack, unpack

SMALL = dataclasses.replace(find_target("sim-training").configuration, dram="MT48LC16M16")
SAME = (1, 1, 1, 1)
NETWORK = TrainingNetwork(
    "overlapping",
    (8, 8, 3),
    (
        Layer("first", Kind.CONVOLUTION, (INPUT,), 8, (3, 3), (1, 1), SAME, True),
        Layer("inner", Kind.CONVOLUTION, ("first",), 8, (3, 3), (1, 1), SAME, True),
        Layer("outer", Kind.CONVOLUTION, ("inner",), 8, (3, 3), (1, 1), SAME),
        Layer("sum", Kind.ADD, ("first", "outer"), relu=True),
        Layer("short", Kind.CONVOLUTION, ("sum",), 8, (1, 1), (2, 2)),
        Layer("logits", Kind.CONVOLUTION, ("short",), 4, (4, 4)),
    ),
)
"""With masked sums, and pixels that no tap of a stride of 2 meets."""


def compared(device: ModelDevice, batch: int = 4) -> Comparison:
    """What differs in a step from DRAM."""
    found = verify_dram_training(
        NETWORK, device, steps=2, batch=batch, rate_shift=4, seed=3, keeps=False
    )
    return found.comparison


def is_seen(device: ModelDevice, batch: int = 4) -> bool:
    """Whether something differs, or the model refuses what it finds in its memories or notes."""
    try:
        return compared(device, batch).mismatches > 0
    except (SlipstickError, ValueError):
        return True


@pytest.fixture
def with_inner(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A gradient stands among the works, whatever the prediction; the layers it was of."""
    found = list[str]()

    def prefer(
        self: SegmentChooser, segments: object, inner: InnerGradient | None, _: object
    ) -> int:
        if inner is not None:
            found.append(inner.work.name)
        return 0 if inner is not None else 1

    monkeypatch.setattr(SegmentChooser, "_predict", prefer)
    return found


@pytest.mark.parametrize("make", [ModelDevice, late_device])
@pytest.mark.parametrize("batch", [4, 8])
def test_a_gradient_among_other_works(
    batch: int, make: Callable[[Configuration], ModelDevice], with_inner: list[str]
) -> None:
    """Its sums stay in the accumulators while other works use the first half of them."""
    found = compared(make(SMALL), batch)
    assert found.mismatches == 0, found.by_layer
    assert with_inner


def test_works_without_a_gradient_among_them() -> None:
    """Of few images none is among them."""
    found = compared(late_device(SMALL), 2)
    assert found.mismatches == 0, found.by_layer


def _no_access(*_: object) -> list[Access]:
    return []


def test_a_move_that_passes_its_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Works are said to touch no activations: LOADs and STOREs come too early."""
    monkeypatch.setattr(ChainLister, "_touched", _no_access)
    assert compared(late_device(SMALL)).mismatches > 0


def test_an_inner_gradient_that_touches_nothing_is_found(
    monkeypatch: pytest.MonkeyPatch, with_inner: list[str]
) -> None:
    run = InnerLister._run

    def forget(self: InnerLister, matrix: int, post: int, _: list[Access]) -> None:
        run(self, matrix, post, [])

    monkeypatch.setattr(InnerLister, "_run", forget)
    assert compared(late_device(SMALL)).mismatches > 0 and with_inner


def test_notes_that_are_stored_too_early_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = Access(Memory.ACTIVATIONS, 0, 0, True)
    monkeypatch.setattr(ChainLister, "_noting", lambda *_: nothing)
    assert is_seen(late_device(SMALL))


@pytest.mark.parametrize("forgotten", [Memory.ACTIVATIONS, Memory.WEIGHTS, Memory.DRAM], ids=str)
def test_an_order_that_forgets_a_memory_is_found(
    forgotten: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits_for = scheduling.waits_for

    def forget(steps: Sequence[Step]) -> list[set[int]]:
        return waits_for(
            [
                step._replace(accesses=[a for a in step.accesses if a.memory is not forgotten])
                for step in steps
            ]
        )

    monkeypatch.setattr(scheduling, "waits_for", forget)
    # what comes too early for it depends on the list
    assert any(is_seen(late_device(SMALL), batch) for batch in (4, 2, 8))


@pytest.mark.parametrize("rows", [(1,), (7,), (16, 16), (3, 2, 9), (33,)], ids=str)
@pytest.mark.parametrize("halved", [False, True])
def test_pieces_are_all_rows(rows: tuple[int, ...], halved: bool) -> None:
    """And no bank is too small, nor in the half of others."""
    depth, columns = SMALL.accumulator_depth, 20
    some = list(plans(rows, columns, SMALL, halved=halved))
    assert len(set(some)) == len(some) > 1
    for plan in some:
        assert tuple(map(sum, plan.heights)) == rows
        words = depth >> plan.parts
        for number, height in enumerate(h for heights in plan.heights for h in heights):
            used = number % plan.banks // 2 * words + height * columns
            assert 0 < height * columns <= words
            assert used <= (depth // 2 if halved else depth)


def test_what_stands_before_is_waited_for() -> None:
    """CONVOLVEs that wait for DRAINs wait for as many more; the others begin at once."""
    convolves = b"".join(
        pack(MATRIX_FIELDS, {"opcode": Opcode.CONVOLVE, "wait": wait}) for wait in (0, 0, 1, 2)
    )
    drain = pack(POST_FIELDS, {"opcode": Opcode.DRAIN})
    made = behind(Streams(convolves, drain), 4 * drain)
    size = len(convolves) // 4
    waits = [
        unpack(MATRIX_FIELDS, made.matrix[n * size : (n + 1) * size])["wait"] for n in range(4)
    ]
    assert waits == [0, 0, 5, 6] and made.post == 5 * drain


def _step(operation: Operation, cycles: int, busy: int = 0, byte: int = 0) -> Step:
    accesses = (Access(Memory.ACTIVATIONS, byte, byte + 1, operation is Operation.LOAD),)
    return Step(Transfer(operation=operation), accesses, cycles, busy)


def test_a_store_waits_for_a_busy_post_processor() -> None:
    """A LOAD does not, and a STORE behind the run does not either."""
    order = [0, 1, None]
    times = {
        name: predict_list([_step(Operation.RUN, 1000, busy), _step(operation, 1400)], order)
        for name, operation, busy in (
            ("load", Operation.LOAD, 900),
            ("store", Operation.STORE, 900),
            ("store beside the array", Operation.STORE, 100),
        )
    }
    assert times["store"] > times["load"] + 250
    assert abs(times["store beside the array"] - times["load"]) < 50


def test_stores_go_beside_runs_that_leave_the_memory_to_them() -> None:
    steps = [
        _step(Operation.RUN, 1000, 900),
        _step(Operation.STORE, 500, byte=1),
        _step(Operation.LOAD, 400, byte=2),
        _step(Operation.RUN, 1000, 10, byte=3),
        _step(Operation.LOAD, 400, byte=4),
    ]
    assert schedule(steps) == [0, 2, 4, None, 3, 1, None]


def test_the_best_of_some_orders() -> None:
    """A long LOAD that nothing needs yet: it would keep the core waiting."""
    steps = [
        _step(Operation.RUN, 1000),
        _step(Operation.LOAD, 1800, byte=5),
        _step(Operation.RUN, 2500, byte=1),
        _step(Operation.RUN, 1000, byte=5),
    ]
    found = best_schedule(steps)
    assert predict_list(steps, found) == min(
        predict_list(steps, schedule(steps, overlong)) for overlong in (1, 1.5, 2)
    )
    assert found.index(2) < found.index(1)
