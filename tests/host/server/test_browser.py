"""The page in a real Chromium: what it shows, on a wide screen, a phone, and in the dark."""

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from PIL import Image
from slipstick.benchmarks.cluster.board_process import BoardProcess
from slipstick.targets import find_target

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
PICTURES = os.environ.get("SLIPSTICK_PAGE_PICTURES")
"""A folder that gets the pictures, for docs/images."""
TOKEN = "a-token-of-the-tests"
SECONDS = 30.0

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="the page is tested in Chromium: apt-get install chromium"
)


class Browser:
    """A page in Chromium, driven over a pair of pipes (the DevTools protocol).

    Parameters
    ----------
    folder : Path
        For its profile.
    """

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def pipes() -> None:
            # Chromium reads file 3 and writes file 4
            os.dup2(os.dup(to_read), 3)
            os.dup2(os.dup(to_write), 4)

        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        self._process = subprocess.Popen(
            [
                CHROMIUM,
                *options,
                "--remote-debugging-pipe",
                "--no-first-run",
                "--disable-background-networking",
                f"--user-data-dir={folder}",
            ],
            preexec_fn=pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._number, self._session = b"", 0, ""
        self.complaints: list[str] = []
        """What the console has of errors, violations of the content policy among them."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Log.entryAdded":
            entry = parameters["entry"]
            if entry["level"] == "error":
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
        elif event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(parameters["exceptionDetails"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = os.read(self._read, 1 << 16)
            assert data, "Chromium has ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def value(self, script: str) -> Any:
        """What an expression is in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script: str) -> None:
        """Until an expression is true."""
        deadline = time.monotonic() + SECONDS
        while not self.value(script):
            assert time.monotonic() < deadline, f"{script}: {self.value('document.body.innerText')}"
            time.sleep(0.05)

    def open(self, address: str, width: int, height: int, *, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && document.getElementById('ask') !== null")

    def choose_file(self, selector: str, path: Path) -> None:
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def picture(self, path: Path) -> np.ndarray:
        """The whole page, also as a file."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))
        if PICTURES:
            shutil.copy(path, Path(PICTURES) / path.name)
        with Image.open(path) as image:
            return np.asarray(image.convert("RGB"))


@contextmanager
def process(*arguments: str) -> Iterator[str]:
    """A real server; its address."""
    command = [sys.executable, "-m", "slipstick", "serve", *arguments, "--json"]
    ports = ["--port", "0", "--grpc-port", "0"]
    started = subprocess.Popen([*command, *ports], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None
    try:
        line = started.stdout.readline()
        yield json.loads(line)["http"]
    finally:
        started.terminate()
        assert started.wait(SECONDS) == 0
        started.stdout.close()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    opened = Browser(tmp_path / "profile")
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture
def digit(tmp_path: Path) -> Path:
    """A picture of a one."""
    pixels = np.zeros((64, 64), np.uint8)
    pixels[6:58, 28:38] = 255
    path = tmp_path / "one.png"
    Image.fromarray(pixels).save(path)
    return path


def check_fits(browser: Browser, width: int) -> None:
    """Nothing is wider than the screen."""
    assert browser.value("document.documentElement.scrollWidth") <= width


def test_the_page(browser: Browser, digit: Path, tmp_path: Path, digits_path: Path) -> None:
    device = "pool:model:1x16x16,model:1x16x16"
    with process(f"digits={digits_path}", f"again@2={digits_path}", "--device", device) as address:
        browser.open(address, 1100, 900)
        browser.wait("document.querySelectorAll('#boards li').length === 2")
        assert browser.value("document.getElementById('state').textContent") == "✓ ready"
        browser.wait("document.querySelectorAll('#timeline rect.marked').length > 0")
        assert browser.value("document.querySelectorAll('#models tbody tr').length") == 2
        browser.choose_file("#file", digit)
        browser.wait("document.querySelectorAll('#result .bar').length >= 8")
        shown = browser.value("document.getElementById('result').innerText")
        assert "Classes of" in shown and "cycles went" in shown and "all others" in shown
        browser.wait("document.querySelector('#models tbody td:nth-child(7)').textContent === '1'")
        browser.wait("document.getElementById('boards').innerText.includes('1 images, 0 now')")
        check_fits(browser, 1100)
        light = browser.picture(tmp_path / "server-page.png")
        # the other network
        browser.value("document.getElementById('chosen').selectedIndex = 1")
        browser.value("document.getElementById('chosen').dispatchEvent(new Event('change'))")
        browser.wait("document.querySelectorAll('#result .bar').length === 0")
        # no picture
        bad = tmp_path / "bad.png"
        bad.write_bytes(b"no picture")
        browser.choose_file("#file", bad)
        browser.wait("document.querySelector('#result .error') !== null")
        assert "must be a picture" in browser.value("document.getElementById('result').innerText")
        assert [each for each in browser.complaints if "400" not in each] == []
        browser.open(address, 390, 800, dark=True)
        browser.wait("document.querySelectorAll('#timeline rect.marked').length > 0")
        browser.choose_file("#file", digit)
        browser.wait("document.querySelectorAll('#result .bar').length >= 8")
        check_fits(browser, 390)
        dark = browser.picture(tmp_path / "server-phone.png")
    assert light.mean() > 200 and dark.mean() < 80
    assert dark.shape[1] == 390


def test_it_tells_which_board_is_lost(browser: Browser, digits_path: Path, bodies, images) -> None:
    configuration = find_target("sim-medium").configuration
    with ExitStack() as stack:
        boards = [BoardProcess(configuration) for _ in range(2)]
        for board in boards:
            stack.callback(board.close)
        device = "pool:" + ",".join(board.device for board in boards)
        arguments = [f"digits={digits_path}", "--target", "sim-medium", "--device", device]
        address = stack.enter_context(process(*arguments))
        content = json.dumps(bodies.json(images)).encode()

        def ask() -> None:
            with urlopen(f"{address}/v2/models/digits/infer", content, SECONDS) as response:
                assert response.status == 200

        ask()
        browser.open(address, 800, 600)
        browser.wait("document.querySelectorAll('#boards li').length === 2")
        assert browser.value("document.querySelectorAll('#boards .state-failed').length") == 0
        boards[1].kill()
        failed, deadline = (
            "document.querySelector('#boards .state-failed')",
            time.monotonic() + SECONDS,
        )
        while browser.value(f"{failed} === null"):
            assert time.monotonic() < deadline
            ask()
        told = browser.value(f"{failed}.innerText")
        assert boards[1].device in told and "✕ failed" in told and "failed 1 time" in told
        assert browser.value("document.getElementById('state').textContent") == "✓ ready"


def test_it_asks_for_the_token(browser: Browser, tmp_path: Path, digits_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n")
    arguments = [f"digits={digits_path}", "--device", "model:1x16x16", "--token", str(token)]
    with process(*arguments) as address:
        browser.open(address, 800, 600)
        browser.wait("!document.getElementById('ask').hidden")
        assert browser.value("document.getElementById('content').hidden") is True
        submit = "document.getElementById('ask').requestSubmit()"
        browser.value(f"document.getElementById('token').value = 'wrong'; {submit}")
        browser.wait("document.getElementById('ask').innerText.includes('not the server')")
        browser.value(f"document.getElementById('token').value = '{TOKEN}'; {submit}")
        browser.wait("document.querySelectorAll('#boards li').length === 1")
        assert browser.value("document.getElementById('ask').hidden") is True
