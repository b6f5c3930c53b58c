"""Prepares users' inputs for the network: checks them, quantises them, adds the batch axis."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping, Sequence

import numpy as np

from ..errors import InputError
from ..program import Program
from ..program.steps import TensorDescription

IMAGE_ZERO_POINT = -128
"""With this zero point an int8 input's codes are those of a uint8 image, minus 128."""


def prepare(program: Program, feeds: Mapping[str, object]) -> dict[str, np.ndarray]:
    """Checks every input of a network and converts it to the network's codes.

    Parameters
    ----------
    program : Program
    feeds : mapping of array by input name
        Each of the input's shape, without its batch axis, or with a batch of any size; of the
        input's type, or float for a quantised input, or whole numbers for a float one, or uint8
        for an int8 input with zero point -128.

    Returns
    -------
    dict of arrays
        Each with the batch in the leading axis, all of one batch size.

    Raises
    ------
    InputError
        If an input is missing or unknown, or a value has another shape or type, is not a number or
        not finite; the message names the input, the value and the rule.
    """
    if not isinstance(feeds, Mapping):
        raise InputError(f"inputs must be a mapping of arrays by name, not {type(feeds).__name__}")
    for name in feeds:
        if name not in program.inputs:
            raise InputError(
                f"input {name!r} is unknown: {program.name} takes {', '.join(program.inputs)}"
            )
    ready = {}
    for name in program.inputs:
        if name not in feeds:
            raise InputError(f"input {name!r} of {program.name} is missing")
        ready[name] = prepare_input(name, program.tensors[name], feeds[name])
    sizes = {name: len(value) for name, value in ready.items()}
    if len(set(sizes.values())) > 1:
        raise InputError(f"inputs must have one batch size, not {sizes}")
    return ready


def image_count(values: Mapping[str, np.ndarray]) -> int:
    """Images in the leading axis of arrays; of a network without inputs one."""
    return len(next(iter(values.values()))) if values else 1


def each_image(values: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """The images of a batch, one by one, each with a batch axis of one."""
    for at in range(image_count(values)):
        yield {name: value[at : at + 1] for name, value in values.items()}


def joined(
    parts: Sequence[Mapping[str, np.ndarray]], names: Iterable[str] | None = None
) -> dict[str, np.ndarray]:
    """The batch of some parts, in their order; of all names that the first one has, or of some."""
    wanted = parts[0] if names is None else names
    return {name: np.concatenate([part[name] for part in parts]) for name in wanted}


def numbered_feeds(program: Program, items: Iterable[object]) -> Iterator[dict[str, np.ndarray]]:
    """Prepares the items of a stream; InputError names the number of a bad one, from 0 on."""
    for number, item in enumerate(items):
        yield _one_feed(program, number, item)


async def numbered_feeds_async(
    program: Program, items: AsyncIterable[object]
) -> AsyncIterator[dict[str, np.ndarray]]:
    """As ``numbered_feeds``."""
    number = 0
    async for item in items:
        yield _one_feed(program, number, item)
        number += 1


def _one_feed(program: Program, number: int, item: object) -> dict[str, np.ndarray]:
    """One sample of a stream, with a batch axis of one."""
    try:
        if not isinstance(item, Mapping):
            if len(program.inputs) != 1:
                names = ", ".join(program.inputs)
                raise InputError(f"{program.name} needs a mapping of arrays by name: {names}")
            item = {program.inputs[0]: item}
        ready = prepare(program, item)
        for name, value in ready.items():
            if len(value) != 1:
                raise InputError(f"input {name!r} must be one image, not {len(value)}")
    except InputError as error:
        raise InputError(f"item {number} of the stream: {error}") from None
    return ready


def random_feeds(program: Program, seed: int) -> dict[str, np.ndarray]:
    """Seeded inputs to measure with: small numbers that every type has."""
    generator = np.random.default_rng(seed)
    described = {name: program.tensors[name] for name in program.inputs}
    return {
        name: generator.integers(0, 100, tensor.shape).astype(tensor.dtype)
        for name, tensor in described.items()
    }


def random_batch(
    program: Program, count: int, distinct: int | None = None
) -> dict[str, np.ndarray]:
    """Images of ``random_feeds`` with the seeds 0, 1, ...; after ``distinct`` they come again."""
    drawn = [random_feeds(program, seed) for seed in range(min(count, distinct or count))]
    return joined([drawn[at % len(drawn)] for at in range(count)], program.inputs)


def prepare_input(name: str, wanted: TensorDescription, value: object) -> np.ndarray:
    """One input, of shape (batch, ...); see ``prepare``."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"input {name!r} must be an array: {error}") from None
    if array.dtype.kind not in "iufb":
        raise InputError(f"input {name!r} must hold {wanted.dtype}, not {array.dtype}")
    array = _with_batch(name, wanted, array)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        odd = array[~np.isfinite(array)][0]
        raise InputError(f"input {name!r} must hold finite numbers, but has {odd}")
    return np.ascontiguousarray(_convert(name, wanted, array))


def _with_batch(name: str, wanted: TensorDescription, array: np.ndarray) -> np.ndarray:
    single = wanted.shape[1:]
    if array.shape == single:
        return array[np.newaxis]
    # a network for one image runs a batch image by image
    batch_good = wanted.shape[:1] == (1,) and len(array) > 0 if array.ndim else False
    if array.shape == wanted.shape or (batch_good and array.shape[1:] == single):
        return array
    raise InputError(
        f"input {name!r} must have the shape {wanted.shape}, or that without its batch or with a"
        f" larger one, not {array.shape}"
    )


def _convert(name: str, wanted: TensorDescription, array: np.ndarray) -> np.ndarray:
    if array.dtype == wanted.dtype:
        return array
    quantised = wanted.scale is not None and wanted.dtype in ("int8", "uint8")
    if array.dtype.kind == "f" and quantised:
        return quantise(array, wanted)
    if wanted.dtype.startswith("float") and array.dtype.kind in "fiu":
        return array.astype(wanted.dtype)
    rules = [wanted.dtype]
    if quantised:
        rules.append(f"float (real values: scale {wanted.scale:g}, zero {wanted.zero_point})")
    if wanted.dtype == "int8" and wanted.zero_point == IMAGE_ZERO_POINT:
        if array.dtype == np.uint8:
            return (array.astype(np.int16) + IMAGE_ZERO_POINT).astype(np.int8)
        rules.append("uint8 (128 is subtracted)")
    raise InputError(f"input {name!r} must hold {' or '.join(rules)}, not {array.dtype}")


def quantise(real: np.ndarray, wanted: TensorDescription) -> np.ndarray:
    """Codes of real values, ties to even; what lies outside the codes' range is clamped to it."""
    assert wanted.scale is not None and wanted.zero_point is not None
    limits = np.iinfo(wanted.dtype)
    codes = np.rint(real.astype(np.float64) / wanted.scale) + wanted.zero_point
    return np.clip(codes, limits.min, limits.max).astype(wanted.dtype)


def dequantise(codes: np.ndarray, description: TensorDescription) -> np.ndarray:
    """Real values, float64, of a tensor's codes; of an unquantised one, its own values."""
    if description.scale is None or description.zero_point is None:
        return codes.astype(np.float64)
    return (codes.astype(np.float64) - description.zero_point) * description.scale
