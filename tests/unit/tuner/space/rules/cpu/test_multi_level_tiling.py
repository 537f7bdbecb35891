"""Products that are packed, cached or written directly."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.ir.core.visit import walk
from compiler.target.cpu import CpuTarget
from tests.targets import here
from tests.unit.tuner.candidates import check_candidates
from tests.unit.tuner.space.spaces import names, space_of
from tuner.space.analysis.block_facts import sites
from tuner.space.generate import design_space
from tuner.space.tables.register_tile import RegisterTile
from tuner.task import Task

PACKED = ["packed", "packed_right", "packed_whole", "packed_right_whole"]


def test_a_product_is_packed_or_written_directly_or_cached() -> None:
    assert names(ops.matmul(32, 32, 2048)) == [*PACKED, "direct", "cached"]
    # Blocks of so short a sum are not worth it, and the whole sum is another sketch's.
    assert names(ops.matmul(32, 32, 32)) == [*PACKED[2:], "direct", "cached"]
    assert names(ops.matmul(32, 32, 4)) == ["direct", "cached"]


def test_an_elementwise_consumer_is_fused() -> None:
    assert names(ops.mm_relu(32, 32, 32)) == [*PACKED, "fused"]
    assert names(ops.matmul_bias_relu(32, 32, 32)) == [*PACKED, "fused"]


@pytest.mark.parametrize(
    "spec", ["mean:1", "mean:5", "mean:7", "layer_norm:1", "layer_norm:6", "sum:3:bfloat16"]
)
@pytest.mark.parametrize("num_cores", [1, 2])
def test_an_epilogue_of_a_single_element_is_a_block_of_its_own(spec: str, num_cores: int) -> None:
    """The element has no loop below which its consumer could run."""
    func = ops.from_spec(spec)
    space = design_space(Task(func, here(num_cores)))
    check_candidates(func, space, each=2)


def test_the_vectorized_loop_is_contiguous_in_the_output() -> None:
    func = ops.conv2d(1, 4, 8, 8, 6, 3, 1, 1)
    space = space_of(func)
    for index, sketch in enumerate(space.sketches):
        choices = space.draw(index, 1, np.random.default_rng(0))[0]
        scheduled = sketch.candidate(choices).trace.apply_to(func).func
        (update,) = (s for s in sites(scheduled) if s.block.name.endswith("_update"))
        innermost = update.loops[-1]
        assert innermost.kind == "vectorized"
        assert innermost.var in set(walk(update.realize.iter_values[3]))
        assert innermost.var not in set(walk(update.realize.iter_values[1]))


@pytest.mark.parametrize(("padding", "fills"), [(1, {"cached"}), (0, set())])
def test_rows_of_a_cached_tile_are_filled_if_the_image_is_a_copy(
    padding: int, fills: set[str]
) -> None:
    """Rows of 14 are whole vectors of 16 where the sums and the padded image may be longer."""
    spec = f"conv2d:1,96,{16 - 2 * padding},{16 - 2 * padding},96,3,1,{padding},groups=4"
    target = CpuTarget("cpu -mcpu=znver5 -num-cores=1")
    filled = set()
    for sketch in design_space(Task(ops.from_spec(spec), target)).sketches:
        values = sketch.values(sketch.draw(200, np.random.default_rng(0)))
        for nest in sketch.nests:
            vectors = RegisterTile(nest.tables(values), target).vectors
            rows = nest.tables(values).vector_length == 14
            if nest.facts.is_reduction and "blocked" not in sketch.name and rows.any():
                assert set(vectors[rows]) == ({1.0} if nest.fills_rows else {3.0})
                filled |= {sketch.name.split("/")[0]} if nest.fills_rows else set()
    assert filled == fills


def test_parts_of_a_row_are_not_filled() -> None:
    """Rows of 28 as two tiles, or as one of two parts whose sums lie side by side."""
    target = CpuTarget("cpu -mcpu=znver5 -num-cores=1")
    task = Task(ops.conv2d(1, 96, 28, 28, 96, 3, padding=1, groups=4), target)
    sketch = next(s for s in design_space(task).sketches if s.name.startswith("cached"))
    values = sketch.values(sketch.draw(2000, np.random.default_rng(0)))
    tables = sketch.nests[0].tables(values)
    of_14 = tables.vector_length == 14
    is_whole = tables.extents[3, 3] == 1
    vectors = RegisterTile(tables, target).vectors
    assert set(vectors[of_14 & is_whole]) == {1.0}
    assert set(vectors[of_14 & ~is_whole]) == {3.0}
