"""One trial and its code, from trials that a test made up."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient

from compiler.ir.analysis.structural import structural_equal
from compiler.ops.spec import from_spec
from compiler.runtime.measurement import Measurement
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from compiler.target.target import Target
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.jobs.jobs import submit_job
from service.store.database.database import Database
from service.store.results.sql_store import SqlStore
from service.wire.requests import JobCreate, Workload
from tuner.candidate import Candidate, default_candidate
from tuner.task import Task
from tuner.trial import MeasuredTrial

OPERATOR = "relu:64"


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def schedule() -> Schedule:
    schedule = Schedule(from_spec(OPERATOR))
    (loop,) = schedule.get_loops(schedule.get_block("B"))
    schedule.vectorize(loop)
    return schedule


@pytest.fixture
def job_id(database: Database, schedule: Schedule) -> UUID:
    job = submit_job(database, JobCreate(workload=Workload(operator=OPERATOR), max_trials=10))[0]
    trials = (
        MeasuredTrial(0, default_candidate(), Measurement((0.5,))),
        MeasuredTrial(1, Candidate("vectorized", schedule.trace), Measurement((0.25,))),
    )
    SqlStore(database).add(str(job.id), Task(from_spec(OPERATOR), Target("cpu")), trials)
    return job.id


def test_a_trial_is_read_by_its_number(client: TestClient, job_id: UUID) -> None:
    trial = client.get(f"/jobs/{job_id}/trials/1").json()
    assert (trial["number"], trial["sketch"], trial["run_secs"]) == (1, "vectorized", [0.25])


def test_the_code_of_a_trial_goes_from_its_program_to_assembly(
    client: TestClient, job_id: UUID, schedule: Schedule
) -> None:
    code = client.get(f"/jobs/{job_id}/trials/1/code").json()
    assert structural_equal(parse(code["before"]), from_spec(OPERATOR))
    assert structural_equal(parse(code["after"]), schedule.func)
    assert "sch.vectorize(" in code["trace"]
    assert "define" in code["source"]
    assert code["llvm"] == code["source"]  # its earlier name
    assert (code["source_language"], code["assembly_language"]) == ("LLVM IR", "Assembly")
    assert "ret" in code["assembly"]


def test_the_default_schedule_changes_nothing(client: TestClient, job_id: UUID) -> None:
    code = client.get(f"/jobs/{job_id}/trials/0/code").json()
    assert structural_equal(parse(code["before"]), parse(code["after"]))


def test_what_is_not_there_is_not_found(client: TestClient, job_id: UUID) -> None:
    for path in (f"/jobs/{job_id}/trials/2", f"/jobs/{uuid4()}/trials/0"):
        for answer in (client.get(path), client.get(f"{path}/code")):
            assert answer.status_code == 404
            assert "has no trial" in answer.json()["detail"]


def test_a_compiler_that_dies_costs_one_request(
    client: TestClient, job_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "service.schedules.kernel_child.__name__", "tests.integration.service.schedules.crash_child"
    )
    answer = client.get(f"/jobs/{job_id}/trials/1/code")
    assert answer.status_code == 500
    assert "died of SIGSEGV" in answer.json()["detail"]
