"""What stands before every request: a limit on its size, and on whom a browser may speak for."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.problems import problem_response

MAX_BODY_BYTES = 2 << 20
MAX_FILE_BYTES = 1 << 30
_TAKE_FILES = frozenset({"/api/v1/import"})


class BodyLimit:
    """Refuses a body of more than `max_bytes`, announced or not, with 413.

    Routes that take a file, which they do not hold in memory, have a limit of their own.
    """

    def __init__(
        self, app: ASGIApp, max_bytes: int = MAX_BODY_BYTES, max_file_bytes: int = MAX_FILE_BYTES
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._max_file_bytes = max_file_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        max_bytes = self._max_file_bytes if scope["path"] in _TAKE_FILES else self._max_bytes
        detail = f"the body is larger than {max_bytes} bytes"
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > max_bytes:
            await problem_response(413, detail, instance=scope["path"])(scope, receive, send)
            return
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > max_bytes:
                raise HTTPException(413, detail)
            return message

        await self._app(scope, limited, send)


class KnownHosts:
    """Refuses a request made under a name that is not ours, with 421.

    A service on loopback needs no token, so without this any web page could have its visitor's
    browser talk to it, under a host name that it points at 127.0.0.1 (DNS rebinding).
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
