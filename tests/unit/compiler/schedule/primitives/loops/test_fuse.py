"""`fuse`: requirements, and the kind of the loop."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.core.nodes import TRUE, BinOp, BlockRealize, For, IntImm, Seq, seq
from compiler.schedule.schedule import Schedule
from compiler.schedule.tree.tree import block_with_body
from tests.unit.compiler.schedule.schedule_asserts import (
    elementwise,
    matmul_relu,
    refused,
)


def test_fuse_refuses_loops_that_are_not_nested_right_away() -> None:
    sch = Schedule(matmul_relu())
    i, j, k = sch.get_loops("Y")
    with refused(sch, "loop k is not the whole body of loop i", at="for i in range(16)"):
        sch.fuse(i, k)
    sch.reverse_compute_at("C", i)
    with refused(sch, "loop j is not the whole body of loop i", at="for i in range(16)"):
        sch.fuse(i, j)


def test_fuse_refuses_no_loops() -> None:
    sch = Schedule(elementwise())
    with refused(sch, "no loops are given", at="def main"):
        sch.fuse()


def test_fuse_refuses_a_loop_of_threads() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.bind(j, "threadIdx.x")
    with refused(sch, "loop j is bound to threadIdx.x", at="for j in T.thread_binding(16"):
        sch.fuse(i, j)


def test_fuse_refuses_a_loop_with_annotations() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.annotate(j, "pragma", 1)
    with refused(sch, "loop j has annotations: pragma", at="for j in"):
        sch.fuse(i, j)


def test_loops_that_are_split_or_fused_become_serial() -> None:
    sch = Schedule(elementwise())
    i, j = sch.get_loops("B")
    sch.parallel(i)
    sch.vectorize(j)
    fused = sch.fuse(i, j)
    sch.parallel(fused)
    loops = [sch.get(loop) for loop in sch.split(fused, [None, 8])]
    assert [loop.kind for loop in loops if isinstance(loop, For)] == ["serial", "serial"]


def test_fuse_refuses_a_loop_whose_extent_depends_on_another() -> None:
    func = elementwise()
    nest = func.root.body
    assert isinstance(nest, Seq)
    outer = nest.stmts[0]
    assert isinstance(outer, For)
    assert isinstance(outer.body, For)
    inner = replace(outer.body, extent=BinOp("+", outer.var, IntImm(1)))
    body = block_with_body(func.root, seq(replace(outer, body=inner), nest.stmts[1]))
    sch = Schedule(replace(func, body=BlockRealize((), TRUE, body)))
    i, j = sch.get_loops("B")
    with refused(sch, "the extent of loop j depends on loop i", at="for j in range(i + 1)"):
        sch.fuse(i, j)
    with refused(sch, "the extent of loop j depends on loop i", at="for j in range(i + 1)"):
        sch.reorder(j, i)
