"""The registers of the core on AXI4-Lite and on Wishbone. Needs no Amaranth."""

from ..config import PROTOCOL_VERSION, Configuration
from ..isa import ISA_VERSION
from ..link.protocol import CRC_BYTES, HEADER_BYTES
from .registers import WORD_BYTES, Access, Field, Register, RegisterMap

MAP_VERSION = 1
MAP_BYTES = 1 << 12
"""A page, so that an operating system can hand it to a user's driver."""

IDENTIFICATION = int.from_bytes(b"SLIP", "little")


def queue_words(configuration: Configuration) -> int:
    """Words of the request queue, and of the response queue: the longest frame fits, with room.

    A power of two, which memories like.
    """
    frame = HEADER_BYTES + configuration.payload_bytes + CRC_BYTES
    return 1 << (-(-frame // WORD_BYTES)).bit_length()


def _constant(name: str, low: int, width: int, value: int, doc: str) -> Field:
    return Field(name=name, low=low, width=width, access=Access.CONSTANT, reset=value, doc=doc)


def _state(name: str, low: int, width: int, doc: str, reset: int = 0) -> Field:
    return Field(name=name, low=low, width=width, access=Access.STATE, reset=reset, doc=doc)


def _setting(name: str, low: int, doc: str, reset: int = 0) -> Field:
    return Field(name=name, low=low, width=1, access=Access.SETTING, reset=reset, doc=doc)


def _identity(configuration: Configuration) -> tuple[Register, ...]:
    fingerprint = bytes.fromhex(configuration.fingerprint)
    low, high = (int.from_bytes(fingerprint[at : at + 4], "little") for at in (0, 4))
    versions = (
        _constant("map", 0, 8, MAP_VERSION, "version of this register map"),
        _constant("protocol", 8, 8, PROTOCOL_VERSION, "version of the link protocol"),
        _constant("isa", 16, 8, ISA_VERSION, "version of the instruction set"),
    )
    capacity = (
        _constant("payload_bytes", 0, 16, configuration.payload_bytes, "longest payload"),
        _constant("queue_words", 16, 16, queue_words(configuration), "words of either queue"),
    )

    def word(value: int, doc: str) -> tuple[Field, ...]:
        return (_constant("value", 0, 32, value, doc),)

    return (
        Register(
            name="identification",
            offset=0x00,
            doc="Tells that this is a Slipstick.",
            fields=word(IDENTIFICATION, "the bytes SLIP, S lowest"),
        ),
        Register(name="versions", offset=0x04, doc="What it speaks.", fields=versions),
        Register(
            name="fingerprint_low",
            offset=0x08,
            doc="The hardware for which programs are compiled.",
            fields=word(low, "bytes 0 to 3 of the fingerprint, 0 lowest"),
        ),
        Register(
            name="fingerprint_high",
            offset=0x0C,
            doc="The rest of it.",
            fields=word(high, "bytes 4 to 7 of the fingerprint, 4 lowest"),
        ),
        Register(name="capacity", offset=0x10, doc="What fits.", fields=capacity),
    )


def _run() -> tuple[Register, ...]:
    return (
        Register(
            name="state",
            offset=0x18,
            doc="The run, and the last response that entered the response queue.",
            fields=(
                _state("running", 0, 1, "a program runs"),
                _state("bad_instruction", 1, 1, "the run met one"),
                _state("response_status", 8, 8, "status byte of the last response"),
                _state("response_sequence", 16, 8, "sequence number of the last response"),
            ),
        ),
        Register(
            name="done",
            offset=0x1C,
            doc="Completion counters.",
            fields=(
                _state("matrix", 0, 16, "instructions of the matrix stream"),
                _state("post", 16, 16, "instructions of the post stream"),
            ),
        ),
        Register(
            name="cycles",
            offset=0x20,
            doc="How long the run takes.",
            fields=(_state("value", 0, 32, "clock cycles from RUN until both streams ended"),),
        ),
    )


def _interrupts(offset: int) -> tuple[Register, ...]:
    return (
        Register(
            name="interrupt_pending",
            offset=offset,
            doc="Why the interrupt output is high, if enabled.",
            fields=(
                Field(
                    name="run_finished",
                    low=0,
                    width=1,
                    access=Access.EVENT,
                    doc="a run has ended, by itself or by RESET",
                ),
                _state("response_waiting", 1, 1, "a whole response is in the response queue"),
            ),
        ),
        Register(
            name="interrupt_enable",
            offset=offset + 4,
            doc="Which of them drive the interrupt output.",
            fields=(
                _setting("run_finished", 0, "1: yes"),
                _setting("response_waiting", 1, "1: yes"),
            ),
        ),
    )


def register_map(configuration: Configuration) -> RegisterMap:
    """The registers of the core of this configuration; the same on both buses."""
    control = Register(
        name="control",
        offset=0x14,
        doc="Where responses go. Change it while none is on its way.",
        fields=(
            _setting(
                "stream_responses",
                0,
                "1: to m_axis; 0: to response_data. Without m_axis (Wishbone) it does nothing",
            ),
        ),
    )
    queues = Register(
        name="queues",
        offset=0x24,
        doc="How full the queues are.",
        fields=(
            _state(
                "request_room", 0, 16, "words that request_data takes", queue_words(configuration)
            ),
            _state("response_words", 16, 16, "words in the response queue"),
        ),
    )
    request = Field(
        name="value",
        low=0,
        width=32,
        access=Access.GIVE,
        doc="the next bytes of a request, the first lowest; those whose strobe is 0 are left out",
    )
    response = Field(
        name="value",
        low=0,
        width=32,
        access=Access.TAKE,
        doc="the next bytes of a response, the first lowest; its last word is filled with 0",
    )
    return RegisterMap(
        size=MAP_BYTES,
        registers=(
            *_identity(configuration),
            control,
            *_run(),
            queues,
            *_interrupts(0x28),
            Register(
                name="request_data",
                offset=0x30,
                doc="Into the request queue. An error, and nothing happens, while it is full.",
                fields=(request,),
            ),
            Register(
                name="response_data",
                offset=0x34,
                doc="From the response queue. An error, and nothing happens, while it is empty.",
                fields=(response,),
            ),
        ),
    )
