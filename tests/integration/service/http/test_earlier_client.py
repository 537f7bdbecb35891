"""Requests and answers as a client of version 0.1 knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from tests.integration.service.recorded import (
    NUM_TRIALS,
    SPECS,
    TARGETS,
    History,
    file_of,
    put,
)

JOB = UUID(int=100)


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    put(database, file_of([(History(JOB, SPECS[0], TARGETS[0], seed=3), NUM_TRIALS, True)]))
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        yield client


def read(client: TestClient, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_columns_have_their_earlier_names_too(client: TestClient) -> None:
    columns = read(client, f"/jobs/{JOB}/columns")
    assert any(share is not None for share in columns["place"])
    assert columns["place"] == columns["predicted_percentile"]
    assert columns["speed"] == columns["relative_speed"]


@pytest.mark.parametrize(
    ("earlier", "name"),
    [
        ("from_place", "from_predicted_percentile"),
        ("to_place", "to_predicted_percentile"),
        ("from_speed", "from_relative_speed"),
        ("to_speed", "to_relative_speed"),
    ],
)
def test_conditions_are_taken_under_their_earlier_names(
    client: TestClient, earlier: str, name: str
) -> None:
    path = f"/jobs/{JOB}/selection"
    found = read(client, path, **{earlier: 0.5})
    assert 0 < found["num_trials"] < NUM_TRIALS
    assert found == read(client, path, **{name: 0.5})
    assert client.get(path, params={earlier: "much"}).status_code == 422


def test_the_document_says_which_names_are_deprecated(client: TestClient) -> None:
    document = read(client, "/openapi.json")
    columns = document["components"]["schemas"]["Columns"]["properties"]
    assert {name for name in columns if columns[name].get("deprecated")} == {"place", "speed"}
    parameters = document["paths"]["/api/v1/jobs/{job_id}/selection"]["get"]["parameters"]
    assert {asked["name"] for asked in parameters if asked.get("deprecated")} == {
        "from_place", "to_place", "from_speed", "to_speed",
    }  # fmt: skip


OPERATOR = {"operator": "matmul:16,16,16"}


def sent(client: TestClient, method: str, path: str, body: dict[str, Any]) -> Any:
    answer = client.request(method, path, json=body)
    assert answer.is_success, answer.text
    return answer.json()


def test_limits_of_jobs_are_taken_and_given_under_their_earlier_names(client: TestClient) -> None:
    asked = {"workload": OPERATOR, "trials": 8, "seconds": 2.5}
    job = sent(client, "POST", "/jobs", asked)
    assert (job["max_trials"], job["max_secs"]) == (job["trials"], job["seconds"]) == (8, 2.5)
    changed = sent(client, "PATCH", f"/jobs/{job['id']}", {"trials": 9, "seconds": None})
    assert (changed["max_trials"], changed["max_secs"]) == (9, None)
    changed = sent(client, "PATCH", f"/jobs/{job['id']}", {"max_trials": 10, "max_secs": 4.0})
    assert (changed["trials"], changed["seconds"]) == (10, 4.0)


def test_limits_of_groups_are_taken_and_given_under_their_earlier_names(client: TestClient) -> None:
    group = sent(client, "POST", "/groups", {"tasks": [{"workload": OPERATOR}], "trials": 64})
    assert group["trials"] == group["max_trials"] == 64
    changed = sent(client, "PATCH", f"/groups/{group['id']}", {"trials": 70})
    assert changed["trials"] == changed["max_trials"] == 70


@pytest.mark.parametrize(
    "limits", [{"trials": 8, "max_trials": 8}, {"trials": 0}, {"max_trials": 8, "secs": 1}, {}]
)
def test_wrong_limits_are_refused_under_either_name(
    client: TestClient, limits: dict[str, Any]
) -> None:
    assert client.post("/jobs", json={"workload": OPERATOR, **limits}).status_code == 422


def test_the_document_says_which_limits_have_deprecated_names(client: TestClient) -> None:
    schemas = read(client, "/openapi.json")["components"]["schemas"]
    for name, deprecated in {"JobRead": {"trials", "seconds"}, "GroupRead": {"trials"}}.items():
        fields = schemas[name]["properties"]
        assert {field for field in fields if fields[field].get("deprecated")} == deprecated
    assert {"trials", "seconds"}.isdisjoint(schemas["JobCreate"]["properties"])
