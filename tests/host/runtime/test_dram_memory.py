"""Programs in DRAM whose contents change: the host is told what happened, and may go on."""

import numpy as np
import pytest
from random_networks import NetworkBuilder
from slipstick.compiler import compile_graph
from slipstick.compiler.codegen.dram_list import find_dram_program
from slipstick.devices.link import LinkError
from slipstick.devices.model import ModelDevice
from slipstick.runtime.executor import Execution
from slipstick_rtl.dma.transfer import WORD_BYTES
from small_dram_core import SMALL


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("MEMORY_CORRUPT", "another checksum than was written: .* test the DRAM"),
        ("BAD_TRANSFER", "an instruction that there is none of: load the program again"),
    ],
)
def test_changed_contents_are_a_link_error(code: str, message: str) -> None:
    builder = NetworkBuilder(3, 8, 8, 16)
    for _ in range(4):
        builder.same_conv2d(3, 16)
    program = compile_graph(builder.graph(builder.last), SMALL)
    listed, device = find_dram_program(program), ModelDevice(SMALL)
    dma = device._core.dma
    assert listed is not None and dma is not None
    execution = Execution(program, device)
    assert execution.lists
    images = builder.images()[:1]
    expected = execution.infer_batch({"input": images})
    # the list's first instruction, or all constants
    begin = WORD_BYTES * listed.first
    damaged = slice(begin, begin + 1) if code == "BAD_TRANSFER" else slice(0, begin)
    dma.dram[damaged] ^= 0x0F
    with pytest.raises(LinkError, match=message) as caught:
        execution.infer_batch({"input": images})
    assert caught.value.code == code
    found = Execution(program, device).infer_batch({"input": images})
    for name in program.outputs:
        assert np.array_equal(found[name], expected[name])
