"""Loops that run a whole reduction once, its start first."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.legality.placed_block import sites
from compiler.schedule.legality.reduction import (
    is_whole_reduction,
    single_pass_problem,
    starts_anew,
    unmixed_loops,
)
from compiler.script.parser import parse
from tests.unit.compiler.schedule.legality.positions import placed


def split_product() -> PrimFunc:
    sch = lw.Schedule(ops.matmul(4, 4, 8))
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    outer, inner = sch.split(k, [2, 4])
    sch.reorder(outer, i, j, inner)
    return sch.func


def test_a_product_is_whole_and_starts_anew() -> None:
    _, site = placed(ops.matmul(4, 4, 8), "C")
    assert is_whole_reduction(site)
    assert starts_anew(site)
    all_loops = frozenset(loop.var for loop in site.loops)
    assert single_pass_problem(site, all_loops, all_loops) is None


def test_a_reordered_product_is_still_whole() -> None:
    _, site = placed(split_product(), "C")
    assert is_whole_reduction(site)


def test_a_loop_of_both_kinds_of_iterators_is_named() -> None:
    func = lw.parse("""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), B: T.Buffer((4,), "float32")):
    for f in range(32):
        with T.sblock("B"):
            v = T.axis.spatial(4, f // 8)
            vk = T.axis.reduce(8, f % 8)
            with T.init():
                B[v] = T.float32(0)
            B[v] = B[v] + A[v * 8 + vk]
""")
    _, site = placed(func, "B")
    (loop,) = site.loops
    problem = single_pass_problem(site, {loop.var}, {loop.var})
    assert problem is not None
    assert "loop f binds both spatial and reduction iterators" in problem
    assert single_pass_problem(site, {loop.var}, frozenset()) is None


BOUND_BY_SPLITS = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((12, 12), "float32"), B: T.Buffer((12,), "float32")):
    for f in range(12):
        with T.sblock("sum"):
            v = T.axis.spatial(12, {spatial})
            k = T.axis.reduce(12, {reduce})
            T.reads(A[v, k])
            T.writes(B[v])
            with T.init():
                B[v] = T.float32(0)
            B[v] = B[v] + A[v, k]
"""


@pytest.mark.parametrize(
    ("spatial", "reduce", "is_unmixed"),
    [
        ("f // 4", "f % 4", True),
        ("f % 4", "f // 4", True),
        ("f // 4", "f % 6", False),
        ("f % 6 // 4", "f % 4", False),
        ("f", "f", False),
    ],
)
def test_a_loop_is_unmixed_if_its_splits_do_not_overlap(
    spatial: str, reduce: str, is_unmixed: bool
) -> None:
    func = parse(BOUND_BY_SPLITS.format(spatial=spatial, reduce=reduce))
    (site,) = sites(func.body, refusal("test", func))
    assert {loop.name for loop in unmixed_loops(site)} == ({"f"} if is_unmixed else set())
