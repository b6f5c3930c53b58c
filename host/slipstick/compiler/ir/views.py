"""Shows tensors of any rank to the device as height x width x channels."""

import math
from collections.abc import Collection, Mapping

import numpy as np
from slipstick_rtl.config import Configuration

from ...graph import Graph, Tensor
from .operations import View
from .requantization import SHIFTS


class HostReason(Exception):
    """A node cannot run on the device, for the reason told; the host runs it."""


def natural_view(tensor: Tensor) -> View:
    """Height, width and channels of a tensor; leading axes of one are dropped.

    Raises
    ------
    HostReason
        If it has more than three axes left: a batch.
    """
    shape = tensor.shape
    while len(shape) > 3 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) > 3:
        raise HostReason(f"{tensor.name} of shape {tensor.shape} has a batch")
    shape = (1, 1, 1, *shape)[-3:]
    return View(*shape)


class Views:
    """The views of activations that are on the device, and who put them there.

    A tensor that a device operation makes has the view that this operation writes, and so have its
    aliases. A tensor that the host uploads has the view of its first reader.

    Parameters
    ----------
    graph : Graph
    configuration : Configuration
    uncopied : collection of str
        Nodes that the device must not run as copies of activations: there is no room for both.
    cut : bool
        Whether activations are on the device in parts only: it cannot rename them.
    """

    def __init__(
        self,
        graph: Graph,
        configuration: Configuration,
        *,
        uncopied: Collection[str] = (),
        cut: bool = False,
    ) -> None:
        self.uncopied, self.cut = uncopied, cut
        self._graph = graph
        self.configuration = configuration
        self._views: dict[str, View] = {}
        self.written_by_device: set[str] = set()

    @property
    def known(self) -> Mapping[str, View]:
        return self._views

    def activation(self, name: str) -> Tensor:
        """A tensor that is an int8 activation with one scale, or HostReason."""
        tensor = self._graph.tensors[name]
        if tensor.data is not None:
            raise HostReason(f"{name} is a constant")
        if tensor.dtype != "int8":
            raise HostReason(f"{name} is {tensor.dtype}, not int8")
        if tensor.quantization is None or len(tensor.quantization.scale) != 1:
            raise HostReason(f"{name} has no single scale")
        if not math.prod(tensor.shape):
            raise HostReason(f"{name} is empty")
        return tensor

    def read(self, name: str, wanted: View) -> None:
        """Declares that the device reads a tensor as ``wanted``, or HostReason."""
        if self._views.setdefault(name, wanted) != wanted:
            raise HostReason(f"{name} lies as {self._views[name]} in memory, not as {wanted}")

    def write(self, name: str, view: View) -> None:
        """Declares that the device writes a tensor."""
        self._views[name] = view
        self.written_by_device.add(name)

    def current(self, name: str) -> View:
        """The view that a tensor has, or would naturally have."""
        return self._views.get(name) or natural_view(self._graph.tensors[name])


def scale_and_zero(tensor: Tensor) -> tuple[float, int]:
    """The single scale and zero point of an activation that ``Views.activation`` passed."""
    quantization = tensor.quantization
    assert quantization is not None
    return float(quantization.scale[0]), int(quantization.zero_point[0])


def require_shift(shift: int) -> None:
    """HostReason unless the requantiser has a factor's power of two, 2^shift."""
    if shift not in SHIFTS:
        raise HostReason(f"its factor is 2^{shift}, beyond the requantiser")


def constant(graph: Graph, name: str, dtype: str) -> np.ndarray:
    """The data of a constant, or HostReason."""
    tensor = graph.tensors[name]
    if tensor.data is None or tensor.dtype != dtype:
        raise HostReason(f"{name} is not a constant of {dtype}")
    return tensor.data
