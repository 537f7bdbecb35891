"""The HTTP side over a real database, without a coordinator."""

from __future__ import annotations

import gzip
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient

from compiler.target.target import Target
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store import workers
from service.store.database.database import Database, open_database
from tests.service_fixtures import problem
from workers.engine.engine import WorkerFacts

SCRIPT = """
@T.prim_func
def double(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
"""

JOB = {"workload": {"operator": "matmul:16,16,16"}, "trials": 8}


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.on_both_databases
def test_a_job_is_queued(client: TestClient) -> None:
    response = client.post("/jobs", json=JOB)
    assert response.status_code == 201
    job = response.json()
    assert (job["state"], job["workload_name"], job["trials"]) == ("queued", "matmul", 8)
    assert job["target"].startswith("cpu -mcpu=")
    assert response.headers["location"] == f"/api/v1/jobs/{job['id']}"
    assert client.get(f"/jobs/{job['id']}").json() == job


def test_a_script_is_a_workload_too(client: TestClient) -> None:
    response = client.post("/jobs", json={"workload": {"script": SCRIPT}, "trials": 1})
    assert response.status_code == 201
    assert response.json()["workload_name"] == "double"


@pytest.mark.on_both_databases
def test_programs_of_one_structure_are_one_workload(client: TestClient) -> None:
    renamed = SCRIPT.replace("double", "twice").replace("vi", "x")
    keys = {
        client.post("/jobs", json={"workload": {"script": text}, "trials": 1}).json()[
            "workload_key"
        ]
        for text in (SCRIPT, renamed)
    }
    assert len(keys) == 1


@pytest.mark.on_both_databases
def test_the_same_submission_with_the_same_key_is_one_job(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    first, second = (client.post("/jobs", json=JOB, headers=headers) for _ in range(2))
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert second.headers["idempotent-replayed"] == "true"
    assert len(client.get("/jobs").json()["items"]) == 1


@pytest.mark.on_both_databases
def test_a_key_stands_for_one_request(client: TestClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    client.post("/jobs", json=JOB, headers=headers)
    refused = problem(client.post("/jobs", json={**JOB, "trials": 9}, headers=headers), 422)
    assert "'k1' was used before with another request" in refused["detail"]


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_has_a_length(client: TestClient, key: str) -> None:
    headers = {"Idempotency-Key": key}
    refused = problem(client.post("/jobs", json=JOB, headers=headers), 422)
    assert "1 to 255 characters" in refused["detail"]


def test_a_wrong_script_is_shown_with_its_place(client: TestClient) -> None:
    wrong = SCRIPT.replace("A[vi]", "A[vi")
    refused = problem(client.post("/jobs", json={"workload": {"script": wrong}, "trials": 1}), 422)
    (flaw,) = refused["errors"]
    assert flaw["pointer"] == "/workload/script"
    assert (flaw["line"], flaw["column"] > 0) == (7, True)
    assert "B[vi] = A[vi * T.float32(2)" in refused["detail"]
    assert "^" in refused["detail"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("A[vi] *", "A[vi + 1] *", "A"),
        ("A[vi] *", "Z[vi] *", "Z"),
        ("float32", "float31", "float31"),
        ("(16,)", "(0,)", "0"),
        ("(16,)", "(10 ** 30,)", ""),
    ],
)
def test_a_script_that_means_nothing_is_refused(
    client: TestClient, old: str, new: str, expected: str
) -> None:
    wrong = SCRIPT.replace(old, new)
    refused = problem(client.post("/jobs", json={"workload": {"script": wrong}, "trials": 1}), 422)
    assert expected in refused["detail"]
    assert refused["errors"][0]["line"] >= 2
    assert client.get("/jobs").json()["items"] == []


def test_a_script_is_never_executed(client: TestClient, tmp_path: Path) -> None:
    trap = tmp_path / "executed"
    for line in (f"open({str(trap)!r}, 'w')", f"__import__('pathlib').Path({str(trap)!r}).touch()"):
        for wrong in (line + SCRIPT, SCRIPT + line, SCRIPT.replace("A[vi]", line)):
            workload = {"script": wrong}
            problem(client.post("/jobs", json={"workload": workload, "trials": 1}), 422)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("change", "pointer", "expected"),
    [
        ({"trials": 0}, "/trials", "greater than or equal to 1"),
        ({"trials": 1_000_000}, "/trials", "less than or equal to 100000"),
        ({"trials": "many"}, "/trials", "valid integer"),
        ({"seed": -1}, "/seed", "greater than or equal to 0"),
        ({"strategy": "prayer"}, "/strategy", "'exhaustive' or 'random'"),
        ({"extra": 1}, "/extra", "Extra inputs"),
        ({"workload": {}}, "/workload", "one of `script` and `operator`"),
        ({"workload": {"script": SCRIPT, "operator": "x"}}, "/workload", "not both"),
        ({"workload": {"operator": "matmull:8,8,8"}}, "/workload/operator", "matmul"),
        ({"workload": {"operator": "matmul:0,8,8"}}, "/workload/operator", "0"),
        ({"workload": {"operator": "matmul:99999999,99999999,8"}}, "/workload/operator", "9999"),
        ({"target": "quantum"}, "/target", "unknown target kind 'quantum'"),
        ({"target": "cpu -mcpu=neoverse-n1"}, "/target", "no worker of this service"),
        ({"target": "cpu -num-cores=1000"}, "/target", "cores"),
    ],
)
def test_a_request_out_of_range_is_refused_with_its_place(
    client: TestClient, change: dict[str, Any], pointer: str, expected: str
) -> None:
    refused = problem(client.post("/jobs", json={**JOB, **change}), 422)
    assert refused["errors"][0]["pointer"] == pointer
    assert expected in refused["detail"]


