"""Timings of kernels over ranges of sizes, which are stored as they are measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from uuid import UUID

from compiler.ir.analysis.symbols import TIMED, declared
from compiler.runtime.measurement import Measurement
from service.common.owner import Owner
from service.store import shapes
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs import blame, leases
from service.store.shapes import ShapeTimingRow
from tuner.candidate import Candidate
from tuner.shapes.tune_shapes import ShapeMeasurer
from tuner.task import Task

_STORE_SECS = 0.5
"""Timings are stored in transactions that are at least so far apart: a killed coordinator loses as
much. Chosen.
"""


class PutBackError(Exception):
    """A search over ranges returns to the queue, or was cancelled; its timings are stored."""


class StoredTimings:
    """A measurer that measures nothing twice: it answers with what is stored of a search.

    Comparisons are not stored. They take seconds, and their result is stored with the kernels.

    Args:
        owner: Holds the lease of the job.
        shapes_id: The search over ranges.
        job_id: The job of its group whose lease is held meanwhile.
        measurer: Measures what is not stored.
        gives_up: Returns whether the job must return to the queue, or was cancelled.
    """

    def __init__(
        self,
        database: Database,
        owner: Owner,
        *,
        shapes_id: UUID,
        job_id: UUID,
        measurer: ShapeMeasurer,
        gives_up: Callable[[], bool],
    ) -> None:
        self._database = database
        self._owner = owner
        self._shapes_id = shapes_id
        self._job_id = job_id
        self._measurer = measurer
        self._gives_up = gives_up

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield each candidate's measurement: those that are stored first.

        Raises:
            PutBackError: If `gives_up` became true.
            LeaseLostError: If another coordinator has the job.
        """
        stored = self._stored(task)
        missing = []
        for index, candidate in enumerate(candidates):
            if candidate.key in stored:
                yield index, stored[candidate.key]
            else:
                missing.append(index)
        if not missing:
            return
        if self._gives_up():
            raise PutBackError
        new: list[tuple[Candidate, Measurement]] = []
        stored_at = time.monotonic()
        try:
            batch = [candidates[index] for index in missing]
            for position, measurement in self._measurer.measure(task, batch, incumbent_secs):
                new.append((batch[position], measurement))
                yield missing[position], measurement
                if time.monotonic() >= stored_at + _STORE_SECS:
                    self._store(task, new)
                    new, stored_at = [], time.monotonic()
                if self._gives_up():
                    raise PutBackError
        finally:
            self._store(task, new)

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        """Yield rounds: a measurement of each candidate.

        Raises:
            PutBackError: If `gives_up` became true.
        """
        for measured in self._measurer.compare(task, candidates, num_rounds, seed):
            if self._gives_up():
                raise PutBackError
            yield measured

    def _stored(self, task: Task) -> dict[str, Measurement]:
        with self._database.read() as session:
            rows = shapes.timings_of(session, self._shapes_id, task.workload_key)
            return {row.candidate_key: Measurement.from_json(row.measurement) for row in rows}

    def _store(self, task: Task, new: Sequence[tuple[Candidate, Measurement]]) -> None:
        if not new:
            return
        sizes = declared(task.func, TIMED) or None
        with self._database.write() as session:
            job = leases.owned(session, self._job_id, str(self._owner))
            blame.note_progress(session, job)
            now = utc_now()
            session.add_all(
                ShapeTimingRow(
                    shapes_id=self._shapes_id,
                    task_key=task.workload_key,
                    candidate_key=candidate.key,
                    sizes=sizes,
                    sketch=candidate.sketch,
                    trace=candidate.trace.to_json(),
                    measurement=measurement.to_json(),
                    created_at=now,
                )
                for candidate, measurement in new
            )
