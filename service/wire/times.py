"""The kinds of run times, and the ratios between times of one kind.

A *provisional* time is the shortest sample of one trial, measured by the search. A *confirmed* time
is the median over the rounds of a job's final comparison, and has an interval of 95%. The shortest
of many samples is biased, so the two differ: a ratio needs two times of one kind. For an emulated
target no time is measured: each is an *estimate*. This module imports pydantic alone, as
`service.wire.models` does.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from pydantic import BaseModel, computed_field

Interval: TypeAlias = tuple[float, float]


class TimeKind(StrEnum):
    """The statistic of a time, or its estimate."""

    PROVISIONAL = "provisional"  # the shortest sample of one trial
    CONFIRMED = "confirmed"  # the median over the rounds of a final comparison, with its interval
    ESTIMATED = "estimated"  # computed for a GPU that is emulated; nothing was measured


def is_estimated(target: str) -> bool:
    """Return whether the times of a target are estimates: its kernels run in the emulator."""
    return "-emulated" in target.split()


def kind_of(secs: float | None, interval: Interval | None, target: str = "") -> TimeKind | None:
    """Return the kind of a time; None without a time."""
    if secs is None:
        return None
    if is_estimated(target):
        return TimeKind.ESTIMATED
    return TimeKind.PROVISIONAL if interval is None else TimeKind.CONFIRMED


class RunTime(NamedTuple):
    """The times of one schedule in seconds; an unknown time is None.

    Attributes:
        secs: The time to show: the confirmed one, else the provisional one.
        interval: The 95% interval of the confirmed time.
        provisional_secs: The shortest sample of its trial.
        target: The target, whose times may be estimates.
    """

    secs: float | None
    interval: Interval | None = None
    provisional_secs: float | None = None
    target: str = ""

    @property
    def kind(self) -> TimeKind | None:
        """Return the kind of `secs`."""
        return kind_of(self.secs, self.interval, self.target)

    def of(self, kind: TimeKind | None) -> float | None:
        """Return the time of a kind, or None."""
        if kind is self.kind:
            return self.secs
        is_sample = kind is TimeKind.PROVISIONAL and not is_estimated(self.target)
        return self.provisional_secs if is_sample else None


class SpeedUp(NamedTuple):
    """How many times faster one schedule is than another, and the kind of both times."""

    ratio: float
    kind: TimeKind


def speed_up(slow: RunTime, fast: RunTime) -> SpeedUp | None:
    """Return the ratio of two times of one kind: confirmed if both are known, else another."""
    for kind in (TimeKind.CONFIRMED, TimeKind.PROVISIONAL, TimeKind.ESTIMATED):
        before, after = slow.of(kind), fast.of(kind)
        if before and after:
            return SpeedUp(before / after, kind)
    return None


LUCK = 1.25
"""A provisional time must be shorter by this ratio to count against a confirmed one. The location
of arrays in memory alone can change a sample by a quarter (`tuner.finish.finish`).
"""


def holds_against(incumbent: RunTime, challenger: RunTime) -> bool:
    """Return whether the current best schedule stays the best.

    Of two times of one kind, the shorter wins. A confirmed time wins against a provisional one,
    unless the challenger's provisional time is shorter than the incumbent's by more than noise.
    Only the final comparison of the challenger's job could decide that, and it may never run.
    """
    ratio = speed_up(challenger, incumbent)
    if ratio is None:
        return False
    if incumbent.kind is challenger.kind:
        return ratio.ratio >= 1
    return ratio.ratio >= (1 / LUCK if incumbent.kind is TimeKind.CONFIRMED else LUCK)


class SpeedUps(BaseModel):
    """The time of the default schedule, and the speed-up over it from two times of one kind."""

    target: str
    default_secs: float | None
    default_interval: Interval | None = None  # 95%; null while `default_secs` is provisional
    default_provisional_secs: float | None = None  # the shortest sample of trial 0

    @property
    def best_time(self) -> RunTime:
        """The time of the best schedule."""
        raise NotImplementedError

    @property
    def default_time(self) -> RunTime:
        """The time of the default schedule."""
        provisional_secs = self.default_provisional_secs
        return RunTime(self.default_secs, self.default_interval, provisional_secs, self.target)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def default_kind(self) -> TimeKind | None:
        """The kind of `default_secs`; null until the default schedule has run."""
        return self.default_time.kind

    @computed_field  # type: ignore[prop-decorator]
    @property
    def speedup(self) -> float | None:
        """How many times faster the best schedule is than the default one."""
        ratio = speed_up(self.default_time, self.best_time)
        return None if ratio is None else ratio.ratio

    @computed_field  # type: ignore[prop-decorator]
    @property
    def speedup_kind(self) -> TimeKind | None:
        """The kind of both times of `speedup`: confirmed if both are known, else another."""
        ratio = speed_up(self.default_time, self.best_time)
        return None if ratio is None else ratio.kind


class JobTimes(SpeedUps):
    """The times of a job: of its best trial, and of the default schedule.

    An interval is null while its time is provisional. `provisional_secs` is the shortest sample of
    all trials, where the job's curve ends. `best_provisional_secs` is that of the best trial, which
    may be longer.
    """

    best_secs: float | None
    best_interval: Interval | None = None  # 95%
    best_number: int | None = None  # the confirmed trial; null before
    best_provisional_secs: float | None = None
    provisional_secs: float | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def best_kind(self) -> TimeKind | None:
        """The kind of `best_secs`; null until a trial has run."""
        return self.best_time.kind

    @property
    def best_time(self) -> RunTime:
        """The time of its best trial."""
        provisional_secs = self.best_provisional_secs
        return RunTime(self.best_secs, self.best_interval, provisional_secs, self.target)


class BestTimes(SpeedUps):
    """The times of a best schedule, and of the default schedule in the same job.

    An interval is null while its time is provisional.
    """

    run_secs: float | None
    interval: Interval | None = None  # of `run_secs`, 95%
    provisional_secs: float | None = None  # the shortest sample of its trial

    @computed_field  # type: ignore[prop-decorator]
    @property
    def kind(self) -> TimeKind | None:
        """The kind of `run_secs`: confirmed by its job's final comparison, or another."""
        return self.best_time.kind

    @property
    def best_time(self) -> RunTime:
        """The time of the schedule."""
        return RunTime(self.run_secs, self.interval, self.provisional_secs, self.target)
