"""Checks before every request: its size, its host name, and the caller's token."""

from __future__ import annotations

from collections.abc import Collection

from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.auth import Tokens, token_in
from service.http.problems import problem_response
from service.intake.text_reader import CALLER

MAX_BODY_BYTES = 2 << 20
"""Limit of a JSON body: eight times the longest script, so that escapes fit."""
MAX_FILE_BYTES = 1 << 30
"""Limit of a records file, which is not held in memory. Chosen."""
MAX_HELD_BYTES = 256 << 20
"""Limit of all bodies in memory together: many clients may send slowly. Chosen."""
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_TAKE_FILES = frozenset({"/api/v1/import"})


class BodyLimit:
    """Refuses a body of more than `max_bytes`, announced or not, with 413.

    Routes that receive a file, which they do not hold in memory, have their own limit. A body that
    would exceed the limit of all bodies together is refused with 503.
    """

    def __init__(
        self,
        app: ASGIApp,
        max_bytes: int = MAX_BODY_BYTES,
        max_file_bytes: int = MAX_FILE_BYTES,
        max_held_bytes: int = MAX_HELD_BYTES,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_file_bytes = max_file_bytes
        self._max_held_bytes = max_held_bytes
        self._held_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_file = scope["path"] in _TAKE_FILES
        max_bytes = self._max_file_bytes if is_file else self._max_bytes
        detail = f"the body is larger than {max_bytes} bytes"
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > max_bytes:
            await problem_response(413, detail, instance=scope["path"])(scope, receive, send)
            return
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            size = len(message.get("body", b""))
            received += size
            if received > max_bytes:
                raise HTTPException(413, detail)
            if not is_file:
                self._held_bytes += size
                if self._held_bytes > self._max_held_bytes:
                    reason = "too many concurrent requests with a body: try again in a moment"
                    raise HTTPException(503, reason, headers={"Retry-After": "1"})
            return message

        try:
            await self._app(scope, limited, send)
        finally:
            if not is_file:
                self._held_bytes -= received


class PlainAddresses:
    """Refuses an address with a zero character, with 400: no database finds one in a text."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "http" and (b"%00" in scope["query_string"] or "\0" in scope["path"]):
            detail = "the address contains a zero character (%00)"
            await problem_response(400, detail)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class KnownHosts:
    """Refuses a request for an unknown host name, with 421.

    A service on loopback needs no token. Without this check, a web page could reach it through a
    visitor's browser by a host name that resolves to 127.0.0.1 (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, names: Collection[str]) -> None:
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "http":
            host = Headers(scope=scope).get("host", "")
            name = host if host.endswith("]") else host.rpartition(":")[0] or host
            if name.lower() not in self._names:
                detail = f"this service is not {host!r}; it answers to {sorted(self._names)}"
                await problem_response(421, detail, instance=scope["path"])(scope, receive, send)
                return
        await self._app(scope, receive, send)


class KnownCallers:
    """Withholds the body of a request without a valid token, so that it takes no memory.

    The ASGI scopes of other requests get the name of their token.

    The route sees an empty body and refuses the caller.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens) -> None:
        self._app = app
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and scope["method"] not in _READS:
            token = token_in(dict(scope["headers"]))
            is_cached = self._tokens.is_cached(token)
            identify = self._tokens.identify
            caller = identify(token) if is_cached else await run_in_threadpool(identify, token)
            if caller is None:
                receive = _no_body
            else:
                scope[CALLER] = caller.name
        await self._app(scope, receive, send)


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}
