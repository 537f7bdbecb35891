"""Tables and features against a walk over the scheduled program, for candidates of most rules.

What is compared: extents, trips, points, elements, lines, reuse, the vectorized and the unrolled
loops, arithmetic. A level of the tables is compared wherever the program has such a place between
two loops: there, each axis goes as far as the level says. Rules that make new blocks of a reduction
(`whole_reductions`, `special_blocks`) have no block in the program that the nest is of.
"""

from __future__ import annotations

from math import log2, prod

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Call, Store
from compiler.ir.core.visit import walk
from compiler.target.cpu import CpuTarget
from tests.unit.tuner.space.features.exact_features import Walk
from tuner.space.features.features import named_features
from tuner.space.generate import design_space
from tuner.space.tables.knob import Ints
from tuner.space.tables.nest import LINE_BYTES, NUM_LEVELS, NestTables
from tuner.space.tables.sketch import Sketch
from tuner.task import Task

TARGET = CpuTarget("cpu -mcpu=x86-64-v3 -num-cores=1")
EACH = 2
"""Candidates of a sketch."""
FEWEST = 4
"""Levels of a nest that are found in the program, of seven; equal ones count each."""

PROGRAMS = {
    "matmul:6,16,128": ("packed_products", "multi_level_tiling"),
    "matmul:6,13,11": ("packed_products", "multi_level_tiling"),
    "matmul_bias_relu:8,16,16": ("auto_inline", "multi_level_tiling"),
    "conv2d:1,3,4,4,8,3,1,1": ("multi_level_tiling", "place_producers"),
    "conv2d:1,8,5,5,16,3,2,1": ("packed_windows",),
    "conv2d:1,8,4,4,16,1": ("flat_columns",),
    "depthwise_conv2d:1,4,8,8,3,1,1": ("window_rows",),
    "row_sum:16,64": ("row_chains",),
    "softmax:16,64": ("row_chains",),
    "attention:1,2,16,16,8": ("product_chains",),
    "transpose:32,48": ("transposed_copies",),
    "multiply:12,40,other=1x40": ("spatial_blocks",),
    "relu:640": ("spatial_blocks",),
}


def sketches(spec: str) -> list[tuple[Sketch, Ints]]:
    space = design_space(Task(ops.from_spec(spec), TARGET))
    rng = np.random.default_rng(0)
    return [(s, space.draw(i, EACH, rng)) for i, s in enumerate(space.sketches)]


@pytest.mark.parametrize("spec", PROGRAMS)
def test_tables_say_what_the_program_does(spec: str) -> None:
    func = ops.from_spec(spec)
    drawn = sketches(spec)
    assert {rule for sketch, _ in drawn for rule in sketch.rules} >= set(PROGRAMS[spec])
    for sketch, rows in drawn:
        for row in rows:
            scheduled = sketch.candidate(row).trace.apply_to(func).func
            tables = sketch.nests[0].tables(sketch.values(row[None]))
            walked = Walk(scheduled, sketch.nests[0].facts.name)
            found = named_features(sketch, row[None], TARGET)
            check(walked, tables, {name: float(column[0]) for name, column in found.items()})


def check(walked: Walk, tables: NestTables, features: dict[str, float]) -> None:
    points = sum(walked.inside(0))
    assert points == tables.trips[NUM_LEVELS, 0]
    order = _order(walked, tables)
    depths = _depths(walked, tables)
    assert len(depths) >= FEWEST
    for level, depth in depths.items():
        assert tables.trips[level, 0] == prod(walked.extents[:depth])
        assert features[f"level{level}.trips"] == pytest.approx(log2(prod(walked.extents[:depth])))
        for access, index in enumerate(order):
            _check_touched(walked, tables, (level, depth), (access, index))
    _check_reuse(walked, features, depths, order)
    _check_innermost(walked, tables, features)
    _check_arithmetic(walked, tables)


