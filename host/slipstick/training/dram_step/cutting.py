"""Makes several LOADs or STOREs of one."""

from collections.abc import Iterator
from dataclasses import replace

from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import GROUP_CELLS, WORD_BYTES, Target, Transfer

from ...compiler.mapping.activation_layout import round_up
from ...devices.link.regions import pieces


def cut(transfer: Transfer, count: int, configuration: Configuration) -> Iterator[Transfer]:
    """Cuts a transfer into about so many: by rows, else by runs, else by bytes.

    Parameters
    ----------
    transfer : Transfer
        Without a CRC, of ACTIVATIONS or CELLS.
    count : int
    configuration : Configuration
    """
    if transfer.rows > 1:
        yield from _cut_boxes(transfer, "row", count)
    elif transfer.runs > 1:
        yield from _cut_boxes(transfer, "run", count)
    elif transfer.target in (Target.ACTIVATIONS, Target.CELLS):
        step = max(WORD_BYTES, configuration.lanes)
        size = round_up(-(-transfer.run_bytes // count), step)
        per_byte = 1 if transfer.target is Target.ACTIVATIONS else GROUP_CELLS
        for begin, end in pieces(transfer.run_bytes, size):
            yield replace(
                transfer,
                chip=transfer.chip + begin // per_byte,
                dram=transfer.dram + begin // WORD_BYTES,
                run_bytes=end - begin,
            )
    else:
        yield transfer


def _cut_boxes(transfer: Transfer, what: str, count: int) -> Iterator[Transfer]:
    """Cuts by ``what``: "row" or "run"."""
    chip, dram = f"chip_{what}_pitch", f"dram_{what}_pitch"
    pitches = {pitch: getattr(transfer, pitch) for pitch in (chip, dram)}
    total = getattr(transfer, f"{what}s")
    for begin, end in pieces(total, -(-total // count)):
        number = end - begin
        yield replace(
            transfer,
            chip=transfer.chip + begin * pitches[chip],
            dram=transfer.dram + begin * pitches[dram],
            **{f"{what}s": number},
            **(pitches if number > 1 else dict.fromkeys(pitches, 0)),
        )
