"""Groups of columns: their names, and what holds for every candidate of any sketch."""

from __future__ import annotations

from collections.abc import Callable
from math import log2

import numpy as np
import pytest

from compiler import ops
from tests.targets import level
from tuner.space.design_space import SketchSpace
from tuner.space.features.features import FEATURE_NAMES
from tuner.space.features.groups import blocks, buffers, costs, knobs, levels, sketches, tiles
from tuner.space.features.groups.cpu_batch import CpuBatch
from tuner.space.generate import design_space
from tuner.space.tables.nest import NUM_LEVELS, Floats
from tuner.task import Task

TARGET = level(3, num_cores=4)
GROUPS: dict[str, tuple[tuple[str, ...], Callable[[CpuBatch], Floats]]] = {
    "buffers": (buffers.BUFFER_NAMES, buffers.buffer_columns),
    "caches": (costs.CACHE_NAMES, costs.cache_columns),
    "curve": (costs.CURVE_NAMES, costs.curve_columns),
    "cycles": (costs.CYCLE_NAMES, costs.cycle_columns),
    "knobs": (knobs.KNOB_NAMES, knobs.knob_columns),
    "levels": (levels.LEVEL_NAMES, levels.level_columns),
    "axes": (levels.AXIS_NAMES, levels.axis_columns),
    "parallel": (levels.PARALLEL_NAMES, levels.parallel_columns),
    "block": (blocks.BLOCK_NAMES, blocks.block_columns),
    "sketch": (sketches.SKETCH_NAMES, sketches.sketch_columns),
    "target": (sketches.TARGET_NAMES, sketches.target_columns),
    "tile": (tiles.TILE_NAMES, tiles.tile_columns),
    "others": (tiles.OTHER_NAMES, tiles.other_columns),
}
SPECS = ("matmul:64,48,32", "conv2d:1,8,14,14,16,3,1,1", "softmax:32,64", "row_sum:64,64")


def space_of(spec: str) -> SketchSpace:
    return design_space(Task(ops.from_spec(spec), TARGET))


def batches(spec: str) -> list[CpuBatch]:
    space = space_of(spec)
    rng = np.random.default_rng(0)
    return [
        CpuBatch(sketch, space.draw(index, 8, rng), TARGET)
        for index, sketch in enumerate(space.sketches)
        if sketch.nests
    ]


def columns(group: str, batch: CpuBatch) -> dict[str, Floats]:
    names, compute = GROUPS[group]
    return dict(zip(names, compute(batch), strict=True))


@pytest.mark.parametrize("group", sorted(GROUPS))
@pytest.mark.parametrize("spec", SPECS)
def test_a_group_has_a_finite_column_for_each_name(spec: str, group: str) -> None:
    names, compute = GROUPS[group]
    assert set(names) <= set(FEATURE_NAMES)
    for batch in batches(spec):
        rows = compute(batch)
        assert rows.shape == (len(names), len(batch))
        assert np.isfinite(rows).all()


def test_all_features_are_in_a_group() -> None:
    assert {name for names, _ in GROUPS.values() for name in names} == set(FEATURE_NAMES)


@pytest.mark.parametrize("spec", SPECS)
def test_levels_multiply_to_all_points(spec: str) -> None:
    for batch in batches(spec):
        level_columns = columns("levels", batch)
        extents = sum(level_columns[f"level{n}.extent"] for n in range(NUM_LEVELS))
        np.testing.assert_allclose(extents, np.log2(batch.main.trips[NUM_LEVELS]))


@pytest.mark.parametrize("spec", SPECS)
def test_a_smaller_cache_is_fed_no_less(spec: str) -> None:
    for batch in batches(spec):
        intensity = np.stack(list(columns("curve", batch).values()))
        assert (np.diff(intensity, axis=0) >= -1e-9).all()


def test_knobs_that_loops_show_have_no_column_of_their_own() -> None:
    (sketch,) = (s for s in space_of("matmul:64,48,32").sketches if s.name == "cached")
    assert knobs.free_knobs(sketch) == []


def test_the_sizes_of_a_target_are_logarithms() -> None:
    (batch, *_) = batches("matmul:64,48,32")
    target = columns("target", batch)
    assert set(target["target.num_cores"]) == {log2(4)}
    assert set(target["target.vector_bits"]) == {log2(256)}
    assert set(target["target.has_fma"]) == {1.0}


def test_balance_is_the_share_of_cores_that_work() -> None:
    for batch in batches("matmul:64,48,32"):
        parallel = columns("parallel", batch)
        parts = 2 ** parallel["parallel.extent"]
        expected = parts / (np.ceil(parts / 4) * 4)
        np.testing.assert_allclose(parallel["parallel.balance"], expected)
