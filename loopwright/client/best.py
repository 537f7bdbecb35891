"""The best schedule of a workload on a server, ready to be applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from service.wire.models import BaselineRead, BestRead, NearestRead
from service.wire.times import TimeKind


@dataclass(frozen=True, repr=False)
class Best:
    """The fastest known schedule of one workload on one target.

    It was measured there, unless it is adapted from the nearest shape (`nearest`). If it comes from
    the cache, `fetched_at` is the time when the server sent it.
    """

    record: BestRead
    fetched_at: datetime | None = None

    def __repr__(self) -> str:
        secs = "adapted" if self.run_secs is None else f"{self.run_secs:.4g} s {self.kind}"
        if self.is_outdated:
            secs += " with an older code generator"
        return f"<Best of workload {self.record.workload_key[:12]} on {self.record.target}: {secs}>"

    @property
    def age_secs(self) -> float:
        """Return the time since the server sent it, in seconds; 0 if it was just now."""
        if self.fetched_at is None:
            return 0.0
        return (datetime.now(UTC) - self.fetched_at).total_seconds()

    @property
    def run_secs(self) -> float | None:
        """Return the seconds of one run; None for a schedule that was adapted."""
        return self.record.run_secs

    @property
    def kind(self) -> TimeKind | None:
        """Return which statistic `run_secs` is: confirmed by its job's finish, or provisional."""
        return self.record.kind

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95% confidence interval of `run_secs`; None while it is provisional."""
        return self.record.interval

    @property
    def provisional_secs(self) -> float | None:
        """Return the shortest sample of its trial in the search."""
        return self.record.provisional_secs

    @property
    def default_secs(self) -> float | None:
        """Return the seconds of one run of the default schedule in the same job."""
        return self.record.default_secs

    @property
    def speedup(self) -> float | None:
        """Return the speed-up over the default schedule, by two times of one kind."""
        return self.record.speedup

    @property
    def nearest(self) -> NearestRead | None:
        """Return the shape that it was adapted from, its distance, and the expected loss.

        None if it was measured on this very workload.
        """
        return self.record.nearest

    @property
    def is_outdated(self) -> bool:
        """Return whether it was measured with another code generator than the server's.

        The schedule still applies; its kernel, built today, may take another time.
        """
        return self.record.is_outdated

    @property
    def baseline(self) -> BaselineRead | None:
        """Return the fastest library that computes the same, timed beside it; None if none was."""
        return self.record.baseline

    @property
    def provenance(self) -> Mapping[str, Any]:
        """Return the machine and the tools of the measurement."""
        return self.record.provenance

    @property
    def trace(self) -> Trace:
        """Return the schedule as a list of primitives and decisions."""
        return Trace.from_json(dict(self.record.trace))

    def apply(self, func: PrimFunc) -> Schedule:
        """Schedule `func` the same way; it must be the same workload.

        Raises:
            ScheduleError: If the trace does not fit the program.
        """
        return self.trace.apply_to(func)
