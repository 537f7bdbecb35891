"""The health of a worker over time: how long a known kernel takes there, and how busy it is.

The canary is the kernel of the self-test. It is timed between batches, never beside one, so that
what changes from sample to sample is the host: its clock, its heat, its neighbours.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from compiler.runtime.measurement import Measurement
from workers.child.runner import ChildStartError, RunnerClosedError
from workers.health.self_test import SelfTest, known_kernel
from workers.measure.compare import CompareRequest
from workers.measure.peak import peak_in_child
from workers.wire.request import MeasureRequest

CANARY_SECS = 60.0
_NAME = re.compile(r"^\s*def (\w+)", re.MULTILINE)


class Measures(Protocol):
    """The runner, as far as a canary needs it."""

    def measure(self, request: MeasureRequest) -> Iterator[tuple[int, Measurement]]:
        """Yield the index of each trace with its measurement."""
        ...


class WorkerHealth:
    """What a worker tells of itself: what it does now, and its newest sample.

    Args:
        first: The self-test, which is the first sample.
        every_secs: How long a sample holds.
        measure_peak: Asked once, with the first sample after that; an empty answer is asked again.
    """

    def __init__(
        self,
        runner: Measures,
        first: SelfTest,
        *,
        every_secs: float = CANARY_SECS,
        measure_peak: Callable[[], Mapping[str, float]] = peak_in_child,
    ) -> None:
        self._runner = runner
        self._every_secs = every_secs
        self._measure_peak = measure_peak
        self._peak: Mapping[str, float] = {}
        self._task: dict[str, Any] | None = None
        self._since = time.monotonic()
        self._begun: float | None = None  # when the work in hand began
        self._busy_secs = 0.0  # since the newest sample, without the work in hand
        self._sample = {
            "at": time.time(),
            "secs": first.run_secs * (1 + first.noise),
            "noise": first.noise,
            "utilisation": 0.0,
        }

    def told(self) -> dict[str, Any]:
        """Return what is known now, as JSON-able text and numbers."""
        return {
            "task": self._task,
            "sample": self._sample,
            "utilisation": self._utilisation(time.monotonic()),
            "peak_flops": dict(self._peak),
        }

    def rest(self) -> None:
        """Take a sample if one is due, and learn the peak if it is not known: there is time."""
        self.look()
        self._peak = self._peak or self._measure_peak()

    @contextmanager
    def working_on(self, request: MeasureRequest | CompareRequest) -> Iterator[None]:
        """Say so while the body works on a request; take a sample after it when one is due."""
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
        """Take a sample if the last one is old enough; one that fails is left out."""
        now = time.monotonic()
        if now - self._since < self._every_secs:
            return
        utilisation = self._utilisation(now)
        self._since, self._busy_secs = now, 0.0
        self._peak = self._peak or self._measure_peak()
        if samples := _canary(self._runner):
            middle, shortest = statistics.median(samples), min(samples)
            self._sample = {
                "at": time.time(),
                "secs": middle,
                "noise": middle / shortest - 1,
                "utilisation": utilisation,
            }

    def _utilisation(self, now: float) -> float:
        begun = self._begun
        busy_secs = self._busy_secs + (0.0 if begun is None else now - begun)
        return min(1.0, busy_secs / max(now - self._since, 1e-9))


def _canary(runner: Measures) -> tuple[float, ...]:
    try:
        (found,) = runner.measure(known_kernel())
    except (ChildStartError, RunnerClosedError):
        return ()
    return found[1].run_secs


def _task(request: MeasureRequest | CompareRequest) -> dict[str, Any]:
    name = _NAME.search(request.workload)
    return {
        "workload": name[1] if name else "",
        "target": request.target,
        "candidates": len(request.traces),
        "since": time.time(),
    }
