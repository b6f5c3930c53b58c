"""Reads pictures that the page sends, as inputs of a network."""

import asyncio
import io
import tempfile
import warnings
from pathlib import Path

import numpy as np

from ..data.inputs import channels_first, load_inputs
from ..errors import InputError
from ..program import Program
from .refusals import bad_request

MOST_PIXELS = 1 << 24
_AT_ONCE = 2
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")


def picture_size(program: Program) -> list[int] | None:
    """Returns height, width and channels of the pictures that a network takes; None: it takes
    no pictures."""
    if len(program.inputs) != 1:
        return None
    shape = program.tensors[program.inputs[0]].shape
    if len(shape) != 4:
        return None
    if channels_first(shape):
        return [shape[2], shape[3], shape[1]]
    return [*shape[1:]] if shape[3] in (1, 3) else None


class PictureReader:
    """Reads pictures, a few at one time."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def read(self, data: bytes, shape: tuple[int, ...]) -> np.ndarray:
        """Returns a picture's pixels, uint8, in the shape of a network's input.

        Raises
        ------
        RequestError
            If the data is no picture, or one of too many pixels.
        InputError
            If the picture is damaged.
        """
        async with self._turns:
            return await asyncio.to_thread(_read, data, shape)


def _read(data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    _check_size(data)
    with tempfile.TemporaryDirectory(prefix="slipstick-") as folder:
        path = Path(folder) / "picture"
        path.write_bytes(data)
        try:
            return load_inputs([path], shape).x
        except InputError as error:
            raise InputError(str(error).replace(str(path), "file")) from None


def _check_size(data: bytes) -> None:
    """Before a single pixel is decoded."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                width, height = image.size
    # a damaged file makes Pillow raise almost anything
    except Exception:
        raise bad_request(f"the file must be a picture: {', '.join(_FORMATS)}") from None
    if width * height > MOST_PIXELS:
        raise bad_request(
            f"the picture must have at most {MOST_PIXELS} pixels, not {width} x {height}"
        )
