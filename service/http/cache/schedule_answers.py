"""A cache of best schedules: an answer is rebuilt only if the row of its task has changed.

Reading the row is cheaper than reading a schedule, and the database changes often while jobs run.
While it does not change, `AnswerCacheMiddleware` answers first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from compiler.bounded_cache import BoundedCache
from service.common.errors import ServiceNotFoundError
from service.http.shared_reads import SharedReads
from service.intake.request_validation import parse_target, read_workload
from service.schedules.schedules import (
    find_all_best,
    find_best,
    find_nearest,
    find_nearest_by_key,
)
from service.store.database.database import Database
from service.store.results import best_schedules
from service.store.results.best_schedules import Stamp, TaskKey
from service.wire.models import BestRead
from service.wire.requests import ScheduleQuery

MAX_ANSWERS = 4096


@dataclass(frozen=True)
class ScheduleAnswer:
    """A best schedule as JSON, and its entity tag.

    Attributes:
        is_current: Returns whether the answer still holds, at the cost of a shared statement; None
            if only another look-up can tell.
    """

    body: bytes
    etag: str
    is_current: Callable[[], Awaitable[bool]] | None = None


class ScheduleAnswers:
    """Answers look-ups of best schedules; safe to use from several threads."""

    def __init__(self, database: Database, max_answers: int = MAX_ANSWERS) -> None:
        self._database = database
        self._reads = database.single_reads()
        self._stamps = SharedReads(self._read_stamps)
        self._answers: BoundedCache[TaskKey, tuple[Stamp, ScheduleAnswer]]
        self._answers = BoundedCache(max_answers)
        self._missing = SharedReads(self._read)

    async def find_shared(self, workload_key: str, target: str, *, nearest: bool) -> ScheduleAnswer:
        """Return the result of `find`; concurrent requests for exact tasks share its statements.

        When a service starts, all look-ups miss. Forty threads would each open a connection, and
        take turns at the interpreter.
        """
        if not nearest:
            task = workload_key, parse_target(target).name
            if (answer := await self._missing.get(task)) is not None:
                return answer
        return await run_in_threadpool(self.find, workload_key, target, nearest=nearest)

    def prepare(self) -> None:
        """Read a schedule, so that the first look-up finds compiled statements."""
        with suppress(SQLAlchemyError, ServiceNotFoundError):
            with self._database.read() as session:
                task = best_schedules.newest_task(session) or ("", "cpu")
            self._exact(task)

    def find(self, workload_key: str, target: str, *, nearest: bool) -> ScheduleAnswer:
        """Return the best schedule of a workload, or with `nearest` that of the nearest shape.

        Raises:
            UnprocessableError: If the target is invalid.
            ServiceNotFoundError: If no correct trial of the task is stored.
        """
        parsed = parse_target(target)
        if nearest:
            return _made(find_nearest_by_key(self._database, workload_key, parsed))
        return self._exact((workload_key, parsed.name))

    def find_by_text(self, query: ScheduleQuery) -> ScheduleAnswer:
        """Return the result of `find` for a workload given as text.

        Raises:
            UnprocessableError: If the target or the workload is invalid.
            ServiceNotFoundError: If no correct trial of the task is stored.
        """
        workload, target = read_workload(query.workload), parse_target(query.target)
        if query.nearest:
            nearest = find_nearest(self._database, workload, target, query.workload.operator)
            return _made(nearest)
        return self._exact((workload.key, target.name), query.workload.operator)

    def _exact(self, task: TaskKey, operator: str | None = None) -> ScheduleAnswer:
        answer = self._read([task]).get(task)
        # `find_best` says why there is none.
        return answer or _made(find_best(self._database, *task, operator))

    def _read(self, tasks: Collection[TaskKey]) -> dict[TaskKey, ScheduleAnswer]:
        """Return the answers of tasks that have one, the cached ones if they hold."""
        stamps = self._read_stamps(tasks)
        answers = {
            task: cached[1]
            for task in tasks
            if (cached := self._answers.get(task)) is not None and cached[0] == stamps.get(task)
        }
        # A schedule may be newer than its stamp; the next look-up then rebuilds the answer.
        missing = [task for task in tasks if task in stamps and task not in answers]
        for task, best in (find_all_best(self._database, missing) if missing else {}).items():
            is_current = partial(self._is_current, task, stamps[task])
            answers[task] = replace(_made(best), is_current=is_current)
            self._answers.put(task, (stamps[task], answers[task]))
        return answers

    async def _is_current(self, task: TaskKey, stamp: Stamp) -> bool:
        return await self._stamps.get(task) == stamp

    def _read_stamps(self, tasks: Collection[TaskKey]) -> dict[TaskKey, Stamp]:
        return best_schedules.stamps(self._reads, tasks)


def _made(best: BestRead) -> ScheduleAnswer:
    # A final comparison changes the times and the baseline of a trial that stays the best. For an
    # adapted schedule, its shape and its expected loss count too.
    parts: list[Any] = [
        best.job_id,
        best.trial_number,
        best.run_secs,
        best.interval,
        best.default_secs,
        best.default_interval,
        best.baseline,
        best.is_outdated,
    ]
    if best.nearest is not None:
        parts += [best.workload_key, best.nearest.expected_loss]
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
    return ScheduleAnswer(best.model_dump_json().encode(), digest)
