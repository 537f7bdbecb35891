"""The coordinator: claims jobs, runs them, and stores their results.

All state is in the store. If a coordinator dies, another one resumes its jobs from the stored
trials.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Event, Lock, Thread
from uuid import UUID

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from compiler.target.target import Target
from service.common import request_ids
from service.common.errors import LeaseLostError
from service.common.owner import Owner
from service.coordinator.even_share import EvenShare
from service.coordinator.heartbeat import PATIENCE_SECS, Heartbeat
from service.coordinator.heartbeat_measurer import Measuring
from service.coordinator.job_runner import JobDriver, JobOutcome, JobRunner, PreparationError
from service.coordinator.presence import Presence
from service.coordinator.pulse import Pulse
from service.coordinator.turns import Turns
from service.learning import training
from service.learning.retrain import Retrainer
from service.store import workers
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.database.error import log_error
from service.store.jobs import baselines, blame, claims, controls, leases
from service.store.jobs.jobs import JobRow
from service.store.results import finals
from service.store.results.trial_writer import TrialWriter
from service.store.trials import trials
from service.wire.models import JobState
from service.wire.windows import is_open
from tuner.finish.baseline import BaselineMeasurer
from tuner.loop.budget import StopReason
from tuner.loop.search_result import SearchResult
from workers.child.supervisor import ChildStartError, RunnerClosedError
from workers.engine.engine import (
    EngineClosedError,
    EngineStartError,
    NoWorkerError,
    Standing,
    WorkersGoneError,
)

_log = structlog.get_logger()

_IDLE_SECS = 0.5
"""Interval at which the queue is polled: the delay of a job's start against the load of the
database. Chosen.
"""
_MAX_CLAIMS = 16
"""Most claims in a transaction: the jobs of a killed coordinator are claimed in a few
transactions, and each is short. Chosen.
"""
_MAX_BACKOFF_SECS = 60.0
"""Longest pause after consecutive errors of the service. Chosen."""
_NO_CLAIM_SECS = 10.0
"""Longest pause after a claim that failed, for example by an error of the database. Chosen."""
_OF_THE_SERVICE = (
    ChildStartError,
    EngineClosedError,
    EngineStartError,
    InterfaceError,
    OperationalError,
    OSError,
    PoolTimeoutError,
    RunnerClosedError,
    WorkersGoneError,
)
"""Errors that are not the fault of the job."""


def _do_nothing() -> None:
    pass


def _ignore(_: Callable[[], Standing]) -> None:
    pass


@dataclass
class _Work:
    """The claimed jobs.

    Attributes:
        has_begun: Whether the health checks before them have passed.
        has_result: Whether the search of one of them ended; others returned to the queue.
    """

    open_ids: list[UUID]
    has_begun: bool = False
    has_result: bool = False


class SharedParts:
    """What the coordinators of a process share, so that their load does not grow with their number.

    Attributes:
        pulse: Renews the leases of all.
        writer: Stores the trials of all.
        reads: Of the one that polls the queue.
        turn: Held by that one.
        waiting: Those that wait for the turn: the one that polls claims for them, too.
        preparation: Held by the job that is prepared.
        presence: The session lock of the process, by which others see its end.
        even_share: Says how many jobs the process may claim.
    """

    def __init__(self, database: Database, lease_secs: float = leases.LEASE_SECS) -> None:
        self.pulse = Pulse(database, lease_secs)
        self.writer = TrialWriter(database)
        self.reads = database.single_reads()
        self.turn = Lock()
        self.waiting: deque[Coordinator] = deque()
        self.preparation = Turns()
        self.presence = Presence(database)
        self.even_share = EvenShare()


class Coordinator:
    """Run one job, or one group of jobs, after another.

    Args:
        measuring: Measures candidates, and compares the finalists.
        baselines: Times libraries beside the best kernels; if None, none are timed.
        interrupt: Makes the measurement in progress end with an error.
        stand: Called before jobs are measured with a function that returns their standing.
        share: See `JobRunner`.
        lease_secs: How long a lease lasts without a heartbeat.
        retrainer: Receives the kind of target of each job whose search ended.
        prove: Measures a known kernel, and raises if that fails. Called before a job whose last
            claim brought no result.
        serves: Returns the kinds of target that have workers here. None means that the workers
            cannot be reached; then no job is claimed. Jobs for other targets are left to other
            coordinators.
        shared: What the coordinators of a process share; by default it has no other.
        overlaps: See `JobRunner`.
        clock: Returns the time that decides which windows of jobs are open.
    """

    def __init__(
        self,
        database: Database,
        measuring: Measuring,
        *,
        baselines: BaselineMeasurer | None = None,
        interrupt: Callable[[], None] = _do_nothing,
        stand: Callable[[Callable[[], Standing]], None] = _ignore,
        share: Callable[[str], float] = lambda _: 1.0,
        lease_secs: float = leases.LEASE_SECS,
        patience_secs: float = PATIENCE_SECS,
        retrainer: Retrainer | None = None,
        prove: Callable[[], None] = _do_nothing,
        serves: Callable[[], Collection[str] | None] | None = None,
        shared: SharedParts | None = None,
        overlaps: bool = False,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._shared = shared or SharedParts(database, lease_secs)
        self.owner = Owner.here(self._shared.presence.number)
        self._database = database
        self._interrupt = interrupt
        self._stand = stand
        self._lease_secs = lease_secs
        self._patience_secs = patience_secs
        self._retrainer = retrainer
        self._prove = prove
        self._serves = serves
        self._clock = clock
        self._num_errors = 0  # consecutive ones of the service
        self._granted: list[JobRow] = []  # claimed by another one
        self.driver: JobDriver = JobRunner(
            database,
            measuring,
            self.owner,
            baselines,
            writer=self._shared.writer,
            preparation=self._shared.preparation,
            overlaps=overlaps,
            share=share,
        )
        self._stopping = Event()
        self._work = Event()
        self._thread = Thread(target=self._run, name="coordinator", daemon=True)

    def start(self) -> None:
        """Start a thread that claims jobs."""
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Return whether jobs are being claimed."""
        return self._thread.is_alive()

    def wake(self) -> None:
        """Poll the queue now."""
        self._work.set()

    def request_stop(self) -> None:
        """Begin to shut down; see `stop`."""
        self._stopping.set()
        self._work.set()

    def stop(self, timeout_secs: float) -> bool:
        """Shut down: the current job returns to the queue with all its trials.

        Returns:
            Whether the thread ended in time. If not, the job's lease expires.
        """
        self.request_stop()
        if self._retrainer is not None:
            self._retrainer.stop()
        if self._thread.is_alive():
            self._thread.join(timeout_secs)
        return not self._thread.is_alive()

    def run_one(self) -> bool:
        """Claim a job or a group and run it to its end; return whether one was claimed."""
        with self._shared.presence.kept(self.wake):
            jobs = self._claim()
            self._drive_claimed(jobs)
        return bool(jobs)

    def _claim(self) -> list[JobRow]:
        """Claim jobs for this coordinator, and for those that wait for the turn."""
        served = () if self._serves is None else self._serves()
        presence = self._shared.presence
        if served is None or not presence.is_held:
            return []
        others = set[str]()
        look = claims.look(self._shared.reads, presence.is_gone, presence.number)
        if not (most := self._shared.even_share.most(look, presence.num_present)):
            return []
        if self._serves is not None:
            with self._database.read() as session:
                others = workers.labels_now(session) - set(served)
        seats = [self, *list(self._shared.waiting)][: min(most, _MAX_CLAIMS)]
        with self._database.write() as session:
            claimed = claims.claim_all(
                session,
                [seat.owner for seat in seats],
                lease_secs=self._lease_secs,
                leave=others,
                at=self._clock(),
                is_gone=presence.is_gone,
            )
        for seat, jobs in zip(seats, claimed, strict=False):
            seat._granted = jobs
        return self._take_granted()

    def _take_granted(self) -> list[JobRow]:
        granted, self._granted = self._granted, []
        return granted

    def _drive_claimed(self, jobs: Sequence[JobRow]) -> None:
        if jobs:
            with request_ids.bound(jobs[0].request_id):  # one request submits all jobs of a group
                self._drive_logged(jobs)

    def _drive_logged(self, jobs: Sequence[JobRow]) -> None:
        for job in jobs:
            log = _log.bind(job=str(job.id), workload=job.workload_name, target=job.target)
            log.info("job claimed", num_measured=job.num_measured, max_trials=job.max_trials)
        work = _Work([job.id for job in jobs])
        try:
            self._drive(jobs, work)
            self._num_errors = 0
            if self._retrainer is not None and work.has_result:
                for label in sorted({Target(job.target).timing_label for job in jobs}):
                    self._retrainer.offer(label)
        except LeaseLostError as error:
            _log.warning("jobs lost", jobs=list(map(str, work.open_ids)), reason=str(error))
        except PreparationError as error:
            self._give_up(work, error.cause, unprepared=error.job_id)
        except Exception as error:
            self._give_up(work, error)

    def _run(self) -> None:
        with self._shared.presence.kept(self.wake):
            self._run_jobs()

    def _run_jobs(self) -> None:
        while not self._stopping.is_set():
            self._shared.waiting.append(self)
            with self._shared.turn:
                self._shared.waiting.remove(self)
                jobs = self._take_granted() or self._next_jobs()
            try:
                self._drive_claimed(jobs)
            except Exception as error:
                # Any error: without this thread, no job would ever run.
                log_error(_log, "cannot release a job", error)
                self._stopping.wait(_IDLE_SECS)

    def _next_jobs(self) -> list[JobRow]:
        """Poll the queue until jobs are claimed; return none at the end."""
        num_failures = 0  # consecutive
        while not self._stopping.is_set():
            self._work.clear()
            pause_secs = _IDLE_SECS
            try:
                if jobs := self._claim():
                    return jobs
                num_failures = 0
            except Exception as error:
                log_error(_log, "cannot claim a job", error)
                pause_secs = min(_IDLE_SECS * 2 ** min(num_failures, 30), _NO_CLAIM_SECS)
                num_failures += 1
            self._work.wait(pause_secs)
        return []

    def _drive(self, jobs: Sequence[JobRow], work: _Work) -> None:
        """Run jobs; remove each from `work.open_ids` when it ends or returns to the queue."""
        with Heartbeat(
            self._database,
            work.open_ids,
            self.owner,
            group_id=jobs[0].group_id,
            interrupt=self._interrupt,
            patience_secs=self._patience_secs,
            pulse=self._shared.pulse,
        ) as heartbeat:
            self._stand(lambda: heartbeat.standing)
            if any(map(blame.is_suspect, jobs)):
                self._prove()
                with self._database.write() as session:
                    owner = str(self.owner)
                    blame.begin_work(leases.owned(session, job.id, owner) for job in jobs)
            work.has_begun = True
            for driven in self.driver.drive(jobs, heartbeat, lambda: self._puts_back(jobs)):
                heartbeat.leave(driven.job_id)
                self._end(driven)
                work.open_ids.remove(driven.job_id)
                work.has_result |= driven.result is not None

    def _puts_back(self, jobs: Sequence[JobRow]) -> bool:
        """Return whether jobs must return to the queue: at a stop, or when their window closes."""
        now = self._clock()
        return self._stopping.is_set() or not all(is_open(job.window, now) for job in jobs)

    def _end(self, driven: JobOutcome) -> None:
        with self._database.write() as session:
            job = leases.owned(session, driven.job_id, str(self.owner))
            if driven.finish is not None:
                finals.keep(session, job, driven.finish, driven.space)
                if (winner := driven.finish.kept) is not None:
                    baselines.keep(session, job.id, winner.trial.number, driven.baselines)
            if job.cancel_requested:
                self._finish(session, job, JobState.CANCELLED, StopReason.CANCELLED)
            elif driven.result is None:
                leases.release(session, job.id, self.owner)
            else:
                self._conclude(session, job, driven.result)
            _log.info("job left", job=str(job.id), state=job.state.value, best_secs=job.best_secs)

    def _conclude(self, session: Session, job: JobRow, result: SearchResult) -> None:
        reason = result.stop_reason
        if controls.wants_more(session, job, result):
            leases.release(session, job.id, self.owner)
        elif not result.trials:
            self._finish(session, job, JobState.CANCELLED, reason)
        elif job.best_secs is None:
            failures = trials.explain_failures(session, job.id)
            self._finish(session, job, JobState.FAILED, reason, failures)
        else:
            self._finish(session, job, JobState.SUCCEEDED, reason)
            training.keep_of_job(session, job, result)

    def _finish(
        self,
        session: Session,
        job: JobRow,
        state: JobState,
        reason: StopReason,
        error: str | None = None,
    ) -> None:
        leases.finish(session, job.id, self.owner, state, stop_reason=reason, error=error)

    def _give_up(self, work: _Work, error: Exception, unprepared: UUID | None = None) -> None:
        """Return jobs to the queue after an error.

        If the error is the service's, wait: longer with each consecutive one. One of a job delays
        that job alone, so that others may run meanwhile.

        Args:
            unprepared: The job that could not be prepared, if that is the error.
        """
        log_error(_log, "an error interrupted jobs", error, jobs=list(map(str, work.open_ids)))
        # A missing worker is not an internal error: its message says what to do.
        is_plain = isinstance(error, NoWorkerError)
        reason = str(error) if is_plain else f"internal error: {type(error).__name__}: {error}"
        is_own = work.has_begun and not isinstance(error, _OF_THE_SERVICE)
        for job_id in work.open_ids:
            with suppress(LeaseLostError), self._database.write() as session:
                if is_own and unprepared not in (None, job_id):
                    leases.release(session, job_id, self.owner)
                    continue
                leases.give_up(
                    session,
                    job_id,
                    self.owner,
                    reason,
                    is_own=is_own,
                    has_begun=work.has_begun,
                    max_errors=blame.MAX_PREPARATIONS if unprepared else blame.MAX_CRASHES,
                )
        if is_own:
            return
        self._num_errors += 1
        self._stopping.wait(min(0.25 * 2 ** min(self._num_errors, 30), _MAX_BACKOFF_SECS))
