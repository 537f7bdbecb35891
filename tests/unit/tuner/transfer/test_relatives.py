"""Which tasks are relatives, how far apart they are, and what becomes of their schedules."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.ops.spec import from_spec
from compiler.target.target import Target
from tuner.candidate import default_candidate
from tuner.cost_model import stored_format
from tuner.cost_model.training import Measured, MeasuredTask
from tuner.space.design_space import Point, SketchSpace
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.transfer.from_measurements import warm_start_of
from tuner.transfer.refit import RefitError, refit
from tuner.transfer.seed import BEST_OF_EACH, NUM_CANDIDATES, Relative, refitted
from tuner.transfer.shape import Shape, distance, shape_from_json, shape_of, target_distance
from tuner.warm_start import COLD

ONE_CORE = "cpu -mcpu=x86-64-v3 -num-cores=1"
FOUR_CORES = "cpu -mcpu=x86-64-v3 -num-cores=4"

sizes = st.integers(1, 300)
matmuls = st.builds("matmul:{},{},{}".format, sizes, sizes, sizes)
softmaxes = st.builds("softmax:{},{}".format, sizes, sizes)
convolutions = st.builds(
    "conv2d:{},{},{},{},{},{},{},1".format,
    st.sampled_from([1, 2]),
    st.sampled_from([3, 16, 40]),
    st.sampled_from([5, 14]),
    st.sampled_from([7, 28]),
    st.sampled_from([8, 20, 64]),
    st.sampled_from([3, 5]),
    st.sampled_from([1, 2]),
)
batches = st.builds("batch_matmul:{},{},{},{}".format, st.integers(1, 9), sizes, sizes, sizes)


def shape(spec: str) -> Shape:
    return shape_of(from_spec(spec))


@cache
def space_of(spec: str, target: str) -> SketchSpace:
    return design_space(Task(from_spec(spec), Target(target)))


def points(space: SketchSpace, num: int, seed: int) -> list[Point]:
    rng = np.random.default_rng(seed)
    drawn = [(i, space.draw(i, num, rng)) for i in range(len(space.sketches))]
    return [Point(i, tuple(row)) for i, rows in drawn for row in rows.tolist()]


@pytest.mark.parametrize(
    ("one", "other", "doublings"),
    [
        ("matmul:64,64,64", "matmul:64,64,64", 0.0),
        ("matmul:64,64,64", "matmul:128,64,64", 1.0),
        ("matmul:64,64,64", "matmul:32,64,128", 2.0),
        ("softmax:64,64", "softmax:64,256", 2.0),
        ("conv2d:1,8,16,16,8,3,2,1", "conv2d:1,8,16,16,16,3,2,1", 1.0),
        ("matmul:64,64,64", "dense:64,64,64", math.inf),
        ("matmul:64,64,64", "matmul:64,64,64:float64", math.inf),
    ],
)
def test_distance_is_in_doublings(one: str, other: str, doublings: float) -> None:
    a, b = shape(one), shape(other)
    # Blocks count by their points: the padding of a convolution hardly does.
    assert distance(a, b) == pytest.approx(doublings, rel=0.1)
    assert distance(a, b) == distance(b, a)


def test_another_stride_is_at_a_distance() -> None:
    two, three = "conv2d:1,8,14,14,8,3,2,1", "conv2d:1,8,21,21,8,3,3,1"
    assert distance(shape(two), shape(three)) >= math.log2(3 / 2)


@settings(max_examples=40)
@given(matmuls, matmuls, matmuls)
def test_a_way_round_is_not_shorter(one: str, other: str, third: str) -> None:
    a, b, c = map(shape, (one, other, third))
    assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-9


def test_a_shape_comes_back_as_it_was() -> None:
    kept = shape("conv2d:1,8,16,16,8,3,2,1")
    assert shape_from_json(kept.operator, kept.to_json()) == kept


def test_targets_are_apart_by_their_cores() -> None:
    one, four = Target(ONE_CORE), Target(FOUR_CORES)
    assert target_distance(one, four) == target_distance(four, one) == 2.0
    assert target_distance(one, Target("cpu -mcpu=znver4 -num-cores=1")) == math.inf


def check_refit(one: str, other: str, targets: tuple[str, str], seed: int) -> None:
    """Refit points of all sketches both ways: what comes out is legal and of the same sketch."""
    source, space = space_of(one, targets[0]), space_of(other, targets[1])
    for point in points(source, 2, seed):
        assert refit(point, source, source) == point
        name = source.sketches[point.sketch].name
        for keep_whole in (False, True):
            try:
                fit = refit(point, source, space, keep_whole=keep_whole)
            except RefitError:
                continue
            assert space.sketches[fit.sketch].name == name
            row = np.array([fit.choices], np.int64)
            assert len(space.keep(fit.sketch, row)) == 1
            assert space.point(space.candidate(fit)) == fit


@settings(max_examples=10)
@given(matmuls, matmuls, st.sampled_from([ONE_CORE, FOUR_CORES]), st.integers(0, 9))
def test_a_refitted_product_is_legal(one: str, other: str, target: str, seed: int) -> None:
    check_refit(one, other, (ONE_CORE, target), seed)


@settings(max_examples=15)
@given(softmaxes, softmaxes, st.integers(0, 9))
def test_a_refitted_chain_is_legal(one: str, other: str, seed: int) -> None:
    check_refit(one, other, (ONE_CORE, ONE_CORE), seed)


@settings(max_examples=5)
@given(batches, batches, st.integers(0, 9))
def test_a_refitted_batch_is_legal(one: str, other: str, seed: int) -> None:
    check_refit(one, other, (FOUR_CORES, FOUR_CORES), seed)


@settings(max_examples=3)
@given(convolutions, convolutions, st.integers(0, 9))
def test_a_refitted_convolution_is_legal(one: str, other: str, seed: int) -> None:
    check_refit(one, other, (ONE_CORE, ONE_CORE), seed)


def tiles_of(space: SketchSpace, point: Point) -> np.ndarray:
    """Return the tiles of the heaviest block, by level and axis."""
    return all_tiles(space, point.sketch, np.array([point.choices], np.int64))[:, :, 0]


def all_tiles(space: SketchSpace, index: int, rows: np.ndarray) -> np.ndarray:
    sketch = space.sketches[index]
    tiles: np.ndarray = sketch.nests[0].tables(sketch.values(rows)).tiles
    return tiles


def test_no_legal_candidate_has_tiles_that_are_more_alike() -> None:
    source = space_of("matmul:512,512,512", ONE_CORE)
    space = space_of("matmul:1024,768,1024", ONE_CORE)
    for point in points(source, 3, 0):
        fit = refit(point, source, space)
        if not space.is_small(fit.sketch):
            continue
        goal = tiles_of(source, point)
        rows = space.enumerate(fit.sketch)
        apart = np.abs(np.log2(all_tiles(space, fit.sketch, rows) / goal[:, :, None])).sum(axis=1)
        # Registers and vectors count 4, unrolled steps 2, outer levels 1.
        every = np.array([0, 1, 1, 1, 1, 2, 4]) @ apart
        own = np.abs(np.log2(tiles_of(space, fit) / goal)).sum(axis=1) @ [0, 1, 1, 1, 1, 2, 4]
        assert own <= every.min() + 0.5, "but for what tells knobs apart"


def test_what_was_whole_may_stay_whole() -> None:
    source, space = space_of("matmul:64,64,64", ONE_CORE), space_of("matmul:64,128,64", ONE_CORE)
    grown = []
    known = {sketch.name for sketch in space.sketches}
    for point in points(source, 8, 0):
        if source.sketches[point.sketch].name not in known:
            continue
        whole = tiles_of(space, refit(point, source, space, keep_whole=True))[1:, 1]
        as_long = tiles_of(space, refit(point, source, space))[1:, 1]
        was_whole = tiles_of(source, point)[1:, 1] >= 64
        assert (whole >= as_long).all()
        grown.append(bool(((whole >= 128) & (as_long < 128) & was_whole).any()))
    assert any(grown)


def test_a_sketch_that_is_not_there_is_named() -> None:
    source = space_of("matmul:64,64,64", ONE_CORE)
    point = points(source, 1, 0)[0]
    others = [s for i, s in enumerate(source.sketches) if i != point.sketch]
    message = f"no sketch {source.sketches[point.sketch].name!r}, only {others[0].name}"
    with pytest.raises(RefitError, match=message):
        refit(point, source, SketchSpace(others, source.target))


def relative(spec: str, num: int) -> Relative:
    space = space_of(spec, ONE_CORE)
    found = [space.candidate(p) for p in points(space, num, 1)]
    return Relative(Task(from_spec(spec), Target(ONE_CORE)), (default_candidate(), *found))


def test_a_search_begins_with_the_best_of_the_nearest() -> None:
    relatives = [relative("matmul:96,96,96", 3), relative("matmul:48,96,96", 3)]
    task = Task(from_spec("matmul:96,96,192"), Target(ONE_CORE))
    found = refitted(task, relatives)
    assert len(found) == NUM_CANDIDATES
    assert len({f.candidate.key for f in found}) == len(found)
    assert (found[0].relative, found[0].rank) == (0, 1), "the default schedule is left out"
    space = design_space(task)
    assert all(space.point(f.candidate) is not None for f in found)
    for fit in found:
        fit.candidate.trace.apply_to(task.func)


def test_what_has_no_relatives_begins_with_nothing() -> None:
    assert refitted(Task(from_spec("matmul:8,8,8"), Target(ONE_CORE)), []) == []


def measured(spec: str, target: str = ONE_CORE) -> MeasuredTask:
    """Return a task whose candidates were the faster, the earlier they were drawn."""
    space = space_of(spec, target)
    found = [space.candidate(p) for p in points(space, 6, 2)]
    times = [Measured(candidate, 2.0**n) for n, candidate in enumerate(found)]
    failed = Measured(default_candidate(), math.inf)
    return MeasuredTask(Task(from_spec(spec), Target(target)), [failed, *times])


def test_what_is_at_hand_is_begun_with() -> None:
    task = Task(from_spec("matmul:96,96,96"), Target(ONE_CORE))
    near, far = measured("matmul:96,96,48"), measured("matmul:12,96,96")
    other, foreign = measured("softmax:64,64"), measured("matmul:96,96,96", "cpu -mcpu=znver4")
    found = warm_start_of(task, [other, foreign, far, near])
    assert found.cost_model is not None
    stored_format.check(found.cost_model)
    relatives = [
        Relative(each.task, tuple(m.candidate for m in each.measured[1 : BEST_OF_EACH + 1]))
        for each in (near, far)
    ]
    assert found.candidates == tuple(fit.candidate for fit in refitted(task, relatives))
    assert warm_start_of(task, [far, near, other]).candidates == found.candidates, "in any order"
    assert warm_start_of(task, [foreign]) == COLD


def test_the_same_task_s_own_best_comes_back() -> None:
    own = measured("matmul:96,96,48")
    found = warm_start_of(own.task, [own])
    assert found.candidates[:BEST_OF_EACH] == tuple(
        m.candidate for m in own.measured[1 : BEST_OF_EACH + 1]
    )
