"""Float ONNX networks to int8 ones, through onnxruntime's static quantiser, or to logarithms."""

import contextlib
import io
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from slipstick_rtl.numbers.lns.array_arithmetic import ArrayArithmetic

from ..errors import DeviceError, InputError, ModelError, SlipstickError, UnsupportedError
from ..frontends import is_onnx
from ..frontends.files import MAXIMUM_ELEMENTS, read_file
from ..frontends.tflite.reader import IDENTIFIER
from ..program.steps import TensorDescription
from ..runtime.feeds import prepare_input

FORMATS = ("qdq", "qoperator")
METHODS = ("minmax", "entropy", "percentile")
LOWEST_OPSET = 13
"""The first one in which a DequantizeLinear has a scale a channel."""
UPGRADED_OPSET = 17
FINE_FRACTION_BITS = 4
"""With fewer, the steps of logarithmic codes are coarse for pictures: 9 % and more."""
CHUNK = 32
"""Samples whose activations are kept at a time, at most."""
_CODES = (
    *("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger"),
    *("MatMulInteger", "DynamicQuantizeMatMul", "QGemm", "QAttention"),
)


class FloatNetwork:
    """A float ONNX network that is to be quantised.

    Parameters
    ----------
    path : path
        Older versions of ONNX's operators than are quantised are brought up to ``UPGRADED_OPSET``.

    Members
    -------
    input : str
    shape : tuple of int
        Of the one input, with a batch of 1.

    Raises
    ------
    ModelError
        If the file is no ONNX network, or contradicts itself.
    UnsupportedError
        If it is quantised already, or has more inputs than one, or one that is not float32 of a
        fixed shape.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        place = Path(path)
        data = read_file(place)
        if not is_onnx(data):
            kind = "a TFLite one" if data[4:8] == IDENTIFIER else f"one that starts {data[:8]!r}"
            raise ModelError(f"{place} must be a float ONNX file to be quantised, not {kind}")
        self._name = place.stem
        self._model = _upgraded(data, place)
        self.input, self.shape, self._batch = self._one_input(place)

    def _one_input(self, place: Path) -> tuple[str, tuple[int, ...], int]:
        from ..frontends.onnx.reader import read_model

        raw = read_model(self._model.SerializeToString(), self._name, place.parent)
        for node in raw.nodes:
            if node.operator in _CODES or node.operator.startswith("QLinear"):
                raise UnsupportedError(
                    f"{place} must be a float network, and is quantised already: it holds"
                    f" {node.operator} (node {node.index})"
                )
        if len(raw.inputs) != 1:
            raise UnsupportedError(
                f"{place} must have one input to be quantised, not {len(raw.inputs)}"
            )
        (tensor,) = raw.inputs
        shape = tensor.shape or ()
        fixed = all(size is not None and size > 0 for size in shape[1:])
        if tensor.dtype != "float32" or not shape or not fixed:
            raise UnsupportedError(
                f"{place}: input {tensor.name!r} must be float32 of a shape that is fixed but for"
                f" the batch, not {tensor.dtype} {tensor.shape}"
            )
        single = (1, *(size or 1 for size in shape[1:]))
        batch = max(shape[0] or 1, 1)
        if np.prod(single, dtype=np.float64) * batch > MAXIMUM_ELEMENTS:
            raise ModelError(
                f"{place}: input {tensor.name!r} must have at most {MAXIMUM_ELEMENTS} elements,"
                f" not {shape}"
            )
        return tensor.name, single, batch

    def quantize(
        self,
        samples: np.ndarray,
        *,
        form: str = "qdq",
        method: str = "minmax",
        per_channel: bool = True,
    ) -> bytes:
        """The file of the quantised network: int8 activations, symmetric int8 weights.

        Parameters
        ----------
        samples : array, shape (samples, ...)
            Numbers as the network takes them, from which the ranges of activations are found.
        form : str
            "qdq", float operators between codes, or "qoperator", operators of codes.
        method : str
            How a range follows from the numbers that were seen: one of ``METHODS``.
        per_channel : bool
            Whether weights have a scale an output channel, or one for all.

        Raises
        ------
        InputError
            If the samples are none, of another shape or not finite; if an option is unknown.
        DeviceError
            If onnxruntime is missing.
        UnsupportedError
            If it cannot quantise the network.
        """
        for option, value, known in (("format", form, FORMATS), ("method", method, METHODS)):
            if value not in known:
                raise InputError(f"{option} must be one of {known}, not {value!r}")
        reader = _Reader(self.input, _batches(self._images(samples), self._batch))
        with self._attempt() as folder:
            _quantize(self._model, folder, reader, form, method, per_channel)
            return (folder / "quantised.onnx").read_bytes()

    def quantize_logarithmic(
        self, samples: np.ndarray, arithmetic: ArrayArithmetic, input_codes: int | None = None
    ) -> bytes:
        """The file of the network with logarithmic codes: see docs/reference/lns-networks.md.

        Parameters
        ----------
        samples : array, shape (samples, ...)
            As for ``quantize``: scales are chosen by the errors that they make in them.
        arithmetic : ArrayArithmetic
            Of the array that runs it.
        input_codes : int, optional
            1, or 2: the network's input becomes two codes a number, the second one of what the
            first one lacks, where only layers read it. By default 2 below ``FINE_FRACTION_BITS``.

        Raises
        ------
        InputError, DeviceError, UnsupportedError
            As for ``quantize``.
        """
        fine = arithmetic.lns.fraction_bits >= FINE_FRACTION_BITS
        codes = input_codes or (1 if fine else 2)
        batches = _batches(self._images(samples), self._batch)
        with self._attempt() as folder:
            from .lns_quantize import quantize_logarithmic

            feeds = [{self.input: batch} for batch in batches]
            prepared = _prepared(self._model, folder)
            return quantize_logarithmic(prepared, feeds, arithmetic, doubled=codes == 2)

    def prepared(self) -> Any:
        """The float network as quantisers take it: its constants folded, a ModelProto."""
        with self._attempt() as folder:
            return _prepared(self._model, folder)

    def _images(self, samples: np.ndarray) -> np.ndarray:
        described = TensorDescription(self.shape, "float32", None, None, None)
        images = prepare_input(self.input, described, samples)
        if not len(images):
            raise InputError("calibration needs at least one sample, none was given")
        return images

    @contextlib.contextmanager
    def _attempt(self) -> Iterator[Path]:
        """A folder to work in, and the user's errors for onnxruntime's."""
        with _quiet(), tempfile.TemporaryDirectory(prefix="slipstick") as folder:
            try:
                yield Path(folder)
            except ImportError as error:
                raise DeviceError(
                    "quantising needs the package onnxruntime: install slipstick[reference]"
                    f" ({error})"
                ) from error
            except SlipstickError:
                raise
            # the quantiser's errors have no common base but this
            except Exception as error:
                reason = (str(error) or type(error).__name__).splitlines()[0]
                raise UnsupportedError(
                    f"onnxruntime cannot quantise {self._name}: {reason}"
                ) from error


def _upgraded(data: bytes, place: Path) -> Any:
    """The network with its weights, of a version whose operators can be quantised."""
    import onnx
    from onnx import external_data_helper, version_converter

    from ..frontends.onnx.reader import parse

    model = parse(data, place.stem)
    try:
        external_data_helper.load_external_data_for_model(model, str(place.parent))
        opsets = [item.version for item in model.opset_import if item.domain in ("", "ai.onnx")]
        if len(opsets) == 1 and opsets[0] < LOWEST_OPSET:
            onnx.checker.check_model(model)
            return version_converter.convert_version(_without_default_inputs(model), UPGRADED_OPSET)
    # the package raises errors of many kinds, all of them for files that contradict themselves
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ModelError(f"{place} cannot be brought to opset {UPGRADED_OPSET}: {reason}") from None
    return model


def _without_default_inputs(model: Any) -> Any:
    """Without inputs that only give initializers a type, as old files have them."""
    constants = {item.name for item in model.graph.initializer}
    for item in [item for item in model.graph.input if item.name in constants]:
        model.graph.input.remove(item)
    # older ones take an initializer without an input for an error
    model.ir_version = max(model.ir_version, 4)
    return model


def _batches(images: np.ndarray, batch: int) -> list[np.ndarray]:
    """The samples as the network takes them; the last batch is filled up with earlier samples."""
    count = -(-len(images) // batch) * batch
    whole = np.resize(images, (count, *images.shape[1:]))
    return list(whole.reshape(-1, batch, *images.shape[1:]))


class _Reader:
    """Gives onnxruntime's quantiser its samples, a range of them at a time.

    It is its ``CalibrationDataReader`` in all but name: that class is imported with onnxruntime.
    """

    def __init__(self, name: str, batches: list[np.ndarray]) -> None:
        self._name = name
        self._batches = batches
        self._left = iter(batches)

    def __len__(self) -> int:
        return len(self._batches)

    def set_range(self, start_index: int, end_index: int) -> None:
        """Chooses the batches that ``get_next`` gives from now on."""
        self._left = iter(self._batches[start_index:end_index])

    def get_next(self) -> dict[str, np.ndarray] | None:
        """The next batch by the input's name; None: there are no more."""
        batch = next(self._left, None)
        return None if batch is None else {self._name: batch}


