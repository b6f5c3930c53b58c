"""Reads the command line's inputs: arrays, image files, folders of images, labels."""

import io
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import InputError
from .array_files import GZIP_MAGIC, IDX_MAGIC, NPY_MAGIC, ZIP_MAGIC, read_idx, read_npy, read_npz

IMAGE_SUFFIXES = (
    ".bmp",
    ".gif",
    ".jpeg",
    ".jpg",
    ".pgm",
    ".png",
    ".ppm",
    ".tif",
    ".tiff",
    ".webp",
)
_IMAGE_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""Pillow knows others, some of which start programs of the system."""
LARGEST_FILE = 1 << 31
LARGEST_IMAGE = 1 << 26
"""Pixels."""
LARGEST_LABEL = (1 << 31) - 1
_EIGHT_BIT_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB")


@dataclass(frozen=True)
class Samples:
    """Inputs of one network.

    Parameters
    ----------
    x : array, shape (samples, ...)
        Each sample of the network's input shape without its batch; the file's own type.
    names : tuple of str
        What to call each: the image's file, or the array's file with an index.
    y : array of int64, shape (samples,), or None
        Labels that came in the same file.
    """

    x: np.ndarray
    names: tuple[str, ...]
    y: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.x)

    def first(self, count: int | None) -> "Samples":
        """The first samples; all where ``count`` is None."""
        y = None if self.y is None else self.y[:count]
        return Samples(self.x[:count], self.names[:count], y)


def load_inputs(paths: Sequence[str | os.PathLike[str]], shape: Sequence[int]) -> Samples:
    """Reads samples for an input of a network.

    Parameters
    ----------
    paths : sequence of path
        Each a .npy, .npz (array ``x``, labels ``y``) or idx file, an image, or a folder of images.
        Images are brought to the input's size and to its grey or RGB.
    shape : sequence of int
        The input's, batch first.

    Raises
    ------
    InputError
        If a file cannot be read or holds no samples of that shape.
    """
    parts = [_load(Path(path), tuple(shape)) for path in paths]
    if not parts:
        raise InputError("inputs must be at least one file, none was given")
    if len({part.x.dtype for part in parts}) > 1:
        kinds = sorted({str(part.x.dtype) for part in parts})
        raise InputError(f"inputs must all hold one type, not {', '.join(kinds)}")
    labels = [part.y for part in parts if part.y is not None]
    names = tuple(name for part in parts for name in part.names)
    y = np.concatenate(labels) if len(labels) == len(parts) else None
    x = parts[0].x if len(parts) == 1 else np.concatenate([part.x for part in parts])
    return Samples(x, names, y)


def load_labels(path: str | os.PathLike[str], count: int | None = None) -> np.ndarray:
    """Reads labels: a .npy, .npz (array ``y``) or idx file.

    Parameters
    ----------
    path : path
    count : int, optional
        How many there must be.

    Returns
    -------
    array of int64, shape (count,)

    Raises
    ------
    InputError
        If the file cannot be read, or is not one whole number a sample.
    """
    path = Path(path)
    arrays = _arrays(path, _read(path))
    if arrays is None:
        raise InputError(f"labels {path} must be a .npy, .npz or idx file")
    labels = _labels(_named(arrays, "y", path), path)
    if count is not None and len(labels) != count:
        raise InputError(f"labels {path} must be as many as the {count} inputs, not {len(labels)}")
    return labels


def _labels(values: np.ndarray, path: Path) -> np.ndarray:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise InputError(
            f"labels {path} must be one whole number a sample, not {values.dtype} {values.shape}"
        )
    for extreme in (int(values.min()), int(values.max())) if len(values) else ():
        if not 0 <= extreme <= LARGEST_LABEL:
            raise InputError(f"labels {path} must be classes 0 to {LARGEST_LABEL}, not {extreme}")
    return values.astype(np.int64)


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"input {path} must be a file, but is a folder")
        if not path.exists():
            raise InputError(f"input {path} is not there")
        if not path.is_file():
            raise InputError(f"input {path} must be a regular file")
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise InputError(f"input {path} must be at most {LARGEST_FILE} bytes, not {size}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"input {str(path)!r} cannot be read: {reason}") from None


def _arrays(path: Path, data: bytes) -> dict[str, np.ndarray] | None:
    """The arrays of a file by name, "" where it has but one without a name; None: it has none."""
    suffix = path.suffix.lower()
    if data.startswith(NPY_MAGIC) or suffix == ".npy":
        return {"": read_npy(data, str(path))}
    if data.startswith(ZIP_MAGIC) or suffix == ".npz":
        return read_npz(data, str(path), ("x", "y"))
    if data.startswith((GZIP_MAGIC, IDX_MAGIC)) or suffix == ".gz":
        return {"": read_idx(data, str(path))}
    return None


def _named(arrays: dict[str, np.ndarray], name: str, path: Path) -> np.ndarray:
    if name in arrays:
        return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    held = ", ".join(map(repr, arrays)) or "none"
    raise InputError(f"{path} must hold an array {name!r}, it holds {held}")


def _load(path: Path, shape: tuple[int, ...]) -> Samples:
    if path.is_dir():
        return _load_folder(path, shape)
    data = _read(path)
    arrays = _arrays(path, data)
    if arrays is None:
        return Samples(_load_image(path, data, shape)[np.newaxis], (path.name,))
    x = _with_batch(_named(arrays, "x", path), shape, path)
    y = _labels(arrays["y"], path) if "y" in arrays and len(arrays) > 1 else None
    if y is not None and len(y) != len(x):
        raise InputError(f"{path} must hold as many labels as inputs, not {len(y)} for {len(x)}")
    return Samples(x, tuple(f"{path.name}[{index}]" for index in range(len(x))), y)


def _with_batch(values: np.ndarray, shape: tuple[int, ...], path: Path) -> np.ndarray:
    """With the batch axis, and with the channel axis that grey images often lack.

    Where a network wants channels x height x width, pictures with the channels behind are turned.
    """
    single = shape[1:]
    bare = single[:-1] if len(single) > 1 and single[-1] == 1 else single
    first = channels_first(shape)
    turned = (*shape[2:], shape[1]) if first else single
    grey = shape[2:] if first and shape[1] == 1 else single
    for wanted in (single, bare, turned, grey):
        if values.shape == wanted:
            values = values[np.newaxis]
        if values.ndim and values.shape[1:] == wanted:
            if not len(values):
                raise InputError(f"{path} must hold at least one input, it holds none")
            if wanted == turned != single:
                values = values.transpose(0, 3, 1, 2)
            return values.reshape(len(values), *single)
    raise InputError(
        f"{path} must hold inputs of shape {single}, or a batch of them, not {values.shape}"
    )


def channels_first(shape: Sequence[int]) -> bool:
    """Tells whether an input of this shape takes pictures as channels x height x width."""
    return len(shape) == 4 and shape[1] in (1, 3) and shape[3] not in (1, 3)


def _load_folder(folder: Path, shape: tuple[int, ...]) -> Samples:
    try:
        paths = sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in IMAGE_SUFFIXES and not path.name.startswith(".")
        )
    except OSError as error:
        raise InputError(f"folder {folder} cannot be read: {error.strerror}") from None
    if not paths:
        raise InputError(
            f"folder {folder} must hold images ({', '.join(IMAGE_SUFFIXES)}), it holds none"
        )
    total = len(paths) * math.prod(shape[1:])
    if total > LARGEST_FILE:
        raise InputError(f"folder {folder}: {len(paths)} images are more than {LARGEST_FILE} bytes")
    images = np.stack([_load_image(path, _read(path), shape) for path in paths])
    return Samples(images, tuple(path.name for path in paths))


def _load_image(path: Path, data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """One image as uint8 of the input's height, width and channels, in the input's order."""
    if channels_first(shape):
        n, channels, *sides = shape
        return _load_image(path, data, (n, *sides, channels)).transpose(2, 0, 1)
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ImportError as error:
        raise InputError("image files need Pillow: pip install Pillow") from error
    if len(shape) != 4 or shape[3] not in (1, 3) or 0 in shape:
        raise InputError(
            f"image {path} needs an input of shape (1, height, width, 1 or 3) or"
            f" (1, 1 or 3, height, width), not {shape}"
        )
    _, height, width, channels = shape
    try:
        with warnings.catch_warnings():
            # Pillow warns of large images; the rule below is stricter
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=_IMAGE_FORMATS) as image:
                if image.width * image.height > LARGEST_IMAGE:
                    raise InputError(
                        f"image {path} must have at most {LARGEST_IMAGE} pixels, not"
                        f" {image.width} x {image.height}"
                    )
                if image.mode not in _EIGHT_BIT_MODES:
                    raise InputError(f"image {path} must have 8 bits a channel, not {image.mode!r}")
                ImageOps.exif_transpose(image, in_place=True)
                picture = image.convert("L" if channels == 1 else "RGB")
    except InputError:
        raise
    except UnidentifiedImageError:
        raise InputError(f"input {path} must be an image, .npy, .npz or idx file") from None
    # a damaged file makes Pillow's decoders raise almost anything
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"image {path} cannot be read: {reason}") from None
    if picture.size != (width, height):
        picture = picture.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(picture, np.uint8).reshape(height, width, channels)
