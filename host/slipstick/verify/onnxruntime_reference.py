"""The reference runtime of ONNX networks, onnxruntime on the CPU, behind the names of the graph."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DeviceError
from ..frontends.files import read_file
from ..frontends.onnx import read_network
from ..frontends.onnx.builder import Source
from ..frontends.onnx.reader import read_model
from .onnx_agreement import Agreement, agreements
from .onnx_saturation import runtime_saturates, saturating_nodes
from .tflm_reference import single_images

NEWEST_IR = 10
"""Newest IR version that every onnxruntime of use reads.

Newer files differ in contents that are refused before.
"""


class OnnxReference:
    """An .onnx network on onnxruntime, without graph optimisations, with every layer's tensor.

    Parameters
    ----------
    model : path or bytes
    fused : bool
        With all of its optimisations instead, those that make operators of codes of QDQ's among
        them. Layers are then joined, and only the outputs are to be had.

    Raises
    ------
    ModelError, UnsupportedError
        If the front-end refuses the network.
    DeviceError
        If the package is missing, or the runtime refuses the network.

    Members
    -------
    agreements : mapping of Agreement by the graph's name
        How near the rule is to the runtime in each tensor, on the runtime's own inputs of it.
    saturating : tuple of str
        Nodes that the runtime may compute wrongly on this machine, see ``onnx_saturation``.
    """

    def __init__(self, model: str | Path | bytes, *, fused: bool = False) -> None:
        whole = isinstance(model, bytes)
        data = model if whole else read_file(model)
        self._name = "model" if whole else Path(model).stem
        folder = None if whole else Path(model).parent
        graph, self._sources = read_network(data, self._name, folder)
        self.inputs, self.outputs = graph.inputs, graph.outputs
        raw = read_model(data, self._name, folder)
        self.agreements: Mapping[str, Agreement] = agreements(raw, graph, self._sources)
        self.saturating = tuple(
            node.name or node.outputs[0] for node in saturating_nodes(raw) if runtime_saturates()
        )
        self._tensors = {name: graph.tensors[name] for name in graph.inputs}
        shown = {source.name for source in self._sources.values()} - set(graph.outputs)
        listed = [] if fused else sorted(shown - set(graph.inputs))
        self._session = _session(data, folder, listed, self._name, fused=fused)

    def run(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """As ``TflmReference.run``."""
        images = self._run(inputs, self.outputs)
        # the graph has outputs as the file has them, but for a batch that may lack there
        lead = [self._sources[name].lead for name in self.outputs]
        return [
            np.concatenate([value[np.newaxis] if extra else value for value in images[name]])
            for name, extra in zip(self.outputs, lead, strict=True)
        ]

    def run_layers(self, *inputs: np.ndarray) -> dict[str, np.ndarray]:
        """As ``run``, but returns every tensor of the graph that the runtime has, by the graph's
        name, in the graph's layout and type."""
        sources = {
            name: source for name, source in self._sources.items() if name not in self.inputs
        }
        images = self._run(inputs, sorted({source.name for source in sources.values()}))
        return {
            name: np.concatenate([_as_graph(value, source) for value in images[source.name]])
            for name, source in sources.items()
        }

    def _run(
        self, inputs: Sequence[np.ndarray], wanted: Sequence[str]
    ) -> dict[str, list[np.ndarray]]:
        """Some of ONNX's tensors, as the runtime has them for each image."""
        batches = single_images(self._name, self._tensors.items(), inputs)
        parts: list[list[np.ndarray]] = []
        for images in zip(*batches, strict=True):
            feeds = {
                item.name: np.asarray(image[0]) if image.ndim > len(item.shape) else image
                for item, image in zip(self._session.get_inputs(), images, strict=True)
            }
            parts.append(self._session.run(list(wanted), feeds))
        return {name: [part[index] for part in parts] for index, name in enumerate(wanted)}


def _as_graph(value: np.ndarray, source: Source) -> np.ndarray:
    """One of ONNX's tensors as the graph has it."""
    if source.dtype == "uint8" and source.kept != "uint8":
        value = (value.astype(np.int16) - 128).astype(np.int8)
    if source.lead:
        value = value[np.newaxis]
    if source.layout == "picture":
        pictures = value if value.ndim == 4 else value[:, :, None]
        return pictures.transpose(0, 2, 3, 1)
    if source.layout == "flattened":
        _, *rest = source.picture
        return value.reshape(len(value), rest[0], -1).transpose(0, 2, 1).reshape(value.shape)
    return value


def _session(
    data: bytes, folder: Path | None, shown: Sequence[str], name: str, *, fused: bool
) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise DeviceError(
            "the reference runtime needs the package onnxruntime: install slipstick[reference]"
        ) from error
    options = onnxruntime.SessionOptions()
    if fused:
        options.add_session_config_entry("session.qdqisint8allowed", "1")
    else:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            _showing(data, folder, shown), options, providers=["CPUExecutionProvider"]
        )
    # the runtime's errors have no common base but this
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise DeviceError(f"the reference runtime refuses {name}: {reason}") from None


def _showing(data: bytes, folder: Path | None, shown: Sequence[str]) -> bytes:
    """The network with more outputs."""
    import onnx
    from onnx import external_data_helper

    model = onnx.ModelProto.FromString(data)
    if folder is not None:
        external_data_helper.load_external_data_for_model(model, str(folder))
    model.ir_version = min(model.ir_version, NEWEST_IR)
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in shown)
    return model.SerializeToString()