def _quantize(
    model: Any, folder: Path, reader: Any, form: str, method: str, per_channel: bool
) -> None:
    """Writes the quantised network into the folder."""
    import onnx
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    prepared = folder / "prepared.onnx"
    onnx.save(_prepared(model, folder), str(prepared))
    chunk = next(size for size in range(CHUNK, 0, -1) if len(reader) % size == 0)
    quantize_static(
        str(prepared),
        str(folder / "quantised.onnx"),
        reader,
        quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator,
        per_channel=per_channel,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        calibrate_method={
            "minmax": CalibrationMethod.MinMax,
            "entropy": CalibrationMethod.Entropy,
            "percentile": CalibrationMethod.Percentile,
        }[method],
        # of any method, in spite of its name: activations of all samples need not be kept
        extra_options={"CalibStridedMinMax": chunk, "WeightSymmetric": True},
    )


def _prepared(model: Any, folder: Path) -> Any:
    """The network with all shapes, its constants folded, batch normalisation in the weights."""
    import onnx
    import onnxruntime
    from onnxruntime.quantization.shape_inference import quant_pre_process

    # its errors are raised as well
    onnxruntime.set_default_logger_severity(4)
    onnx.save(model, str(folder / "float.onnx"))
    # shapes of inputs are fixed: constants folded, ONNX's own inference finds all, without sympy
    quant_pre_process(
        str(folder / "float.onnx"), str(folder / "prepared.onnx"), skip_symbolic_shape=True
    )
    prepared = onnx.load(str(folder / "prepared.onnx"))
    _flatten_biases(prepared)
    return prepared


def _flatten_biases(model: Any) -> None:
    """Biases of Gemm of the shape (1, outputs), which the quantiser takes for one channel's."""
    readers: dict[str, set[str]] = {}
    for node in model.graph.node:
        for index, name in enumerate(node.input):
            readers.setdefault(name, set()).add(f"{node.op_type} {index}")
    for item in model.graph.initializer:
        if readers.get(item.name) == {"Gemm 2"} and len(item.dims) == 2 and item.dims[0] == 1:
            del item.dims[0]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The quantiser prints, logs and warns; errors are told by what it raises."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
