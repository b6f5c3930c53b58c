"""Runs the three products of a layer on a device, bit for bit as the golden functions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from slipstick_rtl.isa import TrainingFlag
from slipstick_rtl.link.protocol import Space

from ...devices import Device
from ...errors import CapacityError
from ...program.steps import Placement
from ...runtime.placement_io import gather, scatter
from . import convolutions
from .layer_programs import forward_program, input_gradient_program
from .program import (
    Accumulation,
    Drain,
    PartConvolutions,
    Piece,
    Product,
    ProductWriter,
    notes_program,
    with_sums,
)

if TYPE_CHECKING:
    from slipstick_sim.golden.training import Window


class DeviceProducts:
    """A device that multiplies for a trainer: one layer, and one image, at a time.

    Parameters
    ----------
    device : Device
        Whose configuration has ``training``.

    Raises
    ------
    CapacityError
        If it has not.
    """

    def __init__(self, device: Device) -> None:
        if not device.configuration.training:
            raise CapacityError(
                "training on a device needs a target whose configuration has training = 1, not"
                f" {device.configuration.shape} without it"
            )
        self._device, self._configuration = device, device.configuration
        self._loaded: dict[Space, bytes] = {}
        self._notes = notes_program(self._configuration)
        self.largest()

    def forward(
        self,
        images: np.ndarray,
        weights: np.ndarray,
        bias: np.ndarray,
        window: "Window",
        *,
        depthwise: bool,
        shift: int,
        relu: bool,
    ) -> np.ndarray:
        """``finish_forward`` of a layer's sums, which are noted.

        Parameters
        ----------
        images : array of int8, (batch, height, width, I)
        weights : array of int8, (O, height, width, I), or (1, height, width, C) if ``depthwise``
        bias : array of int32, (O,)
        window : Window
        depthwise : bool
        shift : int, 0..31
        relu : bool

        Returns
        -------
        array of int8, (batch, rows, columns, O)
        """
        product = forward_program(
            images.shape[1:],
            weights,
            bias,
            window,
            self._configuration,
            depthwise=depthwise,
            shift=shift,
            relu=relu,
        )
        return self._each(product, images)

    def input_gradient(
        self,
        errors: np.ndarray,
        weights: np.ndarray,
        window: "Window",
        *,
        depthwise: bool,
        size: tuple[int, int],
        shift: int,
        mask: np.ndarray | None = None,
    ) -> np.ndarray:
        """``finish_errors`` of the input gradient's sums, which are noted.

        Parameters
        ----------
        errors : array of int8, (batch, rows, columns, O)
        weights : array of int8
        window : Window
            The layer's.
        depthwise : bool
        size : (height, width)
            Of the layer's input.
        shift : int, 0..31
        mask : array of int8, (batch, height, width, I), optional
            The layer's input, behind a ReLU: errors are 0 where it is not above 0.

        Returns
        -------
        array of int8, (batch, height, width, I)
        """
        product = input_gradient_program(
            errors.shape[1:],
            weights,
            window,
            self._configuration,
            depthwise=depthwise,
            size=size,
            shift=shift,
            masked=mask is not None,
        )
        return self._each(product, errors, mask)

    def weight_gradient(
        self, images: np.ndarray, errors: np.ndarray, window: "Window", *, depthwise: bool
    ) -> np.ndarray:
        """The weight gradient's sums over the batch, of 32 bits and not rounded.

        Parameters
        ----------
        images : array of int8, (batch, height, width, I)
        errors : array of int8, (batch, rows, columns, O)
        window : Window
        depthwise : bool

        Returns
        -------
        array of int32, (O, kernel height, kernel width, I), or (1, height, width, C)
        """
        channels = images.shape[3]
        shape = (1 if depthwise else errors.shape[3], *window.kernel, channels)
        found = np.empty(shape, np.int32)
        sources = images if depthwise else [convolutions.planes(x, window) for x in images]
        for row in convolutions.gradient_rows(
            images.shape[1:], errors.shape[1:], window, depthwise
        ):
            sums = self._summed(row, sources, errors)
            if row.row is None:
                found[0] = sums
            else:
                found[:, row.row] = sums.transpose(2, 1, 0)
        return found

    def largest(self) -> int:
        """A number of as many bits as the largest magnitude since the last call; 0: none."""
        self._load(self._notes)
        self._run(self._notes)
        lanes = self._configuration.lanes
        notes = np.frombuffer(self._device.read(0, 4 * lanes), np.uint8).reshape(4, lanes)
        together = np.bitwise_or.reduce(notes, axis=1)
        return int.from_bytes(together.tobytes(), "little")

    def forget(self) -> None:
        """Loads programs anew: another one has used the device's memories."""
        self._loaded.clear()

    def _summed(
        self,
        row: convolutions.GradientRow,
        sources: Sequence[np.ndarray] | np.ndarray,
        errors: np.ndarray,
    ) -> np.ndarray:
        """Sums over the batch of one row, int32 (height, width, channels)."""
        writers = [self._gradient_writer(row, each) for each in errors]
        pieces, banks = writers[0].pieces, writers[0].banks
        found = np.zeros(row.result, np.int32)
        for begin in range(0, len(pieces), banks):
            some = pieces[begin : begin + banks]
            results = self._accumulate(some, writers, sources)
            whole = _joined([self._get(place) for place in results])
            for piece in some:
                values = writers[0].values(piece)
                found[values] = whole[values]
        return found

    def _accumulate(
        self,
        pieces: Sequence[Piece],
        writers: Sequence[ProductWriter],
        sources: Sequence[np.ndarray] | np.ndarray,
    ) -> tuple[Placement, ...]:
        """One run per image, whose sums stay in the accumulators; where their bytes lie."""
        results: tuple[Placement, ...] = ()
        for number, (writer, source) in enumerate(zip(writers, sources, strict=True)):
            last = number == len(writers) - 1
            product = writer.write(pieces, Accumulation(number == 0, last))
            self._load(product)
            self._put(product.source.address, scatter(product.source, source).tobytes())
            self._run(product)
            results = product.results
        return results

    def _gradient_writer(self, row: convolutions.GradientRow, errors: np.ndarray) -> ProductWriter:
        """Errors (rows, columns, O) are the kernel."""
        values = convolutions.sum_bytes(errors.shape[2])
        kernel = errors.transpose(2, 0, 1)[..., None]
        parts = [
            PartConvolutions(
                [
                    with_sums(geometry.convolution(kernel[:, taps[0], taps[1]], values[0]))
                    for geometry, taps in part.reductions
                ],
                part.lattice,
            )
            for part in row.parts
        ]
        drains = [Drain(value, TrainingFlag.AS_BYTES) for value in values]
        return ProductWriter(parts, row.result, drains, self._configuration)

    def _each(
        self, product: Product, sources: np.ndarray, masks: np.ndarray | None = None
    ) -> np.ndarray:
        """The product of every image."""
        self._load(product)
        results = []
        for number, source in enumerate(sources):
            self._put(product.source.address, scatter(product.source, source).tobytes())
            if masks is not None:
                self._put(product.mask.address, scatter(product.mask, masks[number]).tobytes())
            self._run(product)
            results.append(self._get(product.results[0]))
        return np.stack(results)

    def _load(self, product: Product) -> None:
        """Instructions and constants, unless they are there."""
        for space, contents in (
            (Space.INSTRUCTIONS, product.code),
            (Space.WEIGHTS, product.constants),
        ):
            if self._loaded.get(space) != contents:
                self._device.write(space, 0, contents)
                self._loaded[space] = contents

    def _put(self, address: int, contents: bytes) -> None:
        self._device.write(Space.ACTIVATIONS, address, contents)

    def _get(self, place: Placement) -> np.ndarray:
        memory = np.frombuffer(self._device.read(place.address, place.bytes), np.int8)
        shape = place.height, place.width, place.channels
        return gather(place, memory[None]).reshape(shape)

    def _run(self, product: Product) -> None:
        self._device.run(product.pcs)
        self._device.wait()


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Sums of their bytes, the lowest first, int32."""
    stacked = np.stack([part.view(np.uint8) for part in parts], axis=-1)
    return np.ascontiguousarray(stacked).view("<i4")[..., 0]
