"""Makes requests that break a rule, and looks how the server answers them."""

import json
import random
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .connection import SECONDS, binary_inference, message

_LENGTH = "Inference-Header-Content-Length"
_NUMBERS = ("-1", "1e5", "9" * 25, "0x10", "", "99999999", "7", "\t", "\xb3")
_SHAPES = ("[2,2]", "[9999999999]", "[-1]", "[[1]]", "{}", "[1.5]", "null", "[" + "1," * 99 + "1]")


@dataclass(frozen=True)
class Malformed:
    """A request that breaks a rule.

    Parameters
    ----------
    kind : str
        Which rule.
    data : bytes
    cut : bool
        The client ends its side in the middle of the request.
    """

    kind: str
    data: bytes
    cut: bool = False


class MalformedRequests:
    """Makes them, the same ones for the same seed.

    Parameters
    ----------
    place : str
        Of an inference.
    name : str
        Of the network's input.
    image : array of int8, (1, ...)
    max_body : int
        The server's bound.
    seed : int
    """

    def __init__(
        self, place: str, name: str, image: np.ndarray, max_body: int, seed: int = 0
    ) -> None:
        self._place, self._name, self._image = place, name, image
        self._max_body = max_body
        self._random = random.Random(seed)
        numbers = image.reshape(-1).tolist()
        tensor = {"name": name, "datatype": "INT8", "shape": list(image.shape), "data": numbers}
        self._tensor = tensor
        self._good = json.dumps({"inputs": [tensor]}).encode()
        self._binary, self._header = binary_inference(name, image)
        self._makers: tuple[Callable[[], Malformed], ...] = (
            self._json,
            self._field,
            self._numbers,
            self._nested,
            self._length,
            self._bytes,
            self._place_or_method,
            self._large,
            self._chunked,
            self._cut,
            self._header_lines,
            self._noise,
        )

    def next(self) -> Malformed:
        """The next one."""
        return self._random.choice(self._makers)()

    def _message(self, content: bytes, *headers: str) -> bytes:
        return message(content, self._place, headers)

    def _json(self) -> Malformed:
        good, rng = self._good, self._random
        at = rng.randrange(len(good))
        content = rng.choice(
            [
                good[:at],
                good[:at] + b"\x00\xff" + good[at + rng.randrange(1, 20) :],
                rng.randbytes(rng.randrange(1, 3000)),
                b"[]",
                b"{}",
                b'"text"',
                b"",
            ]
        )
        return Malformed("json", self._message(content))

    def _changed(self, **fields: object) -> bytes:
        return json.dumps({"inputs": [{**self._tensor, **fields}]}).encode()

    def _field(self) -> Malformed:
        rng = self._random
        shape = f'"shape": {rng.choice(_SHAPES)}'.encode()
        old = f'"shape": {json.dumps(list(self._image.shape))}'.encode()
        content = rng.choice(
            [
                self._good.replace(old, shape),
                self._changed(name=rng.choice(["", "x" * 5000, 7, None, "\ud800"])),
                self._changed(datatype=rng.choice(["INT9", "BYTES", "", 5, None, "INT16", "\0"])),
                self._changed(data=rng.choice([None, "x", {}, 5, [], [[]], [None], ["1"]])),
                self._changed(parameters=rng.choice([[], 1, {"binary_data_size": 5}])),
            ]
        )
        return Malformed("field", self._message(content))

    def _numbers(self) -> Malformed:
        number = self._random.choice(
            ["1e999", "NaN", "-Infinity", "9" * 300, "9" * 5000, "128", "1.5", '"1"', "1e308"]
        )
        start = self._good.index(b'"data": [') + len(b'"data": [')
        end = self._good.index(b",", start)
        content = self._good[:start] + number.encode() + self._good[end:]
        return Malformed("number", self._message(content))

    def _nested(self) -> Malformed:
        count = self._random.randrange(2000, self._max_body // 2)
        sign = self._random.choice([b"[", b'{"a":', b'{"inputs":['])
        return Malformed("nested", self._message((sign * count)[:count]))

    def _length(self) -> Malformed:
        wrong = f"{_LENGTH}: {self._random.choice(_NUMBERS)}"
        return Malformed("json length", self._message(self._binary, wrong))

    def _bytes(self) -> Malformed:
        rng = self._random
        size = str(self._image.nbytes).encode()
        content = rng.choice(
            [
                self._binary[: -rng.randrange(1, self._image.nbytes)],
                self._binary + rng.randbytes(rng.randrange(1, 100)),
                # of the same length: the header stays right
                self._binary.replace(size, b"9" * len(size), 1),
            ]
        )
        return Malformed("bytes", self._message(content, self._header))

    def _place_or_method(self) -> Malformed:
        rng = self._random
        place = f"/v2/models/{rng.randrange(1 << 60)}/infer"
        data = rng.choice(
            [
                message(self._good, place),
                message(self._good, "/" + "a/" * rng.randrange(1, 500)),
                message(self._good, "/v2/models/%00%ff/infer"),
                message(b"", self._place, method=rng.choice(["GET", "PUT", "DELETE", "BREW"])),
            ]
        )
        return Malformed("place", data)

    def _large(self) -> Malformed:
        if self._random.random() < 0.5:
            return Malformed("large", self._message(b" " * (self._max_body + 1)))
        # it is refused before it is sent
        length = f"Content-Length: {self._random.randrange(self._max_body + 1, 1 << 62)}"
        return Malformed("large", message(b"", self._place, (length,), length=False))

    def _chunked(self) -> Malformed:
        rng = self._random
        headers = ("Transfer-Encoding: chunked",)
        parts = [
            b"5\r\n[1,2]\r\nzz\r\n",
            b"ffffffffffffffffffffff\r\n",
            b"-5\r\nabcde\r\n0\r\n\r\n",
            b"5\r\n[1,2]\r\n0\r\n\r\n",
        ]
        if rng.random() < 0.5:
            content = rng.choice(parts)
            return Malformed("chunks", message(content, self._place, headers, length=False))
        content = b"400\r\n" + self._good[: rng.randrange(1, 0x400)]
        return Malformed("cut", message(content, self._place, headers, length=False), cut=True)

    def _cut(self) -> Malformed:
        whole = self._message(self._binary, self._header)
        return Malformed("cut", whole[: self._random.randrange(1, len(whole))], cut=True)

    def _header_lines(self) -> Malformed:
        rng = self._random
        header = rng.choice(
            [
                "Content-Length: x",
                "Content-Length: 5, 6",
                "Content-Length: -1",
                "Content-Encoding: gzip",
                "Transfer-Encoding: gzip, chunked",
                "Bad Header: x",
                "Host: elsewhere.example",
            ]
        )
        length = not header.startswith(("Content-Length", "Transfer"))
        content = rng.randbytes(20) if header.startswith("Host") else self._good
        data = message(content, self._place, (header,), length=length)
        return Malformed("header", data)

    def _noise(self) -> Malformed:
        rng = self._random
        data = rng.choice(
            [
                rng.randbytes(rng.randrange(1, 300)) + b"\r\n\r\n",
                b"GET / HTTP/9.9\r\n\r\n",
                b"POST " + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
                b"POST / HTTP/1.1\r\nX: " + b"a" * 600_000,
                b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + rng.randbytes(64) + b"\r\n\r\n",
            ]
        )
        return Malformed("noise", data, cut=True)


@dataclass
class MalformedTally:
    """Counts how malformed requests were answered.

    Members
    -------
    statuses : Counter of int
    unanswered : int
        Of requests that were cut: a client that ends its side need not be answered.
    wrong : list of str
        Requests that were not answered with 4xx.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All of them."""
        return self.statuses.total() + self.unanswered

    def note(self, request: Malformed, answer: bytes) -> None:
        """Counts an answer."""
        words = answer.split(None, 2)
        if not answer and request.cut:
            self.unanswered += 1
            return
        status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
        self.statuses[status] += 1
        if not 400 <= status < 500:
            self.wrong.append(f"{request.kind}: {request.data[:200]!r}: {answer[:200]!r}")


def send_malformed(port: int, request: Malformed) -> bytes:
    """Returns the begin of the server's answer; empty: it closed the connection."""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        answer = b""
        try:
            connection.sendall(request.data)
            if request.cut:
                connection.shutdown(socket.SHUT_WR)
            while b"\r\n\r\n" not in answer:
                part = connection.recv(1 << 16)
                if not part:
                    break
                answer += part
        except TimeoutError:
            raise
        except OSError:
            # it has answered, and closed the connection, before all was sent
            pass
        return answer
