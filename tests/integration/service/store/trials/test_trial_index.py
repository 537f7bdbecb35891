"""Plots and pages of trials read the index alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from compiler.runtime.measurement import Measurement
from compiler.schedule.trace.trace_json import decided_numbers
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.results.sql_store import SqlStore
from tests.integration.service.statements import statements
from tests.integration.service.tuned import SPEC, task_of, tuned
from tests.service_fixtures import add_job
from tuner.candidate import DEFAULT_SKETCH
from tuner.space.generate import design_space
from tuner.trial import MeasuredTrial

PLOTS = ("curve", "columns", "selection", "summary", "decisions")


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        yield client


def plans(database: Database, asked: list[tuple[str, Any]]) -> list[str]:
    """Return how SQLite goes about each statement that reads trials alone."""
    found = []
    with database.engine.connect() as connection:
        for statement, parameters in asked:
            if statement.startswith("SELECT trials."):
                rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
                found.append("; ".join(row[-1] for row in rows))
    return found


def test_plots_read_the_index_alone_and_once(client: TestClient, database: Database) -> None:
    job_id, _ = tuned(database, SPEC)
    with statements(database) as asked:
        assert client.get(f"/jobs/{job_id}/curve").status_code == 200
    (plan,) = plans(database, asked)
    assert "USING COVERING INDEX ix_trials_narrow" in plan
    with statements(database) as asked:
        for plot in ("curve", "columns"):
            assert client.get(f"/jobs/{job_id}/{plot}").status_code == 200
    assert plans(database, asked) == []
    # The job, its libraries and its finals, for the columns: the curve was asked before.
    assert len(asked) == 3


@pytest.mark.parametrize("sort", ["number", "-number", "best_secs", "-best_secs"])
def test_a_page_of_trials_is_found_in_the_index_alone(
    client: TestClient, database: Database, sort: str
) -> None:
    job_id, _ = tuned(database, SPEC)
    params: dict[str, Any] = {"sort": sort, "outcome": ["ok", "timeout"], "limit": 2}
    with statements(database) as asked:
        assert len(client.get(f"/jobs/{job_id}/trials", params=params).json()["items"]) == 2
    find, read = plans(database, asked)
    assert "USING COVERING INDEX ix_trials_narrow" in find
    assert "SCAN" not in read


@pytest.mark.parametrize("plot", PLOTS)
def test_who_has_a_plot_is_told_so_until_there_are_more_trials(
    client: TestClient, database: Database, plot: str
) -> None:
    job_id, measured = tuned(database, SPEC)
    first = client.get(f"/jobs/{job_id}/{plot}")
    headers = {"If-None-Match": first.headers["etag"]}
    assert client.get(f"/jobs/{job_id}/{plot}", headers=headers).status_code == 304
    late = MeasuredTrial(len(measured) + 40, measured[1].candidate, Measurement((1e-9,)))
    with database.write() as session:
        session.execute(text("UPDATE trials SET candidate_key = 'x' WHERE number = 1"))
    SqlStore(database).add(str(job_id), task_of(SPEC), [late])
    second = client.get(f"/jobs/{job_id}/{plot}", headers=headers)
    assert second.status_code == 200
    assert second.json() != first.json()


def test_a_late_number_is_seen_too(client: TestClient, database: Database) -> None:
    job_id, measured = tuned(database, SPEC)
    with database.write() as session:
        session.execute(text("DELETE FROM trials WHERE number = 2"))
        jobs.get(session, job_id).num_measured -= 1
    path = f"/jobs/{job_id}/columns"
    assert 2 not in client.get(path).json()["number"]
    SqlStore(database).add(str(job_id), task_of(SPEC), [measured[2]])
    assert client.get(path).json()["number"] == list(range(len(measured)))


def test_plots_of_a_job_without_trials_are_empty(client: TestClient, database: Database) -> None:
    job_id = add_job(database)
    found = {plot: client.get(f"/jobs/{job_id}/{plot}").json() for plot in PLOTS}
    assert found["curve"]["number"] == found["columns"]["number"] == []
    assert (found["summary"]["num_trials"], found["decisions"]["sketch"]) == (0, None)


def test_a_sketch_that_no_trial_has_is_refused_with_those_there_are(
    client: TestClient, database: Database
) -> None:
    job_id, measured = tuned(database, SPEC)
    answer = client.get(f"/jobs/{job_id}/decisions", params={"sketch": "none"})
    assert answer.status_code == 422
    assert repr(measured[1].candidate.sketch) in answer.json()["detail"]


def test_decisions_have_the_labels_and_the_numbers_of_their_sketch(
    client: TestClient, database: Database
) -> None:
    job_id, measured = tuned(database, SPEC)
    sketches = {each.name: each for each in design_space(task_of(SPEC)).sketches}
    names = client.get(f"/jobs/{job_id}/decisions").json()["sketches"]
    assert set(names) == {trial.candidate.sketch for trial in measured}
    for name in names:
        with statements(database) as asked:
            answer = client.get(f"/jobs/{job_id}/decisions", params={"sketch": name}).json()
        assert not [statement for statement, _ in asked if "trials.trace" in statement]
        of_sketch = [trial for trial in measured if trial.candidate.sketch == name]
        assert answer["number"] == [trial.number for trial in of_sketch]
        labels = [decision["name"] for decision in answer["decisions"]]
        if name == DEFAULT_SKETCH:
            assert labels == []
            continue
        assert {label.partition(", part")[0] for label in labels} == {
            label.partition(", part")[0] for label in sketches[name].labels
        }
        for trial, row in zip(of_sketch, answer["rows"], strict=True):
            assert row == decided_numbers(trial.candidate.trace.to_json())
