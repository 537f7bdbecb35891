from __future__ import annotations

import pytest

from examples.serving import free_port
from loopwright.client.connection import Connection
from loopwright.client.decoding import read
from loopwright.client.steps import KEY, HttpCall, send
from loopwright.errors import (
    AccessDeniedError,
    ConflictError,
    InvalidAddressError,
    InvalidRequestError,
    NotFoundError,
    ProtocolError,
    RequestError,
    ServerFailedError,
    ServerUnreachableError,
)
from service.wire.requests import Workload
from service.wire.server_models import Health
from tests.unit.loopwright.fake_server import Answer, FakeServer

HEALTH = {
    "status": "ok",
    "version": "0",
    "checks": {},
    "num_workers": 1,
    "num_queued": 0,
    "num_running": 0,
}


def test_a_request_carries_the_token_and_the_api_path(
    fake: FakeServer, connection: Connection
) -> None:
    fake.answers = [Answer(body=HEALTH)]
    assert read(Health, connection.run(send(HttpCall("GET", "/health")))).num_workers == 1
    assert fake.asked[0].path == "/api/v1/health"
    assert fake.asked[0].headers["authorization"] == "Bearer secret"


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again_with_the_same_request(
    fake: FakeServer, connection: Connection, status: int
) -> None:
    fake.answers = [Answer(status), Answer(status), Answer(body=HEALTH)]
    connection.run(send(HttpCall("POST", "/jobs", Workload(operator="x"), headers={KEY: "k"})))
    assert [asked.headers["idempotency-key"] for asked in fake.asked] == ["k"] * 3
    assert len({asked.body for asked in fake.asked}) == 1


def test_a_server_that_stays_busy_is_an_error_with_its_own_words(
    fake: FakeServer, connection: Connection
) -> None:
    problem = {"title": "busy", "status": 503, "detail": "the queue is full"}
    fake.answers = [Answer(503, problem)] * 3
    with pytest.raises(ServerFailedError, match="the queue is full"):
        connection.run(send(HttpCall("GET", "/health")))
    assert fake.answers == []


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("urn:loopwright:problem:invalid-target", "invalid-target"),
        ("urn:loopwright:problem:a-newer-one", "a-newer-one"),
        ("https://proxy.example/errors#limit", "error"),
        (None, "error"),
    ],
)
def test_an_error_has_the_code_of_its_problem(
    fake: FakeServer, connection: Connection, kind: str | None, code: str
) -> None:
    fake.answers = [Answer(422, {"title": "no", "detail": "in any words", "type": kind})]
    if kind is None:
        del fake.answers[0].body["type"]
    with pytest.raises(InvalidRequestError) as caught:
        connection.run(send(HttpCall("GET", "/health")))
    assert caught.value.code == code


def test_a_broken_server_is_not_asked_again(fake: FakeServer, connection: Connection) -> None:
    fake.answers = [Answer(500, {"title": "internal error", "status": 500})]
    with pytest.raises(ServerFailedError, match="internal error"):
        connection.run(send(HttpCall("GET", "/health")))


def test_a_connection_cut_in_the_middle_of_an_answer_is_made_again(
    fake: FakeServer, connection: Connection
) -> None:
    fake.answers = [Answer(body=HEALTH, is_cut=True), Answer(body=HEALTH)]
    assert connection.run(send(HttpCall("GET", "/health"))).status_code == 200


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequestError),
        (401, AccessDeniedError),
        (403, AccessDeniedError),
        (404, NotFoundError),
        (409, ConflictError),
        (413, InvalidRequestError),
        (418, RequestError),
        (422, InvalidRequestError),
    ],
)
def test_a_problem_document_becomes_the_error_of_its_status(
    fake: FakeServer, connection: Connection, status: int, kind: type[RequestError]
) -> None:
    flaw = {"detail": "unknown name", "line": 3, "column": 7}
    fake.answers = [Answer(status, {"title": "no", "detail": "why not", "errors": [flaw]})]
    with pytest.raises(RequestError, match="why not") as caught:
        connection.run(send(HttpCall("GET", "/x")))
    assert type(caught.value) is kind
    assert caught.value.problem.status == status
    assert caught.value.problem.errors[0].line == 3


def test_an_error_that_is_no_problem_document_keeps_its_text(
    fake: FakeServer, connection: Connection
) -> None:
    fake.answers = [Answer(404, b"<html>nothing here</html>")]
    with pytest.raises(NotFoundError, match="nothing here"):
        connection.run(send(HttpCall("GET", "/x")))


def test_an_answer_of_another_shape_is_named(fake: FakeServer, connection: Connection) -> None:
    fake.answers = [Answer(body={"hello": "world"})]
    with pytest.raises(
        ProtocolError, match="answered without a valid Health: status: Field required"
    ):
        read(Health, connection.run(send(HttpCall("GET", "/health"))))


def test_a_port_where_nobody_listens_is_an_unreachable_server() -> None:
    connection = Connection(f"http://127.0.0.1:{free_port()}", None, timeout_secs=1.0, attempts=2)
    with pytest.raises(ServerUnreachableError, match=r"no answer from http://127\.0\.0\.1"):
        connection.run(send(HttpCall("GET", "/health")))
    connection.close()


@pytest.mark.parametrize("url", ["", "localhost:80", "ftp://x", "http://", "http://x:port"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidAddressError, match=r"looks like http://127\.0\.0\.1:8080"):
        Connection(url, None, timeout_secs=1.0, attempts=1)
