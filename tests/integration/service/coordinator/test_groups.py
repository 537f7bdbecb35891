"""Jobs that share a budget, from the request to the end, with measurements from a formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient

from compiler.ops.spec import from_spec
from compiler.runtime.measurement import Measurement
from compiler.target.target import Target
from service.common.errors import ServiceConflictError
from service.coordinator.coordinator import Coordinator
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.jobs.groups import read, submit_group
from service.store.database.database import Database
from service.store.jobs import controls, jobs
from service.store.results import finals
from service.wire.models import GroupRead, JobState
from service.wire.requests import GroupCreate, GroupTask, Strategy, Workload
from tests.integration.service.driving import Interrupting, act, cost, rows
from tuner.candidate import DEFAULT_SKETCH, Candidate
from tuner.loop.search_loop import ROUND_SIZE
from tuner.loop.tune import tune_tasks
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task

SPECS = ("matmul:32,32,32", "matmul:16,32,64", "batch_matmul:2,16,16,16")
WEIGHTS = (1.0, 20.0, 0.01)
TOTAL = 7 * ROUND_SIZE


def submit(database: Database, **options: Any) -> GroupRead:
    tasks = [
        GroupTask(workload=Workload(operator=spec), weight=weight)
        for spec, weight in zip(SPECS, WEIGHTS, strict=True)
    ]
    asked = {"max_trials": TOTAL, "warm_start": False, "strategy": Strategy.RANDOM, **options}
    return submit_group(database, GroupCreate(tasks=tuple(tasks), **asked))[0]


def state(database: Database, group: GroupRead) -> GroupRead:
    with database.read() as session:
        return read(session, group.id)


def keys(database: Database, group: GroupRead) -> list[list[str]]:
    return [[row.candidate_key for row in rows(database, job.id)] for job in group.jobs]


def expected(trials: int = TOTAL) -> list[list[str]]:
    """Return what the search in one process measures."""
    tasks = [
        Task(from_spec(spec), Target("cpu"), weight)
        for spec, weight in zip(SPECS, WEIGHTS, strict=True)
    ]
    found = tune_tasks(tasks, measurer=MemoryMeasurer(cost), max_trials=trials, strategy="random")
    return [[trial.candidate.key for trial in result.trials] for result in found]


@pytest.fixture(scope="module")
def undisturbed() -> list[list[str]]:
    return expected()


@pytest.mark.on_both_databases
def test_a_group_s_jobs_share_its_trials_and_each_has_its_finish(
    database: Database, undisturbed: list[list[str]]
) -> None:
    group = submit(database)
    assert {job.group_id for job in group.jobs} == {group.id}
    assert [job.weight for job in group.jobs] == list(WEIGHTS)
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    assert coordinator.run_one()
    assert not coordinator.run_one()
    after = state(database, group)
    assert {job.state for job in after.jobs} == {JobState.SUCCEEDED}
    assert {job.stop_reason for job in after.jobs} == {"budget"}
    assert after.num_measured == TOTAL
    assert keys(database, group) == undisturbed
    counts = [job.num_measured for job in after.jobs]
    assert min(counts) >= ROUND_SIZE
    assert max(counts) == counts[1], "it has the largest weight"
    with database.read() as session:
        assert all(finals.of_job(session, job.id) for job in group.jobs)
    assert after.best_secs == pytest.approx(
        sum(w * (job.best_secs or 0) for w, job in zip(WEIGHTS, after.jobs, strict=True))
    )


@pytest.mark.parametrize("at", [5, 57, TOTAL - 1, TOTAL + 3])
def test_a_group_that_was_put_back_goes_on_as_if_it_had_not(
    database: Database, undisturbed: list[list[str]], at: int
) -> None:
    group = submit(database)
    interrupted = Interrupting(at, lambda: first.stop(0.0))
    first = Coordinator(database, interrupted)
    first.run_one()
    measurer = MemoryMeasurer(cost)
    second = Coordinator(database, measurer)
    while second.run_one():
        pass
    assert keys(database, group) == undisturbed
    kept = min(at, TOTAL)
    assert len(measurer.asked) == TOTAL - kept, "nothing is measured twice"
    assert {job.state for job in state(database, group).jobs} == {JobState.SUCCEEDED}


def test_a_group_with_a_cost_model_goes_on_as_if_it_had_not_been_put_back(
    database: Database,
) -> None:
    options = {"strategy": Strategy.EVOLUTIONARY, "max_trials": 5 * ROUND_SIZE}
    resumed, whole = (submit(database, **options) for _ in range(2))
    first = Coordinator(database, Interrupting(57, lambda: first.stop(0.0)))
    first.run_one()
    second = Coordinator(database, MemoryMeasurer(cost))
    while second.run_one():
        pass
    assert keys(database, resumed) == keys(database, whole)


def test_a_cancelled_job_leaves_its_share_to_the_others(
    database: Database, until_seen: Callable[[], None]
) -> None:
    group = submit(database)
    heavy = group.jobs[1].id

    def cancel() -> None:
        act(database, "cancel", heavy)
        until_seen()

    Coordinator(database, Interrupting(4 * ROUND_SIZE, cancel)).run_one()
    after = state(database, group)
    assert [job.state for job in after.jobs] == [
        JobState.SUCCEEDED,
        JobState.CANCELLED,
        JobState.SUCCEEDED,
    ]
    assert after.num_measured == TOTAL


def test_a_stopped_job_is_finished_and_the_others_go_on(
    database: Database, until_seen: Callable[[], None]
) -> None:
    group = submit(database)

    def stop() -> None:
        act(database, "stop", group.jobs[0].id)
        until_seen()

    Coordinator(database, Interrupting(4 * ROUND_SIZE, stop)).run_one()
    after = state(database, group)
    assert [job.stop_reason for job in after.jobs] == ["stopped", "budget", "budget"]
    assert after.jobs[0].best_interval is not None
    assert after.num_measured == TOTAL


def test_a_job_on_a_plateau_leaves_its_share_to_the_others(database: Database) -> None:
    group = submit(database, plateau=20)

    def flat(candidate: Candidate) -> float:
        return 0.5 if candidate.sketch == DEFAULT_SKETCH else 0.4

    Coordinator(database, MemoryMeasurer(flat)).run_one()
    after = state(database, group)
    assert {job.stop_reason for job in after.jobs} == {"plateau"}
    assert after.num_measured < TOTAL


def test_a_resumed_job_joins_the_others(database: Database, until_seen: Callable[[], None]) -> None:
    group = submit(database)
    resumed = group.jobs[1].id
    act(database, "cancel", resumed)

    def resume() -> None:
        act(database, "resume", resumed)
        until_seen()

    coordinator = Coordinator(database, Interrupting(3 * ROUND_SIZE, resume))
    coordinator.run_one()
    assert {job.state for job in state(database, group).jobs} == {JobState.QUEUED}
    coordinator.run_one()
    after = state(database, group)
    assert {job.state for job in after.jobs} == {JobState.SUCCEEDED}
    assert after.num_measured == TOTAL
    assert after.jobs[1].num_measured > ROUND_SIZE


def test_more_trials_for_a_group_are_shared_as_from_the_start(database: Database) -> None:
    group = submit(database, max_trials=3 * ROUND_SIZE)
    coordinator = Coordinator(database, MemoryMeasurer(cost))
    coordinator.run_one()
    with pytest.raises(ServiceConflictError, match="belongs to group"):
        act(database, "change", group.jobs[0].id, max_trials=TOTAL)
    with (
        pytest.raises(ServiceConflictError, match="are not enough to continue"),
        database.write() as session,
    ):
        controls.change_group(session, group.id, 2 * ROUND_SIZE)
    assert state(database, group).trials == 3 * ROUND_SIZE
    with database.write() as session:
        controls.change_group(session, group.id, TOTAL)
    coordinator.run_one()
    assert keys(database, group) == expected()
    assert state(database, group).num_measured == TOTAL


class Dying:
    """Ends its coordinator for good before each trial but the first of a claim."""

    def __init__(self) -> None:
        self.num_measured = 0

    def measure(self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None):  # type: ignore[no-untyped-def]
        yield 0, Measurement((cost(candidates[0]),))
        raise ConnectionError("the workers are gone")

    def compare(self, *_: Any) -> Any:
        raise AssertionError("it never comes to that")

    def measure_module(self, *_: Any) -> Any:
        raise AssertionError("nor to that")


def test_a_group_that_gets_somewhere_is_not_given_up(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that wait for their turn are claimed with the others, and measure nothing."""
    monkeypatch.setattr("service.coordinator.coordinator._MAX_BACKOFF_SECS", 0.0)
    group = submit(database)
    coordinator = Coordinator(database, Dying())
    for _ in range(7):
        assert coordinator.run_one()
    after = state(database, group)
    assert {job.state for job in after.jobs} == {JobState.QUEUED}
    assert after.num_measured == 7


