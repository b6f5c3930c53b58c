"""Register maps: their rules, their texts, the C driver of docs/how-to/soc.md, and the page."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from slipstick_rtl.config import Configuration
from slipstick_rtl.link.protocol import Command, Space, Status
from slipstick_rtl.soc import register_text
from slipstick_rtl.soc.c_header import c_header
from slipstick_rtl.soc.interfaces import INTERFACES, InterfaceTop
from slipstick_rtl.soc.register_map import MAP_BYTES, queue_words, register_map
from slipstick_rtl.soc.registers import Access, Field, Register, RegisterMap
from slipstick_sim.golden.core import GoldenCore
from slipstick_sim.golden.link import Endpoint

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "soc.md"
SMALL = Configuration(
    rows=4,
    columns=4,
    lanes=4,
    activation_bytes=1 << 10,
    weight_bytes=1 << 10,
    accumulator_depth=16,
    instruction_words=64,
    payload_bytes=64,
)


def field(name: str = "f", low: int = 0, width: int = 1, reset: int = 0, **rest: Access) -> Field:
    access = rest.get("access", Access.STATE)
    return Field(name=name, low=low, width=width, access=access, reset=reset, doc="a field")


def register(*fields: Field, name: str = "r", offset: int = 0) -> Register:
    return Register(name=name, offset=offset, doc="A register.", fields=fields or (field(),))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: field("Upper"), "field's name must be a lower-case identifier, not 'Upper'"),
        (lambda: field(low=30, width=4), "f must lie within bits 0..31, not 30..33"),
        (lambda: field(width=0), r"f must lie within bits 0..31, not 0..-1"),
        (lambda: field(reset=2), "reset value of f must fit 1 bits, not 2"),
        (lambda: field(width=8, access=Access.TAKE), "f must be a whole word, not 8 bits"),
        (lambda: register(name="a b"), "register's name must be a lower-case .*'a b'"),
        (lambda: register(offset=6), "offset of r must be a multiple of 4, not 6"),
        (lambda: Register(name="r", offset=0, doc="", fields=()), "r must have a field"),
        (lambda: register(field(), field(low=1)), "fields of r must have names of their own"),
        (lambda: register(field(low=1), field("g")), "field g of r must begin at bit 2 or up"),
        (lambda: RegisterMap(size=100, registers=()), "size must be a power of two.*not 100"),
        (
            lambda: RegisterMap(size=64, registers=(register(offset=4), register())),
            r"offsets must ascend, not \[4, 0\]",
        ),
        (
            lambda: RegisterMap(size=16, registers=(register(offset=16),)),
            "offsets must be below 16, not 16",
        ),
        (
            lambda: RegisterMap(size=16, registers=(register(), register(offset=4))),
            "registers must have names of their own",
        ),
    ],
)
def test_every_rule_has_its_message(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("payload_bytes", [64, 128, 1024, 1 << 15])
def test_a_queue_holds_the_longest_frame(payload_bytes: int) -> None:
    configuration = Configuration(payload_bytes=payload_bytes)
    words = queue_words(configuration)
    assert 4 * words >= payload_bytes + 9 and words < 1 << 16
    capacity = register_map(configuration)["capacity"]
    assert capacity.reset == payload_bytes | words << 16
    with pytest.raises(KeyError, match="no register is named 'x'"):
        register_map(configuration)["x"]


def test_the_page_has_the_table_and_the_pictures_of_the_map() -> None:
    page, registers = PAGE.read_text("utf-8"), register_map(Configuration())
    assert register_text.table(registers) in page
    assert register_text.pictures(registers) in page


@pytest.mark.parametrize("name", INTERFACES)
def test_the_page_connects_every_port(name: str) -> None:
    top = InterfaceTop(interface=INTERFACES[name], configuration=SMALL)
    ports = {str(path[0]) for path, _, _ in top.signature.flatten(top)}
    instances = re.findall(r"```verilog\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    connected = [set(re.findall(r"\.(\w+)\(", instance)) for instance in instances]
    assert ports in connected
    interface = INTERFACES[name]
    active = "low" if interface.reset_active_low else "high"
    row = f"| `{name}` | `{interface.clock}` | `{interface.reset}`, active {active} |"
    assert row in PAGE.read_text("utf-8")


class Registers:
    """The data registers over the golden endpoint: what the page's driver is run against."""

    def __init__(self) -> None:
        self.map = register_map(SMALL)
        self.core = GoldenCore(SMALL)
        self.endpoint = Endpoint(SMALL, self.core)
        self.words: list[int] = []
        self.pending = 0

    def get(self, offset: int) -> int:
        name = next(register.name for register in self.map if register.offset == offset)
        match name:
            case "queues":
                return queue_words(SMALL) | len(self.words) << 16
            case "interrupt_pending":
                return self.pending | bool(self.words) << 1
            case "response_data":
                return self.words.pop(0)
        return self.map[name].reset

    def put(self, offset: int, value: int) -> None:
        if offset == self.map["interrupt_pending"].offset:
            self.pending &= ~value
        if offset != self.map["request_data"].offset:
            return
        answers = self.endpoint.feed(value.to_bytes(4, "little"))
        while answers:
            size = 9 + int.from_bytes(answers[3:5], "little")
            frame = answers[:size].ljust(-(-size // 4) * 4, b"\0")
            self.words += [
                int.from_bytes(frame[at : at + 4], "little") for at in range(0, len(frame), 4)
            ]
            self.pending = 1  # a run is over at once
            answers = answers[size:]


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The page's C code, but for its first block, which is the platform's."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler, on Debian: apt-get install gcc")
    folder = tmp_path_factory.mktemp("driver")
    platform, *blocks = re.findall(r"```c\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    includes = "#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
    ours = (
        '#include "slipstick.h"\nuint32_t (*get)(uint32_t);\nvoid (*put)(uint32_t, uint32_t);\n'
        "void slipstick_platform(uint32_t (*g)(uint32_t), void (*p)(uint32_t, uint32_t))\n"
        "{ get = g; put = p; }\n"
    )
    code = "".join(blocks).replace("static int slipstick_", "int slipstick_")
    (folder / "slipstick.h").write_text(c_header(register_map(SMALL), SMALL))
    (folder / "bare.c").write_text(includes + platform + "".join(blocks))
    (folder / "driver.c").write_text(includes + ours + code)
    strict = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    for arguments in (["-fsyntax-only", "bare.c"], ["-shared", "-fPIC", "-o", "d.so", "driver.c"]):
        done = subprocess.run([*strict, *arguments], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / "d.so"))


def test_the_page_s_driver_drives_the_golden_endpoint(driver: ctypes.CDLL) -> None:
    registers = Registers()
    get = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)(registers.get)
    put = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)(registers.put)
    driver.slipstick_platform(get, put)
    # half a frame that nobody ends, as a driver that died leaves it
    registers.put(0x30, int.from_bytes(bytes([0xA5, Command.WRITE, 1, 60]), "little"))
    assert driver.slipstick_start() == Status.OK
    data = bytes(range(200))
    write = driver.slipstick_write
    assert write(Space.ACTIVATIONS, 5, data, len(data), 1) == Status.OK
    assert registers.core.read(5, len(data)) == data
    assert write(Space.ACTIVATIONS, 1020, data, len(data), 1) == Status.BAD_ADDRESS
    assert write(Space.INSTRUCTIONS, 0, bytes(96), 96, 4) == Status.OK
    assert driver.slipstick_run(0, 12) == Status.OK
    assert driver.slipstick_run(0, 64) == Status.BAD_ADDRESS
    answer = ctypes.create_string_buffer(64)
    assert driver.slipstick_read(7, 64, answer) == Status.OK
    assert answer.raw == data[2:66]
    assert register_map(SMALL).size == MAP_BYTES
