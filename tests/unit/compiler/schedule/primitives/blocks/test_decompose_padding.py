"""`decompose_padding`: constants first, then the inside; and each requirement refused."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import Block, Conditional
from compiler.ir.core.visit import walk
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.schedule.schedule_asserts import (
    becomes,
    computes_the_same,
    elementwise,
    matmul_relu,
    refused,
    scheduled,
)

PAD = """
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), P: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.sblock("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi - 1, vj - 1])
            T.writes(P[vi, vj])
            P[vi, vj] = T.if_then_else(
                1 <= vi and vi < 5 and 1 <= vj and vj < 7, A[vi - 1, vj - 1], T.float32(0)
            )
"""


def test_decompose_padding_takes_a_padding_of_a_padding_as_one() -> None:
    nested = """
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), P: T.Buffer((7, 9), "float32")):
    for i, j in T.grid(7, 9):
        with T.sblock("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi - 1, vj - 1])
            T.writes(P[vi, vj])
            P[vi, vj] = T.if_then_else(
                vi < 6 and vj < 8,
                T.if_then_else(
                    1 <= vi and vi < 5 and 1 <= vj and vj < 7, A[vi - 1, vj - 1], T.float32(0)
                ),
                T.float32(0),
            )
"""
    schedule = scheduled(nested)
    schedule.decompose_padding("P", schedule.get_loops("P")[0])
    computes_the_same(parse(nested), schedule.func)
    assert "for i, j in T.grid(4, 6)" in schedule.func.script()
    assert not any(isinstance(node, Conditional) for node in walk(schedule.func.body))


def test_decompose_padding_shortens_the_loops_of_the_inside() -> None:
    schedule = scheduled(PAD)
    i, _ = schedule.get_loops("P")
    assert schedule.can_decompose_padding("P", i)
    schedule.decompose_padding("P", i)
    verify(schedule.func)
    computes_the_same(parse(PAD), schedule.func)
    becomes(
        schedule,
        """
@T.prim_func
def main(A: T.Buffer((4, 6), "float32"), P: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.sblock("P_pad_const"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.float32(0)
    for i, j in T.grid(4, 6):
        with T.sblock("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi + 1, vj + 1] = A[vi, vj]
""",
    )


@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_decompose_padding_of_split_loops_keeps_a_predicate(depth: int, factor: int) -> None:
    schedule = scheduled(PAD)
    i, _ = schedule.get_loops("P")
    schedule.split(i, [None, factor])
    schedule.decompose_padding("P", schedule.get_loops("P")[depth])
    verify(schedule.func)
    computes_the_same(parse(PAD), schedule.func)


def test_decompose_padding_keeps_annotations_of_the_inside() -> None:
    """They may say how the buffer is stored, as `buffer_bits` does."""
    schedule = scheduled(PAD)
    schedule.annotate(schedule.get_block("P"), "buffer_bits", [0, 32])
    schedule.decompose_padding("P", schedule.get_loops("P")[0])
    annotations = [
        (node.name, node.annotations)
        for node in walk(schedule.func.root.body)
        if isinstance(node, Block)
    ]
    assert annotations == [("P_pad_const", ()), ("P", (("buffer_bits", (0, 32)),))]


def test_decompose_padding_of_fused_loops() -> None:
    schedule = scheduled(PAD)
    schedule.fuse(*schedule.get_loops("P"))
    schedule.decompose_padding("P", schedule.get_loops("P")[0])
    verify(schedule.func)
    computes_the_same(parse(PAD), schedule.func)


CONVOLUTION = """
@T.prim_func
def main(A: T.Buffer((14,), "float32"), C: T.Buffer((14,), "float32")):
    P = T.sblock_alloc_buffer((16,))
    for o in range(2):
        for j in range(9):
            with T.sblock("P"):
                v = T.axis.spatial(16, o * 7 + j)
                T.reads(A[v - 1])
                T.writes(P[v])
                P[v] = T.if_then_else(1 <= v and v < 15, A[v - 1], T.float32(0))
        for j, r in T.grid(7, 3):
            with T.sblock("C"):
                v = T.axis.spatial(14, o * 7 + j)
                vr = T.axis.reduce(3, r)
                with T.init():
                    C[v] = T.float32(0)
                C[v] = C[v] + P[v + vr]
"""


def test_the_constants_may_be_filled_in_before_a_loop_of_consumers() -> None:
    schedule = scheduled(CONVOLUTION)
    o, j = schedule.get_loops("P")
    for loop in (o, j):
        again = schedule.copy()
        again.decompose_padding("P", loop)
        verify(again.func)
        computes_the_same(parse(CONVOLUTION), again.func)


def test_decompose_padding_of_a_block_beside_its_consumer() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((10,), "float32")):
    P = T.sblock_alloc_buffer((10,))
    for i in range(10):
        with T.sblock("P"):
            v = T.axis.spatial(10, i)
            T.reads(A[v - 1])
            T.writes(P[v])
            P[v] = T.if_then_else(1 <= v and v < 9, A[v - 1], T.float32(0))
        with T.sblock("C"):
            v = T.axis.spatial(10, i)
            C[v] = P[v] * T.float32(2)
"""
    schedule = scheduled(text)
    schedule.decompose_padding("P", schedule.get_loops("P")[0])
    verify(schedule.func)
    computes_the_same(parse(text), schedule.func)


# Requirements


def test_can_decompose_padding_says_no_without_an_error() -> None:
    schedule = Schedule(matmul_relu())
    i, _, _ = schedule.get_loops("Y")
    assert not schedule.can_decompose_padding("Y", i)
    assert not schedule.can_decompose_padding("C", i)


def test_decompose_padding_refuses_a_loop_elsewhere() -> None:
    schedule = Schedule(elementwise())
    i, _ = schedule.get_loops("C")
    with refused(schedule, "loop i is not around block B", at="for i in"):
        schedule.decompose_padding("B", i)


def test_decompose_padding_refuses_a_reduction() -> None:
    schedule = Schedule(matmul_relu())
    i, _, _ = schedule.get_loops("Y")
    with refused(schedule, "block Y is not complete", at='"Y"'):
        schedule.decompose_padding("Y", i)


def test_decompose_padding_refuses_a_block_of_no_choice() -> None:
    schedule = Schedule(elementwise())
    i, _ = schedule.get_loops("B")
    with refused(schedule, "does not store one T.if_then_else(condition, value, ", at='"B"'):
        schedule.decompose_padding("B", i)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "T.float32(0)",
            "T.Cast('float32', vi)",
            "block P pads with a value that is not a constant",
        ),
        ("1 <= vi and vi < 5", "1 <= vi and vi < 5 and (vi < 2 or vj < 4)", "not a conjunction of"),
        ("1 <= vi and vi < 5", "vi % 6 == 1", "not a conjunction of bounds on iterators"),
        ("1 <= vi and vi < 5", "vi + vj < 5 and 1 <= vi", "is not on a single iterator"),
        ("1 <= vi and vi < 5", "3 <= vi and vi < 3", "the condition of block P never holds"),
    ],
)
def test_decompose_padding_refuses_other_choices(old: str, new: str, reason: str) -> None:
    schedule = scheduled(PAD.replace(old, new))
    i, _ = schedule.get_loops("P")
    with refused(schedule, reason, at='"P"'):
        schedule.decompose_padding("P", i)


def test_decompose_padding_refuses_a_condition_that_always_holds() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), P: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("P"):
            vi = T.axis.spatial(8, i)
            P[vi] = T.if_then_else(vi < 9, A[vi], T.float32(0))
""")
    with refused(schedule, "block P pads nothing: its condition always holds", at='"P"'):
        schedule.decompose_padding("P", schedule.get_loops("P")[0])


def test_decompose_padding_refuses_a_condition_around() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), P: T.Buffer((10,), "float32")):
    for i in range(10):
        if i < 9:
            with T.sblock("P"):
                vi = T.axis.spatial(10, i)
                T.reads(A[vi])
                T.writes(P[vi])
                P[vi] = T.if_then_else(vi < 8, A[vi], T.float32(0))
""")
    with refused(schedule, "block P is under a condition", at="if i < 9"):
        schedule.decompose_padding("P", schedule.get_loops("P")[0])


def test_decompose_padding_refuses_constants_that_could_be_seen_too_early() -> None:
    # The consumer of each tile also reads what the tile before has made of the next one.
    text = CONVOLUTION.replace("range(9)", "range(7)").replace("P[v + vr]", "P[v - vr * 0 + vr]")
    schedule = scheduled(text)
    o, j = schedule.get_loops("P")
    with refused(
        schedule, "block C may touch P under loop o before block P has computed", at='"C"'
    ):
        schedule.decompose_padding("P", o)
    schedule.decompose_padding("P", j)
