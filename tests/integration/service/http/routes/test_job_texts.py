"""Names, notes and tags of jobs: set, changed, and found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from tests.service_fixtures import problem

JOB: dict[str, Any] = {"workload": {"operator": "matmul:16,16,16"}, "max_trials": 16}


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


def submitted(client: TestClient, **texts: Any) -> str:
    response = client.post("/jobs", json={**JOB, **texts})
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def ids(client: TestClient, **params: Any) -> set[str]:
    return {job["id"] for job in client.get("/jobs", params=params).json()["items"]}


@pytest.mark.on_both_databases
def test_jobs_are_found_by_their_texts(client: TestClient) -> None:
    first = submitted(client, name="first layer", tags=["nightly", "model:bert"])
    second = submitted(client, note="100% of 'C:\\tmp'", tags=["night", "model:bert"])
    plain = submitted(client)
    assert ids(client, tag="model:bert") == {first, second}
    assert ids(client, tag="night") == {second}
    assert ids(client, tag=["nightly", "model:bert"]) == {first}
    assert ids(client, tag="model") == set()
    assert ids(client, text="First LAYER") == {first}
    assert ids(client, text="100% of") == {second}
    assert ids(client, text="nightly") == {first}
    assert ids(client, tag="model:bert", text="layer") == {first}
    assert ids(client) == {first, second, plain}


def test_tags_that_look_like_patterns_match_only_themselves(client: TestClient) -> None:
    job = submitted(client, tags=["a_b"])
    assert ids(client, tag="a_b") == {job}
    submitted(client, tags=["axb"])
    assert ids(client, tag="a_b") == {job}


@pytest.mark.on_both_databases
def test_texts_are_read_changed_and_removed(client: TestClient) -> None:
    job = submitted(client, name="a", note="b", tags=["z", "c", "z"])
    texts = {field: client.get(f"/jobs/{job}").json()[field] for field in ("name", "note", "tags")}
    assert texts == {"name": "a", "note": "b", "tags": ["c", "z"]}
    changed = client.patch(f"/jobs/{job}", json={"name": "d"}).json()
    assert (changed["name"], changed["note"], changed["tags"]) == ("d", "b", ["c", "z"])
    empty = client.patch(f"/jobs/{job}", json={"name": "", "note": None, "tags": []}).json()
    assert (empty["name"], empty["note"], empty["tags"]) == (None, None, [])
    assert ids(client, tag="c") == set()


def test_a_job_that_has_ended_gets_another_name_and_does_not_continue(client: TestClient) -> None:
    job = submitted(client)
    client.post(f"/jobs/{job}/cancel")
    renamed = client.patch(f"/jobs/{job}", json={"name": "kept"}).json()
    assert (renamed["name"], renamed["state"]) == ("kept", "cancelled")


def test_each_job_of_a_group_has_its_texts(client: TestClient) -> None:
    body = {"tasks": [{"workload": JOB["workload"]}], "max_trials": 16, "tags": ["nightly"]}
    (job,) = client.post("/groups", json={**body, "name": "all"}).json()["jobs"]
    assert (job["name"], job["tags"]) == ("all", ["nightly"])


@pytest.mark.parametrize(
    "texts",
    [
        {"name": "x" * 256},
        {"name": "a\0b"},
        {"note": "x" * 4001},
        {"tags": ["Nightly"]},
        {"tags": [""]},
        {"tags": ['a"b']},
        {"tags": ["a%b"]},
        {"tags": ["a\n"]},
        {"tags": [f"t{number}" for number in range(17)]},
    ],
)
def test_texts_that_are_too_long_or_not_searchable_are_refused(
    client: TestClient, texts: dict[str, Any]
) -> None:
    problem(client.post("/jobs", json={**JOB, **texts}), 422)
    job = submitted(client)
    problem(client.patch(f"/jobs/{job}", json=texts), 422)


def test_a_filter_that_is_no_tag_is_refused(client: TestClient) -> None:
    problem(client.get("/jobs", params={"tag": "NIGHTLY"}), 422)
