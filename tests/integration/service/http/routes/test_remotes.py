"""`/remotes`: who may have a session, and what the errors of workers become."""

from __future__ import annotations

import threading

from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from tests.service_fixtures import problem
from workers.engine.engine import (
    EngineStartError,
    NoSessionError,
    NoWorkerError,
    SessionEngine,
    SessionOverError,
)

TARGET = {"target": "cpu -mcpu=znver3 -num-cores=1"}
BYTES = {"Content-Type": "application/octet-stream"}


class Echo:
    """Sessions that return each frame; one is called "s"."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.calls: list[tuple[str, ...]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def open_session(self, target: str, owner: str) -> str:
        self.calls.append((target, owner))
        if self.error is not None:
            raise self.error
        return "s"

    def session_step(self, session: str, owner: str, frame: bytes) -> bytes:
        self.may_answer.wait(30)
        if session != "s":
            raise SessionOverError("no such session")
        return frame

    def close_session(self, session: str, owner: str) -> None:
        self.calls.append((session, owner))


def _client(database: Database, sessions: SessionEngine | None) -> TestClient:
    parts = Dependencies(database, sessions=sessions)
    return TestClient(create_app(parts, requests_per_sec=0), raise_server_exceptions=False)


def test_frames_of_a_session_go_to_its_worker(database: Database) -> None:
    echo = Echo()
    with _client(database, echo) as client:
        created = client.post("/api/v1/remotes", json=TARGET)
        assert (created.status_code, created.json()) == (201, {"id": "s"})
        answer = client.post("/api/v1/remotes/s/frames", content=b"a frame", headers=BYTES)
        assert (answer.status_code, answer.content) == (200, b"a frame")
        assert client.delete("/api/v1/remotes/s").status_code == 204
        gone = client.post("/api/v1/remotes/t/frames", content=b"x", headers=BYTES)
        assert problem(gone, 404)["detail"] == "no such session"
    assert echo.calls == [(TARGET["target"], ""), ("s", "")]


def test_a_server_offers_none_unless_its_owner_says_so(database: Database) -> None:
    with _client(database, None) as client:
        for answer in (
            client.post("/api/v1/remotes", json=TARGET),
            client.post("/api/v1/remotes/s/frames", content=b"x", headers=BYTES),
            client.delete("/api/v1/remotes/s"),
        ):
            assert "starts it with --remotes" in problem(answer, 403)["detail"]


def test_what_a_request_lacks_is_said(database: Database) -> None:
    with _client(database, Echo()) as client:
        wrong = client.post("/api/v1/remotes", json={"target": "cpu -mcpu=znver9"})
        assert "did you mean 'znver" in problem(wrong, 422)["detail"]
        gpu = client.post("/api/v1/remotes", json={"target": "cuda -gpu=h200"})
        assert "are on CPUs" in problem(gpu, 422)["detail"]
        problem(client.post("/api/v1/remotes/s/frames", json={}), 415)
        large = client.post("/api/v1/remotes/s/frames", content=bytes(3 << 20), headers=BYTES)
        problem(large, 413)


def test_the_errors_of_workers_have_their_status(database: Database) -> None:
    for error, status in (
        (NoWorkerError("no worker serves it"), 404),
        (NoSessionError("has 4 sessions"), 503),
        (EngineStartError("the scheduler does not respond"), 503),
    ):
        with _client(database, Echo(error)) as client:
            answer = client.post("/api/v1/remotes", json=TARGET)
            assert problem(answer, status)["detail"] == str(error)


def test_slow_steps_leave_threads_for_other_requests(database: Database) -> None:
    echo = Echo()
    with _client(database, echo) as client:
        echo.may_answer.clear()
        answers: list[int] = []

        def ask() -> None:
            answer = client.post("/api/v1/remotes/s/frames", content=b"x", headers=BYTES)
            answers.append(answer.status_code)

        threads = [threading.Thread(target=ask) for _ in range(10)]
        for thread in threads:
            thread.start()
        while len(answers) < 2:
            threads[0].join(0.05)
        assert answers == [503, 503]
        assert client.get("/api/v1/workers").status_code == 200
        echo.may_answer.set()
        for thread in threads:
            thread.join()
    assert sorted(answers) == [200] * 8 + [503] * 2
