"""The coordinator: claims jobs, runs the tuning loop on them, and keeps what it finds.

It keeps nothing of its own that matters: whatever kills it, another one resumes the job from the
trials in the store.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from uuid import UUID

import structlog
from sqlalchemy.orm import Session

from compiler.script.parser import parse
from compiler.target import Target
from loopwright.models import JobState
from service.errors import LeaseLostError
from service.heartbeat import PATIENCE_SECS, Heartbeat
from service.owner import Owner
from service.store import cost_models, leases, trials
from service.store.database import Database
from service.store.jobs import JobRow
from service.store.sql_store import SqlStore
from service.store.workloads import WorkloadRow
from tuner.cost_model.quality import pairwise_accuracy
from tuner.measurer.measurer import Measurer
from tuner.space.features import SCHEMA_VERSION
from tuner.task import Task
from tuner.tune import TuneResult, tune

_log = structlog.get_logger()

_IDLE_SECS = 1.0
_MAX_BACKOFF_SECS = 10.0


def _nothing() -> None:
    pass


class Coordinator:
    """Drives one job after another, the oldest first.

    Args:
        measurer: What measures candidates.
        interrupt: Makes the measurer give up what is under way, by an error of its own.
        lease_secs: How long a job stays ours without a heartbeat.
    """

    def __init__(
        self,
        database: Database,
        measurer: Measurer,
        *,
        interrupt: Callable[[], None] = _nothing,
        lease_secs: float = leases.LEASE_SECS,
        patience_secs: float = PATIENCE_SECS,
    ) -> None:
        self.owner = Owner.here()
        self._database = database
        self._measurer = measurer
        self._interrupt = interrupt
        self._lease_secs = lease_secs
        self._patience_secs = patience_secs
        self._store = SqlStore(database, self.owner)
        self._stopping = Event()
        self._work = Event()
        self._thread = Thread(target=self._run, name="coordinator", daemon=True)

    def start(self) -> None:
        """Begin to claim jobs, in a thread."""
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether jobs are being claimed."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """Look for a job now."""
        self._work.set()

    def stop(self, timeout_secs: float) -> bool:
        """End in good order: the job in hand goes back to the queue with all its trials.

        Returns:
            Whether the thread ended in time; if not, the job's lease shows that we are gone.
        """
        self._stopping.set()
        self._work.set()
        if self._thread.is_alive():
            self._thread.join(timeout_secs)
        return not self._thread.is_alive()

    def run_one(self) -> bool:
        """Claim a job and drive it as far as it goes; tell whether there was one."""
        with self._database.write() as session:
            job = leases.claim(session, self.owner, lease_secs=self._lease_secs)
        if job is None:
            return False
        log = _log.bind(job=str(job.id), workload=job.workload_name, target=job.target)
        log.info("job claimed", num_measured=job.num_measured, trials=job.trials)
        try:
            self._drive(job)
        except LeaseLostError as error:
            log.warning("job lost", reason=str(error))
        except Exception as error:
            log.exception("job interrupted by an error")
            self._give_up(job.id, f"internal error: {type(error).__name__}: {error}")
        return True

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._work.clear()
            try:
                pause_secs = 0.0 if self.run_one() else _IDLE_SECS
            except Exception:
                # Whatever it is, jobs would wait for ever without this thread.
                _log.exception("cannot claim a job, or put one back")
                pause_secs = _MAX_BACKOFF_SECS
            self._work.wait(pause_secs)

    def _drive(self, job: JobRow) -> None:
        result: TuneResult | None = None
        with Heartbeat(
            self._database,
            job.id,
            self.owner,
            interrupt=self._interrupt,
            lease_secs=self._lease_secs,
            patience_secs=self._patience_secs,
        ) as heartbeat:
            task = self._task(job)

            def should_stop() -> bool:
                return heartbeat.is_cancelled or heartbeat.is_lost or self._stopping.is_set()

            try:
                result = tune(
                    task,
                    measurer=self._measurer,
                    trials=job.trials,
                    seed=job.seed,
                    strategy=job.strategy,
                    history=self._store.trials(str(job.id)),
                    on_trials=lambda measured: self._store.add(str(job.id), task, measured),
                    should_stop=should_stop,
                )
            except Exception as error:
                if not should_stop():
                    raise
                # What was under way was interrupted: the job ends, or waits, as it is.
                _log.info("measuring was given up", job=str(job.id), reason=str(error))
        self._end(job, result, is_cancelled=heartbeat.is_cancelled)

    def _task(self, job: JobRow) -> Task:
        with self._database.read() as session:
            text = session.get_one(WorkloadRow, job.workload_key).script
        return Task(parse(text), Target(job.target))

    def _end(self, claimed: JobRow, result: TuneResult | None, *, is_cancelled: bool) -> None:
        job_id = claimed.id
        with self._database.write() as session:
            job = leases.owned(session, job_id, str(self.owner))
            if is_cancelled or job.cancel_requested:
                leases.finish(session, job_id, self.owner, JobState.CANCELLED)
            elif result is None or (self._stopping.is_set() and job.num_measured < job.trials):
                leases.release(session, job_id, self.owner)
            elif job.best_secs is None:
                failures = trials.explain_failures(session, job_id)
                leases.finish(session, job_id, self.owner, JobState.FAILED, failures)
            else:
                leases.finish(session, job_id, self.owner, JobState.SUCCEEDED)
                _keep_model(session, job, result)
            _log.info("job left", job=str(job_id), state=job.state.value, best_secs=job.best_secs)

    def _give_up(self, job_id: UUID, error: str) -> None:
        with suppress(LeaseLostError):
            with self._database.write() as session:
                fruitless = leases.give_up(session, job_id, self.owner, error)
            self._stopping.wait(min(0.25 * 2**fruitless, _MAX_BACKOFF_SECS))


def _keep_model(session: Session, job: JobRow, result: TuneResult) -> None:
    """Store what the job's cost model learned, and how well it predicted what it had not seen."""
    if result.cost_model is None:
        return
    cost_models.add(
        session,
        label=Target(job.target).label,
        job_id=job.id,
        feature_version=SCHEMA_VERSION,
        trained_on=len(result.trials),
        quality={"pairwise_accuracy": pairwise_accuracy(result.trials)},
        blob=result.cost_model,
    )
