"""What models are trained on, against what they are judged on."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.tuner import splits
from benchmarks.tuner.splits import Fold, Judged
from tuner.replay.packaged import FOLDER
from tuner.replay.recorded_set import SUFFIX, RecordedSet

NAMES = (
    "dense_32x512x512",
    "dense_48x512x768_znver4",
    "dense_64x256x768",
    "matmul_100x300x120",
    "matmul_192x320x256_znver4",
    "row_sum_512x1024",
)


@pytest.fixture(scope="module")
def sets() -> list[Judged]:
    recorded = [RecordedSet.read(FOLDER / f"{name}{SUFFIX}") for name in NAMES]
    return [Judged(each, each.samples()) for each in recorded]


def judged_of(folds: list[Fold]) -> list[int]:
    return sorted(index for fold in folds for index in fold.judged)


def trained_on(fold: Fold, sets: list[Judged]) -> set[int]:
    keys = {samples.task_key for samples in fold.training}
    return {index for index, each in enumerate(sets) if each.samples.task_key in keys}


def test_each_operator_is_judged_by_a_model_of_the_others(sets: list[Judged]) -> None:
    folds = list(splits.by_group(sets, splits.operators(sets), 9))
    assert judged_of(folds) == list(range(len(sets)))
    for fold in folds:
        held = {sets[index].operator for index in fold.judged}
        assert len(held) == 1
        assert not held & {sets[index].operator for index in trained_on(fold, sets)}


def test_each_shape_is_judged_by_a_model_that_knows_its_operator(sets: list[Judged]) -> None:
    assert splits.shapes(sets) == [0, 1, 2, 0, 1, 0]
    folds = list(splits.by_group(sets, splits.shapes(sets), 9))
    assert judged_of(folds) == list(range(len(sets)))
    assert [fold.judged for fold in folds] == [(0, 3, 5), (1, 4), (2,)]
    assert trained_on(folds[1], sets) == {0, 2, 3, 5}


def test_several_groups_share_a_fold(sets: list[Judged]) -> None:
    folds = list(splits.by_group(sets, splits.operators(sets), 2))
    assert [fold.judged for fold in folds] == [(0, 1, 2, 5), (3, 4)]
    assert trained_on(folds[0], sets) == {3, 4}


def test_the_program_that_is_judged_is_not_trained_on_on_another_cpu(sets: list[Judged]) -> None:
    twin = [*sets, sets[0]]
    (fold, *_) = splits.by_group(twin, [0, 1, 2, 3, 4, 5, 6], 9)
    assert trained_on(fold, sets) == {1, 2, 3, 4, 5}


def test_a_new_cpu_is_judged_by_a_model_of_the_others(sets: list[Judged]) -> None:
    folds = list(splits.by_cpu(sets, "znver4", 0, 9, seed=0))
    assert judged_of(folds) == [1, 4]
    assert [trained_on(fold, sets) for fold in folds] == [{0, 2, 3, 5}] * 2


def test_a_new_cpu_is_judged_program_by_program() -> None:
    """A model may know the other programs of a CPU with the same ones, and not the judged one."""
    programs = ("matmul_192x320x256", "matmul_32x1024x256")
    names = [f"{program}_{cpu}" for cpu in ("znver4", "znver5") for program in programs]
    recorded = [RecordedSet.read(FOLDER / f"{name}{SUFFIX}") for name in names]
    twins = [Judged(each, each.samples()) for each in recorded]
    folds = list(splits.by_cpu(twins, "znver5", 0, 9, seed=0))
    assert [(fold.judged, trained_on(fold, twins)) for fold in folds] == [((2,), {1}), ((3,), {0})]


def test_samples_of_a_new_cpu_are_of_other_operators(sets: list[Judged]) -> None:
    folds = list(splits.by_cpu(sets, "znver3", 100, 9, seed=0))
    assert judged_of(folds) == [0, 2, 3, 5]
    for fold in folds:
        (operator,) = {sets[index].operator for index in fold.judged}
        sizes: Counter[str] = Counter()
        for samples in fold.training:
            (own,) = {s.cpu for s in sets if s.samples.task_key == samples.task_key}
            sizes[own] += len(samples.run_secs)
        assert sizes["znver3"] == 100
        known = trained_on(fold, sets) - {1, 4}
        assert operator not in {sets[index].operator for index in known}
