"""Refuse requests that web pages of other origins make through a visitor's browser.

A browser sends a form or a simple `fetch` to any address. A service on loopback needs no token, so
it would treat such a request as its user's.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.problems import problem_response

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_OURS = frozenset({"same-origin", "none"})  # none: the user's own action, such as a bookmark


class SameOrigin:
    """Refuses changes and CORS preflights from pages of another origin, with 403.

    Other programs send neither `Sec-Fetch-Site` nor `Origin`, and are accepted. `Sec-Fetch-Site` is
    trusted because no page can set it. Older browsers send `Origin` with every change, which is
    checked instead. Its scheme is not compared: a proxy with TLS forwards plain HTTP.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "http" and scope["method"] != "GET" and _is_foreign(scope):
            detail = (
                "a web page of another origin sent this request: only pages of this service may "
                "change anything; programs send no `Origin` header"
            )
            refusal = problem_response(403, detail, kind="cross-origin", instance=scope["path"])
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _is_foreign(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    is_preflight = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
    if scope["method"] in _READS and not is_preflight:
        return False
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site not in _OURS
    origin = headers.get("origin")
    return origin is not None and not _is_ours(origin, headers.get("host", ""))


def _is_ours(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False
