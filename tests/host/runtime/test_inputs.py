"""Inputs and labels from files: every form is read, every damaged one is an InputError."""

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from slipstick.data.array_files import read_idx, read_npy, read_npz
from slipstick.data.inputs import load_inputs, load_labels
from slipstick.errors import InputError

GREY = (1, 4, 6, 1)
COLOUR = (1, 4, 6, 3)


def npy(array: np.ndarray, **options: bool) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def gz(data: bytes) -> bytes:
    """Without the time of day: what tests are called must not depend on it."""
    return gzip.compress(data, mtime=0)


def idx(array: np.ndarray, kind: int = 8) -> bytes:
    return (
        bytes([0, 0, kind, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + (array.tobytes())
    )


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


def npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=True, **arrays)
    return file.getvalue()


BATCH = np.arange(2 * 4 * 6, dtype=np.uint8).reshape(2, 4, 6, 1)


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("batch.npy", npy(BATCH)),
        ("fortran.npy", npy(np.asfortranarray(BATCH))),
        ("grey.npy", npy(BATCH[..., 0])),
        ("pair.npz", npz(x=BATCH, y=np.array([3, 1]))),
        ("with_text.npz", npz(x=BATCH, names=np.array(["a", "b"]))),
        ("other_name.npz", npz(images=BATCH)),
        ("mnist.gz", gz(idx(BATCH[..., 0]))),
        ("mnist.idx", idx(BATCH[..., 0])),
        ("no_suffix", npy(BATCH)),
    ],
)
def test_reads_arrays(tmp_path: Path, name: str, data: bytes) -> None:
    samples = load_inputs([write(tmp_path, name, data)], GREY)
    np.testing.assert_array_equal(samples.x, BATCH)
    assert samples.x.dtype == np.uint8
    assert samples.names == (f"{name}[0]", f"{name}[1]")
    assert len(samples.first(1)) == 1
    if name == "pair.npz":
        assert samples.y is not None and samples.y.tolist() == [3, 1]


def test_a_single_sample_and_several_files(tmp_path: Path) -> None:
    one = write(tmp_path, "one.npy", npy(BATCH[0]))
    samples = load_inputs([one, one], GREY)
    assert samples.x.shape == (2, 4, 6, 1)


def test_reads_images(tmp_path: Path) -> None:
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(pixels).resize((60, 40)).save(tmp_path / "b.bmp")
    (tmp_path / "notes.txt").write_text("no image")
    np.testing.assert_array_equal(load_inputs([tmp_path / "a.png"], COLOUR).x[0], pixels)
    samples = load_inputs([tmp_path], COLOUR)
    assert samples.names == ("a.png", "b.bmp")
    assert samples.x.shape == (2, 4, 6, 3) and samples.x.dtype == np.uint8
    grey = load_inputs([tmp_path / "a.png"], GREY).x
    np.testing.assert_array_equal(grey[0, ..., 0], Image.fromarray(pixels).convert("L"))


