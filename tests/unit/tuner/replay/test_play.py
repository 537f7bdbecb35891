"""What the strategies reach on recorded sets, without a clock: figures are in `docs/search.md`."""

import numpy as np
import pytest

from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.replay.packaged import FOLDER
from tuner.replay.play import play, trials_to
from tuner.replay.recorded_set import SUFFIX, RecordedSet
from tuner.search.make import PROPOSERS
from tuner.search.searcher import Searcher

SEEDS = range(5)
TRIALS = 96


@pytest.fixture(scope="module")
def recorded() -> RecordedSet:
    """A set with few good candidates among many."""
    return RecordedSet.read(FOLDER / f"conv2d_1x32x28x28x32x3x1x1{SUFFIX}")


def median_trials(recorded: RecordedSet, name: str, share: float) -> float:
    """Return how many trials a strategy needs to reach a share of the best."""
    curves = []
    for seed in SEEDS:
        model = XGBoostModel(seed) if name == "evolutionary" else None
        search = Searcher(PROPOSERS[name], recorded.space, seed, model, task_key=recorded.task.key)
        curves.append(play(recorded, search, TRIALS))
    return float(np.median([trials_to(curve, share) for curve in curves]))


def test_evolution_needs_a_third_of_the_trials_of_chance(recorded: RecordedSet) -> None:
    evolved = median_trials(recorded, "evolutionary", 0.95)
    assert evolved <= median_trials(recorded, "random", 0.95) / 3


def test_a_replay_is_the_same_each_time(recorded: RecordedSet) -> None:
    first, second = (
        play(
            recorded,
            Searcher(
                PROPOSERS["evolutionary"],
                recorded.space,
                3,
                XGBoostModel(3),
                task_key=recorded.task.key,
            ),
            48,
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