def _order(walked: Walk, tables: NestTables) -> list[int]:
    """Return where the accesses of the program are in the tables: those read are sorted there."""
    names = [access.buffer.removesuffix("_global") for access in tables.nest.accesses]
    found: list[int] = []
    for buffer, _ in walked.accesses:
        name = buffer.name.removesuffix("_global").removesuffix("_local")
        free = [i for i, known in enumerate(names) if known == name and i not in found]
        found.append(free[0] if found else 0)
    return found


def _depths(walked: Walk, tables: NestTables) -> dict[int, int]:
    """Return, by level, the place between loops where all axes go as far as tables say.

    Tiles that pad reach beyond an axis; iterators of the program are no longer.
    """
    sizes = [axis.extent for axis in tables.nest.facts.axes]
    names = [axis.name for axis in tables.nest.facts.axes]
    places = [i.var.name for i in walked.block.iter_vars]
    found: dict[int, int] = {}
    for depth in range(len(walked.loops), -1, -1):
        by_name = dict(zip(places, walked.ranges(depth), strict=True))
        ranges = [min(by_name[name], size) for name, size in zip(names, sizes, strict=True)]
        for level in range(NUM_LEVELS):
            tile = np.minimum(tables.tiles[level, :, 0], sizes)
            entered = tables.trips[level, 0] == prod(walked.extents[:depth])
            if ranges == tile.tolist() and entered:
                found[level] = depth
    return found


def _check_touched(
    walked: Walk, tables: NestTables, place: tuple[int, int], access: tuple[int, int]
) -> None:
    level, depth = place
    exact = walked.touched(depth, access[0])
    counted = tables.elements[access[1], level, 0]
    # Boxes of windows that step over elements have gaps, which tables count.
    assert counted == (exact.elements if exact.elements == exact.box else exact.box)
    if access[1] in tables.nest.packed or exact.elements != exact.box:
        return
    lines = tables.footprints[access[1], level, 0] / LINE_BYTES
    assert abs(lines - exact.lines) <= exact.runs
    if exact.runs == 1:
        assert abs(lines - exact.lines) <= 1


def _check_reuse(
    walked: Walk, features: dict[str, float], depths: dict[int, int], order: list[int]
) -> None:
    """A loop that does not move an access goes over it again."""
    for level in range(NUM_LEVELS):
        begin, end = depths.get(level), depths.get(level + 1, len(walked.loops))
        if begin is None or (level + 1 < NUM_LEVELS and level + 1 not in depths):
            continue
        for access, index in enumerate(order):
            loops = range(begin, end)
            still = [walked.extents[n] for n in loops if not walked.is_moved(n, access)]
            assert features[f"buffer{index}.reuse{level}"] == pytest.approx(log2(prod(still)))


def _check_innermost(walked: Walk, tables: NestTables, features: dict[str, float]) -> None:
    kinds = [loop.kind for loop in walked.loops]
    last = walked.loops[-1]
    if kinds[-1] == "vectorized" and tables.nest.vector_axis is not None:
        assert tables.vector_length[0] == walked.extents[-1]
        unrolled = [e for e, kind in zip(walked.extents, kinds, strict=True) if kind == "unrolled"]
        assert tables.rows[0] * tables.level_extents[5, 0] == prod(unrolled)
        assert features["vector_length"] == pytest.approx(log2(walked.extents[-1]))
    elif not last.annotations:
        assert features["has_vectors"] == 0 or kinds[-1] != "vectorized"


def _check_arithmetic(walked: Walk, tables: NestTables) -> None:
    store = walked.block.body
    assert isinstance(store, Store)
    floats = [n for n in walk(store.value) if isinstance(n, BinOp) and is_float(dtype_of(n))]
    calls = [n for n in walk(store.value) if isinstance(n, Call)]
    own = tables.nest.facts.operations
    assert 2 * own.fma + own.add + own.mul + own.div == sum(
        n.op not in ("min", "max") for n in floats
    )
    assert own.special == len(calls)
