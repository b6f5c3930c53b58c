"""Lets requests in: the token, the names of the host, and the headers that browsers obey."""

import hmac
import ipaddress
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import InputError
from .refusals import Refusal, RequestError
from .rest_response import error_response

TOKEN_VARIABLE = "SLIPSTICK_TOKEN"
LEAST_TOKEN = 16
_MOST_TOKEN = 4096
_OPEN_PLACES = ("/", "/v2/health/live", "/v2/health/ready")
_OPEN_FOLDER = "/page/files/"
"""The page itself holds nothing that is secret."""
_OTHERS = ("cross-site", "same-site")
"""Values of ``Sec-Fetch-Site`` in a request that another site's page makes."""
_LOOPBACK_NAMES = ("localhost",)
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def read_token(file: Path | None) -> str | None:
    """Returns the token of a file, or of the environment; None: there is none.

    Raises
    ------
    InputError
        If the file cannot be read, or the token is too short to be one.
    """
    if file is None:
        text = os.environ.get(TOKEN_VARIABLE)
        if text is None:
            return None
        return _checked(f"the variable {TOKEN_VARIABLE}", text)
    try:
        with open(file, "rb") as opened:
            data = opened.read(_MOST_TOKEN + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"--token {file} cannot be read: {reason}") from None
    return _checked(f"--token {file}", data.decode("utf-8", "replace"))


def _checked(what: str, text: str) -> str:
    token = text.strip()
    good = LEAST_TOKEN <= len(token) <= _MOST_TOKEN
    if not good or not all("!" <= letter <= "~" for letter in token):
        raise InputError(
            f"{what} must hold one word of at least {LEAST_TOKEN} ASCII letters, digits or signs"
        )
    return token


def is_loopback(host: str) -> bool:
    """Tells whether only programs of this machine reach a host's name or address."""
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_token(token: str, authorization: str | None) -> None:
    """Checks ``Bearer TOKEN`` in a time that does not depend on the token.

    Raises
    ------
    RequestError
        If it is not the token.
    """
    scheme, _, given = (authorization or "").partition(" ")
    same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), token.encode())
    if scheme.lower() != "bearer" or not same:
        raise RequestError(
            Refusal.UNAUTHORIZED,
            "the request must have the server's token: Authorization: Bearer TOKEN",
        )


class Guard:
    """Stands before an application.

    Parameters
    ----------
    app : ASGI application
    token : str, optional
        Without it only loopback's names are taken as the host that a request names: a page of
        another site could give its own name the address of this machine.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or passes on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answering: Callable[[Message], Awaitable[None]] = send
        if not scope["path"].startswith("/v2/models/"):
            answering = _with_page_headers(send)
        try:
            self._check(scope)
        except RequestError as error:
            await error_response(error)(scope, receive, answering)
            return
        await self._app(scope, receive, answering)

    def _check(self, scope: Scope) -> None:
        headers, path = Headers(scope=scope), scope["path"]
        if scope["method"] not in ("GET", "HEAD") and headers.get("sec-fetch-site") in _OTHERS:
            raise RequestError(Refusal.FORBIDDEN, "pages of other sites may not use the server")
        if self._token is None:
            host = headers.get("host", "").strip()
            name = _host_name(host)
            if not is_loopback(name):
                raise RequestError(
                    Refusal.WRONG_HOST,
                    f"the host must be a name of this machine's loopback, not {name[:100]!r}:"
                    " others need a token",
                )
        elif path not in _OPEN_PLACES and not path.startswith(_OPEN_FOLDER):
            check_token(self._token, headers.get("authorization"))


def _host_name(host: str) -> str:
    """Without the port, and without an IPv6 address's brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _with_page_headers(send: Send) -> Send:
    async def answering(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return answering
