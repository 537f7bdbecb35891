"""Run a job or a group of jobs: search, then time the finalists side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol
from uuid import UUID

import structlog
from sqlalchemy.orm import Session

from compiler.backends.backend import host_labels
from service.common.errors import LeaseLostError
from service.common.owner import Owner
from service.coordinator.heartbeat import Heartbeat
from service.coordinator.heartbeat_measurer import HeartbeatMeasurer, Measuring
from service.coordinator.range_time import RangeTime
from service.coordinator.shape_choice import ShapeChooser
from service.coordinator.turns import Turns
from service.learning import warm_start
from service.store.database.database import Database
from service.store.jobs import groups
from service.store.jobs.jobs import JobRow
from service.store.results import finals
from service.store.results.add_trials import NewTrials
from service.store.results.sql_store import SqlStore
from service.store.results.trial_writer import TrialWriter
from service.store.tasks import load_task
from tuner.finish.baseline import Baseline, BaselineMeasurer, measure_baselines
from tuner.finish.contest import Finish
from tuner.finish.finish import finish
from tuner.finish.space_distance import SpaceDistance, space_distance
from tuner.finish.whole_space import WholeSpace, measured_whole
from tuner.loop.budget import StopReason
from tuner.loop.interleave import interleave
from tuner.loop.search_loop import ROUND_SIZE, SearchLoop, has_spare_core
from tuner.loop.search_result import SearchResult
from tuner.loop.task_scheduler import Progress
from tuner.search.make import make_strategy
from tuner.search.strategy import SearchStrategy
from tuner.task import Task

_log = structlog.get_logger()

_MAX_AHEAD = 3
"""Most rounds of a job that begin beside the current one: they are proposed without its results,
and are lost if the coordinator ends. Chosen.
"""


class PreparationError(Exception):
    """A job could not be prepared, for example since a schedule rule fails on its program.

    Attributes:
        job_id: The job, which may be one of a group.
        cause: What was raised.
    """

    def __init__(self, job_id: UUID, cause: Exception) -> None:
        super().__init__(str(cause))
        self.job_id = job_id
        self.cause = cause


@dataclass(frozen=True)
class JobOutcome:
    """The result of a job: its search, and the final comparison and baselines if they were run.

    A job that was cancelled or returned to the queue has no result.
    """

    job_id: UUID
    result: SearchResult | None = None
    finish: Finish | None = None
    baselines: Sequence[Baseline] = ()
    space: WholeSpace | SpaceDistance | None = None


class JobDriver(Protocol):
    """Run jobs from their last trials to their ends; see `JobRunner`."""

    def drive(
        self, jobs: Sequence[JobRow], heartbeat: Heartbeat, is_stopping: Callable[[], bool]
    ) -> Iterator[JobOutcome]:
        """Yield the outcome of each job when it ends."""
        ...


@dataclass(frozen=True)
class _Search:
    job: JobRow
    task: Task
    rounds: SearchLoop
    measuring: HeartbeatMeasurer
    kept_before: Sequence[int]  # trials that earlier final comparisons kept
    time: RangeTime


class JobRunner:
    """Runs the tuning loop on jobs that `owner` has claimed.

    Args:
        baselines: Times libraries beside the best kernels; if None, none are timed.
        writer: Stores trials together with those of other jobs of the process.
        preparation: Gives turns to the jobs of the process that are prepared, which takes a
            processor for a second each: jobs that run already continue meanwhile.
        overlaps: Whether to propose while kernels are timed, whatever cores they use: other jobs of
            the process do so at any time.
        share: Returns how many workers a job for a target may expect beside other jobs.
    """

    def __init__(
        self,
        database: Database,
        measuring: Measuring,
        owner: Owner,
        baselines: BaselineMeasurer | None = None,
        *,
        writer: TrialWriter | None = None,
        preparation: Turns | None = None,
        overlaps: bool = False,
        share: Callable[[str], float] = lambda _: 1.0,
    ) -> None:
        self._database = database
        self._measuring = measuring
        self._baselines = baselines
        self._owner = owner
        self._store = SqlStore(database, owner)
        self._writer = writer or TrialWriter(database)
        self._preparation = preparation or Turns()
        self._overlaps = overlaps
        self._share = share
        self._chooser = ShapeChooser(database, measuring, owner)

    def drive(
        self, jobs: Sequence[JobRow], heartbeat: Heartbeat, is_stopping: Callable[[], bool]
    ) -> Iterator[JobOutcome]:
        """Resume jobs after their last trials; yield the outcome of each when it ends.

        Args:
            jobs: One job, or all of a group that have not ended.
            heartbeat: Renews the leases, and reads the controls of the jobs.
            is_stopping: Returns whether all jobs must return to the queue.

        Raises:
            PreparationError: If a job cannot be prepared.
        """
        with ExitStack() as stack:
            stack.callback(self._settle, jobs)
            searches = []
            for job in jobs:
                gives_up = partial(_gives_up, job.id, heartbeat, is_stopping)
                with self._preparation.turn(heartbeat.standing.priority, gives_up) as has_turn:
                    if not has_turn:
                        yield from [JobOutcome(job.id) for job in jobs]
                        return
                    is_alone = len(jobs) == 1
                    searches.append(self._prepared(job, heartbeat, is_stopping, ahead=is_alone))
                stack.enter_context(searches[-1].rounds)
            ends = interleave(
                [search.rounds for search in searches],
                lambda: heartbeat.controls[heartbeat.job_ids[0]].shared_trials,
                self._ended(jobs),
            )
            for num_ended, (index, reason) in enumerate(ends, 1):
                search = searches[index]
                self._writer.flush(search.job.id)
                gives_up = partial(_gives_up, search.job.id, heartbeat, is_stopping)
                outcome = self._finished(search, reason, gives_up)
                is_last = num_ended == len(searches) and outcome.result is not None
                if is_last and not self._chooser.choose(search.time, gives_up):
                    outcome = JobOutcome(search.job.id)
                yield outcome

    def _settle(self, jobs: Sequence[JobRow]) -> None:
        """Wait for trials that are being stored; at an error of the jobs, theirs adds nothing."""
        for job in jobs:
            with suppress(Exception):
                self._writer.flush(job.id)

    def _prepared(
        self, job: JobRow, heartbeat: Heartbeat, is_stopping: Callable[[], bool], *, ahead: bool
    ) -> _Search:
        try:
            return self._search(job, heartbeat, is_stopping, ahead=ahead)
        except (LeaseLostError, MemoryError):
            raise
        except Exception as error:
            raise PreparationError(job.id, error) from error

    def _search(
        self, job: JobRow, heartbeat: Heartbeat, is_stopping: Callable[[], bool], *, ahead: bool
    ) -> _Search:
        with self._database.read() as session:
            task = _task(session, job)
            kept_before = finals.kept_numbers(session, job.id)
        measuring = HeartbeatMeasurer(self._measuring, self._baselines, job.id, heartbeat)
        start_secs = time.monotonic()
        num_sizes = self._chooser.num_sizes(job)
        range_time = RangeTime(
            job, heartbeat, num_sizes, lambda: job.active_secs + time.monotonic() - start_secs
        )

        def interrupted() -> StopReason | None:
            if _gives_up(job.id, heartbeat, is_stopping):
                return StopReason.CANCELLED
            if heartbeat.controls[job.id].is_stopped:
                return StopReason.STOPPED
            is_over = rounds.has_result and range_time.is_searched
            return StopReason.TIME_BUDGET if is_over else None

        rounds = SearchLoop(
            task,
            measuring,
            self._strategy(job, task),
            lambda: heartbeat.controls[job.id].budget,
            history=self._store.trials(str(job.id)),
            on_trials=lambda measured: self._writer.put(
                NewTrials(job.id, self._owner, task, measured)
            ),
            interrupted=interrupted,
            # Kernels for other targets are timed on other hosts.
            overlap=(
                self._overlaps
                or has_spare_core(task.target)
                or task.target.label not in host_labels()
            ),
            num_ahead=lambda: rounds_ahead(self._share(job.target)) if ahead else 0,
        )
        return _Search(job, task, rounds, measuring, kept_before, range_time)

    def _strategy(self, job: JobRow, task: Task) -> SearchStrategy:
        start = warm_start.warm_start_of_job(
            self._database, self._owner, job, task, rules=job.rules
        )
        return make_strategy(job.strategy, task, job.seed, start, job.rules)

    def _ended(self, jobs: Sequence[JobRow]) -> list[Progress]:
        """Return the progress of the jobs of the same group that have ended."""
        if (group_id := jobs[0].group_id) is None:
            return []
        driven = {job.id for job in jobs}
        with self._database.read() as session:
            ended = [row for row in groups.members(session, group_id) if row.id not in driven]
            tasks = [_task(session, row) for row in ended]
        trials = [self._store.trials(str(row.id)) for row in ended]
        return [Progress(task, job_trials) for task, job_trials in zip(tasks, trials, strict=True)]

    def _finished(
        self, search: _Search, reason: StopReason, gives_up: Callable[[], bool]
    ) -> JobOutcome:
        job = search.job
        if reason is StopReason.CANCELLED:
            return JobOutcome(job.id)
        result = SearchResult(search.rounds.trials(), reason, search.rounds.learned())
        comparison, baselines = None, list[Baseline]()
        space: WholeSpace | SpaceDistance | None = None
        try:
            num_schedules = measured_whole(search.task, result.trials, job.rules)
            comparison = finish(
                search.task,
                result.trials,
                search.measuring,
                seed=job.seed,
                also=search.kept_before,
                is_whole=num_schedules is not None,
                max_secs=search.time.finish_secs,
                should_stop=gives_up,
            )
            if comparison is not None and comparison.kept is not None:
                if search.time.finish_secs is None:
                    baselines = measure_baselines(
                        search.task,
                        comparison.kept.trial,
                        search.measuring,
                        seed=job.seed,
                        should_stop=gives_up,
                    )
                if num_schedules is None:
                    space = space_distance(search.task, result.trials, job.rules)
                elif comparison.margin is not None:
                    space = WholeSpace(num_schedules, comparison.margin)
        except Exception:
            # The search has a result, which a failed final comparison must not lose.
            if not gives_up():
                _log.warning("the final comparison failed", job=str(job.id), exc_info=True)
        return (
            JobOutcome(job.id)
            if gives_up()
            else JobOutcome(job.id, result, comparison, baselines, space)
        )


def rounds_ahead(num_workers: float) -> int:
    """Return how many rounds of a job begin beside the current one to keep workers busy.

    A worker has a batch that runs and one that waits. As the current round ends, the next ones have
    to suffice.
    """
    return min(_MAX_AHEAD, max(1, math.ceil(2 * num_workers / ROUND_SIZE)))


def _gives_up(job_id: UUID, heartbeat: Heartbeat, is_stopping: Callable[[], bool]) -> bool:
    is_put_back = is_stopping() or heartbeat.is_joined
    return is_put_back or heartbeat.is_lost or heartbeat.controls[job_id].is_cancelled


def _task(session: Session, job: JobRow) -> Task:
    return load_task(session, job.workload_key, job.target, job.weight)
