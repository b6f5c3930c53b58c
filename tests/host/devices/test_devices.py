"""Devices by name, and the golden model as a device."""

import sys
from types import ModuleType

import numpy as np
import pytest
from slipstick.devices import Device, open_device
from slipstick.devices.kinds import KINDS, DeviceKind, device_help
from slipstick.devices.link import LinkError
from slipstick.devices.model import ModelDevice
from slipstick.errors import DeviceError, TargetError
from slipstick.targets import DEFAULT_TARGET, find_target
from slipstick_rtl.config import Configuration
from slipstick_rtl.isa import MATRIX_FIELDS, POST_FIELDS, Opcode, Rounding, pack
from slipstick_rtl.link.protocol import Space
from slipstick_rtl.numbers.rounding import encode_shift

CONFIGURATION = Configuration(
    rows=8,
    columns=8,
    lanes=4,
    activation_bytes=1 << 12,
    weight_bytes=1 << 12,
    accumulator_depth=64,
    instruction_words=256,
    payload_bytes=64,
)
POST_WORD = 128
PIXELS = 16
RESULT = 1024


def load_doubling(device: Device, wait: int = 1, opcode: int = Opcode.CONVOLVE) -> None:
    """A program that writes twice each of 16 x 8 bytes at 0 to ``RESULT``."""
    matrix = {
        "opcode": opcode,
        "reduction_tiles": 1,
        "channels": 8,
        "kernel_x": 1,
        "height": 1,
        "width": PIXELS,
        "stride_x": 1,
        "column_step": 8,
        "rows": 1,
        "groups": PIXELS,
    }
    post = {
        "opcode": Opcode.DRAIN,
        "wait": wait,
        "rows": 1,
        "columns": PIXELS,
        "slices": 2,
        "destination": RESULT,
        "destination_column_step": 8,
        "parameter_address": 8,
        "rounding": Rounding.HALF_EVEN,
        "minimum": -128,
        "maximum": 127,
    }
    shift = encode_shift(Rounding.HALF_EVEN, 30)
    channel = bytes(4) + (1 << 30).to_bytes(4, "little") + bytes([shift])
    device.write(Space.WEIGHTS, 0, (2 * np.eye(8, dtype=np.int8)).tobytes())
    # behind the weights of 8 words, byte after byte of all channels
    device.write(Space.WEIGHTS, 8, b"".join(bytes([value]) * 8 for value in channel))
    streams = pack(MATRIX_FIELDS, matrix), pack(POST_FIELDS, post)
    for word, instruction in zip((0, POST_WORD), streams, strict=True):
        device.write(Space.INSTRUCTIONS, word, instruction + bytes(len(instruction)))


def doubled(image: np.ndarray) -> np.ndarray:
    """What the program makes of int8 data."""
    return np.clip(2 * image.astype(np.int32), -128, 127).astype(np.int8)


def test_model_runs_a_program_over_real_frames() -> None:
    device = open_device("model", CONFIGURATION)
    assert device.configuration == CONFIGURATION
    assert device.identify().fingerprint == CONFIGURATION.fingerprint
    load_doubling(device)
    image = np.random.default_rng(1).integers(-128, 128, PIXELS * 8).astype(np.int8)
    device.write(Space.ACTIVATIONS, 0, image.tobytes())
    device.run((0, POST_WORD))
    status = device.wait()
    assert (status.running, status.done, status.cycles) == (False, (1, 1), 0)
    assert device.read(RESULT, PIXELS * 8) == doubled(image).tobytes()
    device.reset()
    assert device.status().done == (0, 0)
    device.close()


