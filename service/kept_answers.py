"""Answers about jobs, kept as they went over the wire while the database is as it was.

All who watch a job, or the list of jobs, ask for the same few things again and again. What was
asked in the same words by a caller that is known is sent once more; all else takes its route.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.auth import Tokens
from service.rate_limit import RateLimit
from service.short_cut import may_read
from service.store.data_version import DataVersion

MAX_KEPT = 256
MAX_BYTES = 1 << 16
"""A longer answer is not kept."""
_PATH = r"/jobs(/[0-9a-f-]{36}(/(curve|summary))?)?"


@dataclass(frozen=True)
class _Kept:
    """An answer, the route that gave it, and the version of the database that it holds for."""

    version: int
    route: Any
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


class KeptAnswers:
    """Answers what was asked before; the same for every caller that may read."""

    def __init__(
        self, app: ASGIApp, *, prefix: str, version: DataVersion, tokens: Tokens, limit: RateLimit
    ) -> None:
        self._app = app
        self._is_kept = re.compile(re.escape(prefix) + _PATH).fullmatch
        self._version = version
        self._tokens = tokens
        self._limit = limit
        self._kept: dict[tuple[str, bytes], _Kept] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_such = (
            scope["type"] == "http" and scope["method"] == "GET" and self._is_kept(scope["path"])
        )
        # Read before the rows: what changes in between is looked at again.
        version = self._version.read() if is_such else None
        headers: dict[bytes, bytes] = dict(scope["headers"]) if is_such else {}
        if version is None or b"if-none-match" in headers:
            await self._app(scope, receive, send)
            return
        kept = self._kept.get((scope["path"], scope["query_string"]))
        is_fresh = kept is not None and kept.version == version
        if kept is not None and is_fresh and may_read(self._tokens, self._limit, headers):
            scope["route"] = kept.route
            start = {"status": 200, "headers": list(kept.headers)}
            await send({"type": "http.response.start", **start})
            await send({"type": "http.response.body", "body": kept.body})
            return
        await self._app(scope, receive, self._keeping(scope, version, send))

    def _keeping(self, scope: Scope, version: int, send: Send) -> Send:
        """Return what sends an answer, and keeps it if it may be sent once more."""
        headers: tuple[tuple[bytes, bytes], ...] | None = None

        async def sent(message: Message) -> None:
            nonlocal headers
            if message["type"] == "http.response.start" and message["status"] == 200:
                headers = tuple(message["headers"])  # others are added on the way
            elif headers is not None and message["type"] == "http.response.body":
                body = message.get("body", b"")
                if not message.get("more_body") and len(body) <= MAX_BYTES:
                    answer = _Kept(version, scope.get("route"), headers, body)
                    self._keep((scope["path"], scope["query_string"]), answer)
                headers = None
            await send(message)

        return sent

    def _keep(self, asked: tuple[str, bytes], answer: _Kept) -> None:
        if len(self._kept) >= MAX_KEPT and asked not in self._kept:
            self._kept.clear()
        self._kept[asked] = answer
