"""The program file: what is written comes back, and anything else is a ProgramError."""

import dataclasses
import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slipstick import program_file
from slipstick.errors import ProgramError
from slipstick.graph import Quantization, Tensor
from slipstick.program import (
    DownloadStep,
    HostStep,
    Image,
    LayerRecord,
    Placement,
    Program,
    RunStep,
    TensorDescription,
    UploadStep,
)
from slipstick_rtl.config import Configuration


def small_program() -> Program:
    """A program with one of everything."""
    configuration = Configuration()
    quantization = Quantization(np.array([0.5, 0.25]), np.array([0, 0]), 0)
    weights = np.arange(6, dtype=np.int8).reshape(2, 3)
    return Program(
        name="small",
        semantics="tflm",
        configuration=configuration.to_dict(),
        fingerprint=configuration.fingerprint,
        tensors={
            "x": TensorDescription((1, 2, 2, 3), "int8", 0.5, -128, Placement(0, 8, 3, 2, 2, 3)),
            "y": TensorDescription((1, 2), "float32"),
        },
        inputs=("x",),
        outputs=("y",),
        images=(Image(0, 4, bytes(8)), Image(1, 0, bytes(32)), Image(2, 1, bytes(72))),
        steps=(
            UploadStep("x"),
            RunStep(0, 96),
            DownloadStep("x"),
            HostStep("end", "fully_connected", ("x", "w", ""), ("y",), {"padding": ((0, 1), 2.5)}),
        ),
        constants={"w": Tensor("w", (2, 3), "int8", quantization, weights)},
        layers=(LayerRecord("end", "fully_connected", "host", "", 6, 0, (0, 0), (0, 1), "y", 3),),
    )


def rewrite(header_change) -> bytes:
    """The small program's file with a changed header and a CRC that is right."""
    data = program_file.encode(small_program())
    _, version, _, header_bytes, blob_bytes = struct.unpack_from("<4sHHII", data)
    header = json.loads(data[16 : 16 + header_bytes])
    header_change(header)
    text = json.dumps(header).encode()
    body = struct.pack("<4sHHII", b"SLIP", version, 0, len(text), blob_bytes) + text
    body += data[16 + header_bytes : -4]
    return body + struct.pack("<I", zlib.crc32(body))


def test_comes_back(tmp_path):
    program = small_program()
    program.save(tmp_path / "small.slip")
    loaded = Program.load(tmp_path / "small.slip")
    for field in dataclasses.fields(Program):
        if field.name != "constants":
            assert getattr(loaded, field.name) == getattr(program, field.name)
    stored, original = loaded.constants["w"], program.constants["w"]
    assert stored.data is not None and original.data is not None
    assert np.array_equal(stored.data, original.data)
    assert stored.quantization is not None and stored.quantization.axis == 0
    assert program_file.encode(loaded) == program_file.encode(program)
    assert (loaded.macs, loaded.predicted_cycles) == (6, 0)


def test_other_hardware_is_refused():
    program, other = small_program(), Configuration(rows=32)
    program.check(Configuration(clock_hz=1))
    with pytest.raises(ProgramError, match=f"{program.fingerprint}.*{other.fingerprint}"):
        program.check(other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h.pop("steps"), "exactly the fields of Program"),
        (lambda h: h.update(extra=1), "exactly the fields of Program"),
        (lambda h: h.update(name=3), "program.name must be str"),
        (lambda h: h.update(fingerprint="0" * 16), "not that of its configuration"),
        (lambda h: h["configuration"].update(rows=12), "power of two, not 12"),
        (lambda h: h["configuration"].update(rows="a"), "rows must be int"),
        (lambda h: h["steps"][0].update(tensor="q"), "'q' has no placement"),
        (lambda h: h["steps"][0].update(kind="Jump"), "must be one of"),
        (lambda h: h["steps"][1].update(matrix_pc=1 << 20), "starts at word 1048576"),
        (lambda h: h["steps"][1].update(matrix_pc=True), "matrix_pc must be int"),
        (lambda h: h["steps"][3].update(inputs=["z"]), "'z' is not described"),
        (lambda h: h["images"][1].update(data=[0, 1 << 40]), "must lie within"),
        (lambda h: h["images"][1].update(address=1 << 24), "must be whole units of 16"),
        (lambda h: h["images"][0].update(space=7), "space must be one of"),
        (lambda h: h["tensors"]["x"].update(scale=-1.0), "scale must be positive"),
        (lambda h: h["tensors"]["x"].update(dtype="int4"), "dtype must be one of"),
        (lambda h: h["tensors"]["x"].update(shape=[1, 2]), "must hold the shape"),
        (lambda h: h["tensors"]["x"]["placement"].update(address=1 << 20), "tensor 'x' ends at"),
        (lambda h: h["tensors"]["x"]["placement"].update(row_pitch=5), "pitches must hold"),
        (lambda h: h["constants"]["w"]["data"].update(shape=[1 << 60, 3]), "must have the bytes"),
        (lambda h: h["constants"]["w"].update(data=None), "'w' must have data"),
        (lambda h: h["layers"][0].update(where="moon"), "device or host"),
        (lambda h: h.update(semantics="guess"), "tflm or onnx"),
    ],
)
def test_header_errors(change, message):
    with pytest.raises(ProgramError, match=message):
        program_file.decode(rewrite(change))


def test_file_errors(tmp_path):
    data = program_file.encode(small_program())
    for broken, message in (
        (b"", "must start with"),
        (b"ELF?" + data[4:], "must start with"),
        (data[:4] + b"\x09" + data[5:], "version 1, not 9"),
        (data[:-9], "truncated"),
        (data + b"\0", "something follows it"),
        (data[:90] + b"?" + data[91:], "CRC-32"),
    ):
        with pytest.raises(ProgramError, match=message):
            program_file.decode(broken)
    with pytest.raises(ProgramError, match="cannot be read"):
        Program.load(tmp_path / "absent.slip")
    with pytest.raises(ProgramError, match="cannot be read"):
        Program.load(tmp_path)
    with pytest.raises(ProgramError, match="cannot be read: .*null"):
        Program.load("a\0b")
    for place in (tmp_path, tmp_path / "absent" / "x.slip", "a\0b"):
        with pytest.raises(ProgramError, match="cannot be written"):
            small_program().save(place)


def test_a_number_is_no_path(tmp_path):
    """Not even that of an open file, which reading it would close."""
    name: Any
    with open(tmp_path / "open", "w+b") as file:
        name = file.fileno()
        for use in (Program.load, small_program().save):
            with pytest.raises(ProgramError, match="must be a path, not int"):
                use(name)
        assert file.write(b"still open") == 10


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_fuzzed_headers_never_escape(data):
    """Any value anywhere in the header loads as a program or is a ProgramError."""

    def change(header):
        node = header
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            key = data.draw(st.sampled_from(keys))
            if isinstance(node[key], dict | list) and node[key] and data.draw(st.booleans()):
                node = node[key]
                continue
            node[key] = data.draw(JSON_VALUES)
            return

    fuzzed = rewrite(change)
    try:
        program_file.encode(program_file.decode(fuzzed))
    except ProgramError:
        pass


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=64), st.integers(0, 2000), st.booleans())
def test_fuzzed_bytes_never_escape(noise, position, mend):
    data = bytearray(program_file.encode(small_program()))
    data[position : position + len(noise)] = noise
    if mend:
        data[-4:] = struct.pack("<I", zlib.crc32(bytes(data[:-4])))
    try:
        program_file.decode(bytes(data))
    except ProgramError:
        pass
