"""Programs of threads."""

from __future__ import annotations

from functools import cache

import pytest

from compiler import te
from compiler.backends.error import BuildError
from compiler.driver import build
from compiler.ir.analysis.resolve_views import resolve_views
from compiler.ir.core.nodes import Stmt
from compiler.ir.core.program import PrimFunc
from compiler.passes.common.compact_buffers import compact_buffers, private_buffers
from compiler.passes.common.pipeline_loops import pipeline_loops
from compiler.passes.common.realize_blocks import realize_blocks
from compiler.passes.threads.insert_barriers import insert_barriers
from compiler.passes.threads.separate_threads import separate_threads
from compiler.passes.threads.unify_threads import unify_threads
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.backends.cpu.codegen.programs import ONE_CORE

VECTORS = 'A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")'


def program(body: str, params: str = VECTORS) -> PrimFunc:
    """Return the program of a body that is written at its own margin."""
    lines = (f"    {line}" for line in body.strip("\n").splitlines())
    return parse("\n".join(["@T.prim_func(s_tir=True)", f"def main({params}):", *lines]))


TRANSPOSE = program(
    """
for bx in T.thread_binding(4, thread="blockIdx.x"):
    for by in T.thread_binding(4, thread="blockIdx.y"):
        with T.sblock("tile"):
            vx, vy = T.axis.remap("SS", [bx, by])
            T.reads(A[0:64, 0:64])
            T.writes(B[0:64, 0:64])
            S = T.sblock_alloc_buffer((16, 16), scope="shared")
            for tx in T.thread_binding(16, thread="threadIdx.x"):
                for i in range(16):
                    S[tx, i] = A[vx * 16 + tx, vy * 16 + i]
                T.tvm_storage_sync("shared")
                for i in range(16):
                    B[vy * 16 + tx, vx * 16 + i] = S[i, tx]
""",
    'A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32")',
)


def refused(body: str) -> str:
    func = program(body)
    with pytest.raises(BuildError) as caught:
        build(func, ONE_CORE)
    return str(caught.value)


@cache
def tiled_matmul(size: int, stages: int = 1) -> PrimFunc:
    """Return a product whose threads copy tiles into shared memory, four elements at a time."""
    a, b = (te.placeholder((size, size), "float32", name=name) for name in "AB")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    sch = Schedule(te.create_prim_func([a, b, c]))
    block = sch.get_block("C")
    tile = sch.cache_write(block, 0, "local")
    i, j, over = sch.get_loops(block)
    (bi, ti, ii), (bj, tj, jj) = sch.split(i, [None, 8, 4]), sch.split(j, [None, 8, 4])
    outer, inner = sch.split(over, [None, 8])
    sch.reorder(bi, bj, ti, tj, outer, inner, ii, jj)
    sch.bind(bi, "blockIdx.y")
    sch.bind(bj, "blockIdx.x")
    threads = sch.fuse(ti, tj)
    sch.bind(threads, "threadIdx.x")
    sch.reverse_compute_at(tile, threads)
    for operand in (0, 1):
        copy = sch.cache_read(block, operand, "shared")
        sch.compute_at(copy, outer)
        _, thread, lane = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 64, 4])
        sch.vectorize(lane)
        sch.bind(thread, "threadIdx.x")
    sch.vectorize(sch.get_loops(tile)[-1])
    sch.decompose_reduction(block, outer)
    if stages > 1:
        sch.annotate(outer, "software_pipeline_stage", [0, 0, stages - 1])
        sch.annotate(outer, "software_pipeline_order", [0, 1, 2])
    return sch.func


def with_barriers(func: PrimFunc) -> Stmt:
    """Return a program without blocks, with the barriers that its threads need."""
    body, unified = unify_threads(resolve_views(func.body))
    realized = separate_threads(realize_blocks(body), unified)
    stmt = pipeline_loops(compact_buffers(realized.stmt, realized.carried))
    private = {b for b, thread in private_buffers(stmt).items() if thread is not None}
    return insert_barriers(stmt, private)
