"""Answers about jobs, kept as they went over the wire while the database is as it was.

All who watch a job, or the list of jobs, ask for the same few things again and again. What was
asked in the same words by a caller that is known is sent once more; what is being answered at the
moment is waited for, so that one change of the database costs one answer, however many ask. All
else takes its route.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.http.auth import Tokens
from service.http.cache.short_cut import may_read
from service.http.rate_limit import RateLimit
from service.store.database.data_version import DataVersion

MAX_KEPT = 256
MAX_BYTES = 1 << 16
"""A longer answer is not kept."""
_Asked: TypeAlias = tuple[str, bytes]
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
        self._kept: dict[_Asked, _Kept] = {}
        self._coming: dict[_Asked, tuple[int, asyncio.Event]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_such = (
            scope["type"] == "http" and scope["method"] == "GET" and self._is_kept(scope["path"])
        )
        headers: dict[bytes, bytes] = dict(scope["headers"]) if is_such else {}
        if not is_such or b"if-none-match" in headers:
            await self._app(scope, receive, send)
            return
        key = (scope["path"], scope["query_string"])
        # Read before the rows: what changes in between is looked at again.
        version = self._version.read()
        if version is None:
            await self._app(scope, receive, send)
            return
        stored = await self._at_hand(key, version)
        if stored is not None and may_read(self._tokens, self._limit, headers):
            scope["route"] = stored.route
            start = {"status": 200, "headers": list(stored.headers)}
            await send({"type": "http.response.start", **start})
            await send({"type": "http.response.body", "body": stored.body})
            return
        done = asyncio.Event()
        self._coming[key] = (version, done)
        try:
            await self._app(scope, receive, self._keeping(scope, version, send, done))
        finally:
            done.set()
            if self._coming.get(key) == (version, done):
                del self._coming[key]

    async def _at_hand(self, key: _Asked, version: int) -> _Kept | None:
        """Return the answer of that version, which may be coming; none if somebody is to ask."""
        coming = self._coming.get(key)
        if coming is not None and coming[0] == version:
            await coming[1].wait()
        stored = self._kept.get(key)
        return stored if stored is not None and stored.version == version else None

    def _keeping(self, scope: Scope, version: int, send: Send, done: asyncio.Event) -> Send:
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
                    done.set()  # other waiters need not wait for this reader
                headers = None
            await send(message)

        return sent

    def _keep(self, key: _Asked, answer: _Kept) -> None:
        if len(self._kept) >= MAX_KEPT and key not in self._kept:
            self._kept.clear()
        self._kept[key] = answer
