"""`blockize`: outer and inner blocks, and each requirement refused."""

from __future__ import annotations

import pytest

from compiler.ir.core.nodes import BlockRealize, IntImm
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


def tiled(n: int = 16) -> Schedule:
    """Return a schedule of a matrix product whose loops are tiled by 4."""
    schedule = Schedule(matmul_relu(n))
    loops = [schedule.split(loop, [None, 4]) for loop in schedule.get_loops("Y")]
    schedule.reorder(*(outer for outer, _ in loops), *(inner for _, inner in loops))
    return schedule


@pytest.mark.parametrize("depth", range(6))
def test_blockize_keeps_what_a_reduction_computes(depth: int) -> None:
    schedule = tiled()
    outer = schedule.blockize(schedule.get_loops("Y")[depth])
    verify(schedule.func)
    computes_the_same(matmul_relu(), schedule.func)
    assert len(schedule.get_loops(outer)) == depth
    assert len(schedule.get_loops("Y")) == 6 - depth


def test_the_outer_block_of_a_reduction_is_decomposed() -> None:
    schedule = tiled()
    outer = schedule.blockize(schedule.get_loops("Y")[3])
    schedule.decompose_reduction(outer, schedule.get_loops(outer)[2])
    verify(schedule.func)
    computes_the_same(matmul_relu(), schedule.func)
    assert [schedule.get_block(name) for name in ("Y_o_init", "Y_init", "Y_o_update", "Y")]


def test_blockize_of_an_elementwise_block() -> None:
    schedule = Schedule(elementwise(8))
    i, _ = schedule.get_loops("B")
    _, i_1 = schedule.split(i, [None, 4])
    schedule.blockize(i_1)
    becomes(
        schedule,
        """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    T.func_attr({"tir.noalias": True})
    B = T.sblock_alloc_buffer((8, 8))
    for i_0 in range(2):
        with T.sblock("B_o"):
            vi_o = T.axis.spatial(2, i_0)
            vj_o = T.axis.spatial(1, 0)
            T.reads(A[vi_o * 4:vi_o * 4 + 4, 0:8])
            T.writes(B[vi_o * 4:vi_o * 4 + 4, 0:8])
            for i_1, j in T.grid(4, 8):
                with T.sblock("B"):
                    vi_i, vj_i = T.axis.remap("SS", [i_1, j])
                    B[vi_o * 4 + vi_i, vj_i] = A[vi_o * 4 + vi_i, vj_i] * T.float32(2)
    for i, j in T.grid(8, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
""",
    )


GUARDED = """
@T.prim_func
def main(A: T.Buffer((10, 4), "float32"), C: T.Buffer((10, 4), "float32")):
    for i, k, j in T.grid(3, 4, 4):
        with T.sblock("C"):
            vi = T.axis.spatial(10, i * 4 + k)
            vj = T.axis.spatial(4, j)
            T.where(i * 4 + k < 10)
            C[vi, vj] = A[vi, vj] + T.float32(1)
"""


def test_a_guard_on_outer_loops_guards_the_outer_block() -> None:
    schedule = scheduled(GUARDED)
    outer = schedule.get(schedule.blockize(schedule.get_loops("C")[2]))
    verify(schedule.func)
    computes_the_same(parse(GUARDED), schedule.func)
    assert isinstance(outer, BlockRealize)
    assert "i * 4 + k < 10" in schedule.func.script().split('"C_o"')[1].split('"C"')[0]


def test_a_guard_on_inner_loops_guards_the_inner_block() -> None:
    schedule = scheduled(GUARDED)
    schedule.blockize(schedule.get_loops("C")[0])
    verify(schedule.func)
    computes_the_same(parse(GUARDED), schedule.func)
    assert "i * 4 + k < 10" in schedule.func.script().split('"C"')[1]


def test_unit_iterators_are_dropped_if_they_need_not_be_kept() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((1, 8), "float32"), C: T.Buffer((1, 8), "float32")):
    for i, j in T.grid(1, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + T.float32(1)
"""
    for keep, index in ((True, "A[vi_o, vj_i]"), (False, "A[0, vj_i]")):
        schedule = scheduled(text)
        schedule.blockize(schedule.get_loops("C")[1], preserve_unit_iters=keep)
        assert index in schedule.func.script()
        computes_the_same(parse(text), schedule.func)


NEIGHBOURS = """
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8, 4))
    D = T.sblock_alloc_buffer((8, 4))
    for i in range(8):
        for j in range(4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(4):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = B[vi, vj] + T.float32(1)
        for j in range(4):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + D[vi, vj]
"""


def test_blockize_of_neighbours() -> None:
    for names in (["B", "D"], ["D", "C"], ["B", "D", "C"]):
        schedule = scheduled(NEIGHBOURS)
        outer = schedule.get(schedule.blockize(names))
        assert isinstance(outer, BlockRealize)
        assert outer.block.name == "outer_" + "".join(f"{name}_" for name in names)
        verify(schedule.func)
        computes_the_same(parse(NEIGHBOURS), schedule.func)


# Requirements


def test_blockize_refuses_a_loop_of_several_blocks() -> None:
    schedule = scheduled(NEIGHBOURS)
    i, _ = schedule.get_loops("B")
    with refused(schedule, "loop i must hold one block: it holds B, D, C", at="for i in"):
        schedule.blockize(i)


def test_blockize_refuses_what_is_more_than_loops() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    for i in range(2):
        for j in range(4):
            if j < 3:
                with T.sblock("C"):
                    v = T.axis.spatial(8, i * 4 + j)
                    C[v] = A[v]
""")
    _, j = schedule.get_loops("C")
    with refused(
        schedule, "something other than loops is between block C and the outer", at="if j < 3"
    ):
        schedule.blockize(j)


