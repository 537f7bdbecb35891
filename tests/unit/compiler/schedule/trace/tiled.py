"""A schedule that uses every form of an argument."""

from __future__ import annotations

from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import matmul_relu


def tiled() -> Schedule:
    """Return a schedule that uses every form of argument."""
    sch = Schedule(matmul_relu(), seed=3)
    block = sch.get_block("Y")
    i, j, k = sch.get_loops(block)
    i_0, i_1 = sch.split(i, sch.sample_perfect_tile(i, 2, max_innermost_factor=8))
    j_0, j_1 = sch.split(j, [None, 4])
    sch.reorder(i_0, j_0, i_1, k, j_1)
    sch.reverse_compute_at("C", j_0, preserve_unit_loops=True)
    sch.annotate(block, "unroll", sch.sample_categorical([0, 16, 64], [0.2, 0.3, 0.5]))
    sch.annotate(block, "note", ["a", 1, 2.5, True])
    sch.parallel(sch.fuse(i_0, j_0))
    sch.cache_read(block, 0, "local", consumer_blocks=[block])
    sch.vectorize(j_1)
    sch.decompose_reduction(block, k)
    return sch
