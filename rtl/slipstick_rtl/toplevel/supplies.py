"""Supplies of a board that the FPGA sets: their voltages, and the parts that make them.

Needs no Amaranth: a board's host imports it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class AdjustableSupplies:
    """Regulators whose feedback node takes a current from a low-passed pin of the FPGA.

    A regulator keeps its feedback node at ``reference_volts``. The set resistor draws a constant
    current from the node; the injection resistor brings some of it, and the feedback resistor the
    rest. So the higher the pin's mean voltage, the lower the supply.

    Parameters
    ----------
    volts : tuple of float
        One per pin of the resource's ``pdm``, the first one first.
    resource : str
        The platform's, with outputs ``pdm`` and ``en``.
    reference_volts, pin_volts : float
        Of the regulators, and of the pins' high level.
    injection_ohms, feedback_ohms, set_ohms : float
    filter_farads : float
        With the injection resistor, the low pass of a pin.
    soft_start_seconds : float
        From ``en`` to the voltage.

    Raises
    ------
    ValueError
        If a voltage cannot be made.
    """

    volts: tuple[float, ...]
    resource: str
    reference_volts: float
    pin_volts: float
    injection_ohms: float
    feedback_ohms: float
    set_ohms: float
    filter_farads: float
    soft_start_seconds: float

    def __post_init__(self) -> None:
        for volts in self.volts:
            if not 0 < self.duty(volts) < 1:
                raise ValueError(f"volts must be ones that the regulators can make, not {volts}")

    def duty(self, volts: float) -> float:
        """The share of time in which a pin must be high for a voltage."""
        ratio = self.injection_ohms / self.feedback_ohms
        current = self.reference_volts / self.set_ohms
        mean = self.reference_volts * (1 + ratio) + self.injection_ohms * current - ratio * volts
        return mean / self.pin_volts

    @property
    def settling_seconds(self) -> float:
        """Until the pins' mean voltages are within a 12-bit step: 8 time constants."""
        return 8 * self.injection_ohms * self.filter_farads

    @property
    def ready_seconds(self) -> float:
        """Until the supplies are there."""
        return self.settling_seconds + self.soft_start_seconds
