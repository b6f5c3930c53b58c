"""Records a training step: every operation of the trainer becomes a work for the DMA to list.

A :class:`..trainer.Trainer` runs over a :class:`RecordingArithmetic` as over any other. So what a
step consists of, and in which order, is said in one place.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from slipstick_rtl.config import Configuration
from slipstick_rtl.dma.transfer import STILL_SHIFT, WORD_BYTES
from slipstick_rtl.isa import TrainingFlag

from ...compiler.codegen.dram_tensors import DramTensor
from ..arithmetic import Gradient, Rate
from ..device.convolutions import nearest
from ..device.layer_programs import error_drains
from ..device.program import Drain
from ..golden import window_of
from ..int8 import IMAGE_EXPONENT, Codes, Int8Arithmetic, IntegerParameters, Range
from ..network import Kind, Layer
from .averages import AverageSpec, suits_maps
from .copies import copied, covers, unpooled
from .gradient_layout import takes_dense_rows
from .gradient_lists import GradientWork
from .gradient_results import Masters
from .gradients import GradientProgram
from .kernels import KernelPlace
from .places import Arena
from .pools import check_pool, pool_program
from .products import ProductSpec, forward_spec, input_gradient_spec
from .recorded import (
    DramCodes,
    HostUpdateError,
    Pass,
    RecordedGradient,
    UnknownRangeError,
    both,
    common_mask,
    nothing_in,
    recorded,
    recorded_tensor,
    reshaped,
    shape_of,
)
from .relocation import Built, Streams
from .sums import SumSpec
from .weight_copies import MOST_WEIGHTS
from .works import AverageWork, BlockWork, Key, ProductWork, SumWork, Work, key_of


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
    rate : Rate, optional
        The device updates the weights, with this learning rate.

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
        layer's input. Not all are stored.
    errors : dict of DramTensor
        Those that gradients are made of.
    kernels : dict of list of KernelPlace
        As what these are laid out.
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
        rate: Rate | None = None,
    ) -> None:
        super().__init__(master_bits, 0, Range.PREVIOUS)
        self._rate, self._exponents = rate, dict[str, int]()
        self._configuration, self.batch, self._last = configuration, batch, logits
        self.ranges = dict(ranges or {})
        self._any_range = ranges is None
        self.forward, self.backward, self._rest = Pass(arenas[0]), Pass(arenas[1]), arenas[2]
        self._pass = self.forward
        self.gradients: dict[str, RecordedGradient] = {}
        self.tensors: dict[str, DramTensor] = {}
        self.fills: list[tuple[int, int, int]] = []
        self.errors: dict[Key, DramTensor] = {}
        self.kernels: dict[Key, list[KernelPlace]] = {}
        self._masks: dict[str, DramTensor] = {}
        self._copies: dict[tuple[Key, Key], DramTensor] = {}
        self._spread: DramTensor | None = None

    def encode(self, images: np.ndarray) -> Codes:
        """The images as the host writes them: in dense rows."""
        shape = images.shape[1], images.shape[2], images.shape[3]
        self.images = self._rest.tensor(shape, self.batch, dense=True)
        return self._codes(self.images, IMAGE_EXPONENT)

    def _pixels(self, codes: Codes) -> DramTensor:
        """A tensor whose pixels begin with a word each: of dense rows a copy is made, once."""
        tensor = self._settled(codes)
        if not tensor.dense or tensor.channels % WORD_BYTES == 0:
            return tensor
        if self._spread is None:
            self._spread = self._rest.tensor(shape_of(tensor), self.batch)
            spec = copied(shape_of(tensor), masked=False)
            # the images are on the chip in the beginning
            work = ProductWork("(images)", (tensor,), (self._spread,), spec=spec)
            self.forward.works.insert(0, work)
        return self._spread

    def product(self, layer: Layer, x: Codes, parameters: IntegerParameters) -> Codes:
        """A forward product, and its note."""
        g, source = self._golden, recorded_tensor(x)
        exponent = x.exponent + parameters.exponent
        self._exponents[layer.name] = parameters.exponent
        shift = self._known_shift(layer.name, exponent)
        spec = forward_spec(
            shape_of(source),
            self._weights(parameters),
            g.bias_of(parameters.bias, exponent - parameters.exponent + g.BIAS_PLACES),
            window_of(layer),
            depthwise=layer.kind is Kind.DEPTHWISE,
            shift=shift,
            relu=layer.relu,
        )
        result = self._result(layer.name, spec.shape)
        self._multiply(layer.name, spec, source, None, result, exponent, layer=layer.name)
        return DramCodes(nothing_in(result, self.batch), exponent + shift, result, layer.relu)

    def add(self, layer: Layer, a: Codes, b: Codes) -> Codes:
        """A sum, rounded to nearest, and its note."""
        flags = TrainingFlag.NOTED | (TrainingFlag.POSITIVE if layer.relu else TrainingFlag(0))

        def drains(shift: int) -> list[Drain]:
            values = nearest(np.zeros(1, np.int32), shift, 0 if layer.relu else -127)
            return [Drain(values, flags)]

        return dataclasses.replace(self._added(layer.name, a, b, drains), positive=layer.relu)

    def average(self, layer: Layer, x: Codes) -> Codes:
        """Maps, or a depthwise convolution with ones, and its note."""
        g, source, window = self._golden, self._pixels(x), window_of(layer)
        exponent = x.exponent - g.average_shift(window)
        shift = self._known_shift(layer.name, exponent)
        shape = (*window.outputs(source.height, source.width), source.channels)
        if suits_maps(window, shape, self._configuration):
            values = nearest(np.zeros(1, np.int32), shift, -127)
            spec = AverageSpec(window, shape, Drain(values, TrainingFlag.NOTED))
            result = self._result(layer.name, shape)
            work = AverageWork(layer.name, (source,), (result,), noted=True, spec=spec)
            self._add(work, exponent)
            return self._codes(result, exponent + shift)
        spec = forward_spec(
            shape_of(source),
            np.ones((1, *window.kernel, source.channels), np.int8),
            np.zeros(source.channels, np.int32),
            window,
            depthwise=True,
            shift=shift,
            relu=False,
        )
        result = self._result(layer.name, spec.shape)
        self._multiply(layer.name, spec, source, None, result, exponent)
        return self._codes(result, exponent + shift)

    def maximum(self, layer: Layer, x: Codes) -> Codes:
        """Maxima, and masks for the way back."""
        window, source = window_of(layer), self._pixels(x)
        check_pool(layer.name, window)
        shape, positive = shape_of(source), recorded(x).positive
        pool = pool_program(shape, window, self._configuration, positive=positive)
        result = self._result(layer.name, (*window.outputs(*shape[:2]), shape[2]))
        self._masks[layer.name] = masks = self._rest.tensor(shape, self.batch)
        program = pool.program
        built = Built(Streams.of(program.code, program.pcs), program.constants)
        self._add(
            BlockWork(
                layer.name,
                (),
                (),
                block_bytes=pool.bytes,
                loads=[(pool.image, source)],
                stores=[(pool.maxima, result), (pool.masks, masks)],
                make=lambda: built,
            )
        )
        return self._codes(result, x.exponent)

    def reshape(self, x: Codes, shape: tuple[int, ...]) -> Codes:
        """The same bytes as another tensor."""
        return self._codes(reshaped(self._settled(x), shape), x.exponent)

    def loss_errors(self, logits: Codes, labels: np.ndarray) -> Codes:
        """Returns what the host writes between the lists."""
        g = self._golden
        shift = self._known_shift("loss", -g.SHARE_PLACES)
        self.logits = recorded(logits)
        self.loss = self._rest.tensor(shape_of(self.logits.tensor), self.batch)
        self._pass = self.backward
        return self._codes(self.loss, shift - g.SHARE_PLACES)

    def gradient(self, layer: Layer, x: Codes, error: Codes) -> Gradient:
        """Sums of 32 bits, of the weights and of the bias."""
        image, errors, window = recorded_tensor(x), self._settled(error), window_of(layer)
        if not takes_dense_rows(image, window):
            image = self._pixels(x)
        program = GradientProgram(
            shape_of(image),
            shape_of(errors),
            window,
            self._configuration,
            depthwise=layer.kind is Kind.DEPTHWISE,
        )
        exponent = x.exponent + error.exponent
        masters, words = self._masters(layer, program, exponent), program.results.words
        if masters is not None:
            words = sum(map(program.results.bias_words, program.passes))
        place = self._pass.answers.take(words)
        ones = self.fill(-(-program.ones_bytes // WORD_BYTES), 1)
        kernels = self._kernels(errors, program)
        work = GradientWork(layer.name, program, image, kernels, ones, place, masters)
        self._pass.gradients.append(work)
        self.gradients[layer.name] = RecordedGradient(
            program, place, exponent, error.exponent, masters
        )
        nothing = np.zeros(0, np.int32)
        return Gradient(nothing, nothing, exponent, error.exponent)

    def _masters(self, layer: Layer, program: GradientProgram, exponent: int) -> Masters | None:
        """Returns where a layer's master rows are, and the shift of its update."""
        if self._rate is None:
            return None
        if not program.results.can_update:
            raise HostUpdateError(f"planes of the sums of {layer.name!r} must be whole words")
        weights = math.prod(program.results.shape)
        if weights > MOST_WEIGHTS:
            raise HostUpdateError(f"{layer.name!r} must have at most {MOST_WEIGHTS} weights")
        shift = self.update_shift(self._exponents[layer.name], exponent, self._rate)
        if shift < 0:
            raise HostUpdateError(f"the update of {layer.name!r} must not shift left by {-shift}")
        place = self._rest.take(program.results.master_words)
        return Masters(place, min(shift, STILL_SHIFT))

    def product_back(
        self, layer: Layer, error: Codes, parameters: IntegerParameters, x: Codes, masked: bool
    ) -> Codes:
        """The transposed convolution behind the mask, and its note."""
        key = f"error of {layer.inputs[0]} by {layer.name}"
        source, image = self._settled(error), recorded_tensor(x)
        exponent = error.exponent + parameters.exponent
        shift = self._known_shift(key, exponent)
        spec = input_gradient_spec(
            shape_of(source),
            self._weights(parameters),
            window_of(layer),
            depthwise=layer.kind is Kind.DEPTHWISE,
            size=(image.height, image.width),
            shift=shift,
            masked=masked,
        )
        result = self._result(key, spec.shape)
        mask = image if masked else None
        self._multiply(key, spec, source, mask, result, exponent, layer=layer.name)
        return dataclasses.replace(self._codes(result, exponent + shift), mask=mask)

    def _kernels(self, errors: DramTensor, program: GradientProgram) -> KernelPlace:
        """Returns where errors are laid out as kernels; those of two layers may be the same."""
        self.errors[key_of(errors)] = errors
        places = self.kernels.setdefault(key_of(errors), [])
        for place in places:
            if place.layout == program.kernels:
                return place
        words = self.batch * program.kernels.dram_words
        if program.kernels.fills_lanes:
            place = self._rest.take(words)
        else:
            place = self.fill(words, 0)
        places.append(KernelPlace(program.kernels, place))
        return places[-1]

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
            self._settled(error),
            (image.height, image.width),
            window_of(layer),
        )
        check_pool(layer.name, window)
        spec = unpooled(shape_of(source), size, window, masked=mask is not None)
        key = f"error of {layer.inputs[0]} by {layer.name}"
        result = self._result(key, spec.shape)
        self._multiply(key, spec, source, mask, result, whole=covers(size, window))
        return self._codes(result, exponent)

    def mask(self, error: Codes, x: Codes) -> Codes:
        """Errors behind a mask, which waits: a sum of errors may apply it."""
        codes = self._codes(self._settled(error), error.exponent)
        return dataclasses.replace(codes, mask=recorded_tensor(x), pending=True)

    def _settled(self, codes: Codes) -> DramTensor:
        """A tensor whose mask has been applied, by a copy."""
        made = recorded(codes)
        if not made.pending:
            return made.tensor
        assert made.mask is not None
        key = key_of(made.tensor), key_of(made.mask)
        if key not in self._copies:
            shape = shape_of(made.tensor)
            self._copies[key] = copy = self._rest.tensor(shape, self.batch)
            spec = copied(shape, masked=True)
            name = f"(copy {len(self._copies)} behind a mask)"
            self._multiply(name, spec, made.tensor, made.mask, copy)
        return self._copies[key]

    def join(self, name: str, errors: Sequence[Codes]) -> Codes:
        """A sum, rounded pseudo-stochastically, and its note."""
        first, second = both(name, errors)
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
        shift = self._known_shift(key, exponent)
        mask = common_mask(a, b)
        spec = SumSpec(
            shape_of(recorded_tensor(a)), (places[0], places[1]), drains(shift), mask is not None
        )
        if mask is None or spec.needs_zeros:
            mask, spec = None, dataclasses.replace(spec, masked=False)
            terms = self._pixels(a), self._pixels(b)
        else:
            terms = recorded_tensor(a), recorded_tensor(b)
        result = self._result(key, spec.shape)
        reads = terms if mask is None else (*terms, mask)
        self._add(SumWork(key, reads, (result,), noted=True, spec=spec), exponent)
        return self._codes(result, exponent + shift)

    def _known_shift(self, key: str, exponent: int) -> int:
        if self._any_range:
            return 1
        if key not in self.ranges:
            raise UnknownRangeError(key)
        return self._golden.shift_between(exponent, self.ranges[key])

    def _codes(self, tensor: DramTensor, exponent: int) -> DramCodes:
        return DramCodes(nothing_in(tensor, self.batch), exponent, tensor)

    def _result(self, name: str, shape: tuple[int, int, int]) -> DramTensor:
        """Room for a result; logits are among the answers."""
        arena = self.forward.answers if name == self._last else self._rest
        self.tensors[name] = tensor = arena.tensor(shape, self.batch)
        return tensor

    def _multiply(
        self,
        name: str,
        spec: ProductSpec,
        source: DramTensor,
        mask: DramTensor | None,
        result: DramTensor,
        exponent: int | None = None,
        *,
        whole: bool = True,
        layer: str = "",
    ) -> None:
        """A product; with an exponent its sums are noted."""
        reads = (source,) if mask is None else (source, mask)
        noted = exponent is not None
        work = ProductWork(name, reads, (result,), noted, spec=spec, whole=whole, layer=layer)
        self._add(work, exponent)

    def _add(self, work: Work, exponent: int | None = None) -> None:
        self._pass.works.append(work)
        if exponent is not None:
            self._pass.exponents[work.name] = exponent

    def fill(self, words: int, byte: int) -> int:
        """Words that the host fills once; returns the first."""
        place = self._rest.take(words)
        self.fills.append((place, words, byte))
        return place
