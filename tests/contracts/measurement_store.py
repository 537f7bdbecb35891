"""The contract of `MeasurementStore`. Subclass `MeasurementStoreContract`; define its fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Thread

import pytest

from compiler import ops
from compiler.runtime.conditions import TimingConditions
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.runtime.resources import KernelResources
from compiler.schedule.schedule import Schedule
from compiler.target.target import Target
from tuner.candidate import Candidate, default_candidate
from tuner.store.store import DuplicateTrialError, MeasurementStore
from tuner.task import Task
from tuner.trial import MeasuredTrial


def make_candidate(task: Task, number: int) -> Candidate:
    """Return a candidate that differs for each number; 0 is the default schedule."""
    if number == 0:
        return default_candidate()
    schedule = Schedule(task.func)
    schedule.annotate(schedule.get_block("C"), "number", number)
    return Candidate("annotated", schedule.trace)


def make_trial(
    task: Task, number: int, secs: float | ErrorKind, *, candidate: int | None = None
) -> MeasuredTrial:
    """Return a trial whose run took `secs`, or that failed with that kind of error."""
    measurement = (
        Measurement(error=secs, message="injected", build_secs=0.25)
        if isinstance(secs, ErrorKind)
        else Measurement((secs, 2 * secs), max_error=1e-6, worker="w", toolchain="t")
    )
    of = make_candidate(task, number if candidate is None else candidate)
    predicted = None if number == 0 else number / 8
    return MeasuredTrial(number, of, measurement, predicted=predicted, round=number // 4)


class MeasurementStoreContract:
    """Tests of a store: override the fixture `store`, and `new_job` if the store keeps jobs."""

    @pytest.fixture
    def store(self) -> Iterator[MeasurementStore]:
        raise NotImplementedError

    def new_job(self, store: MeasurementStore, task: Task, name: str) -> str:
        """Return the id of a job of `task`, which exists before its trials."""
        return name

    @pytest.fixture
    def task(self) -> Task:
        return Task(ops.matmul(8, 8, 8), Target("cpu"))

    @pytest.fixture
    def job(self, store: MeasurementStore, task: Task) -> str:
        return self.new_job(store, task, "job-1")

    def test_an_unknown_job_has_no_trials(self, store: MeasurementStore) -> None:
        assert store.trials("nobody") == []

    def test_an_unknown_task_has_no_best(self, store: MeasurementStore) -> None:
        assert store.best("nothing") is None

    def test_trials_come_back_as_they_were(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        added = [make_trial(task, 0, 0.5), make_trial(task, 1, ErrorKind.CRASH)]
        store.add(job, task, added)
        assert store.trials(job) == added

    def test_the_resources_of_a_kernel_come_back(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        trial = make_trial(task, 0, 0.5)
        used = KernelResources(32, 0, 8, 4096, occupancy=0.5)
        added = replace(trial, measurement=replace(trial.measurement, resources=used))
        store.add(job, task, [added])
        assert store.trials(job) == [added]

    def test_the_conditions_of_a_gpu_come_back(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        trial = make_trial(task, 0, 0.5)
        conditions = TimingConditions("cold", 1755, 640.5, 61, ("power cap",))
        added = replace(trial, measurement=replace(trial.measurement, conditions=conditions))
        store.add(job, task, [added])
        assert store.trials(job) == [added]

    def test_trials_come_back_by_number(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        for number in (3, 0, 2):
            store.add(job, task, [make_trial(task, number, 0.5)])
        assert [t.number for t in store.trials(job)] == [0, 2, 3]

    def test_jobs_are_apart(self, store: MeasurementStore, task: Task, job: str) -> None:
        other = self.new_job(store, task, "job-2")
        store.add(job, task, [make_trial(task, 1, 0.5)])
        store.add(other, task, [make_trial(task, 1, 0.25)])
        assert [t.best_secs for t in store.trials(job)] == [0.5]
        assert [t.best_secs for t in store.trials(other)] == [0.25]

    def test_a_number_is_kept_once(self, store: MeasurementStore, task: Task, job: str) -> None:
        store.add(job, task, [make_trial(task, 1, 0.5)])
        with pytest.raises(DuplicateTrialError):
            store.add(job, task, [make_trial(task, 1, 0.25, candidate=2)])
        assert [t.best_secs for t in store.trials(job)] == [0.5]

    def test_a_candidate_is_kept_once(self, store: MeasurementStore, task: Task, job: str) -> None:
        store.add(job, task, [make_trial(task, 1, 0.5)])
        with pytest.raises(DuplicateTrialError):
            store.add(job, task, [make_trial(task, 2, 0.25, candidate=1)])
        assert [t.number for t in store.trials(job)] == [1]

    def test_a_refused_call_keeps_nothing(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        store.add(job, task, [make_trial(task, 1, 0.5)])
        with pytest.raises(DuplicateTrialError):
            store.add(job, task, [make_trial(task, 2, 0.125), make_trial(task, 1, 0.25)])
        assert [t.number for t in store.trials(job)] == [1]
        best = store.best(task.key)
        assert best is not None
        assert best.best_secs == 0.5

    def test_a_duplicate_within_one_call_is_refused(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        with pytest.raises(DuplicateTrialError):
            store.add(job, task, [make_trial(task, 1, 0.5), make_trial(task, 1, 0.5)])
        assert store.trials(job) == []

    def test_adding_nothing_is_allowed(self, store: MeasurementStore, task: Task, job: str) -> None:
        store.add(job, task, [])
        assert store.trials(job) == []

    def test_best_is_the_fastest_over_all_jobs(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        other = self.new_job(store, task, "job-2")
        store.add(job, task, [make_trial(task, 0, 0.5), make_trial(task, 1, 0.25)])
        store.add(other, task, [make_trial(task, 2, 0.125)])
        assert store.best(task.key) == make_trial(task, 2, 0.125)

    def test_best_is_never_a_failure(self, store: MeasurementStore, task: Task, job: str) -> None:
        store.add(job, task, [make_trial(task, 0, ErrorKind.WRONG_RESULT)])
        assert store.best(task.key) is None
        store.add(job, task, [make_trial(task, 1, 0.5)])
        assert store.best(task.key) == make_trial(task, 1, 0.5)

    def test_best_is_the_first_added_among_equals(
        self, store: MeasurementStore, task: Task, job: str
    ) -> None:
        store.add(job, task, [make_trial(task, 3, 0.5)])
        store.add(job, task, [make_trial(task, 1, 0.5)])
        assert store.best(task.key) == make_trial(task, 3, 0.5)

    def test_tasks_have_their_own_best(self, store: MeasurementStore, task: Task, job: str) -> None:
        other = Task(ops.matmul(8, 8, 16), task.target)
        assert other.key != task.key
        store.add(job, task, [make_trial(task, 1, 0.5)])
        assert store.best(other.key) is None

    def test_threads_may_add_at_once(self, store: MeasurementStore, task: Task, job: str) -> None:
        threads = [
            Thread(target=store.add, args=(job, task, [make_trial(task, n, 1.0 / (n + 1))]))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [t.number for t in store.trials(job)] == list(range(8))
        assert store.best(task.key) == make_trial(task, 7, 0.125)
