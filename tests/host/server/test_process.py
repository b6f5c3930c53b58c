"""A real server process: its ports, one write after the other, malformed requests, its end."""

import asyncio
import contextlib
import json
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from server_process import INFER, SECONDS, Served
from slipstick.benchmarks.server.malformed import (
    MalformedRequests,
    MalformedTally,
    send_malformed,
)
from slipstick.server import http_protocol
from slipstick.server.application import application
from slipstick.server.limits import Limits
from slipstick.server.network_server import NetworkServer

REQUESTS = 400
"""Malformed ones; ``python -m slipstick.benchmarks.server`` sends 10,000."""
MAX_BODY = 1 << 16
MOST_GROWTH = 64 << 20
"""Bytes of memory that malformed requests may leave behind."""


@pytest.fixture
def served(digits_path: Path) -> Iterator[Served]:
    arguments = [f"digits={digits_path}", "--device", "model:1x16x16", "--max-body", str(MAX_BODY)]
    with closing(Served(*arguments)) as made:
        yield made


@pytest.fixture
def body(bodies, images) -> bytes:
    return json.dumps(bodies.json(images[:1])).encode()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_ends(served: Served, body: bytes, number: signal.Signals, expected) -> None:
    assert served.told["models"] == [{"name": "digits", "version": "1"}]
    assert served.told["token"] is False and served.told["grpc"].startswith("127.0.0.1:")
    with closing(served.connect()) as connection:
        status, content = served.infer(connection, body)
        assert status == 200
        assert json.loads(content)["outputs"][0]["data"] == expected[0].tolist()
    assert served.end(number) == (0, "")


def test_requests_do_not_wait_for_acknowledgements(served: Served, bodies, images) -> None:
    content, headers = bodies.binary(images[:1], parameters={"binary_data_output": True})
    with closing(served.connect()) as connection:
        connection.connect()
        # the client's own two writes must not wait either
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seconds = []
        for _ in range(40):
            begun = time.perf_counter()
            connection.request("POST", INFER, content, headers)
            assert connection.getresponse().read()
            seconds.append(time.perf_counter() - begun)
    # delayed acknowledgements cost 40 ms
    assert statistics.median(seconds) < 0.03


def test_running_requests_end_before_the_server(served: Served, body: bytes, expected) -> None:
    with closing(served.connect()) as slow, closing(served.connect()) as other:
        slow.putrequest("POST", INFER)
        slow.putheader("Content-Length", str(len(body)))
        slow.endheaders(body[:20])
        other.request("GET", "/v2/health/ready")
        ready = other.getresponse()
        assert ready.status == 200 and ready.read()
        served.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + SECONDS
        while True:
            other.request("GET", "/v2/health/ready")
            response = other.getresponse()
            response.read()
            if response.status == 503:
                break
            assert time.monotonic() < deadline
            time.sleep(0.02)
        status, content = served.infer(other, body)
        assert status == 503 and b"takes no more" in content
        slow.send(body[20:])
        response = slow.getresponse()
        assert response.status == 200
        assert json.loads(response.read())["outputs"][0]["data"] == expected[0].tolist()
    served.process.communicate(timeout=SECONDS)
    assert served.process.returncode == 0


def test_a_port_that_is_taken(served: Served, digits_path: Path) -> None:
    grpc_port = served.told["grpc"].rpartition(":")[2]
    for option, number in (("--port", str(served.port)), ("--grpc-port", grpc_port)):
        ports = {"--port": "0", "--grpc-port": "0", option: number}
        arguments = [word for pair in ports.items() for word in pair]
        ended = subprocess.run(
            [sys.executable, "-m", "slipstick", "serve", str(digits_path), *arguments]
            + ["--device", "model:1x16x16"],
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert ended.returncode == 2
        (line,) = (text for text in ended.stderr.splitlines() if text.startswith("slipstick: "))
        assert f"port {number} of 127.0.0.1" in line and "cannot be opened" in line
        assert "Traceback" not in ended.stderr


def test_malformed_requests(served: Served, bodies, images, body: bytes) -> None:
    made = MalformedRequests(INFER, bodies.input, images[:1], MAX_BODY)
    tally = MalformedTally()
    with closing(served.connect()) as connection:
        assert served.infer(connection, body)[0] == 200
    before = served.memory
    kinds = set()
    for _ in range(REQUESTS):
        request = made.next()
        kinds.add(request.kind)
        tally.note(request, send_malformed(served.port, request))
    assert tally.wrong == [] and tally.total == REQUESTS and len(kinds) == 12
    assert {400, 404, 405, 413, 415} <= set(tally.statuses)
    assert served.memory - before < MOST_GROWTH
    with closing(served.connect()) as connection:
        assert served.infer(connection, body)[0] == 200
    status, errors = served.end()
    assert status == 0 and "Traceback" not in errors


def test_heads_have_a_deadline(repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "HEAD_SECONDS", 0.3)
    server = NetworkServer(repository, Limits())
    head = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"

    async def slow(port: int, first: bytes) -> bytes:
        """All that comes back before the server closes; a byte of a head every 50 ms."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(first)
        answer = b""
        with contextlib.suppress(ConnectionError):
            if first:
                answer = await reader.readuntil(b"}")
            for byte in head[:30]:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.05)
            pytest.fail("the server waits for a head without end")
        writer.close()
        return answer

    async def quiet(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = await reader.read()
        writer.close()
        return answer

    async def run() -> tuple[bytes, bytes, bytes]:
        config = uvicorn.Config(
            application(server), port=0, log_config=None, http=http_protocol.DeadlineProtocol
        )
        made = uvicorn.Server(config)
        running = asyncio.create_task(made._serve())
        while not made.started:
            await asyncio.sleep(0.01)
        port = made.servers[0].sockets[0].getsockname()[1]
        try:
            clients = quiet(port), slow(port, b""), slow(port, head)
            return await asyncio.wait_for(asyncio.gather(*clients), SECONDS)
        finally:
            made.should_exit = True
            await running

    nothing, partial, answered = asyncio.run(run())
    assert nothing == partial == b""
    assert answered.startswith(b"HTTP/1.1 200") and answered.count(b"HTTP/1.1") == 1


def test_many_connections_at_once(served: Served, bodies, images, expected) -> None:
    content, headers = bodies.binary(images, parameters={"binary_data_output": True})
    connections = [served.connect() for _ in range(32)]
    for _ in range(2):
        for connection in connections:
            connection.request("POST", INFER, content, headers)
        for connection in connections:
            response = connection.getresponse()
            data = response.read()
            split = int(response.headers["Inference-Header-Content-Length"])
            codes = np.frombuffer(data[split:], np.int8)
            assert codes.tolist() == expected.reshape(-1).tolist()
    for connection in connections:
        connection.close()
    assert served.end() == (0, "")
