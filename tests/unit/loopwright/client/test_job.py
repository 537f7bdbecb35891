from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from loopwright.client import job as job_module
from loopwright.client.connection import Connection
from loopwright.client.job import JobHandle
from loopwright.errors import (
    JobFailedError,
    ProtocolError,
    ServerUnreachableError,
    WaitTimeoutError,
)
from service.wire.models import JobState
from tests.unit.loopwright.fake_server import Answer, FakeServer

ID = UUID(int=7)


def job_body(state: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": str(ID),
        "state": state,
        "workload_key": "0" * 64,
        "workload_name": "matmul",
        "target": "cpu",
        "max_trials": 8,
        "seed": 0,
        "strategy": "random",
        "num_measured": 3,
        "best_secs": 1e-3,
        "default_secs": 2e-3,
        "created_at": "2026-01-01T00:00:00Z",
        "started_at": None,
        "finished_at": None,
        "error": None,
        **changes,
    }


def stream(*events: tuple[int, str, dict[str, Any]], is_cut: bool = False) -> Answer:
    lines = []
    for number, kind, payload in events:
        event = {"id": number, "kind": kind, "at": "2026-01-01T00:00:00Z", "payload": payload}
        lines.append(f"id: {number}\nevent: {kind}\ndata: {json.dumps(event)}\n\n")
    headers = {"Content-Type": "text/event-stream"}
    return Answer(body="".join(lines).encode(), headers=headers, is_cut=is_cut)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_module, "POLL_SECS", 0.0)


@pytest.fixture
def handle(connection: Connection) -> JobHandle:
    return JobHandle(connection, ID)


def test_wait_returns_the_job_that_ended(fake: FakeServer, handle: JobHandle) -> None:
    fake.answers = [
        Answer(body=job_body("queued")),
        Answer(body=job_body("running")),
        Answer(body=job_body("succeeded")),
    ]
    assert handle.wait().state is JobState.SUCCEEDED


def test_wait_raises_the_reason_of_a_failed_job(fake: FakeServer, handle: JobHandle) -> None:
    fake.answers = [Answer(body=job_body("failed", error="every trial crashed"))]
    with pytest.raises(JobFailedError, match="every trial crashed"):
        handle.wait()


def test_wait_takes_a_cancelled_job_as_ended(fake: FakeServer, handle: JobHandle) -> None:
    fake.answers = [Answer(body=job_body("cancelled"))]
    assert handle.wait().num_measured == 3


def test_wait_ends_at_its_deadline_and_says_where_the_job_stands(
    fake: FakeServer, handle: JobHandle
) -> None:
    fake.answers = [Answer(body=job_body("running"))]
    with pytest.raises(WaitTimeoutError, match="is running after 0 s, with 3 of 8 trials"):
        handle.wait(timeout_secs=0)


def test_wait_outlasts_a_server_that_is_started_again(fake: FakeServer, handle: JobHandle) -> None:
    cut = Answer(body=job_body("running"), is_cut=True)
    fake.answers = [
        Answer(body=job_body("running")),
        *[cut] * 4,
        Answer(body=job_body("succeeded")),
    ]
    assert handle.wait().state is JobState.SUCCEEDED


def test_wait_gives_up_on_a_server_that_stays_away(
    fake: FakeServer, handle: JobHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module, "RECONNECT_SECS", -1.0)
    fake.answers = [Answer(body=job_body("running")), *[Answer(is_cut=True)] * 3]
    with pytest.raises(ServerUnreachableError):
        handle.wait()


def test_events_go_on_after_the_last_one_seen_when_a_stream_breaks(
    fake: FakeServer, handle: JobHandle
) -> None:
    fake.answers = [
        stream((4, "state", {"state": "running"}), (9, "trials", {}), is_cut=True),
        stream((12, "later kind", {}), (13, "state", {"state": "succeeded"})),
    ]
    assert [event.id for event in handle.events(after=3)] == [4, 9, 12, 13]
    assert [asked.headers["last-event-id"] for asked in fake.asked] == ["3", "9"]


def test_events_end_with_a_job_whose_end_was_seen_before(
    fake: FakeServer, handle: JobHandle
) -> None:
    fake.answers = [stream(), Answer(body=job_body("succeeded")), stream()]
    assert list(handle.events(after=13)) == []
    assert fake.answers == []


def test_events_of_an_end_that_fell_between_two_streams_are_not_missed(
    fake: FakeServer, handle: JobHandle
) -> None:
    last = (13, "state", {"state": "succeeded"})
    fake.answers = [stream(), Answer(body=job_body("succeeded")), stream(last)]
    assert [event.id for event in handle.events(after=12)] == [13]


def test_an_event_that_is_none_is_an_error(fake: FakeServer, handle: JobHandle) -> None:
    headers = {"Content-Type": "text/event-stream"}
    fake.answers = [Answer(body=b"data: [1]\n\n", headers=headers)]
    with pytest.raises(ProtocolError, match="invalid event"):
        list(handle.events())


def test_trials_are_read_page_by_page(fake: FakeServer, handle: JobHandle) -> None:
    def page(number: int, cursor: str | None) -> Answer:
        trial = {
            "number": number,
            "sketch": "default",
            "trace": {},
            "error": None,
            "message": "",
            "run_secs": [2.0, 1.0],
            "max_error": 0.0,
            "build_secs": 0.0,
            "check_secs": 0.0,
            "time_secs": 0.0,
            "worker": "w",
            "predicted": None,
            "created_at": "2026-01-01T00:00:00Z",
        }
        return Answer(body={"items": [trial], "next_cursor": cursor})

    fake.answers = [page(0, "after 0"), page(1, None)]
    assert [(trial.number, trial.best_secs) for trial in handle.trials()] == [(0, 1.0), (1, 1.0)]
    assert "cursor=after+0" in fake.asked[1].path
