"""A real server process for tests, and what its metrics say."""

import http.client
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SECONDS = 30.0
INFER = "/v2/models/digits/infer"


class Served:
    """A server process.

    Parameters
    ----------
    arguments : str
        Of ``slipstick serve``.
    """

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "slipstick", "serve", *arguments, "--json"]
        ports = ["--port", "0", "--grpc-port", "0"]
        self.process = subprocess.Popen(
            [*command, *ports], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None and self.process.stderr is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.told: dict[str, Any] = json.loads(line)
        self.port = urlsplit(self.told["http"]).port or 0

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)

    def infer(self, connection: http.client.HTTPConnection, body: bytes) -> tuple[int, bytes]:
        connection.request("POST", INFER, body)
        response = connection.getresponse()
        return response.status, response.read()

    @property
    def memory(self) -> int:
        """Bytes that the process has in memory."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        (line,) = (line for line in text.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) << 10

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Sends a signal; the exit status, and what is on the standard error."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, errors

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


def sample(text: str, name: str, **labels: str) -> float:
    """Returns the value of one line of Prometheus's text."""
    for line in text.splitlines():
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if match and match[1] == name:
            found = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
            if labels.items() <= found.items():
                return float(match[3])
    raise AssertionError(f"{name} {labels} is not in {text}")
