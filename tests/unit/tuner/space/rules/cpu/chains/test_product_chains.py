"""Products with row reductions between them run tile by tile of rows, through all blocks."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops, te
from compiler.ir.core.nodes import (
    IntImm,
)
from compiler.ir.core.program import PrimFunc
from compiler.passes.common.tile_buffers import KEY
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tuner.space.analysis.block_facts import sites
from tuner.space.generate import design_space
from tuner.task import Task


def two_products() -> PrimFunc:
    """Return `(A @ B) @ C`, in which no operand is to be transposed."""
    a, b = te.placeholder((12, 10), name="A"), te.placeholder((10, 16), name="B")
    c = te.placeholder((16, 24), name="C")
    k, r = te.reduce_axis((0, 10), name="k"), te.reduce_axis((0, 16), name="r")
    first = te.compute((12, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="first")
    second = te.compute((12, 24), lambda i, j: te.sum(first[i, r] * c[r, j], axis=r), name="second")
    return te.create_prim_func([a, b, c, second])


CHAINS = {
    "attention": ops.attention(1, 2, 16, 24, 8),
    "of odd extents": ops.attention(2, 1, 9, 7, 5),
    "causal": ops.attention(1, 1, 12, 16, 16, causal=True),
    "causal, of odd extents": ops.attention(1, 2, 33, 11, 13, causal=True),
    "of prime lengths": ops.attention(1, 1, 37, 29, 16),
    "of a prime number of keys": ops.attention(1, 2, 16, 77, 8),
    "two products": two_products(),
}


@pytest.mark.parametrize("num_cores", [1, 2])
@pytest.mark.parametrize("func", CHAINS.values(), ids=CHAINS.keys())
def test_chains_are_correct(func: PrimFunc, num_cores: int) -> None:
    looked_at = design_space(Task(func, level(3, num_cores)))
    assert [sketch.name for sketch in looked_at.sketches] == ["products"]
    check_candidates(func, design_space(Task(func, here(num_cores))), each=2)


@pytest.mark.parametrize("queries", [37, 77, 127, 129, 197, 257])
def test_tiles_of_rows_need_not_divide_them(queries: int) -> None:
    space = design_space(Task(ops.attention(1, 2, queries, queries, 32), level(3)))
    (sketch,) = space.sketches
    points = space.draw(0, 256, np.random.default_rng(0))
    assert len(points) > 32
    tables = sketch.nests[0].tables(sketch.values(points))
    assert (tables.trips[-1] >= sketch.nests[0].facts.points).all()
    assert tables.rows.max() >= 4


def test_keys_are_transposed_once_a_head_into_panels() -> None:
    func = ops.attention(1, 2, 16, 24, 8)
    space = design_space(Task(func, level(3)))
    sketch = space.sketches[0]
    choices = space.draw(0, 1, np.random.default_rng(0))[0]
    program = sites(sketch.candidate(choices).trace.apply_to(func).func)
    copy, products = (
        next(site for site in program if site.block.name == name)
        for name in ("K_global", "products_update")
    )
    shared = [loop.var.name for loop in copy.loops if loop in products.loops]
    assert shared == ["b", "h"]
    columns = products.loops[-1].extent
    assert isinstance(columns, IntImm)
    assert dict(copy.block.annotations)[KEY] == (0, 2, columns.value)


@pytest.mark.parametrize(
    "func",
    [ops.matmul(16, 16, 16), ops.softmax(8, 16), ops.conv2d(1, 4, 8, 8, 8, 3)],
    ids=["one product", "no product", "windows"],
)
def test_others_are_no_chains_of_products(func: PrimFunc) -> None:
    space = design_space(Task(func, level(3)))
    assert "products" not in {sketch.name for sketch in space.sketches}
