"""A fast path for look-ups of best schedules, before routing and validation.

Deployed programs look up the same schedules repeatedly. A well-formed look-up of an authenticated
caller is answered from the cache. All other requests take the route, which returns the same answer
in three times the time; only the route refuses requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TypeAlias
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Receive, Scope, Send

from service.common.caller import ANYBODY, Caller
from service.http.auth import Tokens, token_in
from service.http.cache.best_answers import MAX_KEPT, Answer, BestAnswers
from service.http.conditional import has_it, quoted
from service.http.rate_limit import RateLimit

PATH = "/schedules/best"
_ROUTE = SimpleNamespace(path=PATH)  # what metrics count it under
_Headers: TypeAlias = dict[bytes, bytes]
_Task: TypeAlias = tuple[str, str]


class ShortCut:
    """Answers `GET /schedules/best` by key where that needs no look into a table."""

    def __init__(
        self, app: ASGIApp, *, prefix: str, answers: BestAnswers, tokens: Tokens, limit: RateLimit
    ) -> None:
        self._app = app
        self._path = prefix + PATH
        self._answers = answers
        self._tokens = tokens
        self._limit = limit
        self._read: dict[bytes, _Task | None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http" and scope["path"] == self._path and scope["method"] == "GET":
            headers: _Headers = dict(scope["headers"])
            answer = self._at_hand(scope, headers)
            if answer is not None:
                scope["route"] = _ROUTE
                await _send(answer, headers, send)
                return
        await self._app(scope, receive, send)

    def _at_hand(self, scope: Scope, headers: _Headers) -> Answer | None:
        task = self._task(scope["query_string"])
        if task is None:
            return None
        answer = self._answers.at_hand(*task)
        is_theirs = answer is not None and may_read(self._tokens, self._limit, headers)
        return answer if is_theirs else None

    def _task(self, query: bytes) -> _Task | None:
        """Parse a look-up; None unless it is a workload key with an optional target.

        A query has been asked before, as a rule, and is remembered.
        """
        if query in self._read:
            return self._read[query]
        task = _task_in(query)
        if len(self._read) >= MAX_KEPT:
            self._read.clear()
        self._read[query] = task
        return task


def may_read(tokens: Tokens, limit: RateLimit, headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a caller is known without a look, and has not asked too often; count it."""
    token = token_in(headers)
    if not tokens.is_at_hand(token):
        return False
    caller: Caller | None = tokens.identify(token)
    if caller is None or caller is ANYBODY:
        return caller is not None
    return limit.take(f"token {caller.name}", 1) <= 0


def _task_in(query: bytes) -> _Task | None:
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, strict_parsing=True)
    except ValueError:
        return None
    parameters = dict(pairs)
    if len(parameters) != len(pairs) or not {"workload_key"} <= set(parameters) <= {
        "workload_key",
        "target",
    }:
        return None
    return parameters["workload_key"], parameters.get("target", "cpu")


async def _send(answer: Answer, headers: _Headers, send: Send) -> None:
    etag = quoted(answer.etag)
    if_none_match = headers.get(b"if-none-match")
    is_unchanged = if_none_match is not None and has_it(if_none_match.decode("latin-1"), etag)
    extra_headers = (
        [] if is_unchanged else [(b"content-type", b"application/json"), answer.content_length]
    )
    start = {
        "status": 304 if is_unchanged else 200,
        "headers": [(b"etag", etag.encode()), *extra_headers],
    }
    await send({"type": "http.response.start", **start})
    await send({"type": "http.response.body", "body": b"" if is_unchanged else answer.body})
