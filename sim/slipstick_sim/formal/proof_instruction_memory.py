"""The instruction memory: who is granted a word, and when it comes."""

from typing import Any

from amaranth.hdl import Assert, Assume, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In
from slipstick_rtl.config import Configuration
from slipstick_rtl.latencies import INSTRUCTION_READ_LATENCY as LATENCY
from slipstick_rtl.sequencer.instruction_memory import InstructionMemory

from .registry import Proof

WAIT = 2
"""Cycles, at most, from a request to its grant."""


class FairGrants(wiring.Component):
    """Two readers that hold their request and address until the grant."""

    def __init__(self) -> None:
        ports = {f"{port}_{k}": In(w) for k in range(2) for port, w in _READER.items()}
        super().__init__(ports)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        configuration = Configuration(instruction_words=64)
        memory: Any = InstructionMemory(configuration=configuration)
        m.submodules.memory = memory
        m.d.comb += Assert(~(memory.grant_0 & memory.grant_1), "both are granted")
        for k in range(2):
            request, address = getattr(self, f"request_{k}"), getattr(self, f"address_{k}")
            grant, valid = getattr(memory, f"grant_{k}"), getattr(memory, f"valid_{k}")
            waited = Signal(range(WAIT + 1), name=f"waited_{k}")
            granted = Signal(LATENCY, name=f"granted_{k}")
            m.d.sync += granted.eq((granted << 1) | grant)
            m.d.sync += waited.eq(0)
            with m.If(request & ~grant):
                m.d.sync += waited.eq(waited + 1)
            m.d.comb += [
                getattr(memory, f"request_{k}").eq(request),
                getattr(memory, f"address_{k}").eq(address),
                Assume(request | (waited == 0), "requests are held"),
                Assert(~grant | request, "granted without a request"),
                Assert((waited < WAIT - 1) | grant | ~request, "waits for too long"),
                Assert(waited < WAIT, "waited for too long"),
                Assert(valid == granted[-1], "the word comes at the wrong time"),
            ]
        return m


_READER = {"request": 1, "address": 16}

PROOFS = (Proof(name="instruction_memory", component=FairGrants, depth=LATENCY + 2),)
