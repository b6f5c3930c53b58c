"""Front-ends: files of other tools become graphs."""

from pathlib import Path

from ..errors import ModelError
from ..graph import Graph
from .files import read_file
from .tflite import load_tflite_bytes
from .tflite.reader import IDENTIFIER


def load(path: str | Path) -> Graph:
    """Reads a network, in whatever format its contents show it to be.

    Parameters
    ----------
    path : str or Path
        A quantised .tflite or .onnx file; the graph takes the file's name without its suffix.

    Raises
    ------
    ModelError
        If the file cannot be read, is of no known format, or is malformed.
    UnsupportedError
        If it holds something that Slipstick does not run.
    """
    data = read_file(path)
    if data[4:8] == IDENTIFIER:
        return load_tflite_bytes(data, Path(path).stem)
    if is_onnx(data):
        # the package takes a while to import
        from .onnx import load_onnx_bytes

        return load_onnx_bytes(data, Path(path).stem, Path(path).parent)
    raise ModelError(
        f"{path} must be a TFLite file, with 'TFL3' at byte 4, or an ONNX file, not one that starts"
        f" with {data[:8]!r}"
    )


def is_onnx(data: bytes) -> bool:
    """A protobuf whose first field is ONNX's ir_version, and whose second one is plausible."""
    return len(data) > 2 and data[0] == 0x08 and 1 <= data[1] < 0x40 and data[2] in _SECOND_FIELDS


_SECOND_FIELDS = (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42)
"""Protobuf tags of ONNX's fields 2 to 8: producer_name ... opset_import."""
