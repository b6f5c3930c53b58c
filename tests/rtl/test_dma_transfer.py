"""Instructions of the DMA: they lie in DRAM as they are read back, and bad ones are refused."""

import random
from typing import Any

import pytest
from slipstick_rtl.dma.transfer import (
    FIELDS,
    MASTER_WORDS,
    STILL_SHIFT,
    SUM_BYTES,
    TRANSFER_BYTES,
    TURNED_WORDS,
    WORD_BYTES,
    Operation,
    Target,
    Transfer,
)


def _random(draw: random.Random) -> Transfer:
    """An instruction that keeps the rules."""
    operation = draw.choice(list(Operation))
    target = draw.choice(list(Target)) if operation is Operation.LOAD else Target.ACTIVATIONS
    most = {"run_bytes": 1 << 16, "runs": 1 << 16, "rows": 1 << 16}
    if target is Target.TURNED:
        most |= {"run_bytes": TURNED_WORDS, "runs": TURNED_WORDS}
    elif not target.boxed:
        most |= {"runs": 1, "rows": 1}
    fields: dict[str, Any] = {
        name: draw.choice((1, high, draw.randint(1, high))) for name, high in most.items()
    }
    if operation is Operation.UPDATE:
        fields |= {"run_bytes": WORD_BYTES, "runs": SUM_BYTES, "shift": draw.randint(0, 40)}
    bits = {name: bits for word in FIELDS for name, bits in word}
    for name in ("chip", "dram", "chip_run_pitch", "chip_row_pitch", "dram_run_pitch", "crc"):
        fields[name] = draw.choice((0, (1 << bits[name]) - 1, draw.randrange(1 << bits[name])))
    return Transfer(operation=operation, target=target, checked=draw.random() < 0.5, **fields)


@pytest.mark.parametrize("seed", range(200))
def test_what_is_packed_is_unpacked(seed: int) -> None:
    transfer = _random(random.Random(seed))
    packed = transfer.pack()
    assert len(packed) == TRANSFER_BYTES
    assert Transfer.unpack(packed) == transfer


@pytest.mark.parametrize("seed", range(200))
def test_any_bytes_are_an_instruction_or_a_clear_error(seed: int) -> None:
    draw = random.Random(seed)
    packed = bytes([draw.choice((draw.randrange(256), 1, 0x51, 6)), *draw.randbytes(31)])
    try:
        transfer = Transfer.unpack(packed)
    except ValueError as error:
        assert str(error)
    else:
        assert Transfer.unpack(transfer.pack()) == transfer


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"operation": Operation.STORE}, "only a LOAD turns blocks, not STORE"),
        ({"run_bytes": 9}, "at most 8 runs of 8 bytes, not 1 of 9"),
        ({"runs": 9}, "at most 8 runs of 8 bytes, not 9 of 1"),
    ],
)
def test_a_turned_block_has_eight_words(fields: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Transfer(**{"operation": Operation.LOAD, "target": Target.TURNED, **fields})


@pytest.mark.parametrize("target", [Target.WEIGHTS, Target.INSTRUCTIONS, Target.NINTHS])
def test_other_memories_take_one_run(target: Target) -> None:
    with pytest.raises(ValueError, match=f"LOAD of {target.name} must be one run, not 1 x 2"):
        Transfer(operation=Operation.LOAD, target=target, runs=2)


def test_an_update_has_four_planes_and_a_shift() -> None:
    good = {"operation": Operation.UPDATE, "run_bytes": WORD_BYTES, "runs": SUM_BYTES}
    assert Transfer(**good, rows=5, shift=STILL_SHIFT).words == 5 * MASTER_WORDS
    with pytest.raises(ValueError, match="must read 4 runs of 8 bytes .* not 3 of 8"):
        Transfer(**{**good, "runs": 3})
    with pytest.raises(ValueError, match=r"shift must be within 0\.\.63, not 64"):
        Transfer(**good, shift=64)


def test_the_words_of_turned_blocks_are_whole_blocks() -> None:
    load = Transfer(operation=Operation.LOAD, target=Target.TURNED, run_bytes=3, runs=2, rows=5)
    assert load.words == 5 * TURNED_WORDS
