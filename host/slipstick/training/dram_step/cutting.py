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
        yield from _cut_rows(transfer, count)
    elif transfer.runs > 1:
        yield from _cut_runs(transfer, count)
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


def _cut_rows(transfer: Transfer, count: int) -> Iterator[Transfer]:
    for begin, end in pieces(transfer.rows, -(-transfer.rows // count)):
        rows = end - begin
        yield replace(
            transfer,
            chip=transfer.chip + begin * transfer.chip_row_pitch,
            dram=transfer.dram + begin * transfer.dram_row_pitch,
            rows=rows,
            chip_row_pitch=transfer.chip_row_pitch if rows > 1 else 0,
            dram_row_pitch=transfer.dram_row_pitch if rows > 1 else 0,
        )


def _cut_runs(transfer: Transfer, count: int) -> Iterator[Transfer]:
    for begin, end in pieces(transfer.runs, -(-transfer.runs // count)):
        runs = end - begin
        yield replace(
            transfer,
            chip=transfer.chip + begin * transfer.chip_run_pitch,
            dram=transfer.dram + begin * transfer.dram_run_pitch,
            runs=runs,
            chip_run_pitch=transfer.chip_run_pitch if runs > 1 else 0,
            dram_run_pitch=transfer.dram_run_pitch if runs > 1 else 0,
        )
