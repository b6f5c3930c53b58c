"""A compiled board on a TAP interface of Linux: this machine's own network stack talks to it."""

import contextlib
import fcntl
import os
import select
import socket
import struct
import threading
from types import TracebackType

from .ethernet_endpoint import EthernetEndpoint

_DEVICE = "/dev/net/tun"
_TUNSETIFF = 0x400454CA
_TAP, _NO_HEADER = 0x0002, 0x1000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8913, 0x8914, 0x8916, 0x891C
_UP = 1
_LONGEST = 2048
_REST_SECONDS = 0.005


class Tap:
    """A TAP interface, up and with an IPv4 address; it goes when it is closed.

    Parameters
    ----------
    name : str
        Of the interface, at most 15 letters.
    address, netmask : str
        Of this machine on it.

    Raises
    ------
    OSError
        If the system has no such interfaces, or this process may not make one: it must be root, or
        be so within a network namespace of its own.
    """

    def __init__(self, name: str, address: str, netmask: str = "255.255.255.0") -> None:
        self._name = name.encode()
        self.file = os.open(_DEVICE, os.O_RDWR | os.O_NONBLOCK)
        try:
            request = struct.pack("16sH22x", self._name, _TAP | _NO_HEADER)
            fcntl.ioctl(self.file, _TUNSETIFF, request)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                for code, given in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, netmask)):
                    fcntl.ioctl(control, code, self._address(given))
                flags = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16s24x", self._name))
                (old,) = struct.unpack_from("H", flags, 16)
                up = struct.pack("16sH22x", self._name, old | _UP)
                fcntl.ioctl(control, _SIOCSIFFLAGS, up)
        except OSError:
            self.close()
            raise

    def _address(self, text: str) -> bytes:
        return struct.pack("16sHH4s16x", self._name, socket.AF_INET, 0, socket.inet_aton(text))

    def receive(self, timeout_seconds: float) -> bytes:
        """A frame that the system sends, or none after the time."""
        if not select.select([self.file], [], [], timeout_seconds)[0]:
            return b""
        return os.read(self.file, _LONGEST)

    def send(self, frame: bytes) -> None:
        """Gives a frame to the system."""
        os.write(self.file, frame)

    def close(self) -> None:
        """Removes the interface."""
        os.close(self.file)


class BoardOnTap:
    """Carries frames between a TAP interface and a board, in a thread, while the body runs.

    The board's time stands still while nothing can happen in it, so that it takes no processor.

    Parameters
    ----------
    tap : Tap
    endpoint : EthernetEndpoint
        Used by that thread alone. Neither of the two is closed here.
    """

    def __init__(self, tap: Tap, endpoint: EthernetEndpoint) -> None:
        self._tap, self._endpoint = tap, endpoint
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "BoardOnTap":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            frame = self._tap.receive(_REST_SECONDS if self._endpoint.idle else 0)
            if frame or not self._endpoint.idle:
                for answer in self._endpoint.feed(frame):
                    # the interface's queue may be full, as a wire's may
                    with contextlib.suppress(BlockingIOError):
                        self._tap.send(answer)
