"""The number formats of the array: one record per format, which all layers ask."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from .numbers.lns.array_arithmetic import ArrayArithmetic
from .numbers.lns.formats import Lns

INT8_FAMILY, LNS_FAMILY = "int8", "lns"
"""Families of formats. The array's gateware (:mod:`.numbers.number_format`), the post-processor's
requantiser (:mod:`.postprocess.requantization`) and the golden model register under these."""


@dataclass(frozen=True, kw_only=True)
class FormatTraits:
    """Codes, bounds and needs of one number format.

    Parameters
    ----------
    name : str
        Value of ``Configuration.number_format``.
    family : str
        The formats that share gateware and golden models.
    lowest, largest : int
        The smallest and the largest code that the array may be given.
    padding_code : int
        The code that a padded row of an unsigned activation counts as.
    takes_parameter_codes : bool
        Every byte of the weight memory is a code, so that parameters and weights may mix.
    absent_fields : frozenset of str
        Fields of post instructions that have no meaning.
    engines : tuple of str
        Engines that compute with it.
    multipliers : tuple of str
        Back-ends of the processing elements' multipliers.
    uses_dsp_blocks : bool
        Its plain multipliers are mapped to DSP blocks; two of them may share one.
    semantics : tuple of str
        References whose rounding a program of this format may follow.
    arithmetic : ArrayArithmetic or None
        The logarithms of an LNS format.
    """

    name: str
    family: str
    lowest: int
    largest: int
    padding_code: int
    takes_parameter_codes: bool
    absent_fields: frozenset[str]
    engines: tuple[str, ...]
    multipliers: tuple[str, ...]
    uses_dsp_blocks: bool
    semantics: tuple[str, ...]
    arithmetic: ArrayArithmetic | None = None


INT8_FORMAT = FormatTraits(
    name="int8",
    family=INT8_FAMILY,
    lowest=-128,
    largest=127,
    padding_code=-128,
    takes_parameter_codes=True,
    absent_fields=frozenset({"coded"}),
    engines=("pipelined", "compact"),
    multipliers=("plain", "lut"),
    uses_dsp_blocks=True,
    semantics=("tflm", "onnx"),
)


def _lns(name: str) -> FormatTraits:
    """Returns a logarithmic format; ValueError if its name is malformed or it is too wide."""
    arithmetic = ArrayArithmetic(Lns.parse(name))
    largest = arithmetic.lns.largest_code
    return FormatTraits(
        name=arithmetic.lns.name,
        family=LNS_FAMILY,
        lowest=-largest,
        largest=largest,
        padding_code=0,
        takes_parameter_codes=False,
        absent_fields=frozenset(),
        engines=("pipelined",),
        multipliers=("plain",),
        uses_dsp_blocks=False,
        semantics=(arithmetic.lns.name,),
        arithmetic=arithmetic,
    )


FAMILIES: dict[str, Callable[[str], FormatTraits]] = {
    INT8_FAMILY: lambda name: INT8_FORMAT,
    LNS_FAMILY: _lns,
}
"""Makes a format from its name, by what the name begins with."""


@lru_cache
def format_traits(name: str) -> FormatTraits:
    """Returns the number format of this name.

    Raises
    ------
    ValueError
        If there is none, or if the name is not written as the format itself writes it.
    """
    for family, parse in FAMILIES.items():
        if name.startswith(family):
            try:
                traits = parse(name)
            except ValueError as error:
                raise ValueError(f"number_format: {error}") from None
            if traits.name != name:
                raise ValueError(f'number_format must be written "{traits.name}", not {name!r}')
            return traits
    raise ValueError(
        f'number_format must be "{INT8_FORMAT.name}" or a logarithmic one such as "lns1+3+4",'
        f" not {name!r}"
    )
