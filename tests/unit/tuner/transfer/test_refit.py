"""Schedules of one shape, refitted to another, are legal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.tuner.transfer.drawn import FOUR_CORES, ONE_CORE, matmuls, points, sizes, space_of
from tuner.space.design_space import Point, SketchSpace
from tuner.transfer.refit import RefitError, refit

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
@example("batch_matmul:2,4,60,81", "batch_matmul:1,1,1,1", 0)
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
