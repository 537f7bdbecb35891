"""Refuse bodies of a type that their route does not read."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from service.http.problems import problem_response

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
RECORDS = ("application/x-ndjson", "application/ndjson", "application/jsonl")
"""The types of a records file; messages name the first."""
_TAKE_RECORDS = frozenset({"/api/v1/import"})
BYTES = "application/octet-stream"
_TAKE_BYTES = re.compile(r"/api/v1/(?:cache/.*|remotes/[^/]*/frames)")


class ContentTypes:
    """Refuses a body that is not of its route's type, or is encoded, with 415.

    A web form of another origin can send three types without a CORS preflight. JSON is not among
    them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "http" and scope["method"] not in _READS:
            detail = _flaw(scope["path"], Headers(scope=scope))
            if detail is not None:
                await problem_response(415, detail, instance=scope["path"])(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _flaw(path: str, headers: Headers) -> str | None:
    """Return the error in the type of a body; None if the type is correct or there is no body."""
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return None
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return "the body is compressed: send it as it is, without `Content-Encoding`"
    content_type = headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if path in _TAKE_RECORDS:
        if media_type not in RECORDS:
            return (
                "the body must be a records file: send it with "
                f"`Content-Type: {RECORDS[0]}`, not {content_type!r}"
            )
    elif _TAKE_BYTES.fullmatch(path):
        if media_type != BYTES:
            return f"the body must be bytes: send it with `Content-Type: {BYTES}`"
    elif not _is_json(media_type):
        return (
            "the body must be JSON: send it with `Content-Type: application/json`, "
            f"not {content_type!r}"
        )
    return None


def _is_json(media_type: str) -> bool:
    kind, _, subtype = media_type.partition("/")
    return kind == "application" and (subtype == "json" or subtype.endswith("+json"))
