"""`split`: requirements, and predicates."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.driver import build
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.schedule.schedule import Schedule
from compiler.script import parse
from tests.targets import here
from tests.unit.compiler.schedule.schedule_asserts import (
    LOOSE_STORE,
    SYMBOLIC,
    elementwise,
    refused,
    scheduled,
)


def test_split_refuses_a_loop_of_threads() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    sch.bind(i, "threadIdx.x")
    with refused(sch, "loop i is bound to threadIdx.x", at="for i in T.thread_binding(16"):
        sch.split(i, [4, 4])


def test_split_refuses_a_loop_with_annotations() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    sch.annotate(i, "pragma", 1)
    with refused(sch, "loop i has annotations: pragma", at="for i in"):
        sch.split(i, [4, 4])


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        ([], "by no factors"),
        ([None, None], "at most one factor may be None, got [None, None]"),
        ([None, 0], "factor 0 of loop i is not positive"),
        ([-4, -4], "factor -4 of loop i is not positive"),
        ([3, 5], "the product 15 of the factors [3, 5] is less than the extent 16 of loop i"),
    ],
)
def test_split_refuses_factors_that_make_no_nest(factors: list[int | None], reason: str) -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    with refused(sch, reason, at="for i in range(16)"):
        sch.split(i, factors)


def test_split_without_predication_refuses_factors_that_need_it() -> None:
    sch = Schedule(elementwise())
    i, _ = sch.get_loops("B")
    reason = "the factors [None, 5] make more iterations than loop i has"
    with refused(sch, reason, at="for i in range(16)"):
        sch.split(i, [None, 5], disable_predication=True)
    assert len(sch.split(i, [None, 4], disable_predication=True)) == 2


def test_stores_outside_blocks_are_refused() -> None:
    sch = scheduled(LOOSE_STORE)
    (i,) = sch.get_loops("C")
    with refused(sch, "this store is outside of any block", at="C[i] = A[i] + T.float32(1.0)"):
        sch.parallel(i)


def test_split_refuses_factors_that_may_be_too_few_for_an_unknown_extent() -> None:
    sch = scheduled(SYMBOLIC)
    i, _ = sch.get_loops("C")
    with refused(sch, "of the factors [4, 4] may be less than the extent n", at="for i in"):
        sch.split(i, [4, 4])


def test_a_value_of_an_iterator_is_read_only_if_the_predicate_holds() -> None:
    gather = parse("""
@T.prim_func
def gather(
    ids: T.Buffer((4,), "int32"), W: T.Buffer((6,), "float32"), C: T.Buffer((4,), "float32")
):
    for i in range(4):
        with T.block("C"):
            row = T.axis.spatial(6, ids[i] % 6)
            to = T.axis.spatial(4, i)
            T.reads(W[row])
            T.writes(C[to])
            C[to] = W[row]
""")
    schedule = Schedule(gather)
    (loop,) = schedule.get_loops(schedule.get_block("C"))
    schedule.split(loop, [4, None, 2])  # eight iterations, of which four run
    ids, table = np.array([5, 0, 5, 3], "int32"), np.arange(6, dtype="float32")
    result = np.empty(4, "float32")
    build(schedule, here())(ids, table, result)
    np.testing.assert_array_equal(result, table[ids])
    np.testing.assert_array_equal(interpret(schedule.func, {"ids": ids, "W": table})["C"], result)
