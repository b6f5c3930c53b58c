"""Defines the layouts that travel within the link, and between the link and the accelerator."""

from amaranth.lib import data

from ..isa import STREAMS

ByteWrite = data.StructLayout({"space": 2, "address": 24, "offset": 10, "data": 8})
"""A byte on its way to memory: ``address`` counts units of ``space``, ``offset`` bytes within."""

Completions = data.ArrayLayout(16, len(STREAMS))
"""Instructions that each stream has completed; arguments of HOLD."""

RunStatus = data.StructLayout(
    {
        "running": 1,
        "bad_instruction": 1,
        "dma": 2,
        "done": Completions,
        "cycles": 32,
        "stream_cycles": data.ArrayLayout(32, len(STREAMS)),
    }
)
"""State of the sequencer, as STATUS answers it."""

CommandByte = data.StructLayout({"code": 6, "waiting": 1, "silent": 1})
"""The command of a request with its flags; see ``protocol.WAITING`` and ``protocol.SILENT``."""

FrameHeader = data.StructLayout({"command": CommandByte, "sequence": 8, "length": 16})
"""The header of a request behind its start byte, as it comes over the wire."""

Request = data.StructLayout({"verdict": 3, "header": FrameHeader})
"""A received frame. ``verdict`` is OK, BAD_CRC or BAD_LENGTH; unless OK, the payload is gone."""

Response = data.StructLayout({"verdict": 8, "sequence": 8, "length": 16, "sealed": 1})
"""The header of a response; ``length`` bytes of payload follow on a stream of their own.
``sealed``: its CRC is that of the session."""

DataByte = data.StructLayout({"data": 8, "last": 1})
"""A byte of a request's payload behind its arguments; ``last``: none of that request follows."""

Arguments = data.ArrayLayout(8, 6)
"""The first bytes of a request's payload, as many as its command takes."""

SpaceArguments = data.StructLayout({"space": 8, "address": 24, "count": 16})
"""Arguments of WRITE (without ``count``) and READ."""

ProgramCounters = data.ArrayLayout(16, len(STREAMS))
"""A word of the instruction memory per stream."""

RunArguments = data.StructLayout({"flags": 8, "pcs": ProgramCounters})
"""Arguments of RUN."""

RegionArgument = data.StructLayout({"region": 3, "other": 4, "flag": 1})
"""First argument of DEFINE, PUT, GET and RUN_GET; ``other`` must be 0."""

RunGetArguments = data.StructLayout({"region": RegionArgument, "pcs": ProgramCounters})
"""Arguments of RUN_GET."""

RegionTable = data.StructLayout(
    {
        "count": 16,
        "address": 24,
        "run_last": 16,
        "runs_last": 16,
        "planes_last": 16,
        "gap": 16,
        "plane_gap": 16,
    }
)
"""A region as DEFINE describes it (``protocol.Region.pack``): sizes stand there less one."""

OpenArguments = data.StructLayout({"session": 32})
"""Arguments of OPEN."""

JudgedRequest = data.StructLayout(
    {"verdict": 4, "repeated": 1, "header": FrameHeader, "arguments": Arguments}
)
"""A judged request: to be executed if ``verdict`` is OK, and answered."""
