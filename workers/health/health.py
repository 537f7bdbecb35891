"""The health of a worker over time: the run time of a known kernel, and its load.

The canary is the kernel of the self-test. It is timed between batches, never beside one, so that
only the host changes from sample to sample: its clock, its temperature, its other load.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from compiler.runtime.measurement import Measurement
from workers.child.supervisor import ChildStartError, RunnerClosedError
from workers.health.self_test import CPU_CORE, SelfTest, known_kernel
from workers.measure.compare import CompareRequest
from workers.measure.peak import peak_in_child
from workers.wire.request import MeasureRequest

CANARY_SECS = 60.0
"""Seconds between two samples; chosen, not measured."""
_NAME = re.compile(r"^\s*def (\w+)", re.MULTILINE)


Measure: TypeAlias = Callable[[MeasureRequest], Iterator[tuple[int, Measurement]]]
"""Measures a request, such as `ChildRunner.measure`."""


class WorkerHealth:
    """The report of a worker: its current task, and its newest sample.

    Args:
        first: The self-test, which is the first sample.
        measure: Measures the canary.
        target: The target of the canary; None for no samples.
        every_secs: The time for which a sample is valid, in seconds.
        measure_peak: Called with the next sample, and again until its result is not empty.
    """

    def __init__(
        self,
        measure: Measure,
        first: SelfTest,
        *,
        target: str | None = CPU_CORE,
        every_secs: float = CANARY_SECS,
        measure_peak: Callable[[], Mapping[str, float]] = peak_in_child,
    ) -> None:
        self._measure = measure
        self._target = target
        self._every_secs = every_secs
        self._measure_peak = measure_peak
        self._peak: Mapping[str, float] = {}
        self._task: dict[str, Any] | None = None
        self._since = time.monotonic()
        self._begun: float | None = None  # when the current request began
        self._busy_secs = 0.0  # since the newest sample, without the current request
        self._sample: dict[str, float] | None = None
        if target is not None:
            self._sample = {
                "at": time.time(),
                "secs": first.run_secs * (1 + first.noise),
                "noise": first.noise,
                "utilisation": 0.0,
            }

    def report(self) -> dict[str, Any]:
        """Return the current report, as JSON-able text and numbers."""
        return {
            "task": self._task,
            "sample": self._sample,
            "utilisation": self._utilisation(time.monotonic()),
            "peak_flops": dict(self._peak),
        }

    def sample_when_idle(self) -> None:
        """Take a sample if one is due, and measure the peak if it is unknown."""
        self.look()
        self._peak = self._peak or self._measure_peak()

    @contextmanager
    def working_on(self, request: MeasureRequest | CompareRequest) -> Iterator[None]:
        """Report the request while the body works on it; take a sample after it if one is due."""
        self._begun = time.monotonic()
        self._task = _task(request)
        try:
            yield
        finally:
            self._task = None
            self._busy_secs += time.monotonic() - self._begun
            self._begun = None
            self.look()

    def look(self) -> None:
        """Take a sample if the last one is old enough; a sample that fails is left out."""
        now = time.monotonic()
        if now - self._since < self._every_secs:
            return
        utilisation = self._utilisation(now)
        self._since, self._busy_secs = now, 0.0
        self._peak = self._peak or self._measure_peak()
        if samples := self._canary():
            middle, shortest = statistics.median(samples), min(samples)
            self._sample = {
                "at": time.time(),
                "secs": middle,
                "noise": middle / shortest - 1,
                "utilisation": utilisation,
            }

    def _canary(self) -> tuple[float, ...]:
        if self._target is None:
            return ()
        try:
            [(_, measurement)] = self._measure(known_kernel(target=self._target))
        except (ChildStartError, RunnerClosedError):
            return ()
        return measurement.run_secs

    def _utilisation(self, now: float) -> float:
        started = self._begun
        busy_secs = self._busy_secs + (0.0 if started is None else now - started)
        return min(1.0, busy_secs / max(now - self._since, 1e-9))


def _task(request: MeasureRequest | CompareRequest) -> dict[str, Any]:
    name = _NAME.search(request.workload)
    return {
        "workload": name[1] if name else "",
        "target": request.target,
        "candidates": len(request.traces),
        "since": time.time(),
    }
