"""Threads that reduce together."""

from __future__ import annotations

from compiler.ir.core.nodes import BlockRealize, For
from tests.unit.compiler.schedule.primitives.programs import ROWS
from tests.unit.compiler.schedule.schedule_asserts import (
    scheduled,
)


def test_threads_of_a_block_may_reduce_together() -> None:
    sch = scheduled(ROWS)
    i, k = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(k, "threadIdx.x")
    loops = [sch.get(loop) for loop in sch.get_loops("C")]
    assert [x.thread for x in loops if isinstance(x, For)] == ["blockIdx.x", "threadIdx.x"]
    assert isinstance(sch.get(sch.get_sblock("C")), BlockRealize)
