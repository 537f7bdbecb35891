"""Answers of best schedules, kept as they go over the wire while they hold.

Deployed programs ask for the same few schedules again and again. An answer holds as long as the
row of its task is what it was, and that needs no look while the database has not changed at all.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from service.intake.request_validation import parse_target, read_workload
from service.schedules.schedules import find_best, find_nearest, find_nearest_by_key
from service.store.database.data_version import DataVersion
from service.store.database.database import Database
from service.store.results import best_schedules
from service.store.results.best_schedules import Stamp
from service.wire.models import BestRead, ScheduleQuery

MAX_KEPT = 4096

Task: TypeAlias = tuple[str, str]
"""The key of a workload, and the name of a target."""


@dataclass(frozen=True)
class Answer:
    """A best schedule as JSON, and its identity."""

    body: bytes
    etag: str

    @property
    def content_length(self) -> tuple[bytes, bytes]:
        """The header of its length."""
        return b"content-length", str(len(self.body)).encode()


@dataclass(frozen=True)
class _Kept:
    """An answer, and what it holds for: `version` is that of the whole database."""

    answer: Answer
    stamp: Stamp
    version: int | None


class BestAnswers:
    """Answers look-ups of best schedules; safe to use from several threads."""

    def __init__(self, database: Database, max_kept: int = MAX_KEPT) -> None:
        self._database = database
        self._version = DataVersion(database)
        self._max_kept = max_kept
        self._kept: OrderedDict[Task, _Kept] = OrderedDict()
        self._names: dict[str, str] = {}  # of targets, by the texts that were asked for
        self._lock = threading.Lock()

    def at_hand(self, workload_key: str, target: str) -> Answer | None:
        """Return the answer if it holds without a look into a table."""
        with self._lock:
            entry = self._kept.get((workload_key, self._names.get(target, "")))
        if entry is None or entry.version is None or entry.version != self._version.read():
            return None
        return entry.answer

    def find(self, workload_key: str, target: str, *, nearest: bool) -> Answer:
        """Return the best schedule of a workload, or with `nearest` one that will do.

        Raises:
            InvalidRequestError: If the target cannot be meant.
            NotFoundError: If nothing of the task was measured and right.
        """
        parsed_target = parse_target(target)
        if nearest:
            return _made(find_nearest_by_key(self._database, workload_key, parsed_target))
        with self._lock:
            if len(self._names) < self._max_kept:
                self._names[target] = parsed_target.name
        return self._exact((workload_key, parsed_target.name))

    def find_by_text(self, query: ScheduleQuery) -> Answer:
        """Do the same for a workload that is given as text.

        Raises:
            InvalidRequestError: If the workload cannot be meant, either.
            NotFoundError: As above.
        """
        workload, target = read_workload(query.workload), parse_target(query.target)
        if query.nearest:
            return _made(find_nearest(self._database, workload, target))
        return self._exact((workload.key, target.name))

    def _exact(self, task: Task) -> Answer:
        # Read before the rows: what changes in between is looked at again.
        version = self._version.read()
        with self._database.read() as session:
            stamp = best_schedules.stamp(session, *task)
        with self._lock:
            entry = self._kept.get(task)
        if stamp is None:
            return _made(find_best(self._database, *task))
        if entry is None or entry.stamp != stamp:
            # It may be younger than the stamp, and is then made once more at the next look.
            entry = _Kept(_made(find_best(self._database, *task)), stamp, version)
        self._keep(task, replace(entry, version=version))
        return entry.answer

    def _keep(self, task: Task, entry: _Kept) -> None:
        with self._lock:
            self._kept[task] = entry
            self._kept.move_to_end(task)
            if len(self._kept) > self._max_kept:
                self._kept.popitem(last=False)


def _made(best: BestRead) -> Answer:
    # A finish changes the times of a trial that stays the best, and the library beside it; of a
    # schedule that was adapted, the shape that it is for and what is expected of it count, too.
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
    return Answer(best.model_dump_json().encode(), digest)
