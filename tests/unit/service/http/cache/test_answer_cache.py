"""Answers about jobs that several ask for at once, around an application that counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from starlette.types import Message, Receive, Scope, Send

from service.http.auth import Tokens
from service.http.cache.answer_cache import IS_CURRENT, AnswerCacheMiddleware
from service.http.rate_limit import RateLimit
from service.store.database.data_version import DataVersion
from service.store.database.database import Database
from tests.service_fixtures import add_job

PATH = "/api/v1/jobs"
SCHEDULE_PATH = "/api/v1/schedules/best"


class Slow:
    """Answers with how often it was asked, when it is told to."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.num_asked = 0
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.num_asked += 1
        body = str(self.num_asked).encode()
        await self.go_on.wait()
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def kept(database: Database) -> Callable[[Slow], AnswerCacheMiddleware]:
    """Return what puts the cache before an application."""
    tokens = Tokens(database)
    tokens.identify(None)  # now it is known that none is needed
    version = DataVersion(database)
    return lambda app: AnswerCacheMiddleware(
        app, prefix="/api/v1", version=version, tokens=tokens, limit=RateLimit(0)
    )


async def ask(app: AnswerCacheMiddleware, query: bytes = b"", path: str = PATH) -> bytes:
    bodies = []

    async def send(message: Message) -> None:
        bodies.append(message.get("body", b""))

    async def receive() -> Message:
        raise AssertionError("nothing is to be read")

    scope = {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": []}
    await app(scope, receive, send)
    return b"".join(bodies)


async def asked_at_once(app: AnswerCacheMiddleware, slow: Slow, num: int) -> list[bytes]:
    slow.go_on.clear()
    asking = [asyncio.create_task(ask(app)) for _ in range(num)]
    await asyncio.sleep(0)
    slow.go_on.set()
    return await asyncio.gather(*asking)


def test_those_who_ask_at_once_cost_one_answer(
    database: Database, kept: Callable[[Slow], AnswerCacheMiddleware]
) -> None:
    async def main() -> None:
        slow = Slow()
        app = kept(slow)
        assert await asked_at_once(app, slow, 5) == [b"1"] * 5
        assert await ask(app) == b"1"
        add_job(database)
        assert await asked_at_once(app, slow, 5) == [b"2"] * 5

    asyncio.run(main())


def test_those_who_find_an_old_schedule_at_once_cost_one_answer(
    database: Database, kept: Callable[[Slow], AnswerCacheMiddleware]
) -> None:
    class Checked(Slow):
        """Provides a check, by which its latest answer alone is current."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            number = self.num_asked + 1

            async def is_current() -> bool:
                await asyncio.sleep(0)  # as long as a statement: all wait for it
                return number == self.num_asked and not self.is_old

            scope[IS_CURRENT], self.is_old = is_current, False
            await super().__call__(scope, receive, send)

        is_old = False

    async def main() -> None:
        checked = Checked()
        checked.go_on.set()
        app = kept(checked)
        assert await ask(app, path=SCHEDULE_PATH) == b"1"
        add_job(database)
        assert await ask(app, path=SCHEDULE_PATH) == b"1"
        add_job(database)
        checked.is_old = True
        asking = [ask(app, path=SCHEDULE_PATH) for _ in range(5)]
        assert await asyncio.gather(*asking) == [b"2"] * 5

    asyncio.run(main())


def test_a_change_meanwhile_is_not_missed(
    database: Database, kept: Callable[[Slow], AnswerCacheMiddleware]
) -> None:
    async def main() -> None:
        slow = Slow()
        app = kept(slow)
        first = asyncio.create_task(ask(app))
        await asyncio.sleep(0)
        add_job(database)
        second = asyncio.create_task(ask(app))
        await asyncio.sleep(0)
        slow.go_on.set()
        assert [await first, await second] == [b"1", b"2"]
        assert await ask(app) == b"2"

    asyncio.run(main())


def test_the_oldest_answers_make_room_for_new_ones(database: Database) -> None:
    tokens = Tokens(database)
    tokens.identify(None)

    async def main() -> None:
        slow = Slow()
        slow.go_on.set()
        version, limit = DataVersion(database), RateLimit(0)
        app = AnswerCacheMiddleware(
            slow, prefix="/api/v1", version=version, tokens=tokens, limit=limit, max_bytes=2
        )
        queries = (b"a=1", b"a=2", b"a=3", b"a=3", b"a=2", b"a=1")
        answers = [await ask(app, query) for query in queries]
        assert answers == [b"1", b"2", b"3", b"3", b"2", b"4"]

    asyncio.run(main())


def test_who_waited_for_a_refusal_asks_in_turn(
    kept: Callable[[Slow], AnswerCacheMiddleware],
) -> None:
    async def main() -> None:
        slow = Slow(status=500)
        assert await asked_at_once(kept(slow), slow, 3) == [b"1", b"2", b"3"]

    asyncio.run(main())


def test_a_reader_who_takes_nothing_delays_no_other(
    kept: Callable[[Slow], AnswerCacheMiddleware],
) -> None:
    async def main() -> None:
        slow = Slow()
        app = kept(slow)
        stuck = asyncio.Event()

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                await stuck.wait()

        async def receive() -> Message:
            raise AssertionError("nothing is to be read")

        scope = {"type": "http", "method": "GET", "path": PATH, "query_string": b"", "headers": []}
        reading = asyncio.create_task(app(scope, receive, send))
        await asyncio.sleep(0)
        slow.go_on.set()
        assert await asked_at_once(app, slow, 3) == [b"1"] * 3
        stuck.set()
        await reading

    asyncio.run(main())
