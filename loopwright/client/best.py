"""The best schedule that a server knows of a workload, ready to be applied."""

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
    """The fastest schedule known of one workload on one target.

    It was measured there, unless it is that of the nearest shape (`nearest`), adapted. One from the
    cache has the time when the server said so, `fetched_at`.
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
        """How long ago the server said so; 0 if it did just now."""
        if self.fetched_at is None:
            return 0.0
        return (datetime.now(UTC) - self.fetched_at).total_seconds()

    @property
    def run_secs(self) -> float | None:
        """Seconds of one run; None for a schedule that was adapted."""
        return self.record.run_secs

    @property
    def kind(self) -> TimeKind | None:
        """Which statistic `run_secs` is: confirmed by its job's finish, or provisional."""
        return self.record.kind

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where `run_secs` is with a confidence of 95%; None while it is provisional."""
        return self.record.interval

    @property
    def provisional_secs(self) -> float | None:
        """The shortest sample of its trial in the search."""
        return self.record.provisional_secs

    @property
    def default_secs(self) -> float | None:
        """Seconds of one run of the default schedule in the same job."""
        return self.record.default_secs

    @property
    def speedup(self) -> float | None:
        """How many times faster it is than the default schedule, by two times of one kind."""
        return self.record.speedup

    @property
    def nearest(self) -> NearestRead | None:
        """From which shape it was adapted, how far that is, and what is expected of it.

        None if it was measured on this very workload.
        """
        return self.record.nearest

    @property
    def is_outdated(self) -> bool:
        """Whether it was measured with another code generator than the server's.

        The schedule still applies; its kernel, built today, may take another time.
        """
        return self.record.is_outdated

    @property
    def baseline(self) -> BaselineRead | None:
        """The fastest library that computes the same, timed beside it; None if none was."""
        return self.record.baseline

    @property
    def provenance(self) -> Mapping[str, Any]:
        """On what the schedule was measured, and with which tools."""
        return self.record.provenance

    @property
    def trace(self) -> Trace:
        """The schedule as a list of primitives and decisions."""
        return Trace.from_json(dict(self.record.trace))

    def apply(self, func: PrimFunc) -> Schedule:
        """Schedule `func` the same way; it must be the same workload.

        Raises:
            ScheduleError: If the trace does not fit the program.
        """
        return self.trace.apply_to(func)
