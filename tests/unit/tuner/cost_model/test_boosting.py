"""The labels of members: each follows from the times of the task alone."""

from __future__ import annotations

import lzma
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.tuner.cost_model.synthetic import synthetic
from tuner.cost_model import stored_model
from tuner.cost_model.boosting import (
    JOB,
    STORE,
    blend,
    boost,
    ranks_of,
    score,
    without_statistics,
)
from tuner.cost_model.cost_model import Samples, Scores

SMALL = replace(STORE, num_trees=20)


def samples(key: str, secs: list[float]) -> Samples:
    return Samples(key, np.zeros((len(secs), 1), np.float32), np.array(secs))


def test_ranks_fall_evenly_from_the_fastest_to_the_slowest() -> None:
    (found,) = ranks_of([samples("a", [4.0, 1.0, 900.0, 2.0, 3.0])])
    assert found.tolist() == [0.25, 1.0, 0.0, 0.75, 0.5]


def test_equal_times_have_the_mean_of_their_ranks() -> None:
    (found,) = ranks_of([samples("a", [1.0, 2.0, 2.0, 3.0, 4.0])])
    assert found.tolist() == [1.0, 0.625, 0.625, 0.25, 0.0]


def test_failures_have_no_rank_and_leave_those_of_others() -> None:
    (found,) = ranks_of([samples("a", [np.inf, 1.0, np.inf, 2.0])])
    assert found.tolist() == [0.0, 1.0, 0.0, 0.0]
    (failed,) = ranks_of([samples("a", [np.inf, np.inf])])
    assert failed.tolist() == [0.0, 0.0]
    (only,) = ranks_of([samples("a", [5.0])])
    assert only.tolist() == [1.0]


def test_samples_of_one_task_are_ranked_together_and_tasks_apart() -> None:
    first, other, second = ranks_of(
        [samples("a", [1.0, 4.0]), samples("b", [9.0, 8.0]), samples("a", [2.0, 3.0, np.inf])]
    )
    assert first.tolist() == [1.0, 0.0]
    assert second.tolist() == pytest.approx([2 / 3, 1 / 3, 0.0])
    assert other.tolist() == [0.0, 1.0]


def test_a_member_of_ranks_predicts_speeds() -> None:
    """Its predictions have the mean and the scale of the speeds, not those of the ranks."""
    told = synthetic(600, seed=1)
    speeds: Scores = told.run_secs.min() / told.run_secs
    predicted = score(
        boost([told], 0, replace(STORE, num_trees=60, labels=("rank",))), told.features
    )
    assert predicted.mean() == pytest.approx(speeds.mean(), rel=0.05)
    (ranks,) = ranks_of([told])
    assert abs(speeds.mean() - ranks.mean()) > 0.1
    slope = np.polyfit(predicted, speeds, 1)[0]
    assert 0.8 < slope < 1.6


def test_members_of_a_store_and_of_a_job_blend_as_speeds() -> None:
    told = synthetic(200, seed=1)
    rows = synthetic(50, seed=2).features
    base, own = boost([told], 0, SMALL), boost([told], 1, JOB)
    assert [member.trees.attr("label") for member in base] == list(STORE.labels)
    mixed = score(blend(base, own, 0.25), rows)
    np.testing.assert_allclose(mixed, 0.75 * score(base, rows) + 0.25 * score(own, rows))


def test_samples_without_any_difference_are_no_trouble() -> None:
    told = synthetic(20, seed=1)
    alike = Samples("task", told.features, np.full(20, np.inf))
    assert np.isfinite(score(boost([alike], 0, SMALL), told.features)).all()


def test_members_without_statistics_predict_the_same_and_compress_better() -> None:
    members = boost([synthetic(400, seed=1)], 0, SMALL)
    slim = without_statistics(members)
    rows = synthetic(300, seed=2).features
    assert score(slim, rows).tolist() == score(members, rows).tolist()
    sizes = [len(lzma.compress(stored_model.encode(each))) for each in (slim, members)]
    assert sizes[0] < 0.6 * sizes[1]
    loaded = stored_model.decode(stored_model.encode(slim))
    assert score(loaded, rows).tolist() == score(members, rows).tolist()
