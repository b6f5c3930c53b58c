"""Chooses among the frequencies that a PLL makes, for all families."""

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeVar

TOLERANCE = Fraction(1, 10_000)
"""Largest relative error of a clock: about as large as that of an oscillator itself."""

Settings = TypeVar("Settings")


def within(name: str, hertz: int, low: int, high: int) -> None:
    """Checks a frequency.

    Raises
    ------
    ValueError
        If it is outside ``low..high``.
    """
    if not low <= hertz <= high:
        raise ValueError(
            f"{name} must be within {low / 1e6:g}..{high / 1e6:g} MHz, not {hertz / 1e6:g} MHz"
        )


def choose(
    family: str,
    input_hz: int,
    output_hz: int,
    candidates: Iterable[tuple[Fraction, Settings]],
) -> Settings:
    """The first of the candidates nearest to the wanted frequency.

    Parameters
    ----------
    family : str
        For the message.
    input_hz, output_hz : int
        Of the oscillator, and what is wanted.
    candidates : iterable of (frequency in Hz, settings)
        All that the PLL can make of the input, better ones of one frequency first.

    Raises
    ------
    ValueError
        If none is within ``TOLERANCE``; the message names the nearest frequencies.
    """
    found = list(candidates)
    nearest = min(found, key=lambda entry: abs(entry[0] - output_hz), default=None)
    if nearest is not None and abs(nearest[0] - output_hz) <= TOLERANCE * output_hz:
        return nearest[1]
    below = max((hertz for hertz, _ in found if hertz < output_hz), default=None)
    above = min((hertz for hertz, _ in found if hertz > output_hz), default=None)
    made = " and ".join(f"{float(hertz) / 1e6:g}" for hertz in (below, above) if hertz is not None)
    raise ValueError(
        f"clock must be one that the PLL of {family} makes of {input_hz / 1e6:g} MHz, not"
        f" {output_hz / 1e6:g} MHz: the nearest are {made} MHz"
    )
