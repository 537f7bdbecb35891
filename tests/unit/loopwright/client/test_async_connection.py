"""Both clients ask the same of a server and make the same of its answers."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
import stamina

import loopwright as lw
from examples.serving import free_port
from loopwright.client import connection
from loopwright.client import job as job_module
from loopwright.client.client import ClientMethods
from loopwright.client.job import JobMethods
from loopwright.client.methods import request, stream
from loopwright.client.steps import KEY, HttpCall, send
from service.wire.models import JobState
from tests.unit.loopwright.client.test_connection import HEALTH
from tests.unit.loopwright.client.test_job import ID, job_body
from tests.unit.loopwright.client.test_job import stream as event_stream
from tests.unit.loopwright.fake_server import Answer, Asked, FakeServer

T = TypeVar("T")

OPERATOR = "relu:16:float32"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "POLL_SECS", 0.0)


def trial(number: int) -> dict[str, Any]:
    return {
        "number": number,
        "sketch": "default",
        "trace": {"format": 2, "instructions": []},
        "error": None if number else "crash",
        "message": "",
        "run_secs": [2.0, 1.0] if number else [],
        "max_error": None,
        "build_secs": 0.5,
        "check_secs": 0.0,
        "time_secs": 0.0,
        "worker": "w",
        "predicted": None,
        "created_at": "2026-01-01T00:00:00Z",
    }


def answers(artifact: bytes) -> list[Answer]:
    ended = (9, "state", {"state": "succeeded"})
    return [
        Answer(201, job_body("queued")),
        event_stream((4, "state", {"state": "running"}), is_cut=True),
        event_stream(ended),
        Answer(body=job_body("running")),
        Answer(body=job_body("succeeded")),
        Answer(body={"items": [trial(0)], "next_cursor": "more"}),
        Answer(body={"items": [trial(1)], "next_cursor": None}),
        Answer(body={"items": [job_body("succeeded")], "next_cursor": None}),
        Answer(503),
        Answer(body=HEALTH),
        Answer(body=artifact, headers={"ETag": '"1"'}),
        Answer(404, {"title": "no", "detail": "unknown job"}),
    ]


def blocking(url: str, cache: Path) -> list[Any]:
    with lw.Client(url, cache=cache) as client:
        handle = client.tune(OPERATOR, max_trials=8)
        found: list[Any] = [
            list(handle.events()),
            handle.wait(),
            list(handle.trials()),
            list(client.jobs(state=JobState.SUCCEEDED, limit=3)),
            client.health(),
            client.kernel(OPERATOR).source,
        ]
        with pytest.raises(lw.NotFoundError, match="unknown job"):
            handle.cancel()
    return found


async def awaiting(url: str, cache: Path) -> list[Any]:
    async with lw.AsyncClient(url, cache=cache) as client:
        handle = await client.tune(OPERATOR, max_trials=8)
        found: list[Any] = [
            [event async for event in handle.events()],
            await handle.wait(),
            [trial async for trial in handle.trials()],
            [job async for job in client.jobs(state=JobState.SUCCEEDED, limit=3)],
            await client.health(),
            (await client.kernel(OPERATOR)).source,
        ]
        with pytest.raises(lw.NotFoundError, match="unknown job"):
            await handle.cancel()
    return found


def told(asked: list[Asked]) -> list[tuple[str, str, bytes, str | None]]:
    return [(a.method, a.path, a.body, a.headers.get("last-event-id")) for a in asked]


def test_both_clients_ask_the_same_and_find_the_same(fake: FakeServer, tmp_path: Path) -> None:
    artifact = lw.build(lw.ops.from_spec(OPERATOR), "cpu").artifact.to_bytes()
    seen = []
    for number, use in enumerate((blocking, lambda *args: asyncio.run(awaiting(*args)))):
        fake.answers = answers(artifact)
        fake.asked.clear()
        found = use(fake.url, tmp_path / str(number))
        assert fake.answers == []
        assert KEY.lower() in fake.asked[0].headers
        seen.append((found, told(fake.asked)))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("methods", [ClientMethods, JobMethods])
def test_no_method_is_described_twice(methods: type) -> None:
    own = {name for name, value in vars(methods).items() if isinstance(value, request | stream)}
    assert len(own) >= 6
    for kind in (lw.Client, lw.AsyncClient, lw.JobHandle, lw.AsyncJobHandle):
        assert not own & set(vars(kind))
    for name in own:
        method = getattr(methods, name)
        assert inspect.getdoc(method)
        assert "self" in inspect.signature(method).parameters


def test_a_plan_that_is_given_up_closes_its_stream(fake: FakeServer) -> None:
    fake.answers = [event_stream((4, "state", {"state": "running"}), (5, "trials", {}))]

    async def look() -> int:
        async with (
            lw.AsyncClient(fake.url) as client,
            aclosing(client.job(ID).events()) as events,
        ):
            async for event in events:
                return event.id
        return 0

    assert asyncio.run(look()) == 4


def test_an_awaiting_client_without_a_server_says_so(tmp_path: Path) -> None:
    async def ask() -> None:
        async with lw.AsyncClient(f"http://127.0.0.1:{free_port()}", attempts=1) as client:
            await client.health()

    with pytest.raises(lw.ServerUnreachableError, match="no answer from"):
        asyncio.run(ask())


# A POST without a key, of which nobody knows whether it was acted upon.
ONCE = HttpCall("POST", "/things")


@pytest.mark.parametrize(
    ("answer", "num_asked"),
    [
        (Answer(502), 1),
        (Answer(504), 1),
        (Answer(body=HEALTH, is_cut=True), 1),
        (Answer(429), 3),  # refused, so that nothing was done
        (Answer(503), 3),
    ],
)
def test_what_may_have_been_done_is_not_sent_again(
    fake: FakeServer, connection: connection.Connection, answer: Answer, num_asked: int
) -> None:
    fake.answers = [answer] * 3
    with pytest.raises(lw.LoopwrightError):
        connection.run(send(ONCE))
    assert len(fake.asked) == num_asked


def in_an_hour() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)


@pytest.mark.parametrize("told", ["3600", None])
def test_a_server_that_asks_for_more_patience_than_there_is_is_believed(
    fake: FakeServer, connection: connection.Connection, told: str | None
) -> None:
    fake.answers = [Answer(503, headers={"Retry-After": told or in_an_hour()})] * 2
    with pytest.raises(lw.ServerFailedError):
        connection.run(send(HttpCall("GET", "/health")))
    assert len(fake.asked) == 1


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("0", 0, 0), ("7", 7, 7), (None, 3500, 3600), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0)],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, least: float, most: float) -> None:
    secs = connection.retry_after(header or in_an_hour())
    assert secs is not None
    assert least <= secs <= most


@pytest.mark.parametrize("header", ["", "soon", "-3"])
def test_a_retry_after_that_says_nothing_is_left_aside(header: str) -> None:
    assert connection.retry_after(header) is None


def test_a_server_that_says_when_is_asked_then(fake: FakeServer) -> None:
    """Waits for real, not with the pauses of the other tests."""
    stamina.set_testing(False)
    told = connection.Connection(fake.url, None, timeout_secs=5.0, attempts=3)
    fake.answers = [Answer(429, headers={"Retry-After": "1"}), Answer(body=HEALTH)]
    started = datetime.now(UTC)
    assert told.run(send(HttpCall("GET", "/health"))).status_code == 200
    assert datetime.now(UTC) - started >= timedelta(seconds=1)
    told.close()


def test_trials_become_a_table(fake: FakeServer) -> None:
    pandas = pytest.importorskip("pandas")
    fake.answers = [Answer(body={"items": [trial(0), trial(1)], "next_cursor": None})] * 2
    fake.answers.append(Answer(body={"items": [], "next_cursor": None}))
    with lw.Client(fake.url) as client:
        frame = client.job(ID).to_pandas()
        both = client.trials([ID, str(ID).replace("7", "8")])
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["number"]) == [0, 1]
    assert frame["best_secs"].isna().tolist() == [True, False]
    assert frame["best_secs"].min() == 1.0
    assert str(frame["created_at"].dt.tz) == "UTC"
    assert frame.groupby("sketch")["best_secs"].min()["default"] == 1.0
    assert list(both["job"]) == [str(ID)] * 2
    assert both.dtypes.to_dict() == frame.dtypes.to_dict()
