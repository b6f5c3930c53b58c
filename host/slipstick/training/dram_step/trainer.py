"""Trains from a board's DRAM: a list forward, the loss on the host, a list backward."""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from slipstick_rtl.dma.transfer import MASTER_WORDS, WORD_BYTES

from ...compiler.codegen.dram_tensors import DramTensor
from ...devices.link import LinkDevice
from ...errors import CapacityError, StateLostError
from ...runtime.dram_port import DramPort
from ..arithmetic import Gradient, Rate, StepResult
from ..device.arithmetic import DeviceArithmetic
from ..device.products import DeviceProducts
from ..golden import golden
from ..int8 import Codes, Int8Arithmetic, IntegerParameters
from ..network import Initial, TrainingNetwork
from ..opened_device import CountingDevice
from ..trainer import Trainer, cross_entropy, right
from .contents import Contents
from .notes import NOTE_BYTES
from .places import Arena
from .planning import PlannedPass, StepPlan
from .recorded import HostUpdateError, RecordedGradient, UnknownRangeError
from .recorder import RecordingArithmetic
from .weight_copies import PROBES, probe

_MASTER_BITS = 16
_MOST_PLANS = 4
"""Plans that are kept: a last batch may have fewer images, and some shifts need others."""


class DramTrainer(Trainer):
    """A :class:`..trainer.Trainer` with the same bits, whose steps run from a board's DRAM.

    A step is written as two lists before it begins: the ranges are those of the step before. The
    first step, which has none, runs product by product over the link. Per step the host writes
    images, biases, and errors of logits; it reads logits, ranges, and the gradients of biases. It
    computes the loss and updates biases. The device updates the weights, and the host reads them
    when ``parameters`` is read.

    The host updates the weights too, in ``gradients`` with ``apply``, or where the device cannot:
    without ``on_device``, with momentum, with weights of 8 bits alone, with an array whose rows of
    sums are no whole words. Then it also writes weights, and reads sums of gradients.

    Parameters
    ----------
    network : TrainingNetwork
        Of convolutions, additions, flattening, and pools whose windows lie side by side; each
        tensor is read at most twice.
    device : LinkDevice
        Whose configuration has ``training`` and DRAM. No other may use it meanwhile.
    initial : mapping of FloatParameters
    learning : collection of str, optional
        As ``Trainer`` has it.
    master_bits, momentum : int
        As ``Int8Arithmetic`` has them.
    keeps : bool
        All tensors are stored in DRAM, to compare them; otherwise some never leave the chip.
    on_device : bool
        The device updates the weights, if it can.

    Members
    -------
    from_dram, updated : int
        Steps that ran from DRAM, and those of them whose weights the device updated.
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
        on_device: bool = True,
    ) -> None:
        chip = device.configuration.dram_chip
        if chip is None:
            raise CapacityError(
                "training from DRAM needs a target with DRAM, not"
                f" {device.configuration.shape} without it"
            )
        self._device, self._port = device, DramPort(device)
        self._counted = CountingDevice(device)
        self._products = DeviceProducts(self._counted)
        arithmetic = DeviceArithmetic(self._products, master_bits, momentum)
        super().__init__(network, arithmetic, initial, learning)
        self._arithmetic, self._master_bits = arithmetic, master_bits
        self._walker = Trainer(network, Int8Arithmetic(master_bits), initial, learning)
        self._contents, self._dram_words = Contents(self._port), chip.bytes // WORD_BYTES
        self._sizes: dict[tuple[int, bool], tuple[int, int, int]] = {}
        self._plans: list[StepPlan] = []
        self._filled = list[tuple[int, int, int]]()
        self.from_dram, self.updated, self.list_cycles = 0, 0, (0, 0)
        self._on_device = on_device and master_bits == _MASTER_BITS and momentum == 0
        # the plan whose master rows are the newest, and whether only the device has them
        self._learned: StepPlan | None = None
        self._ahead = self._updating = self._lost = False
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

    def stop(self) -> None:
        """A step that is under way ends before its next list; any thread may say so."""
        self._port.stop()
        self._counted.stop()

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
        self._learned = None
        with self._using_dram():
            result = self._run(plan, images, labels)
        self.from_dram, self._last = self.from_dram + 1, plan
        return result

    def step(self, images: np.ndarray, labels: np.ndarray, shift: int) -> StepResult:
        """Learns from one batch, whose images are a power of two.

        Where the device updates the weights, the result has the gradients of biases only.

        Raises
        ------
        UnsupportedError, CapacityError, LinkError
            As ``gradients`` does.
        StateLostError
            If a step before failed whose weights only the device had.
        """
        if self._on_device:
            rate = Rate(shift, len(images))
            try:
                plan = self._plan(len(images), self._arithmetic.ranges, rate)
            except (UnknownRangeError, HostUpdateError):
                pass
            else:
                return self._step(plan, images, labels, rate)
        return super().step(images, labels, shift)

    def _step(
        self, plan: StepPlan, images: np.ndarray, labels: np.ndarray, rate: Rate
    ) -> StepResult:
        if plan is not self._learned:
            self._fetch()
        with self._using_dram():
            if plan is not self._learned:
                self._write_masters(plan)
            result = self._run(plan, images, labels)
        self.from_dram, self._last = self.from_dram + 1, plan
        self.updated, self._ahead = self.updated + 1, True
        for name, gradient in result.gradients.items():
            self._arithmetic.update_bias(self._parameters[name], gradient, rate)
        self._arithmetic.ranges.update(result.ranges)
        return result

    def apply(self, parts: Sequence[StepResult], shift: int) -> None:
        """Updates by the parts of one batch; their order does not matter."""
        super().apply(parts, shift)
        self._learned = None

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Goes on from what ``arrays`` gave."""
        # what the device has is of no more use
        self._learned, self._ahead, self._lost = None, False, False
        super().restore(arrays)

    def _fetch(self) -> None:
        """Reads the weights that the device has learned."""
        if self._lost:
            raise StateLostError(
                "the weights of the last steps were lost with the device: go on from a checkpoint"
            )
        if self._learned is None or not self._ahead:
            return
        with self._using_dram():
            for name, gradient in self._updated(self._learned):
                results = gradient.program.results
                assert gradient.masters is not None
                count = results.master_words * WORD_BYTES
                words = np.frombuffer(self._port.read(gradient.masters.place, count), np.uint8)
                masters = golden().unpack_masters(words.reshape(-1, MASTER_WORDS * WORD_BYTES))
                self._parameters[name].masters = masters[results.sum_numbers()]
        self._ahead = False

    def _write_masters(self, plan: StepPlan) -> None:
        """Submits the master rows of a plan."""
        for name, gradient in self._updated(plan):
            results = gradient.program.results
            assert gradient.masters is not None
            masters = np.zeros(results.sums_count, np.int32)
            masters[results.sum_numbers()] = self._parameters[name].masters
            packed = golden().pack_masters(masters).tobytes()
            self._port.submit_write(gradient.masters.place, packed)
        self._learned = plan

    def _updated(self, plan: StepPlan) -> list[tuple[str, RecordedGradient]]:
        """Layers whose weights the device updates."""
        gradients = plan.recorded.gradients.items()
        return [(name, each) for name, each in gradients if each.masters is not None]

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
        """Overwrites what DeviceProducts has on the chip; a failure leaves DRAM unknown."""
        self._products.forget()
        try:
            yield
        except BaseException:
            self._contents.forget()
            self._filled = []
            # before the backward list begins, master rows are as the step before has left them
            self._lost = self._ahead and self._updating
            if self._updating or not self._ahead:
                self._learned = None
            raise
        finally:
            self._updating = False

    def _plan(
        self, batch: int, ranges: dict[str, int] | None, rate: Rate | None = None
    ) -> StepPlan:
        """The step's plan and lists; UnknownRangeError if a range is missing.

        Plans are kept: mostly only weights and shifts are others, which are constants of the lists.
        With a rate the device updates the weights; HostUpdateError if it cannot.
        """
        key = batch, rate is not None
        while True:
            sizes = self._sizes.get(key, (0, 0, 0))

            def probes(sizes: tuple[int, int, int] = sizes) -> list[RecordingArithmetic]:
                every = range(PROBES)
                return [self._record(batch, ranges, sizes, rate, each)[0] for each in every]

            recorder, arenas = self._record(batch, ranges, sizes, rate)
            kept = next(
                (each for each in reversed(self._plans) if each.take(recorder, probes)), None
            )
            if kept is not None:
                self._plans.remove(kept)
                plan = kept
                break
            plan = StepPlan(recorder, self._device.configuration, keeps=self._keeps)
            found = arenas[0].words, arenas[1].words, arenas[2].words
            if found == sizes:
                plan.list_passes(sum(sizes), probes)
                break
            # the second time each arena begins where the one before ends
            self._sizes[key] = found
        self._check_size(plan)
        # the last ones, the one at hand behind them
        self._plans = [*self._plans, plan][-_MOST_PLANS:]
        return plan

    def _record(
        self,
        batch: int,
        ranges: dict[str, int] | None,
        sizes: tuple[int, int, int],
        rate: Rate | None,
        number: int = 0,
    ) -> tuple[RecordingArithmetic, tuple[Arena, Arena, Arena]]:
        """The step's works, and the arenas that their tensors lie in.

        If the device updates the weights, the works have a probe in their place.
        """
        arenas = Arena(0), Arena(sizes[0]), Arena(sizes[0] + sizes[1])
        recorder = RecordingArithmetic(
            self._device.configuration,
            ranges,
            batch,
            self.network.layers[-1].name,
            arenas,
            self._master_bits,
            rate,
        )
        self._walker.arithmetic = recorder
        self._walker.parameters = self.parameters if rate is None else self._probed(number)
        shape = (batch, *self.network.shape)
        self._walker.gradients(np.zeros(shape, np.int8), np.zeros(batch, np.int64))
        return recorder, arenas

    def _probed(self, number: int) -> dict[str, IntegerParameters]:
        """The parameters, with a probe for the weights that learn."""
        probed = dict[str, IntegerParameters](self._parameters)
        for name in self.learning:
            own = probed[name]
            codes = probe(own.masters.shape, number).astype(np.int32)
            probed[name] = dataclasses.replace(own, masters=codes << golden().MASTER_PLACES)
        return probed

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
        self._updating = plan.updates
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
            results, weights = each.program.results, np.zeros(0, np.int32)
            if each.masters is None:
                weights, bias = results.sums(answers[first:])
            else:
                bias = results.biases(answers[first:])
            found[name] = Gradient(weights, bias, each.weight_exponent, each.bias_exponent)
        return found
