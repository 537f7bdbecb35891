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
