"""Play a search on a recorded set: the rounds of a job, without a clock."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tuner.replay.recorded_set import RecordedSet
from tuner.search.strategy import Proposal, SearchStrategy
from tuner.trial import MeasuredTrial

ROUND_SIZE = 16

Curve = npt.NDArray[np.float64]
"""By trial number: the best speed so far, as a share of the best in the set."""


def play(
    recorded: RecordedSet, search: SearchStrategy, trials: int, *, until: float = 1.0
) -> Curve:
    """Return the progress of a search on the set's space; see `played`.

    A search ends when it has found the best, or a candidate of at least `until` times its speed.
    """
    speeds = np.zeros(trials)
    for trial in played(recorded, search, trials, until=until):
        speeds[trial.number] = recorded.best_secs / trial.best_secs
    curve: Curve = np.maximum.accumulate(speeds)
    return curve


def played(
    recorded: RecordedSet,
    search: SearchStrategy,
    trials: int,
    *,
    until: float = float("inf"),
) -> list[MeasuredTrial]:
    """Return the trials of a search on the set's space, in their order.

    As in a job, trial 0 is the default schedule, which no set holds, and from the second round on,
    proposals are made while the previous round is measured. A search ends after the round in which
    it has found a candidate of at least `until` times the speed of the best.
    """
    measured: list[MeasuredTrial] = []
    waiting: list[MeasuredTrial] = []
    start = 1
    most_secs = recorded.best_secs / until
    while start < trials and all(trial.best_secs > most_secs for trial in measured):
        proposals = search.ask(min(ROUND_SIZE - start % ROUND_SIZE, trials - start))
        if not proposals:
            break
        search.tell(waiting)
        waiting = _measured(recorded, proposals, start)
        measured += waiting
        if start == 1:
            search.tell(waiting)
            waiting = []
        start += len(proposals)
    return measured


def trials_to(curve: Curve, share: float) -> float:
    """Return the number of trials that it takes to reach a share of the best; infinite if never."""
    reached = np.flatnonzero(curve >= share)
    return float(reached[0]) if len(reached) else float("inf")


def _measured(recorded: RecordedSet, proposals: list[Proposal], start: int) -> list[MeasuredTrial]:
    trials = []
    for number, proposal in enumerate(proposals, start):
        point = recorded.space.point(proposal.candidate)
        assert point is not None, "a search proposes candidates of its space only"
        measurement = recorded.measurement(point)
        trials.append(
            MeasuredTrial(
                number, proposal.candidate, measurement, proposal.predicted, number // ROUND_SIZE
            )
        )
    return trials
