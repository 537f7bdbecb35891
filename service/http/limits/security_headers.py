"""Headers that limit what browsers and caches may do with an answer."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_FOR_ALL = {
    # An answer of the API is not a page: it runs no script, and no frame may show it.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class SecurityHeaders:
    """Adds the security headers that an answer does not set.

    Clients may cache a response with an ETag and must revalidate it. They must not store any other.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with these headers."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _FOR_ALL.items():
                    headers.setdefault(name, value)
                keeping = "private, no-cache" if "etag" in headers else "no-store"
                headers.setdefault("Cache-Control", keeping)
            await send(message)

        await self._app(scope, receive, guarded if scope["type"] == "http" else send)
