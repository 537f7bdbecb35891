"""The two statistics of a run time, and what may be divided by what.

A *provisional* time is the shortest sample of one trial, as the search measured it. A *confirmed*
time is the median over the rounds of a job's finish, and has an interval of 95%. The shortest of
many samples is lucky, so the two differ; a ratio is made of two times of one kind. This module
imports pydantic alone, as `service.wire.models` does.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from pydantic import BaseModel, computed_field

Interval: TypeAlias = tuple[float, float]


class TimeKind(StrEnum):
    """Which statistic a time is."""

    PROVISIONAL = "provisional"  # the shortest sample of one trial
    CONFIRMED = "confirmed"  # the median over the rounds of a finish, with its interval


def kind_of(secs: float | None, interval: Interval | None) -> TimeKind | None:
    """Return which statistic a time is; none if there is no time."""
    if secs is None:
        return None
    return TimeKind.PROVISIONAL if interval is None else TimeKind.CONFIRMED


class RunTime(NamedTuple):
    """The times of one schedule; an unknown time is None.

    Attributes:
        secs: The time to show: the confirmed one, else the provisional one.
        interval: That of the confirmed time, 95%.
        provisional_secs: The shortest sample of its trial.
    """

    secs: float | None
    interval: Interval | None = None
    provisional_secs: float | None = None

    @property
    def kind(self) -> TimeKind | None:
        """Which statistic `secs` is."""
        return kind_of(self.secs, self.interval)

    def of(self, kind: TimeKind | None) -> float | None:
        """Return the time of a kind, if it is known."""
        if kind is self.kind:
            return self.secs
        return self.provisional_secs if kind is TimeKind.PROVISIONAL else None


class SpeedUp(NamedTuple):
    """How many times faster one schedule is than another, and which times say so."""

    ratio: float
    kind: TimeKind


def speed_up(slow: RunTime, fast: RunTime) -> SpeedUp | None:
    """Return the ratio of two times of one kind: confirmed ones if there are, else provisional."""
    for kind in (TimeKind.CONFIRMED, TimeKind.PROVISIONAL):
        before, after = slow.of(kind), fast.of(kind)
        if before and after:
            return SpeedUp(before / after, kind)
    return None


LUCK = 1.25
"""A provisional time must be shorter by this ratio to count against a confirmed one. The location
of arrays in memory alone can change a sample by a quarter (`tuner.finish.finish`).
"""


def holds_against(incumbent: RunTime, challenger: RunTime) -> bool:
    """Tell whether the known best stays the best beside another time.

    Of two times of one kind the shorter counts. A confirmed time counts rather than a provisional
    one, unless that is shorter than its own provisional time by more than luck explains: the finish
    of the other job, which may never come, would say for sure.
    """
    ratio = speed_up(challenger, incumbent)
    if ratio is None:
        return False
    if incumbent.kind is challenger.kind:
        return ratio.ratio >= 1
    return ratio.ratio >= (1 / LUCK if incumbent.kind is TimeKind.CONFIRMED else LUCK)


class SpeedUps(BaseModel):
    """The time of the default schedule, and the speed-up over it: of two times of one kind."""

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
        return RunTime(self.default_secs, self.default_interval, self.default_provisional_secs)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def default_kind(self) -> TimeKind | None:
        """Which statistic `default_secs` is; null while it did not run."""
        return self.default_time.kind

    @computed_field  # type: ignore[prop-decorator]
    @property
    def speedup(self) -> float | None:
        """How many times faster the best is than the default schedule."""
        ratio = speed_up(self.default_time, self.best_time)
        return None if ratio is None else ratio.ratio

    @computed_field  # type: ignore[prop-decorator]
    @property
    def speedup_kind(self) -> TimeKind | None:
        """Which times `speedup` is of: confirmed ones if both are known, else provisional ones."""
        ratio = speed_up(self.default_time, self.best_time)
        return None if ratio is None else ratio.kind


class JobTimes(SpeedUps):
    """The times of a job: of its best trial, and of the default schedule.

    An interval is null while its time is provisional. `provisional_secs` is the shortest sample of
    all trials, where the job's curve ends; `best_provisional_secs` is that of the best trial, which
    need not have had the luckiest sample.
    """

    best_secs: float | None
    best_interval: Interval | None = None  # 95%
    best_number: int | None = None  # the trial that was confirmed; null before
    best_provisional_secs: float | None = None
    provisional_secs: float | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def best_kind(self) -> TimeKind | None:
        """Which statistic `best_secs` is; null while nothing ran."""
        return self.best_time.kind

    @property
    def best_time(self) -> RunTime:
        """The time of its best trial."""
        return RunTime(self.best_secs, self.best_interval, self.best_provisional_secs)


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
        """Which statistic `run_secs` is: confirmed by its job's finish, or provisional."""
        return self.best_time.kind

    @property
    def best_time(self) -> RunTime:
        """The time of the schedule."""
        return RunTime(self.run_secs, self.interval, self.provisional_secs)
