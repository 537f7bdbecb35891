"""The tuner's measurer over workers: sends candidates as serialised requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from compiler.ir.core.program import IRModule
from compiler.ir.text.printer import script
from compiler.ops.recognize import recognize
from compiler.runtime.measurement import Measurement
from tuner.candidate import Candidate
from tuner.task import Task
from tuner.trial import MeasuredTrial
from workers.libraries.load import chosen_libraries, libraries_for
from workers.measure.compare import CompareRequest
from workers.measure.request_measurer import RequestMeasurer
from workers.wire.request import MeasureLimits, MeasureRequest


class WorkerMeasurer:
    """Measures candidates on workers: a `Measurer`, a `Comparer` and a `BaselineMeasurer`.

    Args:
        limits: The limits of a candidate; by default those of `workers`.
        libraries: Names of the libraries to time beside the best kernels; by default
            `chosen_libraries`.
        request_id: Returns the id of the request that the work is for, which the logs of workers
            show; by default there is none.
    """

    def __init__(
        self,
        workers: RequestMeasurer,
        limits: MeasureLimits | None = None,
        *,
        libraries: Sequence[str] | None = None,
        request_id: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._workers = workers
        self._limits = limits
        self._request_id = request_id
        self._libraries = tuple(chosen_libraries() if libraries is None else libraries)

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        """Yield each candidate's measurement in the order of completion."""
        if not candidates:
            return iter(())
        request = MeasureRequest(
            workload=task.script,
            target=task.target.name,
            traces=tuple(c.trace.to_text() for c in candidates),
            incumbent_secs=incumbent_secs,
            limits=self._limits,
            request_id=self._request_id(),
        )
        return self._workers.measure(request)

    def measure_module(self, task: Task, module: IRModule) -> Measurement:
        """Return the measurement of a module whose entry computes the program of a task.

        Each of its functions may take as long to build as a candidate.
        """
        limits = self._limits or MeasureLimits()
        build_secs = limits.build_timeout_secs * len(module.functions)
        request = MeasureRequest(
            workload=script(task.func),
            target=task.target.name,
            traces=(json.dumps({"module": script(module)}),),
            limits=replace(limits, build_timeout_secs=build_secs),
            request_id=self._request_id(),
        )
        ((_, measurement),) = self._workers.measure(request)
        return measurement

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        """Yield rounds: a measurement of each candidate."""
        if not candidates:
            return
        request = CompareRequest(
            workload=task.script,
            target=task.target.name,
            traces=tuple(c.trace.to_text() for c in candidates),
            num_rounds=num_rounds,
            seed=seed,
            limits=self._limits,
            request_id=self._request_id(),
        )
        yield from self._workers.compare(request)

    def measure_baselines(
        self, task: Task, trial: MeasuredTrial, num_rounds: int, seed: int
    ) -> Iterator[tuple[Measurement, Mapping[str, Measurement]]]:
        """Yield rounds: a measurement of the trial's candidate, and one of each library."""
        libraries = libraries_for(task.target, self._libraries)
        operator = recognize(task.func) if libraries else None
        if operator is None:
            return
        request = CompareRequest(
            workload=task.script,
            target=task.target.name,
            traces=(trial.candidate.trace.to_text(),),
            num_rounds=num_rounds,
            seed=seed,
            limits=self._limits,
            request_id=self._request_id(),
            libraries=libraries,
            operator=str(operator),
            incumbent_secs=trial.best_secs,
        )
        for kernel_round, *others in self._workers.compare(request):
            yield kernel_round, dict(zip(libraries, others, strict=True))
