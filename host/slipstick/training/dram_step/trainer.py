"""Trains from a board's DRAM: a list forward, the loss on the host, a list backward."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import numpy as np
from slipstick_rtl.dma.transfer import WORD_BYTES

from ...compiler.codegen.dram_tensors import DramTensor
from ...devices.link import LinkDevice
from ...errors import CapacityError
from ...runtime.dram_port import DramPort
from ..arithmetic import Gradient, StepResult
from ..device.arithmetic import DeviceArithmetic
from ..device.products import DeviceProducts
from ..golden import golden
from ..int8 import Codes, Int8Arithmetic
from ..network import Initial, TrainingNetwork
from ..trainer import Trainer, cross_entropy, right
from .contents import Contents
from .notes import NOTE_BYTES
from .places import Arena
from .planning import PlannedPass, StepPlan
from .recorded import UnknownRangeError
from .recorder import RecordingArithmetic

_MOST_PLANS = 4
"""That are kept: the last batch may have fewer images, and some shifts need other programs."""


class DramTrainer(Trainer):
    """A :class:`..trainer.Trainer` with the same bits, whose steps run from a board's DRAM.

    A step is written as two lists before it begins: the ranges are those of the step before. The
    first step, which has none, runs product by product over the link. Per step the host writes
    images, weights, and errors of logits; it reads logits, ranges, and sums of gradients. It
    computes the loss and the update.

    Parameters
    ----------
    network : TrainingNetwork
        Of convolutions, additions, flattening, and pools whose windows lie side by side; each
        tensor is read at most twice. Depthwise layers are among those that do not learn.
    device : LinkDevice
        Whose configuration has ``training`` and DRAM. No other may use it meanwhile.
    initial : mapping of FloatParameters
    learning : collection of str, optional
        As ``Trainer`` has it.
    master_bits, momentum : int
        As ``Int8Arithmetic`` has them.
    keeps : bool
        All tensors are stored in DRAM, to compare them; otherwise some never leave the chip.

    Members
    -------
    from_dram : int
        Steps that ran from DRAM.
    list_cycles : tuple of int
        Of the last step's two lists.

    Raises
    ------
    CapacityError
        If the hardware has no DRAM, or cannot train.
    """

    def __init__(
        self,
        network: TrainingNetwork,
        device: LinkDevice,
        initial: Initial,
        learning: Collection[str] | None = None,
        *,
        master_bits: int = 16,
        momentum: int = 0,
        keeps: bool = False,
    ) -> None:
        chip = device.configuration.dram_chip
        if chip is None:
            raise CapacityError(
                "training from DRAM needs a target with DRAM, not"
                f" {device.configuration.shape} without it"
            )
        self._device, self._port = device, DramPort(device)
        self._products = DeviceProducts(device)
        arithmetic = DeviceArithmetic(self._products, master_bits, momentum)
        super().__init__(network, arithmetic, initial, learning)
        self._arithmetic, self._master_bits = arithmetic, master_bits
        self._walker = Trainer(network, Int8Arithmetic(master_bits), initial, learning)
        self._contents, self._dram_words = Contents(self._port), chip.bytes // WORD_BYTES
        self._sizes: dict[int, tuple[int, int, int]] = {}
        self._plans: list[StepPlan] = []
        self._filled = list[tuple[int, int, int]]()
        self.from_dram, self.list_cycles = 0, (0, 0)
        self._keeps = keeps
        self._last: StepPlan | None = None

    def check(self) -> None:
        """Sees whether steps of one image can run from DRAM.

        Raises
        ------
        UnsupportedError
            If the network has a layer that does not run from DRAM.
        CapacityError
            If a step does not fit the memories.
        """
        self._plan(1, None)

    def gradients(self, images: np.ndarray, labels: np.ndarray) -> StepResult:
        """Forward and backward pass of a batch, or of a part of one.

        Parameters
        ----------
        images : array of int8, (batch, height, width, channels)
        labels : array of int, (batch,)

        Raises
        ------
        UnsupportedError
            If the network has a layer that does not run from DRAM.
        CapacityError
            If the step does not fit the memories.
        LinkError
            MEMORY_CORRUPT, BAD_TRANSFER or BAD_INSTRUCTION if a list did not come to its end.
        """
        try:
            plan = self._plan(len(images), self._arithmetic.ranges)
        except UnknownRangeError:
            return super().gradients(images, labels)
        with self._using_dram():
            result = self._run(plan, images, labels)
        self.from_dram, self._last = self.from_dram + 1, plan
        return result

    def tensors(self) -> dict[str, np.ndarray]:
        """Reads the tensors of the last step that ran from DRAM, as far as they are there.

        Returns
        -------
        dict of array of int8, (batch, height, width, channels)
            By the names of ``RecordingArithmetic.tensors``; empty if no step ran from there.
        """
        if self._last is None:
            return {}
        recorded, stored = self._last.recorded, self._last.stored
        with self._using_dram():
            return {
                name: self._read(tensor, recorded.batch)
                for name, tensor in recorded.tensors.items()
                if tensor.place in stored
            }

    @contextmanager
    def _using_dram(self) -> Iterator[None]:
        """What DeviceProducts has on the chip is overwritten; what fails leaves DRAM unknown."""
        self._products.forget()
        try:
            yield
        except BaseException:
            self._contents.forget()
            self._filled = []
            raise

    def _plan(self, batch: int, ranges: dict[str, int] | None) -> StepPlan:
        """The step's plan and lists; UnknownRangeError if a range is missing.

        Plans are kept: mostly only weights and shifts are others, which are constants of the lists.
        """
        while True:
            sizes = self._sizes.get(batch, (0, 0, 0))
            recorder, arenas = self._record(batch, ranges, sizes)
            kept = next((each for each in reversed(self._plans) if each.take(recorder)), None)
            if kept is not None:
                self._plans.remove(kept)
                plan = kept
                break
            plan = StepPlan(recorder, self._device.configuration, keeps=self._keeps)
            found = arenas[0].words, arenas[1].words, arenas[2].words
            if found == sizes:
                plan.list_passes(sum(sizes))
                break
            # the second time each arena begins where the one before ends
            self._sizes[batch] = found
        self._check_size(plan)
        # the last ones, the one at hand behind them
        self._plans = [*self._plans, plan][-_MOST_PLANS:]
        return plan

    def _record(
        self, batch: int, ranges: dict[str, int] | None, sizes: tuple[int, int, int]
    ) -> tuple[RecordingArithmetic, tuple[Arena, Arena, Arena]]:
        """The step's works, and the arenas that their tensors lie in."""
        arenas = Arena(0), Arena(sizes[0]), Arena(sizes[0] + sizes[1])
        recorder = RecordingArithmetic(
            self._device.configuration,
            ranges,
            batch,
            self.network.layers[-1].name,
            arenas,
            self._master_bits,
        )
        self._walker.arithmetic, self._walker.parameters = recorder, self.parameters
        shape = (batch, *self.network.shape)
        self._walker.gradients(np.zeros(shape, np.int8), np.zeros(batch, np.int64))
        return recorder, arenas

    def _check_size(self, plan: StepPlan) -> None:
        """CapacityError if DRAM has no room for the lists."""
        end = plan.first + len(plan.contents) // WORD_BYTES
        if end > self._dram_words:
            raise CapacityError(
                f"a step of {plan.recorded.batch} images must fit {self._dram_words * WORD_BYTES}"
                f" bytes of DRAM, not {end * WORD_BYTES}: take fewer images"
            )

    def _run(self, plan: StepPlan, images: np.ndarray, labels: np.ndarray) -> StepResult:
        do, recorded = self._arithmetic, plan.recorded
        do.reports = {}
        entries = self._write(plan)
        self._submit(recorded.images, images)
        forward, first_cycles = self._run_list(entries[0], plan.forward)
        logits = self._logits(recorded, forward)
        self._take_notes(plan.forward, forward, len(images))
        errors = do.loss_errors(logits, labels)
        self._submit(recorded.loss, errors.codes)
        backward, second_cycles = self._run_list(entries[1], plan.backward)
        self._take_notes(plan.backward, backward, len(images))
        self.list_cycles = first_cycles, second_cycles
        numbers = do.numbers(logits).reshape(len(images), -1)
        return StepResult(
            self._gradients(recorded, backward),
            do.reports,
            cross_entropy(numbers, labels),
            right(numbers, labels),
            len(images),
        )

    def _write(self, plan: StepPlan) -> tuple[int, int]:
        """Submits what is not in DRAM yet; returns where the lists begin."""
        fills = plan.fills
        if self._filled != fills:
            for place, words, byte in fills:
                self._port.submit_write(place, bytes((byte,)) * (words * WORD_BYTES))
            self._filled = fills
        self._contents.submit(plan.first, plan.contents)
        return plan.entries

    def _submit(self, tensor: DramTensor, values: np.ndarray) -> None:
        """Submits the images of a tensor, one behind the other."""
        packed = b"".join(tensor.pack(image) for image in values)
        self._port.submit_write(tensor.place, packed)

    def _read(self, tensor: DramTensor, batch: int) -> np.ndarray:
        return tensor.unpack_batch(self._port.read(tensor.place, batch * tensor.words * WORD_BYTES))

    def _run_list(self, entry: int, some: PlannedPass) -> tuple[bytes, int]:
        """Executes a list; what it answers, and its cycles."""
        status, answers = self._port.run_list(entry), some.recorded.answers
        self._port.check(status, "a training step from its DRAM")
        return self._port.read(answers.first, answers.words * WORD_BYTES), status.cycles

    def _logits(self, recorded: RecordingArithmetic, answers: bytes) -> Codes:
        made = recorded.logits
        first = (made.tensor.place - recorded.forward.answers.first) * WORD_BYTES
        count = recorded.batch * made.tensor.words * WORD_BYTES
        return Codes(made.tensor.unpack_batch(answers[first : first + count]), made.exponent)

    def _take_notes(self, some: PlannedPass, answers: bytes, batch: int) -> None:
        """Reports the ranges for the next step."""
        count, reports = NOTE_BYTES * self._device.configuration.lanes, self._arithmetic.reports
        found, images = np.frombuffer(answers, np.uint8), np.arange(batch)[:, None]
        for note in some.notes:
            notes = found[note.place + note.pitch * images + np.arange(count)]
            ored = np.bitwise_or.reduce(notes.reshape(batch, NOTE_BYTES, -1), axis=(0, 2))
            largest = int.from_bytes(ored.tobytes(), "little")
            reports[note.key] = golden().next_exponent(note.exponent, largest)

    def _gradients(self, recorded: RecordingArithmetic, answers: bytes) -> dict[str, Gradient]:
        found = {}
        for name, each in recorded.gradients.items():
            first = (each.place - recorded.backward.answers.first) * WORD_BYTES
            weights, bias = each.program.results.sums(answers[first:])
            found[name] = Gradient(weights, bias, each.weight_exponent, each.bias_exponent)
        return found