@pytest.mark.parametrize("control", ["cancel", "stop"])
def test_all_jobs_of_a_group_end_that_have_not(database: Database, control: str) -> None:
    group = submit(database)
    succeeded, running, queued = (job.id for job in state(database, group).jobs)
    with database.write() as session:
        jobs.get(session, succeeded).state = JobState.SUCCEEDED
        jobs.get(session, running).state = JobState.RUNNING
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        for _ in range(2):
            answer = client.post(f"/groups/{group.id}/{control}")
            assert answer.status_code == 200, answer.text
        assert client.post(f"/groups/{UUID(int=1)}/{control}").status_code == 404
    after = {job["id"]: job["state"] for job in answer.json()["jobs"]}
    assert after == {str(succeeded): "succeeded", str(running): "running", str(queued): "cancelled"}
    with database.read() as session:
        row = jobs.get(session, running)
        assert (row.cancel_requested, row.stop_requested) == (
            control == "cancel",
            control == "stop",
        )


def test_the_routes(database: Database) -> None:
    woken: list[int] = []
    parts = Dependencies(database, wake=lambda: woken.append(1))
    tasks = [{"workload": {"operator": spec}, "weight": 2.0} for spec in SPECS[:2]]
    with TestClient(create_app(parts), base_url="http://test/api/v1") as client:
        headers = {"Idempotency-Key": "once"}
        body = {"tasks": tasks, "max_trials": 40}
        made = client.post("/groups", json=body, headers=headers)
        assert made.status_code == 201, made.text
        again = client.post("/groups", json=body, headers=headers)
        assert (again.json(), again.headers["Idempotent-Replayed"]) == (made.json(), "true")
        group = made.json()
        assert made.headers["Location"] == f"/api/v1/groups/{group['id']}"
        assert client.get(f"/groups/{group['id']}").json() == group
        assert [job["max_trials"] for job in group["jobs"]] == [40, 40]
        changed = client.patch(f"/groups/{group['id']}", json={"max_trials": 60}).json()
        assert (changed["max_trials"], [job["max_trials"] for job in changed["jobs"]]) == (
            60,
            [60, 60],
        )
        assert len(client.get("/jobs").json()["items"]) == 2
        assert client.get(f"/groups/{UUID(int=1)}").status_code == 404
        for wrong, pointer in (
            ({"tasks": tasks, "max_trials": 31}, "/max_trials"),
            ({"tasks": [tasks[0], tasks[0]], "max_trials": 40}, "/tasks/1/workload"),
            (
                {"tasks": [tasks[0], {"workload": {"operator": "matmull:2"}}], "max_trials": 40},
                "/tasks/1/workload/operator",
            ),
            ({"tasks": [], "max_trials": 40}, "/tasks"),
            ({"tasks": [{**tasks[0], "weight": 0}], "max_trials": 40}, "/tasks/0/weight"),
        ):
            answer = client.post("/groups", json=wrong)
            assert answer.status_code == 422, wrong
            assert answer.json()["errors"][0]["pointer"] == pointer
    assert len(woken) == 2