def test_batch_core_runs_many_images() -> None:
    device = ModelDevice(CONFIGURATION)
    load_doubling(device)
    device.write(Space.ACTIVATIONS, RESULT + PIXELS * 8, b"kept")
    core = device.batch_core(3)
    assert core.batch == 3
    images = np.random.default_rng(2).integers(-128, 128, (3, PIXELS * 8)).astype(np.int8)
    core.write_batch(0, images)
    core.run((0, POST_WORD))
    result = core.read_batch(RESULT, PIXELS * 8 + 4)
    np.testing.assert_array_equal(result[:, :-4], doubled(images))
    assert all(row.tobytes() == b"kept" for row in result[:, -4:])
    with pytest.raises(
        DeviceError, match=r"ACTIVATIONS must be within 0\.\.4096, not 4096\.\.4224"
    ):
        core.write_batch(4096, images)
    with pytest.raises(DeviceError, match=r"ACTIVATIONS must be within 0\.\.4096, not 0\.\.5000"):
        core.read_batch(0, 5000)


def test_programs_that_hang_or_break_rules_are_device_errors() -> None:
    device = ModelDevice(CONFIGURATION)
    load_doubling(device, wait=2)
    with pytest.raises(
        DeviceError, match="neither stream can go on.*post stream at word 128 waits"
    ):
        device.run((0, POST_WORD))
    load_doubling(device, wait=0)
    with pytest.raises(DeviceError, match="depend on the order of the streams"):
        checking = ModelDevice(CONFIGURATION, check_hazards=True)
        load_doubling(checking, wait=0)
        checking.write(Space.ACTIVATIONS, 0, bytes(range(1, PIXELS * 8)))
        checking.run((0, POST_WORD))
    load_doubling(device, opcode=7)
    device.run((0, POST_WORD))
    with pytest.raises(LinkError, match="BAD_INSTRUCTION"):
        device.wait()
    with pytest.raises(DeviceError, match="bad instruction after 0 matrix, 0 post"):
        device.batch_core(2).run((0, POST_WORD))


def test_a_new_kind_is_a_module_and_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """An imaginary kind, whose functions are those of a module of the package."""
    entry = DeviceKind(
        name="tcp", help="board on the network", opener="tcp:open_tcp", place="ADDRESS[@PORT]",
        finder="tcp:found", system="a network",
    )  # fmt: skip
    module = ModuleType("slipstick.devices.tcp")
    opened = open_device("model")
    module.__dict__.update(open_tcp=lambda place, configuration: opened, found=lambda: ["10.0.0.2"])
    monkeypatch.setitem(KINDS, "tcp", entry)
    assert entry.forms == ("tcp:ADDRESS[@PORT]",)
    assert "tcp:ADDRESS@PORT (board on the network)" in device_help()
    with pytest.raises(DeviceError, match="tcp devices need a network"):
        open_device("tcp:10.0.0.2")
    with pytest.raises(DeviceError, match="this machine has none that tcp could use"):
        open_device("tcp:")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert open_device("tcp:10.0.0.2") is opened
    with pytest.raises(DeviceError, match=r"must name a place: this machine has tcp:10\.0\.0\.2"):
        open_device("tcp")


def test_names_give_configurations() -> None:
    assert open_device("model").configuration == find_target(DEFAULT_TARGET).configuration
    assert open_device("model:1x8x8").configuration == find_target("1x8x8").configuration
    small = find_target("sim-small").configuration
    assert open_device("model:sim-small", small).configuration == small


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("gpu", DeviceError, r"device must be one of model, .*, usb:\[SERIAL\], udp:.*, not 'gpu'"),
        ("", DeviceError, "device must be one of .* not ''"),
        ("serial:", DeviceError, "device .serial:. must name a place: this machine has"),
        ("serial:/dev/no-port", DeviceError, "there is no port /dev/no-port: plug the board in"),
        ("model:", TargetError, "target must be one of .* not ''"),
        ("sim:ulx4m", TargetError, "target must be one of .* not 'ulx4m'"),
        (
            "model:1x16x16",
            DeviceError,
            r"is hardware .* \(1x16x16\), but .* \(1x8x8\) is asked for",
        ),
    ],
)
def test_other_names_are_refused(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        open_device(name, CONFIGURATION)
