"""The kinds of run times, and the ratios between times of one kind.

A *provisional* time is the shortest sample of one trial, measured by the search. A *confirmed* time
is the median over the rounds of a job's final comparison, and has an interval of 95%. The shortest
of many samples is biased, so the two differ: a ratio needs two times of one kind. For an emulated
target no time is measured: each is an *estimate*. This module imports the standard library alone,
so that a search does not load pydantic.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

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
