"""Writes trained networks as ordinary quantised .tflite and .onnx files."""

from pathlib import Path

from ...errors import InputError
from .trained import TrainedNetwork

__all__ = ["SUFFIXES", "TrainedNetwork", "network_file"]

SUFFIXES = (".tflite", ".onnx")


def network_file(trained: TrainedNetwork, path: Path) -> bytes:
    """The file of a trained network.

    Parameters
    ----------
    trained : TrainedNetwork
    path : path
        Whose suffix says of which kind.

    Raises
    ------
    InputError
        If it is of neither kind.
    UnsupportedError
        If that kind of file has no such layer.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(
            f"a trained network must be written to {' or '.join(SUFFIXES)}, not {path}"
        )
    # what both need takes time to import
    if suffix == ".onnx":
        from .onnx_file import write_onnx

        return write_onnx(trained)
    from .tflite_file import write_tflite

    return write_tflite(trained)
