"""The times of jobs and of best schedules as pydantic models, with their speed-ups."""

from __future__ import annotations

from pydantic import BaseModel, computed_field

from service.wire.times import Interval, RunTime, TimeKind, speed_up


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
