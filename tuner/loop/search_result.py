"""The result of a search."""

from __future__ import annotations

from dataclasses import dataclass

from tuner.loop.budget import StopReason
from tuner.trial import MeasuredTrial, fastest


class NothingMeasuredError(LookupError):
    """The requested trial does not exist: tuning stopped early, or every trial failed."""


@dataclass(frozen=True)
class SearchResult:
    """The trials of a job, by their numbers, and why it ended.

    Attributes:
        cost_model: The model that the search trained, if it is to be stored.
    """

    trials: tuple[MeasuredTrial, ...]
    stop_reason: StopReason
    cost_model: bytes | None = None

    @property
    def best(self) -> MeasuredTrial:
        """Return the fastest correct trial.

        Raises:
            NothingMeasuredError: If there is none.
        """
        best = fastest(self.trials)
        if best is None:
            raise NothingMeasuredError(f"none of {len(self.trials)} trials is correct")
        return best

    @property
    def default(self) -> MeasuredTrial:
        """Return the trial of the default schedule, which may have failed.

        Raises:
            NothingMeasuredError: If tuning was stopped before it was measured.
        """
        if not self.trials or self.trials[0].number != 0:
            raise NothingMeasuredError(
                "tuning was stopped before the default schedule was measured"
            )
        return self.trials[0]
