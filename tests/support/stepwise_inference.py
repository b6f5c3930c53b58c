"""An inference on the golden model whose steps are done as a test asks for them."""

from typing import Any

from slipstick import kernels
from slipstick.graph import Node
from slipstick.program import Program
from slipstick.program.checks import graph_of
from slipstick.program.steps import DownloadStep, HostStep, Placement, RunStep, UploadStep
from slipstick.runtime.device_memory import BatchMemory
from slipstick.runtime.feeds import random_feeds


class Inference:
    """One inference of a program, whose steps are done as they are asked for."""

    def __init__(self, program: Program, memory: BatchMemory, seed: int) -> None:
        self._program, self._memory = program, memory
        self._graph = graph_of(program)
        self.values: dict[str, Any] = dict(random_feeds(program, seed))

    def do(self, *kinds: type) -> None:
        """Does all steps of these kinds."""
        for step in self._program.steps:
            if not isinstance(step, kinds):
                continue
            match step:
                case UploadStep(name):
                    self._memory.upload(self._place(name), self.values[name])
                case DownloadStep(name):
                    flat = self._memory.download(self._place(name))()
                    self.values[name] = flat.reshape(self._program.tensors[name].shape)
                case RunStep():
                    self._memory.start(step)
                    self._memory.finish(step)
                case HostStep():
                    self._host(step)

    def _place(self, name: str) -> Placement:
        place = self._program.tensors[name].placement
        assert place is not None
        return place

    def _host(self, step: HostStep) -> None:
        node = Node(step.name, step.operator, step.inputs, step.outputs, step.attributes)
        operands = [self.values[name] for name in step.inputs if name in self.values]
        if len(operands) == sum(name in self._program.tensors for name in step.inputs):
            made = kernels.run(node, self._graph, operands)
            self.values.update(zip(step.outputs, made, strict=True))

    def outputs(self) -> list[Any]:
        """All outputs, host steps behind the run done."""
        self.do(HostStep)
        return [self.values[name] for name in self._program.outputs]