@pytest.mark.parametrize("value", ["i * 2 + j", "j * 4 + i", "7 - i * 4 - j"])
def test_blockize_refuses_iterators_that_can_t_be_divided(value: str) -> None:
    schedule = scheduled(f"""
@T.prim_func
def main(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32")):
    for i, j in T.grid(2, 4):
        with T.sblock("C"):
            v = T.axis.spatial(32, {value})
            C[v] = A[v]
""")
    _, j = schedule.get_loops("C")
    with refused(schedule, "block C can't be divided between the inner loops, j,", at='"C"'):
        schedule.blockize(j)


def test_blockize_refuses_a_guard_on_both_sides() -> None:
    schedule = scheduled(GUARDED)
    k = schedule.get_loops("C")[1]
    with refused(schedule, "or the predicate, of block C can't be divided", at='"C"'):
        schedule.blockize(k)


def test_blockize_refuses_a_reduction_that_starts_at_its_end() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, 7 - k)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vk]
""")
    _, k = schedule.get_loops("C")
    with refused(schedule, "over vk does not start at its first iteration", at='"C"'):
        schedule.blockize(k)


def test_blockize_refuses_an_init_that_depends_on_what_is_unknown() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = C[vi] * T.float32(2)
            C[vi] = C[vi] + A[vi, vk]
""")
    _, k = schedule.get_loops("C")
    with refused(schedule, "reads in its init what it initialises", at='"C"'):
        schedule.blockize(k)


def test_blockize_refuses_a_list_of_one_block() -> None:
    schedule = scheduled(NEIGHBOURS)
    with refused(schedule, "expected a list of at least two blocks", at="def main"):
        schedule.blockize(["B"])


def test_blockize_refuses_blocks_out_of_order() -> None:
    schedule = scheduled(NEIGHBOURS)
    with refused(schedule, "name the blocks in program order", at='"B"'):
        schedule.blockize(["D", "B"])


def test_blockize_refuses_blocks_with_a_gap_between_them() -> None:
    schedule = scheduled(NEIGHBOURS)
    with refused(schedule, "block C does not directly follow", at='"C"'):
        schedule.blockize(["B", "C"])


def test_blockize_refuses_blocks_of_different_scopes() -> None:
    schedule = scheduled(NEIGHBOURS)
    schedule.blockize(["B", "D"])
    with refused(schedule, "block C is not in the scope of block B", at='"B"'):
        schedule.blockize(["B", "C"])


def test_blockize_refuses_neighbours_of_other_outer_iterators() -> None:
    remap = 'vi, vj = T.axis.remap("SS", [i, j])'
    axes = "vi = T.axis.spatial(8, 7 - i)\n                vj = T.axis.spatial(4, j)"
    schedule = scheduled(NEIGHBOURS.replace(remap, axes, 1))
    with refused(schedule, "bind the iterators of block D in another way", at='"D"'):
        schedule.blockize(["B", "D"])


def test_blockize_refuses_a_reduction_as_the_first_of_several() -> None:
    schedule = scheduled("""
@T.prim_func
def main(
    A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((8, 4), "float32")
):
    for i in range(8):
        for j in range(4):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vj]
        for j in range(4):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = A[vi, vj] - C[vi]
""")
    with refused(schedule, "block C is a reduction with an init", at='"C"'):
        schedule.blockize(["C", "D"])


def test_blockize_of_a_block_that_names_its_loops_says_what_they_reach() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i in range(8):
        with T.sblock("row"):
            T.reads(A[i, 0:4])
            T.writes(B[i, 0:4])
            for j in range(4):
                with T.sblock("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.float32(2)
""")
    before = schedule.func
    outer = schedule.get(schedule.blockize(schedule.get_loops("row")[0]))
    assert isinstance(outer, BlockRealize)
    assert [r.extent for r in outer.block.writes[0].region] == [IntImm(8), IntImm(4)]
    verify(schedule.func)
    computes_the_same(before, schedule.func)


def test_blockize_refuses_outer_loops_that_reduce() -> None:
    schedule = scheduled("""
@T.prim_func
def main(
    A: T.Buffer((8, 4), "float32"), C: T.Buffer((4,), "float32"), D: T.Buffer((8, 4), "float32")
):
    for i in range(8):
        for j in range(4):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = A[vi, vj] * T.float32(2)
        for j in range(4):
            with T.sblock("C"):
                vi, vj = T.axis.remap("RS", [i, j])
                with T.init():
                    C[vj] = T.float32(0)
                C[vj] = C[vj] + D[vi, vj]
""")
    with refused(schedule, "iterator vi of block C is reduced by outer loops", at='"C"'):
        schedule.blockize(["D", "C"])
