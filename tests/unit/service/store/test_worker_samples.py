from __future__ import annotations

import time
from datetime import timedelta

import pytest
from sqlalchemy import select

from service.store import targets, workers
from service.store.database.database import Database
from service.store.jobs import jobs
from service.store.targets import TargetRow
from service.wire.models import JobState
from service.wire.server_models import WorkerRead, WorkerState
from tests.service_fixtures import add_job
from workers.engine.engine import WorkerFacts

NOW = float(int(time.time()))


def sample(at: float, secs: float = 2e-5) -> dict[str, float]:
    return {"at": at, "secs": secs, "noise": 0.01, "utilisation": 0.5}


def tell(database: Database, *, pid: int = 1, is_busy: bool = False, **facts: object) -> None:
    with database.write() as session:
        workers.record_facts(
            session, [WorkerFacts("w", "here", "cpu/x", pid, is_busy, time.time(), facts)]
        )


def known(database: Database) -> WorkerRead:
    with database.read() as session:
        (worker,) = workers.all_workers(session)
    return worker


def test_samples_are_columns_by_time_and_each_is_kept_once(database: Database) -> None:
    for at in (NOW - 60, NOW - 120, NOW - 60):
        tell(database, sample=sample(at, secs=at - NOW + 200), utilisation=0.5)
    canary = known(database).canary
    assert [at.timestamp() for at in canary.at] == [NOW - 120, NOW - 60]
    assert [round(secs) for secs in canary.secs] == [80, 140]
    assert known(database).utilisation == 0.5
    assert set(known(database).facts) == {"pid"}


def test_samples_outlive_the_process_and_are_dropped_when_they_are_old(database: Database) -> None:
    tell(database, sample=sample(NOW - timedelta(days=8).total_seconds()))
    tell(database, sample=sample(NOW - 60))
    with database.write() as session:
        workers.record_resting(session, ["w"])
        workers.forget_lost(session)
    assert known(database).state is WorkerState.RESTING
    assert len(known(database).canary.at) == 1


def test_a_process_that_went_away_with_its_work_is_counted(database: Database) -> None:
    tell(database, pid=1, is_busy=True)
    tell(database, pid=2, is_busy=False)
    assert (known(database).jobs_lost, known(database).restarts) == (1, 1)
    tell(database, pid=3)
    assert (known(database).jobs_lost, known(database).restarts) == (1, 2)


def test_a_worker_that_rested_lost_nothing(database: Database) -> None:
    tell(database, pid=1, is_busy=True)
    with database.write() as session:
        workers.record_resting(session, ["w"])
    tell(database, pid=2)
    assert (known(database).jobs_lost, known(database).restarts) == (0, 0)


def test_what_a_worker_does_names_the_job_if_there_is_but_one(database: Database) -> None:
    job_ids = [add_job(database) for _ in range(2)]
    with database.read() as session:
        job = jobs.get(session, job_ids[0])
    named = {"workload": job.workload_name, "target": job.target}
    task = {**named, "candidates": 8, "since": NOW}
    for running, expected in ((0, None), (1, job_ids[0]), (2, None)):
        with database.write() as session:
            for job_id in job_ids[:running]:
                jobs.get(session, job_id).state = JobState.RUNNING
        tell(database, is_busy=True, task=task)
        doing = known(database).task
        assert doing is not None
        assert (doing.candidates, doing.job_id) == (8, expected)


def test_a_kind_of_target_has_the_cores_of_its_smallest_host_that_is_there(
    database: Database,
) -> None:
    def served(*, now: bool) -> dict[str, int]:
        with database.read() as session:
            return workers.served(session, now=now)

    def seen(name: str, cores: int, *, ago: float = 0.0, **more: object) -> WorkerFacts:
        facts = {"num_cores": cores, **more}
        return WorkerFacts(name, name, f"cpu/{name[0]}", 1, False, time.time() - ago, facts)

    with database.write() as session:
        told = [
            *(seen("a1", 8), seen("a2", 4), seen("a3", 2, ago=2 * workers.LOST_AFTER_SECS)),
            *(seen("b1", 16, ago=2 * workers.LOST_AFTER_SECS), seen("c1", 8, refuses="no child")),
        ]
        workers.record_facts(session, told)
    assert served(now=True) == {"cpu/a": 4}
    assert served(now=False) == {"cpu/a": 2, "cpu/b": 16}
    with database.write() as session:
        workers.record_resting(session, ["a2"])
    assert served(now=True) == {"cpu/a": 8}


def test_a_worker_shows_the_state_of_its_gpu(database: Database) -> None:
    state = {"sm_mhz": 1755, "watts": 612.5, "celsius": 61, "slowed_by": ["power cap"]}
    gpu = {"name": "h200-1", "product": "NVIDIA H200", "uuid": "GPU-1", **state}
    tell(database, device=gpu)
    worker = known(database)
    assert worker.device is not None
    assert worker.device.model_dump() == {**gpu, "is_emulated": False, "slowed_by": ("power cap",)}
    assert "device" not in worker.facts


@pytest.mark.parametrize("facts", [None, {}, {"name": "h200-0", "celsius": "hot"}])
def test_facts_that_are_of_no_device_are_left_out(database: Database, facts: object) -> None:
    tell(database, device=facts)
    assert known(database).device is None


def test_targets_learn_their_peak_from_a_worker_of_their_label(database: Database) -> None:
    names = {1: "cpu -mcpu=znver3 -num-cores=1", 2: "cpu -mcpu=znver3 -num-cores=2"}
    with database.write() as session:
        for name in names.values():
            targets.ensure(session, name, "cpu/x")
        targets.ensure(session, "cpu -mcpu=znver4 -num-cores=1", "cpu/y")
    tell(database, peak_flops={"1": 1e11})
    with database.read() as session:
        found = {row.name: row.peak_flops for row in session.scalars(select(TargetRow))}
    assert found == {names[1]: 1e11, names[2]: None, "cpu -mcpu=znver4 -num-cores=1": None}
