"""What `loopwright tune` is asked for, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compiler.schedule.trace import Trace
from loopwright.models import BaselineRead
from tuner.finish.baseline import Baseline


@dataclass(frozen=True)
class Search:
    """What was asked for."""

    workload: str
    target: str
    options: Mapping[str, Any]  # of the search, as `lw.tune` and `Client.tune` have them


@dataclass(frozen=True)
class Outcome:
    """What a search found, wherever it ran."""

    workload: str
    shape: str | None  # of its largest block, in words
    target: str
    job_id: str | None
    num_measured: int
    default_secs: float | None
    best_secs: float
    best_interval: tuple[float, float] | None
    stop_reason: str
    trace: Trace
    baseline: BaselineRead | None = None
    was_interrupted: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        baseline = None if self.baseline is None else self.baseline.model_dump(mode="json")
        return {**self.__dict__, "trace": self.trace.to_json(), "baseline": baseline}


def as_told(baseline: Baseline | None) -> BaselineRead | None:
    """Return a baseline that was timed here as a server would tell of it."""
    if baseline is None:
        return None
    return BaselineRead.model_validate(baseline, from_attributes=True)
