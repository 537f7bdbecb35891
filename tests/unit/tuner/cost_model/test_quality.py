"""The measures of quality, against counting by hand and against their definitions."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.runtime.measurement import ErrorKind, Measurement
from tuner.candidate import default_candidate
from tuner.cost_model.boosting import STORE
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.quality import (
    FIRST_ROUND,
    held_out,
    mean_quality,
    pairs_in_order,
    pairwise_accuracy,
    quality,
    top_score,
)
from tuner.trial import MeasuredTrial

# Few samples of few informative columns.
SMALL = replace(STORE, num_trees=30, columns=1.0, min_child_weight=1.0)


def trial(
    number: int, predicted: float | None, secs: float | None, in_round: int = 1
) -> MeasuredTrial:
    failed = Measurement(error=ErrorKind.CRASH)
    measurement = failed if secs is None else Measurement((secs,))
    return MeasuredTrial(number, default_candidate(), measurement, predicted, in_round)


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


TIMES = np.array([4.0, 2.0, np.inf, 1.0, 8.0, 3.0, 5.0, 6.0, 7.0])


def test_a_perfect_order_is_1() -> None:
    found = quality(1 / TIMES, TIMES)
    assert found is not None
    assert (found.pairwise, found.top1, found.top5) == (1, 1, 1)


def test_a_reversed_order_is_0_and_its_top_is_the_slowest() -> None:
    found = quality(np.where(np.isfinite(TIMES), TIMES, -1), TIMES)
    assert found is not None
    assert (found.pairwise, found.top1) == (0, 1 / 8)
    assert found.top5 == 1 / 4, "the best of 8, 7, 6, 5 and 4"


def test_a_top_that_fails_is_worth_nothing() -> None:
    assert top_score(np.where(np.isinf(TIMES), 1.0, 0.0), TIMES, 1) == 0


def test_of_too_little_nothing_is_said() -> None:
    assert quality(np.ones(9), np.where(np.arange(9) < 7, 1.0, np.inf)) is None
    assert mean_quality([]) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), min_size=8, max_size=20))
def test_pairwise_accuracy_is_the_share_of_right_pairs(pairs: list[tuple[int, int]]) -> None:
    scores, secs = (np.array(column, float) for column in zip(*pairs, strict=True))
    found = quality(scores, secs)
    assert found is not None
    compared = [(a, b) for a, b in combinations(pairs, 2) if a[1] != b[1]]
    if compared:
        right = [0.5 if a[0] == b[0] else (a[0] > b[0]) == (a[1] < b[1]) for a, b in compared]
        assert found.pairwise == pytest.approx(np.mean(right))


def test_trials_saved_are_those_that_random_order_needs_more() -> None:
    """Against every order of a few candidates: the place of the first that is fast enough."""
    rng = np.random.default_rng(0)
    secs = np.concatenate([[2.0, 2.0], np.full(5, 3.0), np.full(13, 4.0)])
    scores = np.zeros(20)
    scores[1] = 1.0  # the model puts one of the best two first
    found = quality(scores, secs)
    assert found is not None
    places = [1 + int(np.argmax(rng.permutation(secs) <= 2.0)) for _ in range(20_000)]
    assert found.trials_saved == pytest.approx(np.mean(places) - FIRST_ROUND, abs=0.15)
    few = [1 + min(order.index(0), order.index(1)) for order in permutations(range(5))]
    assert np.mean(few) == pytest.approx((5 + 1) / (2 + 1)), "the formula, exactly"


def samples(key: str, seed: int, sign: float = 1.0) -> Samples:
    # No columns of zeros: a tree sees a share of the columns, so among 300 of them the draw, which
    # changes with their number, would decide how many trees see the one that counts.
    rows = np.random.default_rng(seed).normal(size=(80, 8)).astype(np.float32)
    return Samples(key, rows, np.exp(sign * rows[:, 3].astype(np.float64)))


def test_a_task_is_judged_by_models_that_were_not_told_it() -> None:
    """Two tasks agree, and the third is their opposite: each says what the others would."""
    tasks = [samples("a", 0), samples("b", 1), samples("c", 2, sign=-1.0)]
    alike, also, opposite = held_out(tasks, ["a", "a", "c"], settings=SMALL)
    assert alike is not None
    assert also is not None
    assert opposite is not None
    assert alike.pairwise < 0.3, "a was judged by c alone, as b was in its group"
    assert also.pairwise < 0.3
    assert opposite.pairwise < 0.3
    by_task = held_out([samples(str(n), n) for n in range(3)], range(3), settings=SMALL)
    assert all(found is not None and found.pairwise > 0.8 for found in by_task)


def test_extra_samples_of_a_held_out_group_are_left_out() -> None:
    """The extra samples agree with the judged task, and all others are its opposite."""
    tasks = [samples("a", 0), samples("b", 1, sign=-1.0)]
    extra = [samples(f"c{seed}", seed) for seed in (2, 3, 4)]
    known, _ = held_out(tasks, ["x", "y"], settings=SMALL, extra_samples=extra)
    unknown, _ = held_out(
        tasks, ["x", "y"], settings=SMALL, extra_samples=extra, extra_groups=["x"] * 3
    )
    assert known is not None
    assert unknown is not None
    assert unknown.pairwise < 0.3
    assert known.pairwise > 0.5


def test_a_single_group_can_not_be_held_out() -> None:
    assert held_out([samples("a", 0)], ["a"]) == [None]


def test_pairs_count_by_their_order_equal_scores_half() -> None:
    secs = np.array([1.0, 1.04, 2.0, np.inf])
    # Of three pairs, (0, 1) is in the wrong order, and (1, 2) has equal scores.
    assert pairs_in_order(np.array([5.0, 6.0, 4.0, 9.0]), secs) == pytest.approx(2 / 3)
    assert pairs_in_order(np.array([5.0, 4.0, 4.0, 9.0]), secs) == pytest.approx(2.5 / 3)


def test_pairs_within_a_margin_do_not_count() -> None:
    secs = np.array([1.0, 1.04, 2.0])
    assert pairs_in_order(np.array([5.0, 6.0, 4.0]), secs, margin=0.05) == 1
    assert pairs_in_order(np.ones(2), np.ones(2), margin=0.05) == 1
