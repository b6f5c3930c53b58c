"""Damaged .slip files with a right CRC: loaded, and run on the golden model."""

import json
import random
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...compiler import compile_graph
from ...errors import SlipstickError
from ...frontends.onnx import load_onnx_bytes
from ...frontends.tflite import load_tflite_bytes
from ...program import Program
from ...program.slip_file import decode, encode
from ...runtime.feeds import random_feeds
from ...session import InferenceSession
from ...targets import find_target
from .damage import TEXT, damaged_bytes, other_real, other_whole
from .onnx import onnx_seeds
from .outcomes import READ, Parser, WrongResultError
from .tflite import TARGET, tflite_seeds

_HEADER = struct.Struct("<4sHHII")
_LARGEST = 1 << 16
"""Elements of programs that are run as well."""


@cache
def slip_seeds() -> tuple[bytes, ...]:
    """Programs of small networks."""
    configuration = find_target(TARGET).configuration
    programs = []
    files = [(load_tflite_bytes, data) for data in tflite_seeds()]
    files += [(load_onnx_bytes, data) for data in onnx_seeds()]
    for load, data in files:
        try:
            programs.append(encode(compile_graph(load(data, "seed"), configuration)))
        except SlipstickError:
            continue
    return tuple(programs)


def mutate_slip(pick: random.Random, data: bytes, files: Sequence[bytes]) -> bytes:
    """Other entries of the header, or other blobs, with the CRC that belongs to them."""
    if pick.random() < 0.1:
        return damaged_bytes(pick, data, files)
    _, version, _, header_bytes, blob_bytes = _HEADER.unpack_from(data)
    start = _HEADER.size
    header = data[start : start + header_bytes]
    blobs = data[start + header_bytes : start + header_bytes + blob_bytes]
    if pick.random() < 0.15:
        blobs = damaged_bytes(pick, blobs, [blobs])
    else:
        tree = json.loads(header)
        for _ in range(pick.choice((1, 1, 1, 2, 4))):
            _mutate_tree(pick, tree)
        header = json.dumps(tree).encode()
    body = _HEADER.pack(b"SLIP", version, 0, len(header), len(blobs)) + header + blobs
    return body + struct.pack("<I", zlib.crc32(body))


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every entry of a tree: what holds it, and its key."""
    entries = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in list(entries):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _mutate_tree(pick: random.Random, tree: dict[str, Any]) -> None:
    # a configuration of other numbers is refused for its fingerprint
    parts = {key: value for key, value in tree.items() if key != "configuration"}
    part = pick.choice([key for key, value in parts.items() if value] or list(parts))
    inside = tree[part] if isinstance(tree[part], dict | list) else {}
    places = list(_places(inside)) or [(tree, part)]
    holder, key = pick.choice(places)
    way = pick.random()
    if isinstance(holder, list) and way < 0.15:
        del holder[key]
    elif isinstance(holder, list) and way < 0.25:
        holder.insert(key, holder[pick.randrange(len(holder))])
    elif isinstance(holder, dict) and way < 0.05:
        del holder[key]
    elif way < 0.4:
        # the same kind of thing from elsewhere
        other, place = pick.choice(places)
        holder[key] = json.loads(json.dumps(other[place]))
    else:
        holder[key] = _other_value(pick, holder[key])


def _other_value(pick: random.Random, value: Any) -> Any:
    if isinstance(value, bool):
        return pick.choice((not value, not value, 1, None))
    if isinstance(value, int):
        return other_whole(pick, value) if pick.random() < 0.9 else pick.choice((0.5, "1", [1]))
    if isinstance(value, float):
        changed = other_real(pick, value)
        return changed if np.isfinite(changed) else 1e308
    if isinstance(value, str):
        return pick.choice(TEXT)
    if isinstance(value, list):
        return pick.choice(([], value + value, value[:-1], value[::-1], None))
    return pick.choice((None, {}, 0, ""))


def check_slip(data: bytes, pick: random.Random) -> str:
    """Loads a program, and runs what is small."""
    program = decode(data)
    if sum(int(np.prod(tensor.shape)) for tensor in program.tensors.values()) > _LARGEST:
        return READ
    _run(program, pick.getrandbits(16))
    return READ


def _run(program: Program, seed: int) -> None:
    feeds = random_feeds(program, seed)
    with InferenceSession(program, "model") as session, np.errstate(all="ignore"):
        made = session.run(None, feeds)
    for name, value in zip(program.outputs, made, strict=True):
        described = program.tensors[name]
        if (value.dtype.name, value.shape[1:]) != (described.dtype, described.shape[1:]):
            raise WrongResultError(f"output {name} is {value.dtype} of {value.shape}")


SLIP = Parser(name="slip", seeds=slip_seeds, mutate=mutate_slip, check=check_slip)
