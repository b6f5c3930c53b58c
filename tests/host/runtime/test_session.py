"""Sessions: onnxruntime's shape, honest conversions, typed errors."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slipstick
from slipstick.errors import (
    DeviceError,
    InputError,
    ModelError,
    ProgramError,
    SlipstickError,
    TargetError,
)
from slipstick.examples.digits import MODEL, load_digits
from slipstick.program.steps import Placement, TensorDescription
from slipstick.runtime.feeds import dequantise, prepare_input, quantise
from slipstick.runtime.placement_io import gather, runs, stored_bytes
from slipstick.session import InferenceSession
from slipstick.verify.tflm_reference import TflmReference

TARGET = "sim-small"


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    return load_digits()[2:]


@pytest.fixture(scope="module")
def session():
    with InferenceSession(MODEL, "model", TARGET) as opened:
        yield opened


def test_import_is_quick_and_needs_no_amaranth() -> None:
    code = (
        "import time; start = time.perf_counter(); import slipstick, sys;"
        "assert time.perf_counter() - start < 0.3;"
        "assert 'numpy' not in sys.modules;"
        "slipstick.InferenceSession, slipstick.compile, slipstick.Program, slipstick.open_device;"
        "assert 'amaranth' not in sys.modules and 'slipstick_sim' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_public_names() -> None:
    for name in slipstick.__all__:
        assert getattr(slipstick, name)
    assert issubclass(slipstick.InputError, SlipstickError)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = slipstick.nothing  # type: ignore[attr-defined]


def test_describes_inputs_and_outputs(session: InferenceSession) -> None:
    (argument,) = session.get_inputs()
    assert (argument.name, argument.shape, argument.type) == ("image", [1, 8, 8, 1], "tensor(int8)")
    assert [output.name for output in session.get_outputs()] == ["probabilities"]
    assert session.get_outputs()[0].shape == [1, 10]


def test_digits_end_to_end_equal_the_reference(session: InferenceSession, digits) -> None:
    images, truths = digits
    (codes,) = session.run_batch(None, {"image": images})
    assert codes.shape == (len(images), 10) and codes.dtype == np.int8
    assert (codes.argmax(axis=1) == truths).mean() >= 0.97
    np.testing.assert_array_equal(codes[:50], TflmReference(MODEL).run(images[:50])[0])
    assert session.last_cycles is None


def test_one_image_through_frames_equals_the_batch(session: InferenceSession, digits) -> None:
    images = digits[0][:3]
    (together,) = session.run(["probabilities"], {"image": images})
    for image, expected in zip(images, together, strict=True):
        np.testing.assert_array_equal(session.run(None, {"image": image})[0][0], expected)
        np.testing.assert_array_equal(session.run(None, {"image": image[None]})[0][0], expected)


def test_takes_real_numbers_and_uint8_images(session: InferenceSession, digits) -> None:
    image = digits[0][:1]
    (expected,) = session.run(None, {"image": image})
    description = session.program.tensors["image"]
    for same in ((image.astype(np.int16) + 128).astype(np.uint8), dequantise(image, description)):
        np.testing.assert_array_equal(session.run(None, {"image": same})[0], expected)


def test_real_numbers_are_clamped_never_wrapped() -> None:
    description = TensorDescription((1, 5), "int8", 0.5, 10)
    codes = quantise(np.array([[-1e9, -69, 0.25, 58.5, 1e9]]), description)
    assert codes.tolist() == [[-128, -128, 10, 127, 127]]
    assert codes.dtype == np.int8


INT8 = TensorDescription((1, 2, 2, 1), "int8", 1.0, -128)


@pytest.mark.parametrize(
    ("value", "wanted", "message"),
    [
        (np.zeros((1, 3, 2, 1), np.int8), INT8, r"must have the shape \(1, 2, 2, 1\).* not \(1, 3"),
        (np.zeros((0, 2, 2, 1), np.int8), INT8, r"must have the shape .* not \(0, 2, 2, 1\)"),
        (np.int8(3), INT8, r"must have the shape .* not \(\)"),
        (np.zeros((2, 2, 1), np.int64), INT8, "must hold int8 or float .* or uint8 .* not int64"),
        (np.full((2, 2, 1), np.nan), INT8, "must hold finite numbers, but has nan"),
        (np.full((2, 2, 1), -np.inf, np.float32), INT8, "must hold finite numbers, but has -inf"),
        (["a", "b"], INT8, "must hold int8, not <U1"),
        ([[1], [1, 2]], INT8, "must be an array"),
        (np.array([None]), INT8, "must hold int8, not object"),
        (
            np.zeros((2, 2, 1), np.uint8),
            TensorDescription((1, 2, 2, 1), "int8", 1.0, 0),
            r"must hold int8 or float \(real values: scale 1, zero 0\), not uint8",
        ),
        (np.zeros(2), TensorDescription((1, 2), "int32"), "must hold int32, not float64"),
    ],
)
def test_refuses_inputs(value: object, wanted: TensorDescription, message: str) -> None:
    with pytest.raises(InputError, match=f"input 'x' {message}"):
        prepare_input("x", wanted, value)


def test_refuses_names_and_uneven_batches(session: InferenceSession, digits) -> None:
    image = digits[0][:1]
    names: Any
    feeds: Any
    for names, feeds, message in (
        (None, {}, "input 'image' of digits is missing"),
        (None, {"image": image, "label": image}, "input 'label' is unknown: digits takes image"),
        (None, [image], "inputs must be a mapping of arrays by name, not list"),
        (["nothing"], {"image": image}, "output 'nothing' is unknown: digits gives probabilities"),
        ("probabilities", {"image": image}, "output names must be a list of names"),
        (5, {"image": image}, "output names must be a list of names, not 5"),
    ):
        with pytest.raises(InputError, match=message):
            session.run(names, feeds)
    names = iter(["probabilities"])
    assert len(session.run(names, {"image": image})) == 1


def test_refuses_models_targets_and_devices(tmp_path: Path) -> None:
    junk = tmp_path / "junk.tflite"
    junk.write_bytes(b"hello world, no network")
    arguments: Any
    for arguments, kind, message in (
        ((junk, "model"), ModelError, "must be a TFLite file"),
        ((tmp_path, "model"), ModelError, "must be a file, but is a folder"),
        ((tmp_path / "none.tflite", "model"), ModelError, "is not there"),
        ((5, "model"), ModelError, "must be a file's path, or a Program .* not int"),
        ((None, "model"), ModelError, "must be a file's path, or a Program .* not NoneType"),
        ((Path(MODEL).read_bytes(), "model"), ModelError, "must be a file's path.* not bytes$"),
        ((MODEL, None), DeviceError, "device must be one of .* or an open Device, not NoneType"),
        ((MODEL, "abacus"), DeviceError, "device must be one of .* not 'abacus'"),
        ((MODEL, "model", "tiny"), TargetError, "target must be one of .* not 'tiny'"),
        ((MODEL, "model", 5), TargetError, "target must be a name or a configuration, not int"),
        ((MODEL, "model:sim-small", "sim-medium"), DeviceError, "hardware"),
    ):
        with pytest.raises(kind, match=message):
            InferenceSession(*arguments)


def test_programs_carry_their_hardware(tmp_path: Path, digits) -> None:
    path = tmp_path / "digits.slip"
    program = slipstick.compile(MODEL, target=TARGET)
    program.save(path)
    with InferenceSession(path, "model") as opened:
        assert opened.device.configuration == program.hardware
        assert opened.run(None, {"image": digits[0][0]})[0].shape == (1, 10)
    with pytest.raises(ProgramError, match=rf"{program.fingerprint} \(1x8x8\), the device is"):
        InferenceSession(path, "model", "sim-medium")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ProgramError):
        InferenceSession(path, "model")
    with pytest.raises(ModelError, match="compiled program already"):
        slipstick.compile(path)


def test_a_closed_session_is_of_no_use(digits) -> None:
    opened = InferenceSession(MODEL, "model", TARGET)
    opened.close()
    opened.close()
    with pytest.raises(DeviceError, match="the session of digits is closed"):
        opened.run(None, {"image": digits[0][:1]})


def test_a_device_that_is_passed_stays_open(digits) -> None:
    program = slipstick.compile(MODEL, target=TARGET)
    device = slipstick.open_device(f"model:{TARGET}")
    with InferenceSession(program, device):
        pass
    with InferenceSession(program, device) as opened:
        opened.run(None, {"image": digits[0][:1]})
    with pytest.raises(DeviceError, match="but the target"):
        InferenceSession(program, device, "sim-medium")


def test_what_does_not_fit_is_cut(digits) -> None:
    from slipstick.targets import find_target

    fields = find_target(TARGET).configuration.to_dict()
    small = type(find_target(TARGET).configuration).from_dict(
        fields | {"activation_bytes": 1 << 10, "weight_bytes": 1 << 11}
    )
    whole, cut = slipstick.compile(MODEL, target=TARGET), slipstick.compile(MODEL, small)
    assert cut.loads and len(cut.steps) > len(whole.steps)
    images = digits[0][:20]
    codes = [
        InferenceSession(program, "model").run(None, {"image": images})[0]
        for program in (whole, cut)
    ]
    np.testing.assert_array_equal(codes[1], codes[0])


@pytest.mark.parametrize(
    ("place", "stretches"),
    [
        (Placement(8, 6, 2, 2, 3, 2), 1),
        (Placement(8, 9, 2, 2, 3, 2), 2),
        (Placement(8, 12, 4, 2, 3, 2), 6),
        (Placement(8, 4, 4, 3, 1, 2), 3),
        (Placement(8, 100, 50, 1, 1, 7), 1),
        (Placement(0, 0, 0, 0, 0, 0), 1),
    ],
)
def test_transfers_write_only_the_tensor(place: Placement, stretches: int) -> None:
    size = place.height * place.width * place.channels
    tensor = np.arange(1, size + 1).astype(np.int8)
    memory, listed = np.zeros(200, np.int8), list(runs(place))
    for address, span in listed:
        memory[address : address + len(tensor[span])] = tensor[span]
    assert len(listed) == stretches
    assert np.count_nonzero(memory) == size
    stored = memory[np.newaxis, place.address : place.address + stored_bytes(place)]
    np.testing.assert_array_equal(gather(place, stored)[0], tensor)
    for y, x, c in np.ndindex(place.height, place.width, place.channels):
        address = place.address + y * place.row_pitch + x * place.pixel_pitch + c
        assert memory[address] == tensor[(y * place.width + x) * place.channels + c]
