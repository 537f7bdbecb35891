"""What is claimed of the best schedule if all schedules of its space were measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WholeSpace:
    """The claim of a search that measured every schedule of its space.

    Attributes:
        num_schedules: Their number, without the default schedule.
        margin: The share of time that another one may save against the best, at most, with a
            confidence of 95%; 0 if the best won against all others.
    """

    num_schedules: int
    margin: float

    def __str__(self) -> str:
        """Return the claim in words."""
        best = f"best of all {self.num_schedules} schedules"
        return f"{best}{f', within {100 * self.margin:.2g}%' if self.margin else ''}, at 95%"
