"""Several coordinators of one process: they share a pulse, the storing of trials, and the queue."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from threading import Barrier
from uuid import UUID

from sqlalchemy import event

from compiler.runtime.measurement import Measurement
from service.common.owner import Owner
from service.coordinator.coordinator import Coordinator, SharedParts
from service.coordinator.coordinators import Coordinators
from service.coordinator.heartbeat import Heartbeat
from service.store.database.database import Database
from service.store.jobs import claims, jobs
from service.wire.models import JobState
from tests.integration.service.driving import TRIALS, act, cost, read, rows, submit, wait_for_end
from tests.patience import PATIENCE_SECS
from tuner.candidate import Candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task
from workers.engine.engine import Standing

OWNER = Owner.here()


class Meeting(MemoryMeasurer):
    """Answers once as many jobs are measured as there are coordinators."""

    def __init__(self, barrier: Barrier) -> None:
        super().__init__(cost)
        self._barrier = barrier

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        if not self.asked:
            self._barrier.wait(PATIENCE_SECS)
        yield from super().measure(task, candidates, incumbent_secs)


def together(database: Database, num: int) -> Coordinators:
    shared, barrier = SharedParts(database), Barrier(num)
    return Coordinators(
        [Coordinator(database, Meeting(barrier), shared=shared) for _ in range(num)]
    )


def test_coordinators_of_a_process_run_as_many_jobs_at_a_time(database: Database) -> None:
    job_ids = [submit(database, seed=seed) for seed in range(4)]
    coordinators = together(database, 4)
    coordinators.start()
    for job_id in job_ids:  # none ends before all are measured
        assert wait_for_end(database, job_id).state is JobState.SUCCEEDED
        assert [row.number for row in rows(database, job_id)] == list(range(TRIALS))
    assert coordinators.is_running
    assert coordinators.stop(PATIENCE_SECS)
    assert not [t for t in threading.enumerate() if t.name in ("coordinator", "heartbeat")]


def test_idle_coordinators_poll_the_queue_no_more_often_than_one(database: Database) -> None:
    num_writes = 0

    def count(_: object) -> None:
        nonlocal num_writes
        num_writes += 1

    coordinators = together(database, 8)
    event.listen(database.engine, "commit", count)
    coordinators.start()
    time.sleep(0.5)
    assert coordinators.stop(PATIENCE_SECS)
    assert num_writes <= 2


def test_jobs_stand_for_their_owner_and_their_priority(database: Database) -> None:
    job_id = submit(database, priority=2)
    with database.write() as session:
        jobs.get(session, job_id).owner = "bob"
        claims.claim(session, OWNER)
    with Heartbeat(database, [job_id], OWNER, interrupt=lambda: None) as heartbeat:
        assert heartbeat.standing == Standing("bob", priority=2)
        with database.write() as session:
            jobs.get(session, job_id).priority = 3
        end = time.monotonic() + PATIENCE_SECS
        while heartbeat.standing != Standing("bob", priority=3):
            assert time.monotonic() < end
            time.sleep(0.02)


def test_a_cancelled_job_ends_while_the_others_of_its_process_continue(database: Database) -> None:
    cancelled, kept = submit(database), submit(database, seed=1)
    began = threading.Event()

    class Cancelling(Meeting):
        def measure(
            self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
        ) -> Iterator[tuple[int, Measurement]]:
            for index, measurement in super().measure(task, candidates, incumbent_secs):
                if not began.is_set():
                    began.set()
                    act(database, "cancel", cancelled)
                time.sleep(0.05)  # a heartbeat reads the request meanwhile
                yield index, measurement

    shared, barrier = SharedParts(database), Barrier(2)
    coordinators = Coordinators(
        [Coordinator(database, Cancelling(barrier), shared=shared) for _ in range(2)]
    )
    coordinators.start()

    def state(job_id: UUID) -> JobState:
        return wait_for_end(database, job_id).state

    assert (state(cancelled), state(kept)) == (JobState.CANCELLED, JobState.SUCCEEDED)
    assert read(database, kept).num_measured == TRIALS
    assert coordinators.stop(PATIENCE_SECS)
