"""Measurer of one job, which the job's heartbeat may interrupt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from compiler.ir.core.program import IRModule
from compiler.runtime.measurement import Measurement
from service.coordinator.heartbeat import Heartbeat
from tuner.candidate import Candidate
from tuner.finish.baseline import BaselineMeasurer
from tuner.measurer.comparer import Comparer
from tuner.measurer.measurer import Measurer
from tuner.measurer.module_measurer import ModuleMeasurer
from tuner.task import Task
from tuner.trial import MeasuredTrial
from workers.measure.begun import begins_at_call, closed_at_end


class Measuring(Measurer, Comparer, ModuleMeasurer, Protocol):
    """Measures candidates, compares the finalists, and measures dispatchers with their kernels."""


class HeartbeatMeasurer:
    """Measures for a job, and marks the job as being measured in its heartbeat.

    Args:
        baselines: Times libraries; None to time none.
        is_final: Whether all measurements follow the search, which a stop does not interrupt.
    """

    def __init__(
        self,
        measuring: Measuring,
        baselines: BaselineMeasurer | None,
        job_id: UUID,
        heartbeat: Heartbeat,
        *,
        is_final: bool = False,
    ) -> None:
        self._measuring = measuring
        self._baselines = baselines
        self._job_id = job_id
        self._heartbeat = heartbeat
        self._is_final = is_final

    @begins_at_call
    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement] | None]:
        """Yield each candidate's measurement in the order of completion."""
        with closed_at_end(self._measuring.measure(task, candidates, incumbent_secs)) as results:
            yield None
            with self._heartbeat.measuring(self._job_id, is_final=self._is_final):
                yield from results

    def measure_module(self, task: Task, module: IRModule) -> Measurement:
        """Return the measurement of a module whose entry computes the program of a task."""
        with self._heartbeat.measuring(self._job_id, is_final=True):
            return self._measuring.measure_module(task, module)

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        """Yield rounds: a measurement of each candidate."""
        with self._heartbeat.measuring(self._job_id, is_final=True):
            yield from self._measuring.compare(task, candidates, num_rounds, seed)

    def measure_baselines(
        self, task: Task, trial: MeasuredTrial, num_rounds: int, seed: int
    ) -> Iterator[tuple[Measurement, Mapping[str, Measurement]]]:
        """Yield rounds: a measurement of the trial's candidate, and one of each library."""
        if self._baselines is not None:
            with self._heartbeat.measuring(self._job_id, is_final=True):
                yield from self._baselines.measure_baselines(task, trial, num_rounds, seed)
