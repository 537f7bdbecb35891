"""Chains of products for few rows read keys and values once, in their own layout."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.driver import lower
from compiler.ir.core.nodes import Allocate, For, IntImm
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.passes.cpu.reduce_in_lanes import KEY
from tests.targets import here, level
from tests.unit.tuner.candidates import check_candidates
from tests.unit.tuner.space.spaces import names
from tuner.space.analysis.block_facts import sites
from tuner.space.generate import design_space
from tuner.task import Task

CHAINS = {
    "one query": ops.attention(1, 2, 1, 24, 16),
    "a group": ops.grouped_query_attention(1, 8, 2, 1, 21, 16),
    "a group of narrow floats": ops.grouped_query_attention(2, 4, 2, 1, 32, 16, dtype="bfloat16"),
    "a mask": ops.grouped_query_attention(2, 4, 2, 2, 19, 8, mask=True, causal=True, past=17),
    "odd widths": ops.grouped_query_attention(1, 3, 1, 1, 23, 13),
}


def streamed(func: PrimFunc) -> PrimFunc:
    """Return a candidate of the sketch."""
    space = design_space(Task(func, level(3)))
    choices = space.draw(0, 1, np.random.default_rng(0))[0]
    return space.sketches[0].candidate(choices).trace.apply_to(func).func


@pytest.mark.parametrize("name", CHAINS)
def test_streamed_chains_are_correct(name: str) -> None:
    func, num_cores = CHAINS[name], 2 if name == "a group" else 1
    assert names(func)[0] == "streamed"
    check_candidates(func, design_space(Task(func, here(num_cores))), each=1)


@pytest.mark.parametrize("queries", [1, 2])
def test_keys_are_multiplied_by_all_rows_of_a_group_in_their_own_layout(queries: int) -> None:
    func = ops.grouped_query_attention(1, 8, 2, queries, 64, 32)
    program = sites(streamed(func))
    assert not any(site.block.name.startswith(("K_", "V_")) for site in program)
    (products,) = (site for site in program if site.block.name == "products_update")
    step = next(i for i, loop in enumerate(products.loops) if dict(loop.annotations).get(KEY))
    _, *rows = products.loops[step + 1 :]
    assert [loop.kind for loop in products.loops[step + 1 :]] == ["unrolled"] * 3
    assert [extent(loop) for loop in rows] == [4, queries]


def test_narrow_queries_and_weights_are_converted_once() -> None:
    func = ops.grouped_query_attention(1, 8, 2, 1, 64, 32, dtype="bfloat16")
    lowered = lower(streamed(func), level(3))
    buffers = {
        n.buffer.name: n.buffer.dtype for n in walk_stmts(lowered) if isinstance(n, Allocate)
    }
    assert buffers["Q_global"] == buffers["B"] == "float32"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("attention:1,2,1,64,32", ["streamed"]),
        ("attention:1,2,8,64,32", ["streamed", "products"]),
        ("attention:1,2,9,64,32", ["products"]),
        ("grouped_query_attention:1,8,2,2,64,32", ["streamed", "products"]),
        ("grouped_query_attention:1,8,2,3,64,32", ["products"]),
        ("attention:1,2,16,64,32:bfloat16", ["online", "products"]),
    ],
)
def test_few_rows_are_streamed(spec: str, expected: list[str]) -> None:
    assert names(ops.from_spec(spec)) == expected


def extent(loop: For) -> int:
    assert isinstance(loop.extent, IntImm)
    return loop.extent.value
