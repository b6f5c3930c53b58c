"""Predicts how many cycles a list takes: when the DMA moves what, and when the core works.

The compiler's prediction (:mod:`...compiler.timing.dram_timeline`) knows how long a LOAD or STORE
takes by itself. Beside a run it takes longer: the post-processor comes first at the activation
memory, in the slot that it uses (``choose_pitches`` leaves the others to the DMA). The constants
were fitted to traces of ResNet-8's step in the compiled RTL with DDR3; those of STOREs are the pair
of three tried whose lists took the fewest cycles there.
"""

from collections.abc import Sequence

from slipstick_rtl.dma.transfer import Target

from .effects import Step

_FETCH_CYCLES = 14
"""Cycles from an instruction's end to the next one's begin."""
_START_CYCLES = 15
"""Cycles from a RUN to the first cycle of what is predicted of it."""
_BLOCKED = 1.5
"""Times that a STORE takes beside a busy run."""
_BESIDE = 0.4
"""Share of its cycles that a STORE takes longer beside others, where their post-processor works."""
_WRITING = 1.08
"""Times that a LOAD of activations takes beside a run."""


def predict_list(steps: Sequence[Step], order: Sequence[int | None]) -> int:
    """Cycles of a list.

    Parameters
    ----------
    steps : sequence of Step
    order : sequence of int or None
        As ``schedule`` gives it.
    """
    now = end = 0.0
    run: Step | None = None
    for number in order:
        now += _FETCH_CYCLES
        if number is None:
            now = max(now, end)
            continue
        step = steps[number]
        if step.runs:
            run, now = step, now + _START_CYCLES
            end = now + step.cycles
            continue
        left = float(step.cycles)
        if run is not None and now < end:
            slower = _slower(step, run)
            beside = min(left, (end - now) / slower)
            now += beside * slower
            left -= beside
        now += left
    return round(max(now, end))


def _slower(step: Step, run: Step) -> float:
    """Times that a LOAD or STORE takes beside a run."""
    if step.stores:
        return _BLOCKED if run.is_busy else 1 + _BESIDE * run.busy / run.cycles
    writes = step.transfer.target is Target.ACTIVATIONS
    return _WRITING if writes else 1.0
