"""Times of an older code generator are kept and marked, and give way to today's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient

from compiler.driver import toolchain
from compiler.runtime.measurement import ErrorKind, Measurement
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.learning import warm_start
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.results import best_schedules
from service.store.results.settle import settle
from service.store.results.sql_store import SqlStore
from service.store.trials.trials import TrialRow
from service.wire.models import JobState
from tests.integration.service.tuned import OWNER, SPEC, claimed, task_of, tuned
from tuner.trial import MeasuredTrial

OLDER = "loopwright-codegen 0, LLVM 1"
TASK = task_of(SPEC)
QUERY: dict[str, Any] = {"workload": {"operator": SPEC}, "target": TASK.target.name}

pytestmark = pytest.mark.on_both_databases


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1") as client:
        yield client


@pytest.fixture
def old(database: Database) -> list[MeasuredTrial]:
    """Keep an ended job whose trials an older code generator compiled; return them."""
    job_id, trials = tuned(database, SPEC)
    with database.write() as session:
        session.query(TrialRow).filter(TrialRow.job_id == job_id).update({"toolchain": OLDER})
        jobs.get(session, job_id).state = JobState.SUCCEEDED
    return trials


def measured_again(database: Database, trial: MeasuredTrial, measurement: Measurement) -> UUID:
    """Measure a candidate in a new job, with today's code generator."""
    job_id = claimed(database, SPEC).id
    again = MeasuredTrial(0, trial.candidate, replace(measurement, toolchain=toolchain()))
    SqlStore(database).add(str(job_id), TASK, [again])
    return job_id


def best(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.post("/schedules/best", json=QUERY).json()
    return found


def test_a_best_schedule_of_an_older_code_generator_is_marked(
    client: TestClient, old: list[MeasuredTrial]
) -> None:
    found = best(client)
    assert found["is_outdated"]
    assert found["provenance"]["toolchain"] == OLDER
    (listed,) = client.get("/schedules").json()["items"]
    assert (listed["is_outdated"], listed["toolchain"]) == (True, OLDER)


def test_the_same_candidate_measured_today_takes_its_place_though_it_is_slower(
    client: TestClient, database: Database, old: list[MeasuredTrial]
) -> None:
    before = best(client)
    job_id = measured_again(database, old[1], Measurement((2 * before["run_secs"],)))
    found = best(client)
    assert (found["job_id"], found["run_secs"]) == (str(job_id), 2 * before["run_secs"])
    assert not found["is_outdated"]
    with database.write() as session:  # as after an import
        assert not settle(session, TASK.workload_key, TASK.target.name)


def test_another_candidate_takes_its_place_only_if_it_is_faster(
    client: TestClient, database: Database, old: list[MeasuredTrial]
) -> None:
    before = best(client)
    measured_again(database, old[2], Measurement((2 * before["run_secs"],)))
    assert best(client) == before


def test_a_kernel_that_is_wrong_today_is_the_best_no_more(
    client: TestClient, database: Database, old: list[MeasuredTrial]
) -> None:
    before = best(client)
    measured_again(database, old[1], Measurement(error=ErrorKind.WRONG_RESULT))
    found = best(client)
    assert found["run_secs"] > before["run_secs"]
    assert found["trial_number"] == 2


def test_a_new_job_measures_the_old_winner_first(
    database: Database, old: list[MeasuredTrial]
) -> None:
    job = claimed(database, SPEC)
    begun = warm_start.warm_start_of_job(database, OWNER, job, TASK)
    assert begun.candidates[0].key == old[1].candidate.key


def test_asking_with_enqueue_queues_one_job_to_measure_it_again(
    client: TestClient, database: Database, old: list[MeasuredTrial]
) -> None:
    answers = [client.post("/schedules/best", json={**QUERY, "enqueue": True}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    first, second = [answer.headers["Loopwright-Job"] for answer in answers]
    assert first == second
    with database.read() as session:
        assert jobs.get(session, UUID(first)).state is JobState.QUEUED


def test_what_was_measured_today_is_not_asked_for_again(
    client: TestClient, database: Database, old: list[MeasuredTrial]
) -> None:
    measured_again(database, old[1], Measurement((0.25,)))
    answer = client.post("/schedules/best", json={**QUERY, "enqueue": True})
    assert "Loopwright-Job" not in answer.headers


def test_old_rows_are_kept(
    client: TestClient, database: Database, old: list[MeasuredTrial]
) -> None:
    measured_again(database, old[1], Measurement((0.5,)))
    with database.read() as session:
        assert session.query(TrialRow).filter(TrialRow.toolchain == OLDER).count() == len(old)
        assert best_schedules.find(session, TASK.workload_key, TASK.target.name) is not None
