"""The contract of `JobDriver`. Subclass `JobDriverContract`."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from service.coordinator.coordinator import Coordinator
from service.coordinator.heartbeat import Heartbeat
from service.coordinator.job_runner import JobDriver, JobOutcome
from service.store.database.database import Database
from service.store.jobs import claims, controls
from service.store.results.sql_store import SqlStore


class JobDriverContract:
    """Tests of a driver: override `coordinator`, which has the driver and a queued job."""

    @pytest.fixture
    def coordinator(self, database: Database) -> Coordinator:
        raise NotImplementedError

    def drive(
        self,
        coordinator: Coordinator,
        database: Database,
        *,
        is_stopping: bool = False,
        act: Callable[[UUID], object] = lambda _: None,
    ) -> tuple[UUID, list[JobOutcome]]:
        """Claim the job, call `act` with its id, and run it."""
        driver: JobDriver = coordinator.driver
        with database.write() as session:
            jobs = claims.claim(session, coordinator.owner, lease_secs=3600)
        [job] = jobs
        act(job.id)
        with Heartbeat(database, [job.id], coordinator.owner, interrupt=lambda: None) as heartbeat:
            return job.id, list(driver.drive(jobs, heartbeat, lambda: is_stopping))

    def test_an_outcome_has_every_trial_of_the_store(
        self, coordinator: Coordinator, database: Database
    ) -> None:
        job_id, [outcome] = self.drive(coordinator, database)
        assert outcome.job_id == job_id
        assert outcome.result is not None
        trials = SqlStore(database).trials(str(job_id))
        assert list(outcome.result.trials) == trials
        assert [trial.number for trial in trials] == list(range(len(trials)))
        assert len(trials) > 1

    def test_a_job_that_is_put_back_has_no_result(
        self, coordinator: Coordinator, database: Database
    ) -> None:
        job_id, outcomes = self.drive(coordinator, database, is_stopping=True)
        assert outcomes == [JobOutcome(job_id)]

    def test_a_cancelled_job_has_no_result(
        self, coordinator: Coordinator, database: Database
    ) -> None:
        def cancel(job_id: UUID) -> None:
            with database.write() as session:
                controls.cancel(session, job_id)

        job_id, outcomes = self.drive(coordinator, database, act=cancel)
        assert outcomes == [JobOutcome(job_id)]
