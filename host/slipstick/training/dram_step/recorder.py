"""Records a training step: every operation of the trainer becomes a task for the DMA.

A :class:`..trainer.Trainer` runs over a :class:`RecordingArithmetic` as over any other. So what a
step consists of, and in which order, is said in one place.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import WORD_BYTES, Operation, Transfer
from slipstick_rtl.isa import TrainingFlag

from ...compiler.codegen.dram_tensors import DramTensor
from ...errors import UnsupportedError
from ...program.steps import Placement
from ..arithmetic import Gradient
from ..device.convolutions import nearest
from ..device.layer_programs import error_drains, forward_program, input_gradient_program
from ..device.program import Drain, Product, notes_program
from ..golden import window_of
from ..int8 import IMAGE_EXPONENT, Codes, Int8Arithmetic, IntegerParameters, Range
from ..network import Kind, Layer
from .copies import copy_program, covers, unpool_program
from .gradients import GradientProgram, takes_dense_rows
from .places import Arena
from .pools import check_pool, pool_program
from .recorded import (
    NOTE_BYTES,
    DramCodes,
    Note,
    Pass,
    RecordedGradient,
    UnknownRangeError,
    nothing_in,
    recorded,
    recorded_tensor,
    refusal,
    shape_of,
)
from .sums import sum_program
from .tasks import WAIT, Move, Runnable, Task, batch_task


class RecordingArithmetic(Int8Arithmetic):
    """Writes tasks in place of numbers, for one step of a batch.

    Parameters
    ----------
    configuration : Configuration
        With ``training`` and DRAM.
    ranges : mapping of int or None
        Of the step before; None: any will do, to see whether a step can be recorded.
    batch : int
        Images.
    logits : str
        The last layer.
    arenas : (Arena, Arena, Arena)
        For what is read behind the forward list and behind the backward list, and for all other
        tensors.
    master_bits : int

    Members
    -------
    batch : int
    forward, backward : Pass
    logits : DramCodes
        Among the answers of the forward list.
    images, loss : DramTensor
        What the host writes: the images, dense, and the errors of the logits.
    gradients : dict of RecordedGradient by layer
    tensors : dict of DramTensor
        By layer; errors by the key of their range, or, where they have none, by "error of" and the
        layer's input.
    fills : list of (int, int, int)
        Stretches of DRAM that the host fills once: the first word, how many, and the byte.
    """

    images: DramTensor
    loss: DramTensor
    logits: DramCodes

    def __init__(
        self,
        configuration: Configuration,
        ranges: dict[str, int] | None,
        batch: int,
        logits: str,
        arenas: tuple[Arena, Arena, Arena],
        master_bits: int = 16,
    ) -> None:
        super().__init__(master_bits, 0, Range.PREVIOUS)
        self._configuration, self.batch, self._last = configuration, batch, logits
        self.ranges = dict(ranges or {})
        self._any_range = ranges is None
        self.forward, self.backward, self._rest = Pass(arenas[0]), Pass(arenas[1]), arenas[2]
        self._pass = self.forward
        self._notes = notes_program(configuration)
        self.gradients: dict[str, RecordedGradient] = {}
        self.tensors: dict[str, DramTensor] = {}
        self.fills: list[tuple[int, int, int]] = []
        self._masks: dict[str, DramTensor] = {}
        self._spread: DramTensor | None = None

    def encode(self, images: np.ndarray) -> Codes:
        """The images as the host writes them: in dense rows."""
        shape = images.shape[1], images.shape[2], images.shape[3]
        self.images = self._rest.tensor(shape, self.batch, dense=True)
        return self._codes(self.images, IMAGE_EXPONENT)

    def _pixels(self, codes: Codes) -> DramTensor:
        """A tensor whose pixels begin with a word each: of dense rows a copy is made, once."""
        tensor = recorded_tensor(codes)
        if not tensor.dense or tensor.channels % WORD_BYTES == 0:
            return tensor
        if self._spread is None:
            self._spread = self._rest.tensor(shape_of(tensor), self.batch)
            copy = copy_program(shape_of(tensor), self._configuration, masked=False)
            self._run(copy, [(copy.source, tensor)], [(copy.results[0], self._spread)])
        return self._spread

    def product(self, layer: Layer, x: Codes, parameters: IntegerParameters) -> Codes:
        """A forward product, and its note."""
        g, source = self._golden, recorded_tensor(x)
        exponent = x.exponent + parameters.exponent
        shift = self._known_shift(layer.name, exponent)
        product = forward_program(
            shape_of(source),
            self._weights(parameters),
            g.bias_of(parameters.bias, exponent - parameters.exponent + g.BIAS_PLACES),
            window_of(layer),
            self._configuration,
            depthwise=layer.kind is Kind.DEPTHWISE,
            shift=shift,
            relu=layer.relu,
        )
        result = self._result(layer.name, product.results[0])
        self._run(product, [(product.source, source)], [(product.results[0], result)])
        self._note(layer.name, exponent)
        return DramCodes(nothing_in(result, self.batch), exponent + shift, result, layer.relu)

    def add(self, layer: Layer, a: Codes, b: Codes) -> Codes:
        """A sum, rounded to nearest, and its note."""
        flags = TrainingFlag.NOTED | (TrainingFlag.POSITIVE if layer.relu else TrainingFlag(0))

        def drains(shift: int) -> list[Drain]:
            values = nearest(np.zeros(1, np.int32), shift, 0 if layer.relu else -127)
            return [Drain(values, flags)]

        return dataclasses.replace(self._added(layer.name, a, b, drains), positive=layer.relu)

    def average(self, layer: Layer, x: Codes) -> Codes:
        """A depthwise convolution with ones, and its note."""
        g, source, window = self._golden, self._pixels(x), window_of(layer)
        exponent = x.exponent - g.average_shift(window)
        shift = self._known_shift(layer.name, exponent)
        product = forward_program(
            shape_of(source),
            np.ones((1, *window.kernel, source.channels), np.int8),
            np.zeros(source.channels, np.int32),
            window,
            self._configuration,
            depthwise=True,
            shift=shift,
            relu=False,
        )
        result = self._result(layer.name, product.results[0])
        self._run(product, [(product.source, source)], [(product.results[0], result)])
        self._note(layer.name, exponent)
        return self._codes(result, exponent + shift)

    def maximum(self, layer: Layer, x: Codes) -> Codes:
        """Maxima, and masks for the way back."""
        window, source = window_of(layer), self._pixels(x)
        check_pool(layer.name, window)
        shape, positive = shape_of(source), recorded(x).positive
        pool = pool_program(shape, window, self._configuration, positive=positive)
        result = self._result(layer.name, pool.maxima)
        self._masks[layer.name] = masks = self._rest.tensor(shape, self.batch)
        stores = [(pool.maxima, result), (pool.masks, masks)]
        self._run(pool.program, [(pool.image, source)], stores)
        return self._codes(result, x.exponent)

    def reshape(self, x: Codes, shape: tuple[int, ...]) -> Codes:
        """The same bytes as another tensor."""
        source = recorded_tensor(x)
        height, width, channels = shape[-3:]
        whole = channels % WORD_BYTES == 0 and source.channels % WORD_BYTES == 0
        if not whole and (source.height, source.width) != (height, width):
            raise UnsupportedError(
                "a tensor that is flattened in DRAM must have channels in multiples of"
                f" {WORD_BYTES}, not {source.channels} and {channels}"
            )
        result = DramTensor(source.place, height, width, channels, source.dense)
        return self._codes(result, x.exponent)

    def loss_errors(self, logits: Codes, labels: np.ndarray) -> Codes:
        """What the host writes between the lists."""
        g = self._golden
        shift = self._known_shift("loss", -g.SHARE_PLACES)
        self.logits = recorded(logits)
        self.loss = self._rest.tensor(shape_of(self.logits.tensor), self.batch)
        self._pass = self.backward
        return self._codes(self.loss, shift - g.SHARE_PLACES)

    def gradient(self, layer: Layer, x: Codes, error: Codes) -> Gradient:
        """Sums of 32 bits, of the weights and of the bias."""
        if layer.kind is Kind.DEPTHWISE:
            raise refusal(layer)
        image, errors, window = recorded_tensor(x), recorded_tensor(error), window_of(layer)
        if not takes_dense_rows(image, window):
            image = self._pixels(x)
        program = GradientProgram(shape_of(image), shape_of(errors), window, self._configuration)
        place = self._pass.answers.take(program.result_words)
        self._add(
            program.task(
                image,
                errors,
                self.batch,
                kernels=self._fill(program.kernels.dram_words, 0),
                ones=self._fill(-(-errors.height * errors.width // WORD_BYTES), 1),
                results=place,
            )
        )
        exponent = x.exponent + error.exponent
        self.gradients[layer.name] = RecordedGradient(program, place, exponent, error.exponent)
        nothing = np.zeros(0, np.int32)
        return Gradient(nothing, nothing, exponent, error.exponent)

    def product_back(
        self, layer: Layer, error: Codes, parameters: IntegerParameters, x: Codes, masked: bool
    ) -> Codes:
        """The transposed convolution behind the mask, and its note."""
        key = f"error of {layer.inputs[0]} by {layer.name}"
        source, image = recorded_tensor(error), recorded_tensor(x)
        exponent = error.exponent + parameters.exponent
        shift = self._known_shift(key, exponent)
        product = input_gradient_program(
            shape_of(source),
            self._weights(parameters),
            window_of(layer),
            self._configuration,
            depthwise=layer.kind is Kind.DEPTHWISE,
            size=(image.height, image.width),
            shift=shift,
            masked=masked,
        )
        result = self._result(key, product.results[0])
        self._run_masked(product, source, image if masked else None, result)
        self._note(key, exponent)
        return self._codes(result, exponent + shift)

    def average_back(self, layer: Layer, error: Codes, x: Codes, masked: bool) -> Codes:
        """Errors at all pixels of their windows, which are side by side, behind the mask."""
        exponent = error.exponent - self._golden.average_shift(window_of(layer))
        image = recorded_tensor(x)
        return self._unpool(layer, error, image, image if masked else None, exponent)

    def maximum_back(self, layer: Layer, error: Codes, x: Codes, y: Codes, masked: bool) -> Codes:
        """Errors where the masks are 1."""
        image, masks = recorded_tensor(x), self._masks[layer.name]
        return self._unpool(layer, error, image, masks, error.exponent)

    def _unpool(
        self,
        layer: Layer,
        error: Codes,
        image: DramTensor,
        mask: DramTensor | None,
        exponent: int,
    ) -> Codes:
        source, size, window = (
            recorded_tensor(error),
            (image.height, image.width),
            window_of(layer),
        )
        check_pool(layer.name, window)
        product = unpool_program(
            shape_of(source), size, window, self._configuration, masked=mask is not None
        )
        place = product.results[0]
        result = self._result(f"error of {layer.inputs[0]} by {layer.name}", place)
        before = [] if covers(size, window) else [self._clearing(place)]
        self._run_masked(product, source, mask, result, before)
        return self._codes(result, exponent)

    def mask(self, error: Codes, x: Codes) -> Codes:
        """A copy behind the mask."""
        source, image = recorded_tensor(error), recorded_tensor(x)
        copy = copy_program(shape_of(source), self._configuration, masked=True)
        result = self._rest.tensor(shape_of(source), self.batch)
        self._run_masked(copy, source, image, result)
        return self._codes(result, error.exponent)

    def join(self, name: str, errors: Sequence[Codes]) -> Codes:
        """A sum, rounded pseudo-stochastically, and its note."""
        if len(errors) != 2:
            raise UnsupportedError(
                f"tensor {name!r}: a network that is trained from DRAM must read each tensor at"
                f" most twice, not {len(errors)} times"
            )
        first, second = errors
        return self._added(f"error of {name}", first, second, lambda shift: error_drains(1, shift))

    def _added(
        self, key: str, a: Codes, b: Codes, drains: Callable[[int], list[Drain]]
    ) -> DramCodes:
        """``aligned_sum``, as drains for a shift have it, and its note."""
        nothing = np.zeros(1, np.int8)
        _, exponent = self._golden.aligned_sum([(nothing, each.exponent) for each in (a, b)])
        # what is too far below the other one counts as 0
        places = [
            each.exponent - exponent if each.exponent >= exponent else None for each in (a, b)
        ]
        terms = self._pixels(a), self._pixels(b)
        shift = self._known_shift(key, exponent)
        made = sum_program(
            shape_of(terms[0]), (places[0], places[1]), drains(shift), self._configuration
        )
        result = self._result(key, made.result)
        # what fills pixels up is noted as well
        full = terms[0].channels % self._configuration.lanes == 0
        before = [] if full else [self._clearing(place) for place in made.terms]
        loads = list(zip(made.terms, terms, strict=True))
        self._run(made.program, loads, [(made.result, result)], before)
        self._note(key, exponent)
        return self._codes(result, exponent + shift)

    def _known_shift(self, key: str, exponent: int) -> int:
        if self._any_range:
            return 1
        if key not in self.ranges:
            raise UnknownRangeError(key)
        return self._golden.shift_between(exponent, self.ranges[key])

    def _codes(self, tensor: DramTensor, exponent: int) -> DramCodes:
        return DramCodes(nothing_in(tensor, self.batch), exponent, tensor)

    def _result(self, name: str, place: Placement) -> DramTensor:
        """Room for a result; logits are among the answers."""
        shape = place.height, place.width, place.channels
        arena = self.forward.answers if name == self._last else self._rest
        self.tensors[name] = tensor = arena.tensor(shape, self.batch)
        return tensor

    def _run(
        self,
        program: Runnable,
        loads: Sequence[Move],
        stores: Sequence[Move],
        before: Sequence[Transfer] = (),
    ) -> None:
        self._add(batch_task(program, loads, stores, self.batch, before))

    def _run_masked(
        self,
        product: Product,
        source: DramTensor,
        mask: DramTensor | None,
        result: DramTensor,
        before: Sequence[Transfer] = (),
    ) -> None:
        loads = [(product.source, source)]
        if mask is not None:
            loads.append((product.mask, mask))
        self._run(product, loads, [(product.results[0], result)], before)

    def _add(self, task: Task) -> None:
        self._pass.tasks.append(task)

    def _note(self, key: str, exponent: int) -> None:
        """Stores the lanes' notes, which are forgotten."""
        product, lanes = self._notes, self._configuration.lanes
        place = self._pass.answers.take(-(-NOTE_BYTES * lanes // WORD_BYTES))
        store = Transfer(operation=Operation.STORE, dram=place, run_bytes=NOTE_BYTES * lanes)
        run = Transfer(operation=Operation.RUN, pcs=product.pcs)
        self._add(Task(product.code, product.constants, (run, WAIT, store)))
        self._pass.notes.append(Note(key, exponent, place))

    def _fill(self, words: int, byte: int) -> int:
        """Words that the host fills once."""
        place = self._rest.take(words)
        self.fills.append((place, words, byte))
        return place

    def _clearing(self, place: Placement) -> Transfer:
        """Zeros all pixels of a tensor on the chip: the same words come for each."""
        words = -(-place.pixel_pitch // WORD_BYTES)
        return Transfer(
            operation=Operation.LOAD,
            chip=place.address,
            dram=self._fill(words, 0),
            run_bytes=place.pixel_pitch,
            runs=place.width,
            rows=place.height,
            chip_run_pitch=place.pixel_pitch,
            chip_row_pitch=place.row_pitch,
        )