def test_a_target_of_a_worker_that_is_or_was_there_is_taken(
    client: TestClient, database: Database
) -> None:
    """The kinds are refused, looked at and taken alike, alone and in groups."""
    target, wide = "cpu -mcpu=cortex-a72 -num-cores=4", "cpu -mcpu=cortex-a72 -num-cores=8"
    bodies: dict[str, dict[str, Any]] = {
        "/jobs": JOB,
        "/groups": {"tasks": [{"workload": JOB["workload"]}], "trials": 64},
        "/workloads/check": {"workload": JOB["workload"]},
    }

    def ask(target: str) -> list[Any]:
        return [client.post(at, json={**body, "target": target}) for at, body in bodies.items()]

    for answer in ask(target):
        refused = problem(answer, 422)
        assert refused["errors"][0]["pointer"] == "/target"
        assert "start `loopwright worker`" in refused["detail"]
        assert Target("cpu").label in refused["detail"]
    with database.write() as session:
        long_ago, facts = time.time() - 600, {"num_cores": 4}
        arm = WorkerFacts("b/b-0", "b", "cpu/cortex-a72", 1, False, long_ago, facts)
        workers.heard_of(session, [arm])
    assert [answer.status_code for answer in ask(target)] == [201, 201, 200]
    for answer in ask(wide):
        assert "cpu/cortex-a72 have 4 cores" in problem(answer, 422)["detail"]


@pytest.mark.parametrize("body", ["", "{", "[]", '"text"', "\x00", "{" * 100_000])
def test_what_is_no_request_is_refused(client: TestClient, body: str) -> None:
    headers = {"content-type": "application/json"}
    problem(client.post("/jobs", content=body, headers=headers), 422)


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


def test_jobs_come_in_pages_newest_first(client: TestClient) -> None:
    ids = [client.post("/jobs", json=JOB).json()["id"] for _ in range(5)]
    seen: list[str] = []
    params: dict[str, str | int] = {"limit": 2}
    for expected in (2, 2, 1):
        page = client.get("/jobs", params=params).json()
        assert len(page["items"]) == expected
        seen += [job["id"] for job in page["items"]]
        params["cursor"] = page["next_cursor"]
    assert page["next_cursor"] is None
    assert seen == ids[::-1]


@pytest.mark.on_both_databases
def test_jobs_by_state(client: TestClient) -> None:
    ids = [client.post("/jobs", json=JOB).json()["id"] for _ in range(2)]
    assert client.post(f"/jobs/{ids[0]}/cancel").json()["state"] == "cancelled"
    queued = client.get("/jobs", params={"state": "queued"}).json()["items"]
    assert [job["id"] for job in queued] == ids[1:]


@pytest.mark.parametrize("limit", [0, 501, "x"])
def test_a_page_has_a_size(client: TestClient, limit: int | str) -> None:
    refused = problem(client.get("/jobs", params={"limit": limit}), 422)
    assert refused["errors"][0]["pointer"] == "query/limit"


