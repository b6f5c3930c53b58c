"""A client that costs little: one write per request, one connection, no library of HTTP."""

import json
import socket
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np

SECONDS = 60.0


class Connection:
    """A kept-alive connection to a server of this machine.

    Parameters
    ----------
    port : int
    """

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    def exchange(self, message: bytes) -> tuple[int, bytes]:
        """Sends a request; returns status and body of the response.

        Raises
        ------
        OSError
            If the server closes the connection.
        """
        self._socket.sendall(message)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._receive()
        head, _, body = data.partition(b"\r\n\r\n")
        lengths = [
            int(line.split(b":")[1])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        ]
        while len(body) < lengths[0]:
            body += self._receive()
        return int(head.split()[1]), body

    def _receive(self) -> bytes:
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionResetError("the server has closed the connection")
        return data


def message(
    content: bytes,
    place: str,
    headers: Sequence[str] = (),
    *,
    method: str = "POST",
    length: bool = True,
) -> bytes:
    """Returns the bytes of a request.

    Parameters
    ----------
    content : bytes
    place : str
    headers : sequence of str
        Each ``Name: value``.
    method : str
    length : bool
        With the header Content-Length.
    """
    lines = [f"{method} {place} HTTP/1.1", "Host: localhost", *headers]
    if length:
        lines.append(f"Content-Length: {len(content)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content


def binary_inference(name: str, images: np.ndarray) -> tuple[bytes, str]:
    """Returns the body of an inference with bytes in and out, and its header.

    Parameters
    ----------
    name : str
        Of the input.
    images : array of int8, (images, ...)
    """
    tensor = {
        "name": name,
        "datatype": "INT8",
        "shape": list(images.shape),
        "parameters": {"binary_data_size": images.nbytes},
    }
    request = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
    text = json.dumps(request).encode()
    return text + images.tobytes(), f"Inference-Header-Content-Length: {len(text)}"
