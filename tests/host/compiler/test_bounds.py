"""Small files that stand for something huge: refused soon, and before any memory is taken."""

import gzip
import io
import resource
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image
from slipstick.compiler import compile_graph
from slipstick.data.inputs import load_inputs
from slipstick.errors import SlipstickError
from slipstick.frontends.onnx import load_onnx_bytes
from slipstick.targets import find_target
from slipstick.verify.fuzz.onnx_seeds import Network, between, weighted
from slipstick.verify.isolation import run_apart

HUGE = 1 << 20
SECONDS = 10.0
MEMORY_BYTES = 2 << 30


def measured(action: Callable[[], object]) -> str:
    """What came of an action, in a process that neither grows nor takes too long."""

    def run() -> tuple[str, float, int]:
        begin = time.monotonic()
        try:
            action()
            text = ""
        except SlipstickError as error:
            text = str(error)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return text, time.monotonic() - begin, peak

    answer = run_apart(run, 2 * SECONDS)
    assert answer is not None, "the process died, or took too long"
    text, seconds, peak = answer
    assert seconds < SECONDS and peak < MEMORY_BYTES, (seconds, peak)
    return text


def packed_zeros(count: int) -> bytes:
    """A .npz file of zeros, without making them."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("x.npy", "w", force_zip64=True) as member:
            header = repr({"descr": "|u1", "fortran_order": False, "shape": (count,)}).ljust(100)
            member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            for _ in range(count >> 20):
                member.write(bytes(1 << 20))
    return file.getvalue()


def test_a_small_archive_of_many_zeros_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "zeros.npz"
    path.write_bytes(packed_zeros(1 << 29))
    assert path.stat().st_size < 1 << 20
    text = measured(lambda: load_inputs([path], (1, 1 << 20)))
    assert "x.npy: an array must be at most 268435456 bytes, not 536870912 unpacked" in text


def test_a_stream_that_unpacks_to_more_than_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(struct.pack(">BBBBI", 0, 0, 8, 1, 10) + bytes(1 << 28)))
    assert "must be 10 bytes, not more than 10" in measured(lambda: load_inputs([path], (1, 10)))
    path.write_bytes(gzip.compress(struct.pack(">BBBB2I", 0, 0, 8, 2, 1 << 15, 1 << 15)))
    text = measured(lambda: load_inputs([path], (1, 1 << 15)))
    assert "at most 268435456 bytes, not 1073741824 unpacked" in text


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
def test_pictures_of_one_colour(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "large.png"
    Image.new(mode, (8192, 8192)).save(path)
    assert path.stat().st_size < 1 << 20
    assert measured(lambda: load_inputs([path], (1, 8, 8, 3))) == ""
    Image.new("1", (8192, 8193)).save(path)
    text = measured(lambda: load_inputs([path], (1, 8, 8, 3)))
    assert "must have at most 67108864 pixels, not 8192 x 8193" in text


def test_only_formats_of_pictures_are_tried(tmp_path: Path) -> None:
    """PostScript would be given to a program of the system."""
    path = tmp_path / "page.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\n")
    text = measured(lambda: load_inputs([path], (1, 8, 8, 3)))
    assert "must be an image, .npy, .npz or idx file" in text


def folded(kind: str, count: int) -> onnx.ModelProto:
    """Constants of many numbers, ``count`` of them, made of nothing."""
    net = Network()
    x = net.real(net.quantised(net.input(("N", 8))))
    for _ in range(count):
        shape = net.constant([1 << 12, 1 << 13], "int64")
        one = [] if kind == "ConstantOfShape" else [net.constant([[1.0]], "float32")]
        made = net.add(kind, [*one, shape])
        x = net.add("Mul", [x, net.add("ReduceMax", [made], keepdims=0)])
    return net.model(net.real(net.quantised(x)))


NETWORKS = {
    "reshape": (between("Reshape", (1, 8), np.array([1, HUGE, HUGE])), "must hold as much"),
    "expand": (between("Expand", (1, 1, 1), np.array([1, HUGE, HUGE])), "at most 33554432"),
    "tile": (between("Tile", (1, 2, 5, 4), np.array([1, HUGE, HUGE, 1])), "at most 33554432"),
    "folded": (folded("ConstantOfShape", 1), ""),
    "often folded": (folded("ConstantOfShape", 9), "constants must make at most"),
    "often expanded": (folded("Expand", 9), "constants must make at most"),
    "often tiled": (folded("Tile", 9), "constants must make at most"),
    "padded": (weighted("Conv", (1, 2, 5, 5), (3, 2, 3, 3), pads=[4000] * 4), "33554432"),
    "declared": (weighted("Conv", (1, 2, HUGE, HUGE), (3, 2, 3, 3)), "33554432 elements"),
    "strided": (weighted("ConvTranspose", (1, 2, 3, 3), (2, 3, 2, 2), strides=[999, 999]), ""),
    "dilated": (
        weighted("ConvTranspose", (1, 2, 3, 3), (2, 3, 2, 2), dilations=[4000, 4000]),
        "33554432",
    ),
    "large": (weighted("Conv", (1, 2, 2048, 2048), (3, 2, 3, 3), pads=[1] * 4), ""),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_that_declare_more_than_they_hold(name: str) -> None:
    model, message = NETWORKS[name]
    data = model.SerializeToString()
    configuration = find_target("sim-small").configuration
    text = measured(lambda: compile_graph(load_onnx_bytes(data), configuration))
    assert message in text if message else not text
