"""The expected loss of an adapted schedule: the share of speed that tuning would add.

Jobs with a warm start measure the schedules of other shapes, so the store has their outcomes. With
too few outcomes there is no estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from sqlalchemy.orm import Session

from service.store import warm_starts
from service.store.warm_starts import WarmStartOutcome

MIN_OUTCOMES = 3
"""With fewer measured outcomes there is no estimate. Chosen."""
MAX_OUTCOMES = 9
"""Number of outcomes, at the nearest distances, that the median is taken of: precision against
relevance. Chosen.
"""
MAX_APART = 1.0
"""Limit of their difference in distance, in doublings of 1 + the distance. Chosen."""


@dataclass(frozen=True)
class Expectation:
    """A loss, and its basis in words; 0.1 means nine tenths of the speed of a tuned schedule."""

    loss: float | None
    basis: str


def expected_loss(session: Session, label: str, operator_key: str, distance: float) -> Expectation:
    """Return the expected loss of a schedule from `distance` doublings away, on a kind of target.

    The loss is the median over measured schedules that were adapted over a similar distance. They
    are schedules of the same operator, or of all operators if those are too few.
    """
    for key, whose in ((operator_key, "this operator"), (None, "any operator")):
        outcomes = _like(warm_starts.outcomes(session, label, key), distance)
        if len(outcomes) >= MIN_OUTCOMES:
            distances = [outcome.distance for outcome in outcomes]
            return Expectation(
                median(outcome.loss for outcome in outcomes),
                f"the median of {len(outcomes)} schedules of {whose} on {label} after adaptation "
                f"over {min(distances):.2g} to {max(distances):.2g}"
                " doublings away",
            )
    return Expectation(
        None,
        f"unknown: fewer than {MIN_OUTCOMES} schedules that were adapted over such a distance were"
        f" measured on {label}",
    )


def _like(outcomes: list[WarmStartOutcome], distance: float) -> list[WarmStartOutcome]:
    """Return the outcomes at the nearest distances, without those that are too far away."""
    ranked = [(abs(math.log2((1 + o.distance) / (1 + distance))), o) for o in outcomes]
    near = sorted((pair for pair in ranked if pair[0] <= MAX_APART), key=lambda pair: pair[0])
    return [outcome for _, outcome in near[:MAX_OUTCOMES]]
