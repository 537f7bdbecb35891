"""Loops that may be split, fused and sampled."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler.ir.arith.extents import UNKNOWN, extent_or_unknown
from compiler.ir.core.nodes import For
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import ScheduleError, refusal
from compiler.schedule.tree.plain_loop import literal_extent, require_plain
from compiler.schedule.tree.tree import loops_below
from compiler.script import parse

SYMBOLIC = parse("""
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        with T.sblock("A"):
            v = T.axis.spatial(n, i)
            A[v] = T.float32(0)
""")

refuse = refusal("split", SYMBOLIC)


def first_loop(func: PrimFunc) -> For:
    return next(loops_below(func.body))


def test_a_loop_without_annotations_is_plain() -> None:
    func = lw.ops.relu(4, 8)
    require_plain(first_loop(func), refuse)
    assert literal_extent(first_loop(func), refuse) == 4
    assert extent_or_unknown(first_loop(func).extent) == 4


def test_annotations_and_threads_are_refused_by_name() -> None:
    sch = lw.Schedule(lw.ops.relu(4, 8))
    outer, _ = sch.get_loops(sch.get_sblock("B"))
    sch.annotate(outer, "pragma_auto_unroll_max_step", 16)
    with pytest.raises(ScheduleError, match="pragma_auto_unroll_max_step"):
        require_plain(first_loop(sch.func), refuse)
    sch = lw.Schedule(lw.ops.relu(4, 8))
    outer, _ = sch.get_loops(sch.get_sblock("B"))
    sch.bind(outer, "blockIdx.x")
    with pytest.raises(ScheduleError, match=r"bound to blockIdx\.x"):
        require_plain(first_loop(sch.func), refuse)
    require_plain(list(loops_below(sch.func.body))[1], refuse)


def test_a_symbolic_extent_is_no_literal() -> None:
    with pytest.raises(ScheduleError, match="the extent of loop i is not a literal"):
        literal_extent(first_loop(SYMBOLIC), refuse)
    assert extent_or_unknown(first_loop(SYMBOLIC).extent) == UNKNOWN
