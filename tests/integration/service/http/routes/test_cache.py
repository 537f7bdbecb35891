"""The shared cache of other tools, over HTTP."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from service.common.errors import ServeError
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store import cache_entries, tokens
from service.store.cache_entries import QUOTA, CacheEntryRow
from service.store.database.database import Database
from service.wire.server_models import Scope
from tests.service_fixtures import problem

BYTES = {"Content-Type": "application/octet-stream"}
KERNEL = bytes(range(256)) * 4


def as_token(database: Database, scope: Scope) -> dict[str, str]:
    """Return the headers of a new token."""
    with database.write() as session:
        _, token = tokens.create(session, f"{scope}-1", [scope])
    return {**BYTES, "Authorization": f"Bearer {token}"}


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    headers = as_token(database, Scope.SUBMIT)
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", headers=headers) as client:
        yield client


@pytest.mark.on_both_databases
def test_an_entry_is_read_as_it_was_stored_and_never_changes(client: TestClient) -> None:
    etag = f'"{hashlib.sha256(KERNEL).hexdigest()}"'
    assert client.get("/cache/k1").status_code == client.head("/cache/k1").status_code == 404
    stored = client.put("/cache/k1", content=KERNEL)
    assert (stored.status_code, stored.headers["etag"]) == (201, etag)
    assert client.put("/cache/k1", content=KERNEL).status_code == 200
    refused = problem(client.put("/cache/k1", content=b"other"), 409)
    assert "stored by token 'submit-1'" in refused["detail"]
    read = client.get("/cache/k1")
    assert (read.content, read.headers["etag"]) == (KERNEL, etag)
    assert read.headers["content-type"] == "application/octet-stream"
    head = client.head("/cache/k1")
    assert (head.status_code, head.content) == (200, b"")
    assert (head.headers["etag"], head.headers["content-length"]) == (etag, str(len(KERNEL)))
    known = client.get("/cache/k1", headers={"If-None-Match": etag})
    assert (known.status_code, known.content) == (304, b"")
    assert client.get("/cache/K1").status_code == 404
    assert client.put("/cache/empty", content=b"").status_code == 201
    assert client.get("/cache/empty").content == b""


@pytest.mark.on_both_databases
def test_the_least_recently_used_entries_give_way(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(QUOTA, "1000")
    for number in range(4):
        assert client.put(f"/cache/k{number}", content=bytes(200)).status_code == 201
        with database.write() as session:
            cache_entries.get(session, f"k{number}").used_at -= timedelta(hours=9 - number)
    client.get("/cache/k0")  # used again
    assert client.put("/cache/new", content=bytes(300)).status_code == 201
    with database.read() as session:
        keys = {row.key for row in session.query(CacheEntryRow)}
    assert keys == {"k0", "k2", "k3", "new"}  # k1 alone: nine tenths of the quota remain
    problem(client.put("/cache/large", content=bytes(1001)), 413)
    assert client.get("/cache/k3").status_code == 200


def test_the_scope_of_a_token_limits_what_it_may_do(client: TestClient, database: Database) -> None:
    client.put("/cache/k1", content=KERNEL)
    reader, admin = (as_token(database, scope) for scope in (Scope.READ, Scope.ADMIN))
    assert client.get("/cache/k1", headers=reader).content == KERNEL
    problem(client.put("/cache/k2", content=KERNEL, headers=reader), 403)
    problem(client.delete("/cache/k1"), 403)
    problem(client.get("/cache/k1", headers={"Authorization": "Bearer lw_unknown"}), 401)
    assert client.delete("/cache/k1", headers=admin).status_code == 204
    problem(client.get("/cache/k1"), 404)


def test_a_service_without_tokens_has_no_cache(database: Database) -> None:
    client = TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1")
    for answer in (
        client.get("/cache/k1"),
        client.put("/cache/k1", content=KERNEL, headers=BYTES),
        client.delete("/cache/k1"),
    ):
        assert "token create" in problem(answer, 403)["detail"]


@pytest.mark.parametrize("key", ["a b", "-a", ".a", "a%2Fb", "x" * 129, "ä"])
def test_a_key_that_is_none_is_refused(client: TestClient, key: str) -> None:
    assert client.put(f"/cache/{key}", content=KERNEL).status_code in {404, 405, 422}


def test_a_body_of_another_type_or_too_large_is_refused(client: TestClient) -> None:
    json = {"Content-Type": "application/json"}
    problem(client.put("/cache/k1", content=b"{}", headers=json), 415)
    problem(client.put("/cache/k1", content=bytes((2 << 20) + 1)), 413)
    problem(client.post("/jobs", content=b"{}"), 415)


def test_a_malformed_quota_is_refused() -> None:
    with pytest.raises(ServeError, match=QUOTA):
        cache_entries.quota_bytes({QUOTA: "1 GB"})
