"""A wrong model does not make a search worse than random search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.cost_model import stored_model
from tuner.cost_model.boosting import STORE, boost
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.replay.packaged import FOLDER
from tuner.replay.play import Curve, play
from tuner.replay.recorded_set import SUFFIX, RecordedSet
from tuner.search.make import PROPOSERS
from tuner.search.searcher import Searcher

NAMES = ("conv2d_1x32x28x28x32x3x1x1", "attention_1x2x96x96x32")
SEEDS = range(2)
TRIALS = (32, 64)
MAX_LOSS = 0.05


@pytest.fixture(scope="module", params=NAMES)
def recorded(request: pytest.FixtureRequest) -> RecordedSet:
    return RecordedSet.read(FOLDER / f"{request.param}{SUFFIX}").drawn


def inverted(recorded: RecordedSet) -> bytes:
    """Return a model that learned this very task, with the slowest candidate as the best."""
    samples = recorded.samples()
    secs = np.where(np.isfinite(samples.run_secs), 1 / samples.run_secs, 1.0)
    return stored_model.encode(
        boost([Samples("task", samples.features, secs)], 0, replace(STORE, num_trees=40))
    )


def curves(recorded: RecordedSet, strategy: str, base: bytes | None) -> Curve:
    """Return the mean over the seeds."""
    key, space = recorded.task.key, recorded.space
    plays = []
    for seed in SEEDS:
        model = XGBoostModel(seed, base=base) if strategy == "evolutionary" else None
        search = Searcher(PROPOSERS[strategy], space, seed, model, task_key=key)
        plays.append(play(recorded, search, max(TRIALS) + 1))
    mean: Curve = np.mean(plays, axis=0)
    return mean


def test_an_inverted_model_loses_little_to_random_search(recorded: RecordedSet) -> None:
    by_chance = curves(recorded, "random", None)
    misled = curves(recorded, "evolutionary", inverted(recorded))
    assert misled[5] < 0.5 * by_chance[5]  # it is followed first, and it is as bad as intended
    for trials in TRIALS:
        assert misled[trials] >= (1 - MAX_LOSS) * by_chance[trials]
