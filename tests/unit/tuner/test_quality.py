"""Pairwise accuracy against counting pairs by hand."""

from __future__ import annotations

import pytest

from compiler.runtime.measurement import ErrorKind, Measurement
from tuner.candidate import default_candidate
from tuner.cost_model.quality import pairwise_accuracy
from tuner.trial import Trial


def trial(number: int, predicted: float | None, secs: float | None, in_round: int = 1) -> Trial:
    failed = Measurement(error=ErrorKind.CRASH)
    measurement = failed if secs is None else Measurement((secs,))
    return Trial(number, default_candidate(), measurement, predicted, in_round)


def test_each_pair_in_the_right_order_counts() -> None:
    trials = [trial(0, 3.0, 1.0), trial(1, 2.0, 2.0), trial(2, 2.5, 3.0)]
    # (0, 1) and (0, 2) are ordered as predicted, (1, 2) is not.
    assert pairwise_accuracy(trials) == pytest.approx(2 / 3)


def test_equal_scores_count_half() -> None:
    assert pairwise_accuracy([trial(0, 1.0, 1.0), trial(1, 1.0, 2.0)]) == 0.5


def test_pairs_of_different_rounds_do_not_compare() -> None:
    assert pairwise_accuracy([trial(0, 1.0, 1.0, 1), trial(16, 9.0, 2.0, 2)]) is None


def test_failures_and_unpredicted_trials_make_no_pairs() -> None:
    assert pairwise_accuracy([trial(0, None, 1.0), trial(1, 1.0, None), trial(2, 2.0, 1.0)]) is None
