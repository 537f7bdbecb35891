"""Training on a store: traces become samples, what is gone is skipped, quality is held out."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from compiler import ops
from compiler.target.target import Target
from tuner.candidate import Candidate, default_candidate
from tuner.cost_model.boosting import boost, score
from tuner.cost_model.cost_model import CostModelError
from tuner.cost_model.quality import mean_quality, quality
from tuner.cost_model.training import Measured, MeasuredTask, samples_of, train
from tuner.cost_model.weights import weight
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.space.design_space import Point
from tuner.space.features.features import FEATURE_NAMES
from tuner.space.generate import design_space
from tuner.task import Task

ESTIMATE = FEATURE_NAMES.index("cycles.total")


def measured(size: int, num: int = 120, seed: int = 0) -> MeasuredTask:
    """Return candidates of a matmul: times follow an estimate, noisily; the slowest fail."""
    task = Task(ops.matmul(size, size, size), Target("cpu -mcpu=x86-64-v3 -num-cores=1"))
    space = design_space(task)
    rng = np.random.default_rng(seed)
    rows = space.draw(0, num, rng)
    secs = np.exp2(space.features(0, rows)[:, ESTIMATE] + 0.01 * rng.normal(size=len(rows)))
    secs[secs > np.quantile(secs, 0.9)] = np.inf
    return MeasuredTask(
        task,
        tuple(
            Measured(space.candidate(Point(0, tuple(row))), float(s))
            for row, s in zip(rows.tolist(), secs.tolist(), strict=True)
        ),
    )


def test_samples_are_the_features_and_times_of_the_candidates() -> None:
    told = measured(64)
    found, skipped = samples_of(told)
    assert skipped == 0
    space = design_space(told.task)
    for row, secs in zip(found.features, found.run_secs, strict=True):
        same = [m for m in told.measured if m.run_secs == secs]
        points = [space.point(m.candidate) for m in same]
        rows = [space.features(p.sketch, np.array([p.choices])) for p in points if p is not None]
        assert any((row == each[0]).all() for each in rows)
    assert len(found.run_secs) == len(told.measured)


def test_what_the_design_space_no_longer_has_is_skipped_and_counted() -> None:
    told = measured(64)
    gone = Measured(Candidate("of_an_old_version", told.measured[0].candidate.trace), 1e-3)
    default = Measured(default_candidate(), 1e-3)
    found, skipped = samples_of(MeasuredTask(told.task, (*told.measured, gone, default)))
    assert skipped == 1, "the default schedule is in no space, and is not missed"
    assert len(found.run_secs) == len(told.measured)


def test_a_model_of_the_store_orders_tasks_that_it_was_not_told() -> None:
    tasks = [measured(size) for size in (48, 64, 96)]
    trained = train(tasks)
    assert (trained.num_tasks, trained.num_skipped) == (3, 0)
    assert trained.num_samples == sum(len(t.measured) for t in tasks)
    assert set(trained.by_task) == {t.task.key for t in tasks}
    assert trained.quality is not None
    assert trained.quality.pairwise > 0.6
    model = XGBoostModel(base=trained.model)
    new = [samples_of(measured(size, seed=5))[0] for size in (56, 80, 112)]
    ordered = mean_quality(
        q for s in new if (q := quality(model.predict(s.features), s.run_secs)) is not None
    )
    assert ordered is not None
    assert ordered.pairwise > 0.6


def test_a_model_is_judged_without_an_operator_and_without_a_kind_of_target() -> None:
    """All tasks are products for one CPU: without them, there are the extra samples alone."""
    tasks = [measured(size) for size in (48, 64)]
    other = replace(
        samples_of(measured(80, seed=5))[0], task_key="other", operator="other", label="cpu/other"
    )
    found = train(tasks, label="cpu/x86-64-v3", extra_samples=[other]).by_split
    members = boost([other], 0)
    judged = [samples_of(each)[0] for each in tasks]
    expected = [quality(score(members, s.features), s.run_secs) for s in judged]
    assert found["operator"] == found["cpu"] == mean_quality(q for q in expected if q is not None)
    assert found["shape"] != found["cpu"]
    assert set(train(tasks).by_split) == {"shape"}


def test_the_same_data_give_the_same_model_and_other_data_another_fingerprint() -> None:
    first, second = (train([measured(48), measured(64)]) for _ in range(2))
    assert first == second
    other = train([measured(48), measured(64, seed=1)])
    assert other.fingerprint != first.fingerprint
    assert other.model != first.model


def test_one_task_is_trained_on_but_not_judged() -> None:
    trained = train([measured(48)])
    assert trained.quality is None
    assert trained.by_task == {measured(48).task.key: None}


def test_nothing_to_train_on_is_said() -> None:
    told = measured(48, num=1)
    gone = Measured(Candidate("of_an_old_version", told.measured[0].candidate.trace), 1e-3)
    with pytest.raises(CostModelError, match=r"no training data .* \(1 of others\)"):
        train([MeasuredTask(told.task, (gone,))])


def test_progress_is_told() -> None:
    said: list[str] = []
    train([measured(48)], on_progress=said.append)
    assert said[0].startswith("task 1: matmul")
    assert said[-1].startswith("training on")


def test_what_is_new_and_from_here_counts_in_full() -> None:
    assert weight(timedelta(0), is_same_target=True, is_same_toolchain=True) == 1
    assert weight(timedelta(days=-1), is_same_target=True, is_same_toolchain=True) == 1
    assert weight(timedelta(days=180), is_same_target=True, is_same_toolchain=True) == 0.5
    assert weight(timedelta(0), is_same_target=False, is_same_toolchain=True) == 0.25
    assert weight(timedelta(days=360), is_same_target=False, is_same_toolchain=False) == 1 / 32
