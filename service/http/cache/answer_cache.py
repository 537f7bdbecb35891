"""A cache of HTTP answers: repeats each, without its route, while it holds.

An answer holds until the database changes. Jobs that run change it all the time, and PostgreSQL has
no version, so a route may also provide a check of its answer. Either way an answer shows all that
was committed before its request.

All viewers of a job read the same few answers, and deployed programs repeat the same look-ups. The
cache serves callers that `auth` admits. Every other request takes its route, which may refuse it.
Of concurrent equal requests, one takes its route, and the others wait for its answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from compiler.bounded_cache import BoundedCache
from service.http.auth import Tokens, admits
from service.http.conditional import has_it
from service.http.rate_limit import RateLimit
from service.store.database.data_version import DataVersion

MAX_BYTES = 16 << 20
"""Limit of all cached bodies together: thousands of schedules of a few kilobytes. Chosen."""
MAX_BODY_BYTES = 1 << 16
"""A longer body is not cached."""
_Request: TypeAlias = tuple[str, bytes]
_SCHEDULE = "/schedules/best"
_JOBS = r"/jobs(/[0-9a-f-]{36}(/(curve|summary))?)?"
_IF_NONE_MATCH = b"if-none-match"
IS_CURRENT = "loopwright.is_current"
"""The key of an ASGI scope by which a route provides a check of its answer: an async function that
returns whether the answer holds at the time of the call.
"""


@dataclass(frozen=True)
class _Answer:
    """An answer with status 200, its route, and the version of the database that it shows.

    `version` is None if the database has no version, and `is_current` if the route has no check.
    """

    version: int | None
    is_current: Callable[[], Awaitable[bool]] | None
    route: Any
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.body) + sum(len(name) + len(value) for name, value in self.headers)


class AnswerCacheMiddleware:
    """Middleware that answers repeated requests; the answer is the same for every caller.

    Args:
        app: The application behind it.
        prefix: What paths of the API begin with.
        version: The version of the database, which changes with its content.
        tokens: The callers of the service.
        limit: The rate limit of each caller.
        max_bytes: Limit of all answers together.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        prefix: str,
        version: DataVersion,
        tokens: Tokens,
        limit: RateLimit,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._app = app
        self._is_jobs_path = re.compile(re.escape(prefix) + _JOBS).fullmatch
        self._schedule_path = prefix + _SCHEDULE
        self._version = version
        self._tokens = tokens
        self._limit = limit
        self._answers: BoundedCache[_Request, _Answer]
        self._answers = BoundedCache(max_bytes, size_of=lambda answer: answer.size_bytes)
        # Requests in progress on their routes, with the version that was read before.
        self._pending: dict[_Request, tuple[int | None, asyncio.Event]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        has_check = scope["path"] == self._schedule_path
        is_cached = has_check or self._is_jobs_path(scope["path"])
        # The version is read before the rows, so that a change in between is not missed. Without a
        # version (PostgreSQL has none), only a check shows that an answer still holds.
        version = self._version.read() if is_cached else None
        if version is None and not has_check:
            await self._app(scope, receive, send)
            return
        request = (scope["path"], scope["query_string"])
        headers = dict(scope["headers"])
        answer = await self._find(request, version)
        if answer is not None and await admits(self._tokens, self._limit, headers):
            scope["route"] = answer.route  # metrics count requests by route
            await _send(answer, headers, send)
        else:
            # The route sends a whole answer, for the cache; a client that has it gets no body.
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] != _IF_NONE_MATCH]
            send = _conditional(headers, send)
            await self._take_route(request, version, scope, receive, send)

    async def _find(self, request: _Request, version: int | None) -> _Answer | None:
        """Return the current answer, after waiting for it if it is pending."""
        # Twice: while an old answer was checked, another request may have begun to replace it, or
        # done so.
        for _ in range(2):
            pending = self._pending.get(request)
            if pending is not None and pending[0] == version:
                await pending[1].wait()
            answer = self._answers.get(request)
            if answer is None or (version is not None and answer.version == version):
                return answer
            if answer.is_current is not None and await answer.is_current():
                # It holds now, after the version was read, and so while the version stays.
                answer = replace(answer, version=version)
                self._answers.put(request, answer)
                return answer
            if request not in self._pending and self._answers.get(request) is answer:
                return None
        return None

    async def _take_route(
        self, request: _Request, version: int | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        done = asyncio.Event()
        self._pending[request] = (version, done)
        try:
            await self._app(scope, receive, self._recording(scope, version, send, done))
        finally:
            done.set()
            if self._pending.get(request) == (version, done):
                del self._pending[request]

    def _recording(
        self, scope: Scope, version: int | None, send: Send, done: asyncio.Event
    ) -> Send:
        """Return a `send` that also caches the answer if it can be sent again."""
        headers: tuple[tuple[bytes, bytes], ...] | None = None

        async def record(message: Message) -> None:
            nonlocal headers
            if message["type"] == "http.response.start" and message["status"] == 200:
                headers = tuple(message["headers"])  # other middleware adds to the list later
            elif headers is not None and message["type"] == "http.response.body":
                body = message.get("body", b"")
                if not message.get("more_body") and len(body) <= MAX_BODY_BYTES:
                    is_current = scope.get(IS_CURRENT)
                    if version is not None or is_current is not None:
                        answer = _Answer(version, is_current, scope.get("route"), headers, body)
                        self._answers.put((scope["path"], scope["query_string"]), answer)
                    done.set()  # before the body is sent: its reader may be slow
                headers = None
            await send(message)

        return record


async def _send(answer: _Answer, headers: Mapping[bytes, bytes], send: Send) -> None:
    send = _conditional(headers, send)
    await send({"type": "http.response.start", "status": 200, "headers": list(answer.headers)})
    await send({"type": "http.response.body", "body": answer.body})


def _conditional(headers: Mapping[bytes, bytes], send: Send) -> Send:
    """Return a `send` that sends 304 instead of an answer that the request names by its tag."""
    if _IF_NONE_MATCH not in headers:
        return send
    if_none_match = headers[_IF_NONE_MATCH].decode("latin-1")
    is_known = False

    async def send_unless_known(message: Message) -> None:
        nonlocal is_known
        if message["type"] == "http.response.start" and message["status"] == 200:
            etag = dict(message["headers"]).get(b"etag")
            is_known = etag is not None and has_it(if_none_match, etag.decode("latin-1"))
            if is_known:
                message = {**message, "status": 304, "headers": [(b"etag", etag)]}
        elif is_known:
            message = {**message, "body": b""}
        await send(message)

    return send_unless_known
