"""Describes what a step computes for each image: programs, and the tensors that they touch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slipstick_rtl.config import Configuration

from ...compiler.codegen.dram_tensors import DramTensor
from ...compiler.ir.operations import Convolution, View
from ...program.steps import Placement
from .averages import AverageSpec
from .products import ProductPlaces, ProductSpec
from .relocation import Built
from .sums import SumSpec

Key = tuple[int, int, int, int]
"""A tensor on the chip: its first word of DRAM and its sizes. Flattened it is another one."""


def key_of(tensor: DramTensor) -> Key:
    """Its key."""
    return tensor.place, tensor.height, tensor.width, tensor.channels


@dataclass(frozen=True)
class Work:
    """A program of a step.

    Parameters
    ----------
    name : str
    reads, writes : tuple of DramTensor
        Tensors that stay on the chip for others, if there is room.
    noted : bool
        Its sums are noted.
    layer : str
        Whose weights it has; empty: none that learn.
    """

    name: str
    reads: tuple[DramTensor, ...]
    writes: tuple[DramTensor, ...]
    noted: bool = False
    layer: str = field(default="", kw_only=True)

    @property
    def tensors(self) -> tuple[str, tuple[DramTensor, ...], tuple[DramTensor, ...], bool]:
        """Its name and all tensors, to see whether another work is like it."""
        return self.name, self.reads, self.writes, self.noted

    def convolutions(self) -> list[Convolution]:
        """Those whose tensors are named by ``str`` of their keys, to choose pitches for them."""
        return []

    @property
    def together(self) -> list[tuple[DramTensor, DramTensor]]:
        """Pairs of tensors with the same pitches."""
        return []

    @property
    def cleared(self) -> tuple[DramTensor, ...]:
        """Tensors whose bytes must be 0 before they are loaded or written."""
        return ()

    @property
    def replaced(self) -> tuple[DramTensor, ...]:
        """Tensors in whose place the result may be written, if nothing else needs them."""
        return ()

    def least_row_pitch(self, tensor: DramTensor, pixel_pitch: int) -> int:
        """Returns the least row pitch of a tensor that it writes."""
        return tensor.width * pixel_pitch

    def build(
        self,
        places: Mapping[Key, Placement],
        configuration: Configuration,
        *,
        halved: bool = False,
    ) -> Built:
        """The program; ``halved``: with half of the accumulators."""
        raise NotImplementedError


@dataclass(frozen=True)
class ProductWork(Work):
    """A product: reads its source, and a mask if its drains have one; writes one result.

    Parameters
    ----------
    spec : ProductSpec
    whole : bool
        All pixels of the result are written; the others must be 0.
    """

    spec: ProductSpec = field(kw_only=True)
    whole: bool = True

    def convolutions(self) -> list[Convolution]:
        """Returns the convolutions of all parts."""
        return list(named(each, self.reads[0], self.writes[0]) for each in self.spec.convolutions)

    @property
    def together(self) -> list[tuple[DramTensor, DramTensor]]:
        """Mask and result."""
        return [(mask, self.writes[0]) for mask in self.reads[1:]]

    @property
    def cleared(self) -> tuple[DramTensor, ...]:
        """The result, if pixels of it are not written."""
        return () if self.whole else self.writes

    @property
    def replaced(self) -> tuple[DramTensor, ...]:
        """The mask: a pixel of it is read once, before it is written."""
        return self.reads[1:] if self.whole and len(self.spec.drains) == 1 else ()

    def least_row_pitch(self, tensor: DramTensor, pixel_pitch: int) -> int:
        """Rows hold the columns of each lattice."""
        return max(
            super().least_row_pitch(tensor, pixel_pitch), self.spec.least_row_pitch(pixel_pitch)
        )

    def build(
        self,
        places: Mapping[Key, Placement],
        configuration: Configuration,
        *,
        halved: bool = False,
    ) -> Built:
        """The program; ``halved``: with half of the accumulators."""
        source, result = places[key_of(self.reads[0])], places[key_of(self.writes[0])]
        mask = places[key_of(self.reads[1])] if self.spec.masked else result
        return self.spec.write(ProductPlaces(source, result, mask), configuration, halved=halved)


@dataclass(frozen=True)
class SumWork(Work):
    """A sum of two tensors.

    Parameters
    ----------
    spec : SumSpec
    """

    spec: SumSpec = field(kw_only=True)

    @property
    def together(self) -> list[tuple[DramTensor, DramTensor]]:
        """All."""
        return [(each, self.writes[0]) for each in self.reads]

    @property
    def replaced(self) -> tuple[DramTensor, ...]:
        """Any: sums are in the accumulators before their pixels are written."""
        if self.spec.needs_zeros:
            return ()
        return self.reads if len(self.spec.drains) == 1 else self.reads[:2]

    @property
    def cleared(self) -> tuple[DramTensor, ...]:
        """Terms whose pixels are filled up with bytes that are added too."""
        return self.reads if self.spec.needs_zeros else ()

    def build(
        self,
        places: Mapping[Key, Placement],
        configuration: Configuration,
        *,
        halved: bool = False,
    ) -> Built:
        """The program; ``halved``: with half of the accumulators."""
        first, second, *masks = (places[key_of(each)] for each in self.reads)
        result = places[key_of(self.writes[0])]
        mask = masks[0] if masks else result
        return self.spec.write((first, second), result, mask, configuration, halved=halved)


@dataclass(frozen=True)
class AverageWork(Work):
    """Sums of windows that lie within a tensor, by the post-processor alone.

    Parameters
    ----------
    spec : AverageSpec
    """

    spec: AverageSpec = field(kw_only=True)

    @property
    def cleared(self) -> tuple[DramTensor, ...]:
        """Its source: bytes that fill pixels up are noted as well."""
        return self.reads

    def build(
        self,
        places: Mapping[Key, Placement],
        configuration: Configuration,
        *,
        halved: bool = False,
    ) -> Built:
        """The program; ``halved``: with half of the accumulators."""
        source, result = places[key_of(self.reads[0])], places[key_of(self.writes[0])]
        return self.spec.write(source, result, configuration)


@dataclass(frozen=True)
class BlockWork(Work):
    """A program with places of its own, one behind the other from byte 0 on.

    Parameters
    ----------
    block_bytes : int
    loads, stores : sequence of (Placement, DramTensor)
        Before and behind it.
    make : callable
        Its program.
    """

    block_bytes: int = 0
    loads: Sequence[tuple[Placement, DramTensor]] = ()
    stores: Sequence[tuple[Placement, DramTensor]] = ()
    make: Callable[[], Built] = field(kw_only=True)

    @property
    def tensors(self) -> tuple[str, tuple[DramTensor, ...], tuple[DramTensor, ...], bool]:
        """Its name and all tensors."""
        loads, stores = (tuple(each for _, each in some) for some in (self.loads, self.stores))
        return self.name, loads, stores, self.noted

    def build(
        self,
        places: Mapping[Key, Placement],
        configuration: Configuration,
        *,
        halved: bool = False,
    ) -> Built:
        """The program; ``halved``: with half of the accumulators."""
        return self.make()


def named(convolution: Convolution, source: DramTensor, result: DramTensor) -> Convolution:
    """A convolution whose tensors have the names of theirs."""
    return replace(convolution, source=str(key_of(source)), result=str(key_of(result)))


def view_of(tensor: DramTensor) -> View:
    """Its sizes."""
    return View(tensor.height, tensor.width, tensor.channels)
