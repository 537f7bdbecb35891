"""What is read of a request's body, and how much of all of them is held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message

from service.http import problems
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.http.limits.request_limits import BodyLimit
from service.store.database.database import Database

Receive = Callable[[], Awaitable[Message]]


def scope_of(path: str, **headers: str) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8080),
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ],
    }


async def status_of(app: Any, scope: dict[str, Any], receive: Receive) -> int:
    statuses: list[int] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)
    (status,) = statuses
    return status


@pytest.mark.parametrize("token", [{}, {"authorization": "Bearer lw_guess"}])
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/import", "/api/v1/schedules/best"])
def test_nothing_is_read_of_the_body_of_a_stranger(
    database: Database, path: str, token: dict[str, str]
) -> None:
    async def receive() -> Message:
        raise AssertionError("the body was read")

    app = create_app(Dependencies(database), token="s3cret")
    kind = "application/x-ndjson" if path.endswith("import") else "application/json"
    scope = scope_of(path, content_type=kind, content_length="1000", **token)
    assert asyncio.run(status_of(app, scope, receive)) == 401


def test_bodies_that_are_held_have_a_limit_together() -> None:
    async def whole(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    inner = Starlette(routes=[Route("/", whole, methods=["POST"])])
    problems.install(inner)  # type: ignore[arg-type]
    app = BodyLimit(inner, max_bytes=100, max_held_bytes=250)

    async def run() -> list[int]:
        gate = asyncio.Event()

        def slow() -> Receive:
            sent = False

            async def receive() -> Message:
                nonlocal sent
                if not sent:
                    sent = True
                    return {"type": "http.request", "body": b"x" * 100, "more_body": True}
                await gate.wait()
                return {"type": "http.request", "body": b"", "more_body": False}

            return receive

        waiting = [asyncio.create_task(status_of(app, scope_of("/"), slow())) for _ in range(2)]
        await asyncio.sleep(0.05)
        third = await status_of(app, scope_of("/"), slow())
        gate.set()
        first = await asyncio.gather(*waiting)
        return [*first, third, await status_of(app, scope_of("/"), slow())]

    assert asyncio.run(run()) == [200, 200, 503, 200]
