"""The estimate of the distance to the best of a space, and its coverage on recorded sets."""

from __future__ import annotations

import math

import pytest

from compiler.runtime.measurement import ErrorKind, Measurement
from tuner.candidate import default_candidate
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.finish.space_distance import BOUND_FACTOR, SpaceDistance, estimated
from tuner.replay.base_model import packaged_model
from tuner.replay.packaged import packaged_sets
from tuner.replay.play import played
from tuner.search.evolutionary import Evolutionary
from tuner.search.searcher import Searcher
from tuner.trial import MeasuredTrial


def trials(num: int, *, error: float, has_model: bool = True) -> list[MeasuredTrial]:
    """Return trials of one time, whose speed of 1 was predicted with an error."""
    return [
        MeasuredTrial(
            number,
            default_candidate(),
            Measurement((1e-3,)),
            1.0 - error * (-1) ** number if has_model and number else None,
            number // 16,
        )
        for number in range(num)
    ]


def test_the_bound_is_in_units_of_the_errors_and_of_the_logarithm_of_the_space() -> None:
    found = estimated(trials(32, error=0.1), 1000)
    assert found is not None
    assert found.bound == pytest.approx(BOUND_FACTOR * 0.1 * math.log(1000))
    assert 0 < found.expected < found.bound
    larger = estimated(trials(32, error=0.1), 1_000_000)
    assert larger is not None
    assert larger.bound == pytest.approx(2 * found.bound)
    assert estimated(trials(32, error=0.0), 1000) == SpaceDistance(1000, 0.0, 0.0)


def test_failures_that_were_thought_fast_are_errors() -> None:
    failed = MeasuredTrial(
        31, default_candidate(), Measurement(error=ErrorKind.CRASH), predicted=1.0, round=1
    )
    found = estimated([*trials(31, error=0.0), failed], 1000)
    assert found is not None
    assert found.bound == pytest.approx(BOUND_FACTOR * math.sqrt(1 / 16) * math.log(1000))


@pytest.mark.parametrize(
    ("num", "num_schedules", "has_model"),
    [(15, 1000, True), (32, 32, True), (32, 1000, False), (0, 1000, True)],
)
def test_nothing_is_claimed_without_a_basis(
    num: int, num_schedules: int, *, has_model: bool
) -> None:
    assert estimated(trials(num, error=0.1, has_model=has_model), num_schedules) is None


def test_the_estimate_is_said_in_words() -> None:
    assert str(SpaceDistance(4193850, 0.011, 0.052)) == (
        "best of about 4,193,850 schedules: an estimated 1.1% faster, at most 5.2% at 95%"
    )


def test_the_bound_holds_on_recorded_sets() -> None:
    """A set plays the space, so its best is known; the search begins with the packaged model."""
    base = packaged_model()
    assert base is not None
    held = []
    for recorded in packaged_sets()[::13]:
        if len(recorded) < 100:
            continue
        model = XGBoostModel(0, base=base.model)
        search = Searcher(Evolutionary, recorded.space, 0, model, task_key=recorded.task.key)
        found = played(recorded, search, 17)
        estimate = estimated(found, len(recorded))
        assert estimate is not None
        distance = 1 - recorded.best_secs / min(trial.best_secs for trial in found)
        held.append(distance <= estimate.bound)
        assert estimate.bound < 0.5
    assert len(held) >= 5
    assert sum(held) >= len(held) - 1
