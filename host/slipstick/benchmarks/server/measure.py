"""Starts a server, and measures it from outside."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from ...errors import DeviceError
from ...program import Program
from ...session import InferenceSession
from .connection import Connection, binary_inference, message
from .malformed import MalformedRequests, MalformedTally, send_malformed

NAME = "network"
PLACE = f"/v2/models/{NAME}/infer"
MAX_BODY = 1 << 20
_WARM_UP = 50
_BLOCK = 50
"""Requests, or direct calls, before it is the turn of the other ones."""
_END_SECONDS = 60.0


@dataclass(frozen=True)
class RunningServer:
    """A server process of this machine.

    Parameters
    ----------
    process : Popen
    port : int
        Of REST.
    """

    process: "subprocess.Popen[str]"
    port: int

    @property
    def memory(self) -> int:
        """Bytes that the process has in memory; 0 where the system does not tell."""
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        except OSError:
            return 0
        lines = [line for line in text.splitlines() if line.startswith("VmRSS")]
        return int(lines[0].split()[1]) << 10 if lines else 0


@contextmanager
def running_server(network: Path, device: str) -> Iterator[RunningServer]:
    """Runs ``slipstick serve`` until the end of the context.

    Raises
    ------
    DeviceError
        If it does not begin, or does not end as it must.
    """
    command = [sys.executable, "-m", "slipstick", "serve", f"{NAME}={network}", "--json"]
    command += ["--device", device, "--port", "0", "--grpc-port", "0"]
    command += ["--max-body", str(MAX_BODY)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise DeviceError(f"the server does not begin: {' '.join(command)}")
        port = urlsplit(json.loads(line)["http"]).port
        assert port is not None
        yield RunningServer(process, port)
        process.terminate()
        if process.wait(_END_SECONDS):
            raise DeviceError(f"the server ended with status {process.returncode}, not 0")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def images_of(program: Program, count: int, seed: int = 0) -> tuple[str, np.ndarray]:
    """Returns a network's input, and seeded images for it."""
    (name,) = program.inputs
    shape = program.tensors[name].shape[1:]
    rng = np.random.default_rng(seed)
    return name, rng.integers(-128, 128, (count, *shape)).astype(np.int8)


def inference_message(program: Program, count: int) -> bytes:
    """Returns a request with so many images."""
    content, header = binary_inference(*images_of(program, count))
    return message(content, PLACE, (header,))


def latency(
    server: RunningServer, session: InferenceSession, requests: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Measures requests of one image, one after the other, over one connection.

    Blocks of requests take turns with blocks of direct calls, so that both meet the same machine.

    Parameters
    ----------
    server : RunningServer
    session : InferenceSession
        On a device like the server's.
    requests : int

    Returns
    -------
    dict
        Of requests, milliseconds: ``p50_ms``, ``p90_ms``, ``p99_ms``, ``least_ms``.
    dict
        The same of ``session.run``.
    """
    request = inference_message(session.program, 1)
    name, image = images_of(session.program, 1)
    with Connection(server.port) as connection:

        def served() -> None:
            _check(*connection.exchange(request))

        def direct() -> None:
            session.run(None, {name: image})

        actions = (served, direct)
        seconds: tuple[list[float], ...] = ([], [])
        for action in actions:
            _timed(action, _WARM_UP)
        for first in range(0, requests, _BLOCK):
            for action, taken in zip(actions, seconds, strict=True):
                taken += _timed(action, min(_BLOCK, requests - first))
    return _percentiles_ms(seconds[0]), _percentiles_ms(seconds[1])


def _timed(action: Callable[[], None], times: int) -> list[float]:
    """Seconds of each call."""
    seconds = []
    for _ in range(times):
        begun = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - begun)
    return seconds


def _percentiles_ms(seconds: list[float]) -> dict[str, float]:
    values = np.percentile(seconds, (0, 50, 90, 99)) * 1e3
    names = ("least_ms", "p50_ms", "p90_ms", "p99_ms")
    return dict(zip(names, map(float, values), strict=True))


def _check(status: int, body: bytes) -> None:
    if status != 200:
        raise DeviceError(f"the server answered with {status}: {body[:300]!r}")


def throughput(
    server: RunningServer, program: Program, connections: int, images: int, seconds: float
) -> float:
    """Measures images per second of many connections, after a second of warm-up.

    Parameters
    ----------
    server : RunningServer
    program : Program
    connections : int
        Each sends its next request when the last one is answered.
    images : int
        Per request.
    seconds : float
    """
    request = inference_message(program, images)
    # an emulated board computes an image once, and has its results from then on
    with Connection(server.port) as connection:
        _check(*connection.exchange(request))
    counts, errors = [0] * connections, list[Exception]()
    end = threading.Event()

    def run(number: int) -> None:
        try:
            with Connection(server.port) as connection:
                while not end.is_set():
                    _check(*connection.exchange(request))
                    counts[number] += images
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(connections)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1.0)
        begun, before = time.perf_counter(), sum(counts)
        time.sleep(seconds)
        rate = (sum(counts) - before) / (time.perf_counter() - begun)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return rate


def malformed(server: RunningServer, program: Program, count: int) -> dict[str, Any]:
    """Sends malformed requests; a good one must be answered before and after."""
    name, image = images_of(program, 1)
    made = MalformedRequests(PLACE, name, image, MAX_BODY)
    tally = MalformedTally()
    good = inference_message(program, 1)
    with Connection(server.port) as connection:
        _check(*connection.exchange(good))
    # what the first ones need is needed once
    warm_up = min(count, 200)
    for _ in range(warm_up):
        request = made.next()
        tally.note(request, send_malformed(server.port, request))
    before = server.memory
    for _ in range(count - warm_up):
        request = made.next()
        tally.note(request, send_malformed(server.port, request))
    with Connection(server.port) as connection:
        _check(*connection.exchange(good))
    return {
        "requests": tally.total,
        "statuses": {str(status): tally.statuses[status] for status in sorted(tally.statuses)},
        "unanswered": tally.unanswered,
        "wrong": tally.wrong,
        "memory_bytes": server.memory,
        "memory_growth_bytes": server.memory - before,
    }


def soak(server: RunningServer, program: Program, minutes: float) -> dict[str, Any]:
    """Keeps a server at work, with a malformed request in each 20; looks at its memory.

    Returns
    -------
    dict
        ``growth_bytes``: the mean memory of the last fifth less that of the second fifth.
    """
    name, image = images_of(program, 1)
    made = MalformedRequests(PLACE, name, image, MAX_BODY)
    tally = MalformedTally()
    good = inference_message(program, 1)
    memory, requests = [], 0
    begun = time.monotonic()
    looked = begun
    with Connection(server.port) as connection:
        while (now := time.monotonic()) - begun < 60 * minutes:
            for _ in range(19):
                _check(*connection.exchange(good))
            requests += 19
            request = made.next()
            tally.note(request, send_malformed(server.port, request))
            if now - looked >= 1.0:
                looked = now
                memory.append(server.memory)
    fifth = max(len(memory) // 5, 1)
    growth = np.mean(memory[-fifth:]) - np.mean(memory[fifth : 2 * fifth] or memory)
    return {
        "minutes": minutes,
        "requests": requests,
        "malformed": tally.total,
        "wrong": tally.wrong,
        "memory_bytes": memory[-1] if memory else server.memory,
        "growth_bytes": float(growth),
    }
