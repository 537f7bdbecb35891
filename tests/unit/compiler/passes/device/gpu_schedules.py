"""Schedules for GPUs that several tests lower."""

from __future__ import annotations

from compiler.ops.spec import from_spec
from compiler.schedule.schedule import Schedule


def tiled_matmul(
    shape: tuple[int, int, int] = (8, 16, 8), tile: int = 8, step: int = 4, vthread: int = 1
) -> Schedule:
    """Return a matrix product of square tiles in shared memory; each thread computes 2 x 2."""
    sch = Schedule(from_spec("matmul:" + ",".join(map(str, shape))))
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    by, vy, ty, i_inner = sch.split(i, [None, vthread, tile // 2 // vthread, 2])
    bx, vx, tx, j_inner = sch.split(j, [None, vthread, tile // 2 // vthread, 2])
    k_outer, k_inner = sch.split(k, [None, step])
    sch.reorder(by, bx, vy, vx, ty, tx, k_outer, k_inner, i_inner, j_inner)
    for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y")):
        sch.bind(loop, axis)
    sch.bind(tx, "threadIdx.x")
    if vthread > 1:
        sch.bind(vy, "vthread.y")
        sch.bind(vx, "vthread.x")
    sch.reverse_compute_at(local, tx)
    side = tile // 2 // vthread
    for index in (0, 1):
        copy = sch.cache_read(block, index, "shared")
        sch.compute_at(copy, k_outer)
        fused = sch.fuse(*sch.get_loops(copy)[-2:])
        _, copy_y, copy_x = sch.split(fused, [None, side, side])
        sch.bind(copy_y, "threadIdx.y")
        sch.bind(copy_x, "threadIdx.x")
    sch.decompose_reduction(block, k_outer)
    return sch


def pipelined_matmul(
    stages: int, *, is_async: bool = False, has_local_stages: bool = False
) -> Schedule:
    """Return a matrix product whose copies to shared memory run `stages - 1` steps ahead.

    Args:
        stages: The steps in flight.
        is_async: Whether the copies are asynchronous.
        has_local_stages: Whether they load before the sums of a step, and store after them.
    """
    sch = Schedule(from_spec("matmul:4,8,32"))
    block = sch.get_block("C")
    local = sch.cache_write(block, 0, "local")
    i, j, k = sch.get_loops(block)
    by, ty, i_inner = sch.split(i, [None, 4, 1])
    bx, tx, j_inner = sch.split(j, [None, 4, 1])
    k_outer, k_inner = sch.split(k, [None, 8])
    sch.reorder(by, bx, ty, tx, k_outer, k_inner, i_inner, j_inner)
    sch.bind(by, "blockIdx.y")
    sch.bind(bx, "blockIdx.x")
    thread = sch.fuse(ty, tx)
    sch.bind(thread, "threadIdx.x")
    sch.reverse_compute_at(local, thread)
    for index in (0, 1):
        copy = sch.cache_read(block, index, "shared")
        sch.compute_at(copy, k_outer)
        _, copying, vector = sch.split(sch.fuse(*sch.get_loops(copy)[-2:]), [None, 16, 2])
        sch.vectorize(vector)
        sch.bind(copying, "threadIdx.x")
        if has_local_stages:
            sch.annotate(copy, "manifest_shared_memory_local_stage", 1)
    sch.decompose_reduction(block, k_outer)
    order = [0, 3, 1, 4, 2] if has_local_stages else [0, 1, 2]
    sch.annotate(k_outer, "software_pipeline_stage", [0] * (len(order) - 1) + [stages - 1])
    sch.annotate(k_outer, "software_pipeline_order", order)
    if is_async:
        sch.annotate(k_outer, "software_pipeline_async_stages", [0])
    return sch
