"""Runs a server: opens its ports, answers until a signal comes, then ends what has begun."""

import asyncio
import contextlib
import resource
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvicorn

from ..errors import InputError
from .application import application
from .grpc_service import make_grpc_server
from .guard import is_loopback
from .http_protocol import DeadlineProtocol
from .limits import Limits
from .network_server import NetworkServer

_BACKLOG = 2048
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_POLL_SECONDS = 0.02
_KEEP_ALIVE_SECONDS = 75
_FILES = 128
"""Files that the process needs beside its connections."""


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Holds the host and the ports of a server.

    Parameters
    ----------
    host : str
    http, grpc : int
        0: any free one.
    """

    host: str
    http: int
    grpc: int

    @property
    def http_address(self) -> str:
        """Returns the address of REST and the page."""
        return f"http://{self._host}:{self.http}"

    @property
    def grpc_address(self) -> str:
        """As gRPC's clients take it."""
        return f"{self._host}:{self.grpc}"

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def check_public(host: str, token: str | None) -> None:
    """Checks that a server that other machines reach has a token.

    Raises
    ------
    InputError
        If it has none.
    """
    if token is None and not is_loopback(host):
        raise InputError(
            f"--host {host} opens the server to other machines: give it a token by --token FILE or"
            " SLIPSTICK_TOKEN, or leave it on 127.0.0.1"
        )


def serve(server: NetworkServer, ports: Ports, started: Callable[[Ports], None]) -> None:
    """Runs a server until SIGTERM or SIGINT; a second signal ends it at once.

    Parameters
    ----------
    server : NetworkServer
    ports : Ports
    started : callable
        Told the ports when they are open.

    Raises
    ------
    InputError
        If a port cannot be opened, or the host is public and there is no token.
    """
    check_public(ports.host, server.token)
    asyncio.run(_serve(server, ports, started))


async def _serve(server: NetworkServer, ports: Ports, started: Callable[[Ports], None]) -> None:
    with contextlib.closing(_listening(ports.host, ports.http)) as listener:
        grpc_server = make_grpc_server(server)
        grpc_port = _open_grpc(grpc_server, ports)
        http_server = _HttpServer(
            uvicorn.Config(
                application(server),
                log_config=None,
                log_level="error",
                access_log=False,
                lifespan="off",
                http=DeadlineProtocol,
                ws="none",
                server_header=False,
                proxy_headers=False,
                limit_concurrency=_connections(server.limits),
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=5,
                backlog=_BACKLOG,
            )
        )
        await grpc_server.start()
        ending = _ending_signal()
        history = asyncio.create_task(server.history.keep())
        running = asyncio.create_task(http_server.serve([listener]))
        try:
            while not http_server.started and not running.done():
                await asyncio.sleep(0.001)
            http_port = listener.getsockname()[1]
            started(Ports(host=ports.host, http=http_port, grpc=grpc_port))
            await asyncio.wait([running, ending], return_when=asyncio.FIRST_COMPLETED)
            await _drain(server)
        finally:
            history.cancel()
            await grpc_server.stop(1.0)
            http_server.should_exit = True
            await running


def _connections(limits: Limits) -> int:
    """As many as the limits say, if the system gives the process so many files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limits.connections if files < 0 else max(16, min(limits.connections, files - _FILES))


class _HttpServer(uvicorn.Server):
    """Leaves the signals to ``serve``: requests end first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _ending_signal() -> "asyncio.Future[None]":
    """Done at the first signal; the second one interrupts."""
    loop = asyncio.get_running_loop()
    ending = loop.create_future()

    def end() -> None:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.default_int_handler)
        if not ending.done():
            ending.set_result(None)

    for number in _SIGNALS:
        loop.add_signal_handler(number, end)
    return ending


async def _drain(server: NetworkServer) -> None:
    """Refuses new inferences, and waits for those that have begun."""
    server.draining = True
    loop = asyncio.get_running_loop()
    deadline = loop.time() + server.limits.drain_seconds
    while server.running and loop.time() < deadline:
        await asyncio.sleep(_POLL_SECONDS)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"port {port} of {host} cannot be opened: {reason}") from None
    # connections inherit it; asyncio sets it for listeners of its own only. A response is written
    # in two parts: the second one would wait 40 ms for the client's delayed acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _open_grpc(server, ports: Ports) -> int:
    try:
        port = server.add_insecure_port(ports.grpc_address)
    except RuntimeError:
        port = 0
    if not port:
        raise InputError(
            f"port {ports.grpc} of {ports.host} (--grpc-port) cannot be opened: another program"
            " may have it"
        )
    return port
