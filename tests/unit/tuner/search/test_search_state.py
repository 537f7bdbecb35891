"""The memory of a search."""

from __future__ import annotations

import numpy as np

from compiler.runtime.measurement import ErrorKind, Measurement
from tests.contracts.proposer import new_state
from tuner.candidate import default_candidate
from tuner.search.random import draw_points
from tuner.search.search_state import points_of, rows_of
from tuner.trial import MeasuredTrial


def test_times_are_recorded_by_point_and_ranked() -> None:
    state = new_state()
    slow, fast, failed, lost = draw_points(state.space, 4, set(), np.random.default_rng(0))
    outcomes = [
        (slow, Measurement((2.0, 3.0))),
        (fast, Measurement((1.0,))),
        (failed, Measurement(error=ErrorKind.CRASH)),
        (lost, Measurement(error=ErrorKind.WORKER_LOST)),
    ]
    state.record(
        [
            MeasuredTrial(number, state.space.candidate(point), measurement)
            for number, (point, measurement) in enumerate(outcomes)
        ]
    )
    assert state.secs == {slow: 2.0, fast: 1.0, failed: np.inf}
    assert state.seen == {slow, fast, failed, lost}
    assert state.ranked() == [fast, slow]
    assert state.ranked(slow.sketch) == [p for p in (fast, slow) if p.sketch == slow.sketch]


def test_a_candidate_of_another_space_is_left_out() -> None:
    state = new_state()
    state.record([MeasuredTrial(0, default_candidate(), Measurement((1.0,)))])
    assert not state.secs
    assert not state.seen


def test_without_a_model_the_estimate_is_the_score() -> None:
    state = new_state()
    points = draw_points(state.space, 6, set(), np.random.default_rng(0))
    matrix = state.features(points)
    column = state.space.search_space.estimate_column
    np.testing.assert_array_equal(state.expected(matrix), -matrix[:, column].astype(float))
    assert not state.outlook(matrix).uncertainty.any()
    assert state.learned() is None
    assert not state.has_model


def test_features_keep_the_order_of_points_of_several_sketches() -> None:
    state = new_state()
    points = draw_points(state.space, 12, set(), np.random.default_rng(0))
    together = state.features(points)
    for index, point in enumerate(points):
        np.testing.assert_array_equal(together[index], state.features([point])[0])


def test_rows_and_points_are_two_forms_of_the_same() -> None:
    rows = np.array([[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(rows_of(points_of(7, rows), 3), rows)
    assert rows_of([], 3).shape == (0, 3)