def test_reads_labels(tmp_path: Path) -> None:
    labels = np.array([2, 0, 9], np.uint8)
    for name, data in (
        ("y.npy", npy(labels.astype(np.int64))),
        ("column.npy", npy(labels[:, None])),
        ("y.gz", gz(idx(labels))),
        ("pair.npz", npz(x=BATCH, y=labels)),
    ):
        found = load_labels(write(tmp_path, name, data), 3)
        assert found.dtype == np.int64 and found.tolist() == [2, 0, 9]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("short.npy", npy(BATCH)[:-1], r"uint8 of shape .* must be 48 bytes, the file holds 47"),
        ("long.npy", npy(BATCH) + b"x", "the file holds 49"),
        ("magic.npy", b"hello", "must start as a .npy file, not with b'hello'"),
        ("version.npy", b"\x93NUMPY\x09\x00\0\0\0\0", "the .npy version must be 1 to 3, not 9"),
        ("pickle.npy", npy(np.array([{}]), allow_pickle=True), "pickled objects are refused"),
        ("text.npy", npy(np.array(["a"])), "must hold numbers of up to 64 bits"),
        ("complex.npy", npy(np.zeros(2, complex)), "must hold numbers of up to 64 bits"),
        (
            "absurd.npy",
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000)}"),
            "must be at most 2147483648 bytes, not 8000000000000",
        ),
        ("code.npy", header("__import__('os').getcwd()"), "header must hold descr"),
        ("negative.npy", header("{'descr':'|i1','fortran_order':False,'shape':(-1,)}"), "sizes"),
        ("empty.npz", b"PK", "must be a whole .npz file"),
        ("cut.npz", npz(x=BATCH)[:-30], "must be a whole .npz file"),
        ("objects.npz", npz(x=np.array([{}])), "pickled objects are refused"),
        ("three.npz", npz(a=BATCH, b=BATCH), "must hold an array 'x', it holds 'a', 'b'"),
        ("uneven.npz", npz(x=BATCH, y=np.zeros(3, int)), "as many labels as inputs, not 3 for 2"),
        ("cut.gz", gz(idx(BATCH))[:-9], "must be a whole gzip file"),
        ("cut.idx", idx(BATCH)[:-1], "must be 48 bytes, not 47"),
        ("bomb.gz", gz(idx(BATCH) + bytes(1 << 20)), "not more than 48"),
        ("absurd.idx", b"\0\0\x08\x02" + b"\xff" * 8, "must be at most 2147483648 bytes"),
        ("type.idx", b"\0\0\x01\x01\0\0\0\0", "an idx file must start with"),
        ("shape.npy", npy(BATCH[:, :3]), r"must hold inputs of shape \(4, 6, 1\).* not \(2, 3"),
        ("none.npy", npy(BATCH[:0]), "must hold at least one input, it holds none"),
        ("image.png", b"\x89PNG\r\n\x1a\n" + bytes(20), "cannot be read|must be an image"),
        ("hello.jpg", b"hello", "must be an image, .npy, .npz or idx file"),
        ("empty", b"", "must be an image, .npy, .npz or idx file"),
    ],
)
def test_refuses_files(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    path = write(tmp_path, name, data)
    with pytest.raises(InputError, match=message) as caught:
        load_inputs([path], GREY)
    assert name in str(caught.value)


def test_refuses_what_is_no_file(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "none.npy", "is not there"),
        (tmp_path, r"must hold images \(.bmp, .*it holds none"),
        (Path("/dev/null"), "must be a regular file"),
    ):
        with pytest.raises(InputError, match=message):
            load_inputs([path], GREY)
    with pytest.raises(InputError, match="at least one file, none was given"):
        load_inputs([], GREY)


def test_refuses_images_that_do_not_suit(tmp_path: Path) -> None:
    path = tmp_path / "deep.png"
    Image.fromarray(np.zeros((4, 6), np.uint16)).save(path)
    with pytest.raises(InputError, match="must have 8 bits a channel"):
        load_inputs([path], GREY)
    Image.new("L", (6, 4)).save(path)
    with pytest.raises(InputError, match="needs an input of shape"):
        load_inputs([path], (1, 640))
    noise = np.random.default_rng(0).integers(0, 256, (40, 60), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match="deep.png cannot be read"):
        load_inputs([path], GREY)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros((2, 2), int), "one whole number a sample"),
        (np.array([0.5, 1]), "one whole number a sample"),
        (np.array([0, -1]), "classes 0 to 2147483647, not -1"),
        (np.array([0, 1 << 40]), "classes 0 to 2147483647, not 1099511627776"),
        (np.array([0, 1, 2]), "as many as the 2 inputs, not 3"),
    ],
)
def test_refuses_labels(tmp_path: Path, labels: np.ndarray, message: str) -> None:
    path = write(tmp_path, "y.npy", npy(labels))
    with pytest.raises(InputError, match=message):
        load_labels(path, 2)


SEEDS = (npy(BATCH), npz(x=BATCH, y=np.arange(2)), idx(BATCH), gz(idx(BATCH)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.sampled_from(SEEDS),
    edits=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6),
    cut=st.integers(0, 400) | st.none(),
)
def test_damaged_arrays_are_read_or_refused(seed: bytes, edits: list, cut: int | None) -> None:
    data = bytearray(seed)
    for position, value in edits:
        data[position % len(data)] = value
    damaged = bytes(data[:cut])
    for read in (read_npy, read_npz, read_idx):
        try:
            read(damaged, "file")
        except InputError as error:
            assert "file" in str(error)


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(
        st.sampled_from("{}()[]':,<f8i1 descrshapefortran_orderTrueFalse0129-"), max_size=90
    )
)
def test_any_header_is_read_or_refused(text: str) -> None:
    try:
        read_npy(header(text) + bytes(8), "file")
    except InputError:
        pass


def test_an_encrypted_or_foreign_archive_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy(BATCH))
    data = bytearray(file.getvalue())
    for start in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[start] |= 1  # the flag of an encrypted member
    with pytest.raises(InputError, match="must be a whole .npz file"):
        read_npz(bytes(data), "file")