@pytest.mark.on_both_databases
def test_events_of_a_job_that_ended_are_a_stream_that_ends(client: TestClient) -> None:
    job_id = client.post("/jobs", json=JOB).json()["id"]
    client.post(f"/jobs/{job_id}/cancel")
    response = client.get(f"/jobs/{job_id}/events")
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [block.splitlines() for block in response.text.strip().split("\n\n")]
    assert [block[0] for block in events] == ["event: state", "event: state"]
    ids = [line.removeprefix("id: ") for block in events for line in block if line[:3] == "id:"]
    assert '"cancelled"' in response.text

    resumed = client.get(f"/jobs/{job_id}/events", headers={"Last-Event-ID": ids[0]})
    assert f"id: {ids[1]}" in resumed.text
    assert f"id: {ids[0]}\n" not in resumed.text
    finished = client.get(f"/jobs/{job_id}/events", headers={"Last-Event-ID": ids[1]})
    assert finished.text == ""


def test_a_last_event_id_is_a_number(client: TestClient) -> None:
    job_id = client.post("/jobs", json=JOB).json()["id"]
    headers = {"Last-Event-ID": "yesterday"}
    problem(client.get(f"/jobs/{job_id}/events", headers=headers), 422)


def test_a_token_is_asked_for(database: Database) -> None:
    app = create_app(Dependencies(database), token="s3cret")
    with TestClient(app, base_url="http://test") as client:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic s3cret"}):
            response = client.get("/api/v1/jobs", headers=headers)
            problem(response, 401)
            assert response.headers["www-authenticate"].startswith("Bearer")
        right = {"Authorization": "Bearer s3cret"}
        assert client.get("/api/v1/jobs", headers=right).status_code == 200
        assert client.get("/livez").status_code == 204
        assert client.get("/readyz").status_code == 204


def test_a_request_under_a_strange_name_is_refused(database: Database) -> None:
    app = create_app(Dependencies(database), hosts={"localhost", "127.0.0.1", "[::1]"})
    with TestClient(app, base_url="http://test") as client:
        problem(client.get("/api/v1/jobs", headers={"Host": "evil.example:8080"}), 421)
        for host in ("localhost", "LocalHost:8080", "127.0.0.1:8080", "[::1]:8080", "[::1]"):
            assert client.get("/api/v1/jobs", headers={"Host": host}).status_code == 200


@pytest.mark.on_both_databases
def test_health_says_what_is_wrong(client: TestClient) -> None:
    client.post("/jobs", json=JOB)
    health = client.get("/health").json()
    assert health["status"] == "degraded"
    assert health["checks"] == {"database": "ok", "coordinator": "not running"}
    assert (health["num_queued"], health["num_running"], health["num_workers"]) == (1, 0, 0)


@pytest.mark.on_both_databases
def test_without_a_finished_job_there_is_no_cost_model(client: TestClient) -> None:
    assert client.get("/cost-models").json() == {"items": [], "next_cursor": None}
    assert client.get("/cost-models?limit=0").status_code == 422


def test_the_api_describes_itself(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert set(described["paths"]) >= {
        "/api/v1/jobs",
        "/api/v1/jobs/{job_id}",
        "/api/v1/jobs/{job_id}/cancel",
        "/api/v1/jobs/{job_id}/trials",
        "/api/v1/jobs/{job_id}/events",
        "/api/v1/schedules/best",
        "/api/v1/artifacts",
        "/api/v1/cost-models",
        "/api/v1/workers",
        "/api/v1/health",
        "/livez",
        "/readyz",
    }
    assert "Problem" in described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation.get("summary"), (method, path)
            content = operation["responses"].get("422", {}).get("content", {})
            assert set(content) <= {"application/problem+json"}, (method, path)


@pytest.mark.parametrize("route", ["/jobs", "/workloads/check", "/schedules/best"])
def test_a_symbolic_program_is_refused_with_the_way_to_make_it_static(
    client: TestClient, route: str
) -> None:
    symbolic = SCRIPT.replace("(16,)", '("n",)')
    assert symbolic != SCRIPT
    request = {"workload": {"script": symbolic}}
    if route == "/jobs":
        request |= {"trials": 1}  # type: ignore[dict-item]
    detail = problem(client.post(route, json=request), 422)["detail"]
    assert "is symbolic" in detail
    assert 'func.specialize({"n": 128})' in detail
