"""Jobs and idempotency keys belong to tokens, and tokens have quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx2
import pytest
from fastapi.testclient import TestClient

from service.common.errors import ServiceConflictError
from service.common.quota import NO_LIMITS, Quota
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store import tokens
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.jobs.jobs import JobRow
from service.wire.models import JobState
from service.wire.server_models import Scope
from tests.service_fixtures import problem

pytestmark = pytest.mark.on_both_databases

JOB = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 100}
TASKS = [{"workload": {"operator": f"matmul:{n},16,16"}} for n in (8, 16)]
GROUP = {"tasks": TASKS, "max_trials": 100}


class Asking:
    """Requests with a token each."""

    def __init__(self, client: TestClient, database: Database) -> None:
        self._client = client
        self._database = database
        self._tokens: dict[str, str] = {}

    def make(self, name: str, scope: Scope = Scope.SUBMIT, quota: Quota = NO_LIMITS) -> None:
        with self._database.write() as session:
            self._tokens[name] = tokens.create(session, name, [scope], quota)[1]

    def ask(
        self, name: str, method: str, path: str, json: Any = None, **headers: str
    ) -> httpx2.Response:
        headers["Authorization"] = f"Bearer {self._tokens[name]}"
        response: httpx2.Response = self._client.request(
            method, path, json=json, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
        return response

    def made(self, name: str, path: str = "/jobs", json: Any = None, **headers: str) -> Any:
        response = self.ask(name, "POST", path, json or JOB, **headers)
        assert response.is_success, response.text
        return response.json()


@pytest.fixture
def api(database: Database) -> Iterator[Asking]:
    app = create_app(Dependencies(database), requests_per_sec=0)
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        api = Asking(client, database)
        api.make("alice")
        api.make("bob")
        api.make("admin", Scope.ADMIN)
        yield api


ACTS: list[tuple[str, str, Any]] = [
    ("POST", "/cancel", None),
    ("POST", "/stop", None),
    ("POST", "/resume", None),
    ("PATCH", "", {"priority": 5}),
    ("PATCH", "", {"max_trials": 1}),
]


def test_only_its_owner_or_an_admin_changes_a_job(api: Asking, database: Database) -> None:
    for method, path, body in ACTS:
        address = f"/jobs/{api.made('alice')['id']}"
        before = api.ask("bob", "GET", address).json()
        refused = problem(api.ask("bob", method, address + path, body), 403)
        assert "belongs to token 'alice', and you are 'bob'" in refused["detail"]
        assert api.ask("bob", "GET", address).json() == before
        for name in ("alice", "admin"):
            assert api.ask(name, method, address + path, body).status_code == 200
    with database.write() as session:  # from a time without tokens
        session.query(JobRow).update({"owner": None})
    refused = problem(api.ask("alice", "POST", address + "/cancel"), 403)
    assert "belongs to no token" in refused["detail"]


def test_only_its_owner_or_an_admin_changes_a_group(api: Asking) -> None:
    group = api.made("alice", "/groups", GROUP)
    address = f"/groups/{group['id']}"
    problem(api.ask("bob", "PATCH", address, {"max_trials": 200}), 403)
    for control in ("cancel", "stop"):
        problem(api.ask("bob", "POST", f"{address}/{control}"), 403)
    problem(api.ask("bob", "POST", f"/jobs/{group['jobs'][1]['id']}/cancel"), 403)
    assert api.ask("bob", "GET", address).json()["max_trials"] == 100
    for name in ("alice", "admin"):
        assert api.ask(name, "PATCH", address, {"max_trials": 200}).status_code == 200


def test_a_token_that_replaces_another_owns_its_jobs(api: Asking, database: Database) -> None:
    job = api.made("alice")
    with database.write() as session:
        row = tokens.find(session, "alice")
        assert row is not None
        tokens.revoke(session, row.id)
    api.make("alice")
    assert api.ask("alice", "POST", f"/jobs/{job['id']}/cancel").status_code == 200


def test_an_idempotency_key_belongs_to_a_token(api: Asking) -> None:
    alices = api.made("alice", Idempotency_Key="k")
    bobs = api.made("bob", Idempotency_Key="k")
    assert alices["id"] != bobs["id"]
    assert api.made("alice", Idempotency_Key="k")["id"] == alices["id"]
    # Another request under a key of somebody else tells nothing of that.
    assert api.made("admin", json={**JOB, "max_trials": 9}, Idempotency_Key="k")["max_trials"] == 9
    assert {job["owner"] for job in (alices, bobs)} == {"alice", "bob"}


def test_a_token_cannot_be_called_like_that_of_the_service(database: Database) -> None:
    with pytest.raises(ServiceConflictError, match="choose another"), database.write() as session:
        tokens.create(session, tokens.BOOTSTRAP, [Scope.SUBMIT])


def end(database: Database, job_id: str) -> None:
    with database.write() as session:
        jobs.get(session, UUID(job_id)).state = JobState.SUCCEEDED


def test_jobs_at_once_are_limited(api: Asking, database: Database) -> None:
    api.make("ci", quota=Quota(max_jobs=2))
    first = api.made("ci")
    api.made("ci")
    response = api.ask("ci", "POST", "/jobs", JOB)
    refused = problem(response, 429)
    assert refused["type"].endswith(":quota")
    assert "may have 2 queued and running jobs at once; it has 2" in refused["detail"]
    assert int(response.headers["retry-after"]) > 60  # so that clients do not wait for it
    assert api.made("bob")["owner"] == "bob"
    end(database, first["id"])
    cancelled = api.made("ci")
    assert api.ask("ci", "POST", f"/jobs/{cancelled['id']}/cancel").status_code == 200
    api.made("ci")
    problem(api.ask("ci", "POST", f"/jobs/{cancelled['id']}/resume"), 429)
    tasks = [*TASKS, {"workload": {"operator": "matmul:24,16,16"}}]
    refused = problem(api.ask("ci", "POST", "/groups", {"tasks": tasks, "max_trials": 99}), 403)
    assert "this request alone adds 3" in refused["detail"]


def test_trials_at_once_are_limited(api: Asking, database: Database) -> None:
    api.make("ci", quota=Quota(max_trials=250))
    job = api.made("ci")
    api.made("ci", "/groups", GROUP)  # counts as 100
    problem(api.ask("ci", "POST", "/jobs", JOB), 429)
    problem(api.ask("ci", "POST", "/groups", GROUP), 429)
    problem(api.ask("ci", "POST", "/jobs", {**JOB, "max_trials": 251}), 403)
    address = f"/jobs/{job['id']}"
    assert api.ask("ci", "PATCH", address, {"max_trials": 150}).status_code == 200
    problem(api.ask("ci", "PATCH", address, {"max_trials": 151}), 429)
    with database.write() as session:
        jobs.get(session, UUID(job["id"])).num_measured = 100
    api.made("ci")
    assert api.ask("admin", "PATCH", address, {"max_trials": 5000}).status_code == 200
    # Above the quota, jobs may still be made smaller.
    assert api.ask("ci", "PATCH", address, {"max_trials": 4000}).status_code == 200


def test_the_priority_has_a_ceiling(api: Asking) -> None:
    api.make("ci", quota=Quota(max_priority=0))
    refused = problem(api.ask("ci", "POST", "/jobs", {**JOB, "priority": 1}), 403)
    assert "priority 1 exceeds the maximum of token 'ci', which is 0" in refused["detail"]
    problem(api.ask("ci", "POST", "/groups", {**GROUP, "priority": 1}), 403)
    address = f"/jobs/{api.made('ci')['id']}"
    problem(api.ask("ci", "PATCH", address, {"priority": 1}), 403)
    assert api.ask("ci", "PATCH", address, {"priority": -1}).status_code == 200


def test_a_schedule_that_is_asked_for_is_queued_within_the_quota(api: Asking) -> None:
    api.make("ci", quota=Quota(max_jobs=0))
    body = {"workload": {"operator": "matmul:16,16,16"}, "enqueue": True}
    detail = problem(api.ask("ci", "POST", "/schedules/best", body), 404)["detail"]
    assert "no job was queued: token 'ci' may have 0 queued and running jobs" in detail
    assert api.ask("ci", "GET", "/jobs").json()["items"] == []


def test_quotas_are_shown(api: Asking) -> None:
    limits = {"max_jobs": 2, "max_trials": 500, "max_priority": 0}
    made = api.made("admin", "/tokens", {"name": "ci", "scopes": ["submit"], **limits})
    assert {name: made[name] for name in limits} == limits
    listed = api.ask("admin", "GET", "/tokens?text=ci").json()["items"][0]
    assert {name: listed[name] for name in limits} == limits
    api.make("cd", quota=Quota(**limits))
    assert api.ask("cd", "GET", "/caller").json() == {"name": "cd", "scope": "submit", **limits}
