"""The course notes' transformation of `mm_relu`, step by step, against the programs they print."""

from __future__ import annotations

from compiler.ir.structural import structural_equal
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse

HEAD = """
@T.prim_func
def mm_relu(
    A: T.Buffer[(128, 128), "float32"],
    B: T.Buffer[(128, 128), "float32"],
    C: T.Buffer[(128, 128), "float32"],
) -> None:
    # function attr dict
    T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})
    # body
    # with T.block("root")
    Y = T.alloc_buffer([128, 128], dtype="float32")
"""

MODULE = (
    HEAD
    + """
    for i, j, k in T.grid(128, 128, 128):
        with T.block("Y"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(Y[vi, vj])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(128, 128):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(Y[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""
)

AFTER_SPLIT = (
    HEAD
    + """
    for i, j_0, j_1, k in T.grid(128, 32, 4, 128):
        with T.block("Y"):
            vi = T.axis.spatial(128, i)
            vj = T.axis.spatial(128, j_0 * 4 + j_1)
            vk = T.axis.reduce(128, k)
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(Y[vi, vj])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(128, 128):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(Y[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""
)

AFTER_REORDER = (
    HEAD
    + """
    for i, j_0, k, j_1 in T.grid(128, 32, 128, 4):
        with T.block("Y"):
            vi = T.axis.spatial(128, i)
            vj = T.axis.spatial(128, j_0 * 4 + j_1)
            vk = T.axis.reduce(128, k)
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(Y[vi, vj])
            with T.init():
                Y[vi, vj] = T.float32(0)
            Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(128, 128):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(Y[vi, vj])
            T.writes(C[vi, vj])
            C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""
)

AFTER_REVERSE_COMPUTE_AT = (
    HEAD
    + """
    for i, j_0 in T.grid(128, 32):
        for k, j_1 in T.grid(128, 4):
            with T.block("Y"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 4 + j_1)
                vk = T.axis.reduce(128, k)
                T.reads(A[vi, vk], B[vk, vj])
                T.writes(Y[vi, vj])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for ax0 in T.serial(4):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 4 + ax0)
                T.reads(Y[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""
)

AFTER_DECOMPOSE_REDUCTION = (
    HEAD
    + """
    for i, j_0 in T.grid(128, 32):
        for j_1_init in T.serial(4):
            with T.block("Y_init"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 4 + j_1_init)
                T.reads()
                T.writes(Y[vi, vj])
                Y[vi, vj] = T.float32(0)
        for k, j_1 in T.grid(128, 4):
            with T.block("Y_update"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 4 + j_1)
                vk = T.axis.reduce(128, k)
                T.reads(Y[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(Y[vi, vj])
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for ax0 in T.serial(4):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                vj = T.axis.spatial(128, j_0 * 4 + ax0)
                T.reads(Y[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""
)


def test_the_transformation_of_mm_relu_prints_what_the_notes_print() -> None:
    sch = Schedule(parse(MODULE))
    block_Y = sch.get_block("Y", func_name="mm_relu")
    _, j, k = sch.get_loops(block_Y)
    assert structural_equal(sch.func, parse(MODULE))

    j0, j1 = sch.split(j, factors=[None, 4])
    assert structural_equal(sch.func, parse(AFTER_SPLIT))

    sch.reorder(j0, k, j1)
    assert structural_equal(sch.func, parse(AFTER_REORDER))

    block_C = sch.get_block("C", "mm_relu")
    sch.reverse_compute_at(block_C, j0)
    assert structural_equal(sch.func, parse(AFTER_REVERSE_COMPUTE_AT))

    sch.decompose_reduction(block_Y, k)
    assert structural_equal(sch.func, parse(AFTER_DECOMPOSE_REDUCTION))

    assert structural_equal(sch.trace.apply_to(parse(MODULE)).func, sch.func)


def test_loops_and_blocks_are_named_as_in_the_notes() -> None:
    sch = Schedule(parse(MODULE))
    block_Y = sch.get_block("Y")
    _, j, k = sch.get_loops(block_Y)
    j0, j1 = sch.split(j, factors=[None, 4])
    sch.reorder(j0, k, j1)
    sch.reverse_compute_at("C", j0)
    init = sch.decompose_reduction(block_Y, k)

    def loops(block: object) -> list[str]:
        return [sch.get(loop).var.name for loop in sch.get_loops(block)]  # type: ignore[arg-type, union-attr]

    assert loops(init) == ["i", "j_0", "j_1_init"]
    assert loops("Y_update") == ["i", "j_0", "k", "j_1"]
    assert loops("C") == ["i", "j_0", "ax0"]
