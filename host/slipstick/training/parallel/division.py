"""The rules by which the devices of a training divide its batches."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...errors import InputError
from .messages import WHOLE
from .quantise import WIDTHS

GRADIENT_BITS = (WHOLE, *WIDTHS)


@dataclass(frozen=True, kw_only=True)
class Division:
    """Describes how devices divide batches, and how they merge their results.

    Parameters
    ----------
    gradient_bits : int
        Per number of a part's gradient: 32 (the sums are those of one device), 8, 4, 2 or 1.
    parts : int, optional
        Of a batch; by default as many as there are devices.
    local_steps : int
        Steps of a part on its own, before models are averaged; 1: gradients are summed each step.
    """

    gradient_bits: int = WHOLE
    parts: int | None = None
    local_steps: int = 1

    @property
    def is_exact(self) -> bool:
        """Tells whether the bits are those of one device, whatever the parts."""
        return self.gradient_bits == WHOLE and self.local_steps == 1

    def check(self, batch: int | None = None, named: Callable[[str], str] = str) -> None:
        """Holds the options to their rules.

        Parameters
        ----------
        batch : int, optional
            Images of a batch.
        named : callable
            Given the name of a parameter, returns what messages call it.

        Raises
        ------
        InputError
            If a value breaks a rule; the message states both.
        """
        bits, steps, parts = (named(name) for name in ("gradient_bits", "local_steps", "parts"))
        if self.gradient_bits not in GRADIENT_BITS:
            raise InputError(f"{bits} must be 32, 8, 4, 2 or 1, not {self.gradient_bits}")
        if self.local_steps < 1:
            raise InputError(f"{steps} must be at least 1, not {self.local_steps}")
        if self.local_steps > 1 and self.gradient_bits != WHOLE:
            raise InputError(
                f"{bits} must be 32 beside {steps} {self.local_steps}, not {self.gradient_bits}:"
                " models are averaged, and no gradients are sent"
            )
        if self.parts is None:
            return
        if self.parts < 1:
            raise InputError(f"{parts} must be at least 1, not {self.parts}")
        if self.local_steps > 1 and self.parts & (self.parts - 1):
            raise InputError(
                f"{parts} must be a power of two beside {steps} {self.local_steps}, not"
                f" {self.parts}"
            )
        if batch is not None and self.parts > batch:
            raise InputError(
                f"{parts} must be at most the {batch} images of a batch, not {self.parts}"
            )

    def among(self, devices: int) -> "Division":
        """With as many parts as there are devices, unless they are given; InputError as for
        ``check``."""
        found = self if self.parts is not None else replace(self, parts=devices)
        found.check()
        return found

    def settings(self) -> dict[str, int | None]:
        """All that the bits depend on: a checkpoint of others is none of this training."""
        parts = None if self.is_exact else self.parts
        return {
            "gradient_bits": self.gradient_bits,
            "local_steps": self.local_steps,
            "parts": parts,
        }
