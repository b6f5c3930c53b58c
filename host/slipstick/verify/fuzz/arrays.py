"""Damaged arrays and images: .npy, .npz, idx, gzipped idx, PNG, JPEG, GIF, BMP, TIFF and WebP."""

import gzip
import io
import json
import random
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from ...data.array_files import GZIP_MAGIC, NPY_MAGIC, ZIP_MAGIC
from ...data.inputs import load_inputs, load_labels
from .damage import damaged_bytes
from .outcomes import READ, Parser, WrongResultError

SHAPE = (1, 4, 5, 1)
"""Shape of the input that is asked for."""
_PICTURE = (1, 8, 8, 3)
_KINDS = ("|u1", "|i1", "<f4", "<f8", ">f4", "<i8", "|O", "|S4", "<U4", "|V8", "<M8[s]", "<c8", "")
_SIZES = (0, 1, 2, 3, 20, 255, 1 << 16, 1 << 31, 1 << 40, (1 << 63) - 1, -1)
_IMAGE_FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz(*, packed: bool) -> bytes:
    file = io.BytesIO()
    save = np.savez_compressed if packed else np.savez
    save(file, x=np.zeros((3, 4, 5), np.uint8), y=np.arange(3))
    return file.getvalue()


def _idx() -> bytes:
    return struct.pack(">BBBB3I", 0, 0, 8, 3, 3, 4, 5) + bytes(60)


@cache
def array_seeds() -> tuple[bytes, ...]:
    """Three small pictures in each form."""
    pictures = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)
    kinds = (np.uint8, np.int8, np.float32, np.float64, np.dtype(">f4"), np.int64, bool)
    plain = [_npy(pictures.astype(kind)) for kind in kinds]
    turned = _npy(np.asfortranarray(pictures[..., np.newaxis]))
    zipped = [_npz(packed=True), _npz(packed=False)]
    return (*plain, turned, *zipped, _idx(), gzip.compress(_idx(), mtime=0))


def mutate_arrays(pick: random.Random, data: bytes, files: Sequence[bytes]) -> bytes:
    """Other bytes; or another header, in what is zipped too."""
    if pick.random() < 0.5:
        return damaged_bytes(pick, data, files)
    if data.startswith(NPY_MAGIC):
        return _forged_npy(pick, data)
    if data.startswith(ZIP_MAGIC):
        return _forged_npz(pick, data)
    if data.startswith(GZIP_MAGIC):
        return gzip.compress(_forged_idx(pick, gzip.decompress(data)), 1, mtime=0)
    return _forged_idx(pick, data)


def _forged_npy(pick: random.Random, data: bytes) -> bytes:
    shape = tuple(pick.choice(_SIZES) for _ in range(pick.randint(0, 6)))
    header = {"descr": pick.choice(_KINDS), "fortran_order": pick.random() < 0.5, "shape": shape}
    if pick.random() < 0.2:
        header[pick.choice(tuple(header))] = pick.choice((None, "x", [1], 1.5, True, ("x",)))
    text = json.dumps(header) if pick.random() < 0.1 else repr(header)
    version = pick.choice((1, 1, 2, 3))
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return NPY_MAGIC + bytes((version, 0)) + length + text.encode() + data[128:]


def _forged_npz(pick: random.Random, data: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = pick.choice(tuple(members))
    with warnings.catch_warnings(), zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        # that two have one name is what is wanted
        warnings.simplefilter("ignore")
        for name, contents in members.items():
            if name == chosen:
                name = pick.choice((name, "x.npy", "../x.npy", "x", "y.npy", "\0.npy", "a/x.npy"))
                contents = _forged_npy(pick, contents)
            # at one time, so that the same seed gives the same bytes
            archive.writestr(zipfile.ZipInfo(name), contents)
    file = made.getvalue()
    return file if pick.random() < 0.7 else damaged_bytes(pick, file, ())


def _forged_idx(pick: random.Random, data: bytes) -> bytes:
    kind, axes = pick.choice((8, 9, 11, 12, 13, 14, 0, 10, 255)), pick.choice((0, 1, 3, 3, 4, 8, 9))
    sizes = [pick.choice(_SIZES) & 0xFFFFFFFF for _ in range(axes)]
    return struct.pack(f">BBBB{axes}I", 0, 0, kind, axes, *sizes) + data[16:]


def check_arrays(data: bytes, pick: random.Random) -> str:
    """Reads a file as inputs, or as labels."""
    suffix = pick.choice((".npy", ".npz", ".gz", ""))
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        Path(file.name).write_bytes(data)
        if pick.random() < 0.3:
            labels = load_labels(file.name)
            if labels.dtype != np.int64 or labels.ndim != 1:
                raise WrongResultError(f"labels are {labels.dtype} of {labels.shape}")
            return READ
        samples = load_inputs([file.name], SHAPE)
    if samples.x.shape[1:] != SHAPE[1:] or samples.x.dtype.kind not in "biuf":
        raise WrongResultError(f"inputs are {samples.x.dtype} of {samples.x.shape}")
    return READ


@cache
def image_seeds() -> tuple[bytes, ...]:
    """A small picture in each form, grey and coloured."""
    from PIL import Image

    rng = np.random.default_rng(5)
    colours = Image.fromarray(rng.integers(0, 256, (9, 7, 3), np.uint8))
    files = []
    for kind in _IMAGE_FORMATS:
        for picture in (colours, colours.convert("L")):
            file = io.BytesIO()
            picture.save(file, kind)
            files.append(file.getvalue())
    return tuple(files)


def mutate_images(pick: random.Random, data: bytes, files: Sequence[bytes]) -> bytes:
    """Other bytes; of a PNG also other sizes and kinds, with the CRC that belongs to them."""
    if not data.startswith(b"\x89PNG") or pick.random() < 0.4:
        return damaged_bytes(pick, data, files)
    sizes = [pick.choice((0, 1, 7, 9, 8192, 8193, 1 << 16, 1 << 31, (1 << 32) - 1)) for _ in "xy"]
    bits, kind = pick.choice((1, 2, 4, 8, 16)), pick.choice((0, 2, 3, 4, 6, 7))
    chunk = b"IHDR" + struct.pack(">IIBBBBB", *sizes, bits, kind, 0, 0, pick.choice((0, 1)))
    whole = struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return data[:8] + whole + data[33:]


def check_images(data: bytes, pick: random.Random) -> str:
    """Reads a file as an input of a network."""
    shape = pick.choice((_PICTURE, SHAPE))
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        Path(file.name).write_bytes(data)
        samples = load_inputs([file.name], shape)
    if samples.x.shape[1:] != shape[1:]:
        raise WrongResultError(f"a picture is of {samples.x.shape}, not {shape}")
    return READ


ARRAYS = Parser(name="arrays", seeds=array_seeds, mutate=mutate_arrays, check=check_arrays)
IMAGES = Parser(name="images", seeds=image_seeds, mutate=mutate_images, check=check_images)
