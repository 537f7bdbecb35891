"""Request ids: one id links a request, its job and the work of the workers in all logs.

The id comes from the header `X-Request-ID`, or is made here. It is sent back, written in every log
line of the request, and stored with the jobs that the request submits.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from uuid import uuid4

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-ID"
_KEY = "request_id"
_IS_AN_ID = re.compile(r"[A-Za-z0-9._:@/+=-]{1,64}").fullmatch
_READS = frozenset({"GET", "HEAD", "OPTIONS"})

_NAME = "service.requests"
_log = structlog.get_logger(_NAME)


def current() -> str | None:
    """Return the id of the current request."""
    return cast("str | None", structlog.contextvars.get_contextvars().get(_KEY))


@contextmanager
def bound(request_id: str | None) -> Iterator[None]:
    """Work for an earlier request: log lines carry its id."""
    with structlog.contextvars.bound_contextvars(**({_KEY: request_id} if request_id else {})):
        yield


class RequestIds:
    """Gives each request its id, and logs it when its answer begins.

    Successful requests that only read are logged at level DEBUG.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and send its id back."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client_id = Headers(scope=scope).get(HEADER, "")
        request_id = client_id if _IS_AN_ID(client_id) else uuid4().hex
        start = time.perf_counter()

        async def echo(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
                _note(scope, message["status"], time.perf_counter() - start)
            await send(message)

        # `bound` would read all variables of the context, a seventh of the time of a look-up.
        tokens = structlog.contextvars.bind_contextvars(**{_KEY: request_id})
        try:
            await self._app(scope, receive, echo)
        finally:
            structlog.contextvars.reset_contextvars(**tokens)


def _note(scope: Scope, status: int, secs: float) -> None:
    is_routine = scope["method"] in _READS and status < 400
    level = logging.DEBUG if is_routine else logging.INFO
    if logging.getLogger(_NAME).isEnabledFor(level):  # asked before a line is made
        facts = {"method": scope["method"], "path": scope["path"], "status": status}
        _log.log(level, "request", **facts, secs=round(secs, 4))
