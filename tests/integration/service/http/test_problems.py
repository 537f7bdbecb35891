"""Refusals as problems of RFC 9457, with the place of the mistake."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database, open_database
from tests.service_fixtures import problem

SCRIPT = """
@T.prim_func
def double(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
"""


JOB = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 8}


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(
    ("change", "pointer", "expected"),
    [
        ({"max_trials": 0}, "/max_trials", "greater than or equal to 1"),
        ({"max_trials": 1_000_000}, "/max_trials", "less than or equal to 100000"),
        ({"max_trials": "many"}, "/max_trials", "valid integer"),
        ({"seed": -1}, "/seed", "greater than or equal to 0"),
        ({"strategy": "prayer"}, "/strategy", "'exhaustive' or 'random'"),
        ({"extra": 1}, "/extra", "Extra inputs"),
        ({"workload": {}}, "/workload", "either `script` or `operator`"),
        ({"workload": {"script": SCRIPT, "operator": "x"}}, "/workload", "either `script`"),
        ({"workload": {"operator": "matmull:8,8,8"}}, "/workload/operator", "matmul"),
        ({"workload": {"operator": "matmul:0,8,8"}}, "/workload/operator", "0"),
        ({"workload": {"operator": "matmul:99999999,99999999,8"}}, "/workload/operator", "9999"),
        ({"workload": {"operator": "matmul:M,8,8"}}, "/workload/operator", "POST /shapes"),
        ({"tags": ["ok", "Big"]}, "/tags/1", "1 to 64 of the characters"),
        ({"target": "quantum"}, "/target", "unknown target kind 'quantum'"),
        ({"target": "cpu -mcpu=neoverse-n1"}, "/target", "no worker of this service"),
        ({"target": "cpu -num-cores=1000"}, "/target", "cores"),
        ({"target": "cpu -cache=hot"}, "/target", "bad state of caches 'hot'"),
    ],
)
def test_a_request_out_of_range_is_refused_with_its_place(
    client: TestClient, change: dict[str, Any], pointer: str, expected: str
) -> None:
    refused = problem(client.post("/jobs", json={**JOB, **change}), 422)
    assert refused["errors"][0]["pointer"] == pointer
    assert expected in refused["detail"]


@pytest.mark.parametrize(
    ("path", "change", "pointer"),
    [
        ("jobs", {"name": "\ud800"}, "/name"),
        ("jobs", {"note": "a\udfff"}, "/note"),
        ("jobs", {"tags": ["nightly", "\ud800"]}, "/tags/1"),
        ("jobs", {"target": "\ud800"}, "/target"),
        ("jobs", {"rules": ["\ud800"]}, "/rules/0"),
        ("jobs", {"workload": {"operator": "\ud800"}}, "/workload/operator"),
        ("jobs", {"workload": {"script": "\ud800"}}, "/workload/script"),
        ("jobs", {"webhook": {"url": "https://\ud800", "secret": "whsec_"}}, "/webhook/url"),
        ("jobs", {"\ud800": 1}, ""),
        ("shapes", {"ranges": {"M\ud800": [1, 2]}}, "/ranges"),
        ("models", {"name": "\ud800"}, "/name"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_with_its_place(
    client: TestClient, path: str, change: dict[str, Any], pointer: str
) -> None:
    headers = {"content-type": "application/json"}
    body = json.dumps({**JOB, **change})
    refused = problem(client.post(f"/{path}", content=body, headers=headers), 422)
    assert refused["errors"][0]["pointer"] == pointer
    assert "half of a surrogate pair" in refused["errors"][0]["detail"]


@pytest.mark.parametrize("body", ["", "{", "[]", '"text"', "\x00", "{" * 100_000])
def test_what_is_no_request_is_refused(client: TestClient, body: str) -> None:
    headers = {"content-type": "application/json"}
    problem(client.post("/jobs", content=body, headers=headers), 422)


def test_a_body_that_is_nested_too_deeply_is_told_the_limit(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    refused = problem(client.post("/jobs", content="[" * 100_000, headers=headers), 400)
    assert "in more than 4 levels" in refused["detail"]


def test_a_body_that_is_not_utf_8_is_told_where(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    refused = problem(client.post("/jobs", content=b'{"name": "\xff"}', headers=headers), 400)
    assert refused["detail"] == "the body is not UTF-8 text at byte 10"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ([], ""),
        ("text", ""),
        ({**JOB, "workload": 3}, "/workload"),
        ({**JOB, "webhook": []}, "/webhook"),
    ],
)
def test_what_is_no_object_is_told_to_be_one(
    client: TestClient, body: object, pointer: str
) -> None:
    refused = problem(client.post("/jobs", json=body), 422)
    assert refused["errors"] == [{"detail": "expected a JSON object", "pointer": pointer}]


def test_text_that_is_not_json_is_told_where(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    refused = problem(client.post("/jobs", content='{"trials": }', headers=headers), 422)
    assert refused["errors"] == [{"detail": "not JSON at character 11: Expecting value"}]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "json", ""])
def test_json_that_is_sent_as_something_else_is_refused(client: TestClient, kind: str) -> None:
    headers = {"content-type": kind}
    refused = problem(client.post("/jobs", content=json.dumps(JOB), headers=headers), 415)
    assert "`Content-Type: application/json`" in refused["detail"]
    assert refused["type"].endswith(":unsupported-media-type")


def test_a_compressed_body_is_refused(client: TestClient) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    content = gzip.compress(json.dumps(JOB).encode())
    refused = problem(client.post("/jobs", content=content, headers=headers), 415)
    assert "without `Content-Encoding`" in refused["detail"]


def test_a_request_without_a_body_is_told_what_it_lacks(client: TestClient) -> None:
    refused = problem(client.post("/jobs"), 422)
    assert "`Content-Type: application/json`" in refused["detail"]


def test_a_body_that_announces_too_much_is_refused(client: TestClient) -> None:
    headers = {"content-type": "application/json"}
    content = b" " * (2 << 20) + b"{}"
    refused = problem(client.post("/jobs", content=content, headers=headers), 413)
    assert "larger than 2097152 bytes" in refused["detail"]


def test_a_body_that_grows_too_long_is_refused(client: TestClient) -> None:
    chunks = (b" " * 65536 for _ in range(40))
    headers = {"content-type": "application/json"}
    problem(client.post("/jobs", content=chunks, headers=headers), 413)


@pytest.mark.on_both_databases
def test_what_is_not_there(client: TestClient) -> None:
    unknown = uuid4()
    assert f"no job {unknown}" in problem(client.get(f"/jobs/{unknown}"), 404)["detail"]
    for tail in ("trials", "events"):
        problem(client.get(f"/jobs/{unknown}/{tail}"), 404)
    problem(client.post(f"/jobs/{unknown}/cancel"), 404)
    assert "nothing at /api/v1/nowhere" in problem(client.get("/nowhere"), 404)["detail"]
    problem(client.get("/jobs/not-an-id"), 422)
    refused = problem(client.delete("/jobs"), 405)
    assert refused["detail"] == "/api/v1/jobs does not take DELETE"


def test_an_error_of_ours_is_a_problem_too(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr("service.store.jobs.jobs.get", fail)
    assert "secret" not in problem(client.get(f"/jobs/{uuid4()}"), 500)["detail"]


def test_a_database_that_stays_busy_is_said_to_be(database_file: Path) -> None:
    with (
        closing(open_database(f"sqlite:///{database_file}", busy_timeout_secs=0.1)) as database,
        closing(sqlite3.connect(database_file, isolation_level=None)) as hog,
        TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client,
    ):
        hog.execute("BEGIN IMMEDIATE")
        response = client.post("/jobs", json=JOB)
        assert problem(response, 503)["detail"].startswith("the database is busy")
        assert response.headers["retry-after"] == "5"
        assert client.get("/jobs").json()["items"] == []
        hog.execute("ROLLBACK")
        assert client.post("/jobs", json=JOB).status_code == 201
