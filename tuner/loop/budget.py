"""The budget of a search, and the reasons why it ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tuner.trial import MeasuredTrial

PLATEAU_GAIN = 0.01
"""A shorter best time counts as progress from this relative gain on; below it, the noise of a
sample decides. Chosen.
"""


class StopReason(StrEnum):
    """Why a search ended."""

    BUDGET = "budget"  # its trials are spent
    TIME_BUDGET = "time_budget"  # its seconds are spent
    PLATEAU = "plateau"  # its last trials brought no progress
    EXHAUSTED = "exhausted"  # the design space holds no more candidates
    STOPPED = "stopped"  # a user stopped it: the best measured trial is the result
    CANCELLED = "cancelled"  # a user cancelled it: its measurements are kept


@dataclass(frozen=True)
class Budget:
    """The limits of a search; the first one reached ends it.

    Attributes:
        max_trials: The number of trials, counted from trial 0.
        max_secs: The wall time; None for no limit. The default schedule is measured in any case.
        plateau: End once this many trials in a row brought the best time down by less than
            `PLATEAU_GAIN`; None for no such limit. It is checked after whole rounds, in the order
            of trial numbers, so that it depends on measurements alone.
        plateau_from: The number of trials when a user asked for more: a plateau begins after them.

    Raises:
        ValueError: If one of them is not positive.
    """

    max_trials: int
    max_secs: float | None = None
    plateau: int | None = None
    plateau_from: int = 0

    def __post_init__(self) -> None:
        """Check that all limits are positive."""
        if self.max_trials < 1:
            raise ValueError(f"max_trials must be positive, not {self.max_trials}")
        if self.max_secs is not None and not 0 < self.max_secs < math.inf:
            raise ValueError(f"max_secs must be positive, not {self.max_secs}")
        if self.plateau is not None and self.plateau < 1:
            raise ValueError(f"plateau must be a positive number of trials, not {self.plateau}")

    def is_on_plateau(self, trials: Sequence[MeasuredTrial]) -> bool:
        """Return whether the last of `trials`, which are in order, brought no progress."""
        if self.plateau is None or len(trials) <= self.plateau:
            return False
        if len(trials) < self.plateau_from + self.plateau:
            return False
        before = min(t.best_secs for t in trials[: -self.plateau])
        after = min(t.best_secs for t in trials)
        # Without a correct trial there is no plateau.
        return math.isfinite(before) and after > (1 - PLATEAU_GAIN) * before
