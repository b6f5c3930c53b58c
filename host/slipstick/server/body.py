"""Reads bodies of requests within bounds of size, time and memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from .limits import Limits
from .refusals import Refusal, RequestError

_IDENTITY = ("", "identity")


class BodyReader:
    """Reads bodies; all that are read at one time have a bound together.

    Parameters
    ----------
    limits : Limits
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held = 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """Reads a body, whose memory counts until the end of the context.

        Raises
        ------
        RequestError
            If it is too large, does not come in time, is compressed, or ends too early.
        """
        encoding = request.headers.get("content-encoding", "").strip().lower()
        if encoding not in _IDENTITY:
            raise RequestError(
                Refusal.UNSUPPORTED_BODY,
                f"the body must not be compressed, but its Content-Encoding is {encoding[:40]!r}",
            )
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and len(declared) <= 19:
            self._check_size(int(declared))
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                await self._collect(request, parts)
            yield b"".join(parts) if len(parts) > 1 else parts[0] if parts else b""
        except TimeoutError:
            raise RequestError(
                Refusal.TIMEOUT,
                f"the body must be there within {self._limits.body_seconds:g} seconds",
            ) from None
        except ClientDisconnect:
            raise RequestError(Refusal.BAD_REQUEST, "the body ends too early") from None
        finally:
            self._held -= sum(map(len, parts))

    async def _collect(self, request: Request, parts: list[bytes]) -> None:
        size = 0
        async for part in request.stream():
            if not part:
                continue
            size += len(part)
            self._check_size(size)
            if self._held + len(part) > self._limits.all_bodies:
                raise RequestError(
                    Refusal.FULL,
                    f"the server reads bodies of {self._limits.all_bodies} bytes already; try"
                    " again later",
                )
            self._held += len(part)
            parts.append(part)

    def _check_size(self, size: int) -> None:
        if size > self._limits.max_body:
            raise RequestError(
                Refusal.TOO_LARGE,
                f"the body must have at most {self._limits.max_body} bytes (--max-body), not {size}"
                if size < 1 << 64
                else f"the body must have at most {self._limits.max_body} bytes (--max-body)",
            )
