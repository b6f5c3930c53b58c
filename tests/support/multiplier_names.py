"""The multipliers of a core as synthesis names them."""

from slipstick_rtl.config import Configuration

_PARTS = ("low_low", "high_high", "cross")


def multiplier_names(configuration: Configuration) -> list[str]:
    """Of the lanes, then of packed rows, then of elements if theirs are DSP blocks too.

    Of logarithms none.
    """
    c = configuration
    if c.logarithmic is not None:
        return []
    elements = [
        f"core.matrix.array.pair_{row}_{pair}.multiplier.product_{pixel}.block"
        for row in range(c.packed_rows)
        for pair in range(c.columns // 2)
        for pixel in range(c.pixels)
    ]
    if c.multiplier == "plain":
        elements += [
            f"core.matrix.array.element_{row}_{column}.multiplier.product_{pixel}.block"
            for row in range(c.packed_rows, c.rows)
            for column in range(c.columns)
            for pixel in range(c.pixels)
        ]
    lanes = [
        f"core.post.lanes.lane_{lane}.requantizer.scaler.{part}.block"
        for lane in range(c.lanes)
        for part in _PARTS
    ]
    return lanes + elements
