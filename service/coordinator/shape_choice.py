"""The end of a search over ranges: its kernels are chosen when the last job of its group ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from compiler.script.parser import parse
from compiler.target.target import Target
from service.common.owner import Owner
from service.coordinator.heartbeat_measurer import HeartbeatMeasurer, Measuring
from service.coordinator.range_time import RangeTime
from service.coordinator.stored_timings import PutBackError, StoredTimings
from service.store import shapes
from service.store.database.database import Database
from service.store.jobs import leases
from service.store.jobs.jobs import JobRow
from service.store.results.sql_store import SqlStore
from service.store.shapes import ShapesRow
from tuner.shapes.check_module import check_module
from tuner.shapes.choice_budget import ChoiceBudget
from tuner.shapes.shape_time import ShapeTime, mean_loss, shape_times
from tuner.shapes.sizes import ends_first
from tuner.shapes.tune_shapes import NoShapeError, ShapeSearch, find_kernels


@dataclass(frozen=True)
class ShapeChooser:
    """Chooses the kernels of searches over ranges, and stores them.

    Attributes:
        database: The database.
        measuring: Times kernels.
        owner: Holds the leases of the jobs.
    """

    database: Database
    measuring: Measuring
    owner: Owner

    def num_sizes(self, job: JobRow) -> int:
        """Return how many sizes are tuned with a job; 0 if it is of no search over ranges."""
        if job.group_id is None:
            return 0
        with self.database.read() as session:
            row = shapes.of_group(session, job.group_id)
            return 0 if row is None else len(shapes.sizes(session, [row.id]))

    def choose(self, time: RangeTime, gives_up: Callable[[], bool]) -> bool:
        """Choose the kernels of the group of a job, if it is a search over ranges.

        Timings that are stored are not repeated.

        Args:
            time: Of the last job of its group, whose search has ended.
            gives_up: Returns whether the job must return to the queue, or was cancelled.

        Returns:
            Whether the job has ended: not if it gave up.

        Raises:
            LeaseLostError: If another coordinator has the job.
        """
        job, heartbeat = time.job, time.heartbeat
        if job.group_id is None:
            return True
        with self.database.read() as session:
            row = shapes.of_group(session, job.group_id)
            sizes = [] if row is None else shapes.sizes(session, [row.id])
        if row is None:
            return True
        store = SqlStore(self.database)
        trials = [(size.sizes, store.trials(str(size.job_id))) for size in sizes]
        measured = [(of_size, trials) for of_size, trials in trials if trials]
        if not measured:
            return True
        measuring = HeartbeatMeasurer(self.measuring, None, job.id, heartbeat, is_final=True)
        budget = ChoiceBudget(
            time.choice_secs, should_stop=lambda: heartbeat.controls[job.id].is_stopped
        )
        tuned = [of_size for of_size, _ in measured]
        try:
            search = find_kernels(
                parse(row.script),
                Target(row.target),
                [of_size for _, of_size in measured],
                tuned,
                measurer=StoredTimings(
                    self.database,
                    self.owner,
                    shapes_id=row.id,
                    job_id=job.id,
                    measurer=measuring,
                    gives_up=gives_up,
                ),
                budget=budget,
            )
            budget.reserve(0.0)
            check_module(search, ends_first(tuned), measuring, budget.affords)
        except PutBackError:
            return False
        except NoShapeError as error:
            self._keep_error(row.id, job.id, str(error))
        else:
            times = shape_times(search, [of_size for _, of_size in measured], tuned)
            self._keep(row.id, job.id, search, times)
        return True

    def _keep(
        self, shapes_id: UUID, job_id: UUID, search: ShapeSearch, times: tuple[ShapeTime, ...]
    ) -> None:
        with self.database.write() as session:
            row = self._owned(session, shapes_id, job_id)
            row.outcome = _outcome(search, times)
            row.num_kernels, row.loss = len(search.matrix.kernels), mean_loss(times)
            row.error = None

    def _keep_error(self, shapes_id: UUID, job_id: UUID, error: str) -> None:
        with self.database.write() as session:
            row = self._owned(session, shapes_id, job_id)
            row.outcome = row.num_kernels = row.loss = None
            row.error = error

    def _owned(self, session: Any, shapes_id: UUID, job_id: UUID) -> ShapesRow:
        leases.owned(session, job_id, str(self.owner))
        return shapes.get(session, shapes_id)


def _outcome(search: ShapeSearch, times: tuple[ShapeTime, ...]) -> dict[str, Any]:
    module = search.module()
    return {
        "kernels": [
            {"sketch": kernel.sketch, "trace": kernel.trace.to_json()}
            for kernel in search.matrix.kernels
        ],
        "num_candidates": search.num_candidates,
        "times": [
            {
                "sizes": dict(time.sizes),
                "kernel": time.kernel,
                "run_secs": time.run_secs,
                "best_secs": time.best_secs,
                "tuned_secs": time.tuned_secs,
                "loss": time.loss,
            }
            for time in times
        ],
        "dispatcher": module[search.func.name].script(),
        "module": module.script(),
    }
