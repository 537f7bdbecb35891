"""Tokens over HTTP and in the database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from service.common.errors import ServiceConflictError
from service.http.app import create_app
from service.http.auth import REMEMBERED_SECS, Tokens
from service.http.dependencies import Dependencies
from service.http.event_feed import EventFeed
from service.http.rate_limit import RateLimit
from service.store import tokens
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.tokens import TokenRow
from service.wire.server_models import Scope
from tests.service_fixtures import add_job, problem

pytestmark = pytest.mark.on_both_databases

JOB = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 8}


def headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def make(database: Database, name: str, *scopes: Scope) -> str:
    with database.write() as session:
        return tokens.create(session, name, scopes)[1]


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


def create(client: TestClient, name: str, *scopes: str, by: str | None = None) -> dict[str, Any]:
    response = client.post(
        "/tokens", json={"name": name, "scopes": scopes}, headers=headers(by) if by else {}
    )
    assert response.status_code == 201, response.text
    return dict(response.json())


def test_the_first_token_closes_an_open_service(client: TestClient) -> None:
    assert client.get("/jobs").status_code == 200
    client.app.state.tokens = Tokens(client.app.state.parts.database)  # type: ignore[attr-defined]
    admin = create(client, "me", "admin")["token"]
    client.app.state.tokens = Tokens(client.app.state.parts.database)  # type: ignore[attr-defined]
    problem(client.get("/jobs"), 401)
    assert client.get("/jobs", headers=headers(admin)).status_code == 200


def test_a_token_is_shown_once_and_kept_as_a_digest(client: TestClient, database: Database) -> None:
    made = create(client, "me", "admin")
    assert made["token"].startswith("lw_")
    listed = client.get("/tokens", headers=headers(made["token"]))
    assert made["token"] not in listed.text
    (shown,) = listed.json()["items"]
    assert (shown["name"], shown["scopes"], shown["revoked_at"]) == ("me", ["admin"], None)
    with database.read() as session:
        rows = session.execute(text("SELECT * FROM tokens")).all()
    assert made["token"] not in str(rows)


def test_a_revoked_token_is_unknown_and_its_name_is_free(
    client: TestClient, database: Database
) -> None:
    admin = make(database, "admin", Scope.ADMIN)
    made = create(client, "ci", "submit", by=admin)
    assert client.get("/jobs", headers=headers(made["token"])).status_code == 200
    for _ in range(2):
        response = client.delete(f"/tokens/{made['id']}", headers=headers(admin))
        assert response.status_code == 204
    problem(client.get("/jobs", headers=headers(made["token"])), 401)
    again = create(client, "ci", "submit", by=admin)
    assert client.get("/jobs", headers=headers(again["token"])).status_code == 200


def test_a_name_is_of_one_token(client: TestClient, database: Database) -> None:
    admin = make(database, "admin", Scope.ADMIN)
    refused = problem(client.post("/tokens", json={"name": "admin"}, headers=headers(admin)), 409)
    assert "token 'admin' exists" in refused["detail"]
    with pytest.raises(ServiceConflictError):
        make(database, "admin", Scope.READ)


@pytest.mark.parametrize("name", ["", " x", "a\nb", "x" * 65, "-x"])
def test_a_name_is_plain(client: TestClient, name: str) -> None:
    problem(client.post("/tokens", json={"name": name, "scopes": ["read"]}), 422)


def test_an_unknown_token_cannot_be_revoked(client: TestClient, database: Database) -> None:
    admin = make(database, "admin", Scope.ADMIN)
    missing = "00000000-0000-0000-0000-000000000000"
    problem(client.delete(f"/tokens/{missing}", headers=headers(admin)), 404)


def test_a_job_has_an_owner(client: TestClient, database: Database) -> None:
    ci = make(database, "ci", Scope.SUBMIT)
    made = client.post("/jobs", json=JOB, headers=headers(ci))
    assert made.json()["owner"] == "ci"
    assert client.get(made.headers["location"][7:], headers=headers(ci)).json()["owner"] == "ci"


def test_the_scopes_include_each_other(client: TestClient, database: Database) -> None:
    made = {scope: headers(make(database, scope.value, scope)) for scope in Scope}
    for scope in Scope:
        assert client.get("/jobs", headers=made[scope]).status_code == 200
    statuses = [client.post("/jobs", json=JOB, headers=made[s]).status_code for s in Scope]
    assert statuses == [403, 201, 201]
    statuses = [client.get("/tokens", headers=made[s]).status_code for s in Scope]
    assert statuses == [403, 403, 200]


def test_the_bootstrap_token_may_do_everything(database: Database) -> None:
    with TestClient(create_app(Dependencies(database), token="s3cret")) as client:
        assert client.get("/api/v1/tokens", headers=headers("s3cret")).status_code == 200
        job = client.post("/api/v1/jobs", json=JOB, headers=headers("s3cret")).json()
        assert job["owner"] == tokens.BOOTSTRAP


def test_the_last_use_is_noted_coarsely(database: Database) -> None:
    ci = make(database, "ci", Scope.READ)
    now = [0.0]
    known = Tokens(database, clock=lambda: now[0])

    def used() -> Any:
        now[0] += 2 * REMEMBERED_SECS
        caller = known.identify(ci)
        assert caller is not None
        assert caller.name == "ci"
        with database.read() as session:
            row = tokens.find(session, "ci")
        assert row is not None
        return row.last_used_at

    first = used()
    assert used() == first
    with database.write() as session:
        session.query(TokenRow).one().last_used_at = utc_now() - timedelta(hours=1)
    assert used() > first


def test_another_process_learns_of_a_revocation(database: Database) -> None:
    ci = make(database, "ci", Scope.READ)
    now = [0.0]
    known = Tokens(database, clock=lambda: now[0])
    assert known.identify(ci) is not None
    with database.write() as session:
        tokens.revoke(session, session.query(TokenRow).one().id)
    now[0] += REMEMBERED_SECS
    assert known.identify(ci) is None


def test_whoever_asks_too_often_waits(database: Database) -> None:
    ci, admin = make(database, "ci", Scope.READ), make(database, "admin", Scope.ADMIN)
    with TestClient(create_app(Dependencies(database), requests_per_sec=1)) as client:
        client.app.state.rate_limit._clock = lambda: 0.0  # type: ignore[attr-defined]
        for _ in range(10):
            assert client.get("/api/v1/jobs", headers=headers(ci)).status_code == 200
        refused = client.get("/api/v1/jobs", headers=headers(ci))
        assert "too many requests" in problem(refused, 429)["detail"]
        assert refused.headers["retry-after"] == "2"
        assert client.get("/api/v1/jobs", headers=headers(admin)).status_code == 200
        # Whoever guesses tokens is one caller, whatever the guess.
        guesses = [client.get("/api/v1/jobs", headers=headers(f"{n}")) for n in range(11)]
        assert [guess.status_code for guess in guesses] == [401] * 10 + [429]
        assert client.get("/livez").status_code == 204


def test_what_needs_more_than_to_read_counts_ten(database: Database) -> None:
    admin = headers(make(database, "admin", Scope.ADMIN))
    with TestClient(create_app(Dependencies(database))) as client:
        client.app.state.rate_limit = RateLimit(1, clock=lambda: 0.0)  # type: ignore[attr-defined]
        assert client.get("/api/v1/tokens", headers=admin).status_code == 200
        problem(client.get("/api/v1/jobs", headers=admin), 429)


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_stream_ends_when_its_token_is_revoked(database: Database, *, is_elsewhere: bool) -> None:
    ci, other = (make(database, name, Scope.SUBMIT) for name in ("ci", "other"))
    app = create_app(Dependencies(database))
    job_id = add_job(database)
    feed: EventFeed = app.state.feed
    known: Tokens = app.state.tokens

    async def main() -> None:
        async def listen(token: str) -> None:
            async for _ in feed.stream(job_id, 0, lambda: known.identify(token) is not None):
                pass

        revoked, stays = (asyncio.create_task(listen(token)) for token in (ci, other))
        await asyncio.sleep(0.5)
        assert not revoked.done()
        with database.write() as session:
            row = tokens.find(session, "ci")
            assert row is not None
            tokens.revoke(session, row.id)
        if not is_elsewhere:
            known.forget()
        await asyncio.wait_for(revoked, 30)
        assert not stays.done()
        stays.cancel()

    asyncio.run(main())
