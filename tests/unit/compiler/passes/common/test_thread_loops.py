"""Threads in lowered programs are recognized."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import Evaluate, For, IntImm, LoopKind, Var
from compiler.passes.common.thread_loops import (
    BARRIER,
    has_threads,
    is_barrier,
    is_one_by_one,
    is_thread,
    one_by_one,
)

NOTHING = Evaluate(IntImm(0))


def loop(thread: str | None) -> For:
    kind: LoopKind = "serial" if thread is None else "thread_binding"
    return For(Var("t"), IntImm(4), NOTHING, kind, thread)


@pytest.mark.parametrize(
    ("thread", "is_of_block"),
    [(None, False), ("threadIdx.x", True), ("vthread.x", True), ("blockIdx.z", False)],
)
def test_loops_over_the_threads_of_a_block(thread: str | None, is_of_block: bool) -> None:
    assert is_thread(loop(thread)) == is_of_block
    assert has_threads(For(Var("i"), IntImm(2), loop(thread))) == (thread is not None)


def test_barriers_and_marks() -> None:
    assert is_barrier(BARRIER)
    assert not is_barrier(NOTHING)
    assert is_one_by_one(one_by_one(NOTHING))
    assert not is_one_by_one(loop(None))
