"""Inputs and results of `loopwright tune`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.schedule.trace.trace import Trace
from service.wire.models import BaselineRead, SpaceClaimRead
from service.wire.times import RunTime, SpeedUp, speed_up
from tuner.finish.baseline import Baseline


@dataclass(frozen=True)
class Search:
    """One workload to tune.

    Attributes:
        texts: The name, the note, the tags and the webhook of the job on a server.
    """

    workload: str
    target: str
    options: Mapping[str, Any]  # further arguments of `lw.tune` and `Client.tune`
    texts: Mapping[str, Any]


@dataclass(frozen=True)
class Several:
    """Several workloads to tune, which share the trials.

    Attributes:
        texts: The name, the note, the tags and the webhook of the jobs on a server.
    """

    workloads: list[str]
    weights: Sequence[float] | None
    target: str
    options: Mapping[str, Any]  # further arguments of `lw.tune` and `Client.tune`
    texts: Mapping[str, Any]


@dataclass(frozen=True)
class TuneOutcome:
    """The result of a search, in this process or on a server."""

    workload: str
    shape: str | None  # of its largest block, in words
    target: str
    job_id: str | None
    num_measured: int
    default: RunTime
    best: RunTime
    stop_reason: str
    trace: Trace
    baseline: BaselineRead | None = None
    was_interrupted: bool = False
    space: SpaceClaimRead | None = None  # what is claimed of the best among its space

    @property
    def speedup(self) -> SpeedUp | None:
        """How many times faster the best is than the default schedule."""
        return speed_up(self.default, self.best)

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints; times have the names that `GET /jobs/{id}` gives them."""
        plain_fields = {
            name: value for name, value in vars(self).items() if name not in ("default", "best")
        }
        ratio = self.speedup
        return {
            **plain_fields,
            "default_secs": self.default.secs,
            "default_interval": self.default.interval,
            "default_kind": self.default.kind,
            "best_secs": self.best.secs,
            "best_interval": self.best.interval,
            "best_kind": self.best.kind,
            "provisional_secs": self.best.provisional_secs,
            "space": None if self.space is None else self.space.model_dump(mode="json"),
            "speedup": None if ratio is None else ratio.ratio,
            "speedup_kind": None if ratio is None else ratio.kind,
            "trace": self.trace.to_json(),
            "baseline": None if self.baseline is None else self.baseline.model_dump(mode="json"),
        }


def baseline_read(baseline: Baseline | None) -> BaselineRead | None:
    """Convert a baseline timed in this process to the server's model."""
    if baseline is None:
        return None
    return BaselineRead.model_validate(baseline, from_attributes=True)
