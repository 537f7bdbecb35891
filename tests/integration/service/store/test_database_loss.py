"""A database file that is deleted, replaced, damaged or short of space while a service runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database, open_database
from service.store.database.error import DatabaseLostError
from tests.service_fixtures import WORKLOAD, add_job, problem

JOB = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 8}


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    with TestClient(create_app(Dependencies(database)), raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("words", ["deleted", "replaced"])
def test_a_file_that_is_lost_stops_intake(
    client: TestClient,
    database: Database,
    database_file: Path,
    empty_database_file: Path,
    words: str,
) -> None:
    assert client.get("/readyz").status_code == 204
    job = client.post("/api/v1/jobs", json=JOB).json()["id"]
    if words == "deleted":
        database_file.unlink()
    else:
        Path(shutil.copy(empty_database_file, f"{database_file}.new")).replace(database_file)
    for refused in (
        client.post("/api/v1/jobs", json=JOB),
        client.post(f"/api/v1/jobs/{job}/cancel"),
        client.get("/readyz"),
    ):
        found = problem(refused, 503)
        assert f"{database_file} was {words}" in found["detail"]
        assert "restart the service" in found["detail"]
    assert client.post("/api/v1/jobs", json=JOB).json()["type"].endswith(":database-lost")
    assert words in client.get("/api/v1/health").json()["checks"]["database"]
    with pytest.raises(DatabaseLostError), database.write():
        pass
    assert client.get("/livez").status_code == 204


def test_a_file_that_was_deleted_does_not_come_back_empty(
    database: Database, database_file: Path
) -> None:
    database.engine.dispose()
    database_file.unlink()
    with TestClient(create_app(Dependencies(database)), raise_server_exceptions=False) as client:
        assert client.get("/api/v1/jobs").status_code == 503
    assert not database_file.exists()


def damage(file: Path) -> None:
    """Add jobs, and overwrite the pages that they took; those of the schema stay whole."""
    size_before = file.stat().st_size
    with closing(open_database(f"sqlite:///{file}")) as database:
        for _ in range(200):
            add_job(database)
    content = bytearray(file.read_bytes())
    page_bytes = int.from_bytes(content[16:18], "big")
    for start in range(size_before, len(content), page_bytes):
        content[start + 8 : start + 200] = b"\xa5" * 192
    assert len(content) > size_before
    file.write_bytes(content)


def test_damaged_pages_are_found_and_said(database_file: Path) -> None:
    damage(database_file)
    with closing(open_database(f"sqlite:///{database_file}")) as database:
        app = create_app(Dependencies(database))
        with TestClient(app, raise_server_exceptions=False) as client:
            database.look_for_damage()  # as a service does when it starts
            assert "is damaged" in problem(client.get("/readyz"), 503)["detail"]
            refused = problem(client.post("/api/v1/jobs", json=JOB), 503)
            assert "restore a backup" in refused["detail"]


def test_damage_that_a_request_meets_is_said_too(database_file: Path) -> None:
    damage(database_file)
    with closing(open_database(f"sqlite:///{database_file}")) as database:
        app = create_app(Dependencies(database))
        with TestClient(app, raise_server_exceptions=False) as client:
            answers: list[Any] = [
                client.get("/api/v1/jobs", params={"sort": sort, "limit": 200})
                for sort in ("created_at", "workload_name", "priority")
            ]
            refused = [answer for answer in answers if answer.status_code != 200]
            assert refused
            assert {problem(answer, 503)["type"].rpartition(":")[2] for answer in refused} == {
                "database-lost"
            }
            assert "is damaged" in problem(client.get("/readyz"), 503)["detail"]


def test_a_whole_file_is_not_said_to_be_damaged(database: Database, client: TestClient) -> None:
    add_job(database)
    database.look_for_damage()
    assert client.get("/readyz").status_code == 204
    assert WORKLOAD.name in client.get("/api/v1/jobs").text


def test_a_disk_without_space_is_said(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(total=1 << 40, used=1 << 40, free=5 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    assert "5 MiB are free" in problem(client.get("/readyz"), 503)["detail"]


@pytest.mark.on_both_databases
def test_a_database_that_is_well_is_ready(client: TestClient) -> None:
    assert client.get("/readyz").status_code == 204
    assert client.get("/api/v1/health").json()["checks"]["database"] == "ok"
