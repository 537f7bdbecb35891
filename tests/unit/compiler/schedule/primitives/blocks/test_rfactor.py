"""`rfactor`: what it makes of reductions of all kinds, and each requirement refused."""

from __future__ import annotations

import pytest

from compiler import te
from compiler.ir.core.nodes import (
    BlockRealize,
    For,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from compiler.script.parser import parse
from tests.unit.compiler.schedule.schedule_asserts import (
    becomes,
    computes_the_same,
    matmul_relu,
    refused,
    scheduled,
)

SUM = """
@T.prim_func
def main(A: T.Buffer((4, 12), "DTYPE"), C: T.Buffer((4,), "DTYPE")):
    for i, k in T.grid(4, 12):
        with T.sblock("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = START
            C[vi] = STEP
"""

ARGMAX = """
@T.prim_func
def main(
    idx: T.Buffer((4, 12), "int32"), val: T.Buffer((4, 12), "float32"),
    place: T.Buffer((4,), "int32"), best: T.Buffer((4,), "float32")
):
    for i, k in T.grid(4, 12):
        with T.sblock("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                place[vi] = -1
                best[vi] = T.min_value("float32")
            v_place: T.let = T.Select(CONDITION, place[vi], idx[vi, vk])
            v_best: T.let = T.Select(best[vi] >= val[vi, vk], best[vi], val[vi, vk])
            place[vi] = v_place
            best[vi] = v_best
"""
KEEPS_FIRST = "best[vi] >= val[vi, vk]"
LOWER_PLACE = "best[vi] > val[vi, vk] or (best[vi] == val[vi, vk] and place[vi] < idx[vi, vk])"


def reduction(step: str, start: str, dtype: str) -> PrimFunc:
    return parse(SUM.replace("STEP", step).replace("START", start).replace("DTYPE", dtype))


def check(func: PrimFunc, schedule: Schedule) -> None:
    """Hold the scheduled program against the program; whole numbers are often equal."""
    verify(schedule.func)
    computes_the_same(func, schedule.func)


@pytest.mark.parametrize(
    ("step", "start", "dtype"),
    [
        ("C[vi] + A[vi, vk]", "T.float32(0)", "float32"),
        ("A[vi, vk] + C[vi]", "0", "int32"),
        ("C[vi] * A[vi, vk]", "T.float32(1)", "float32"),
        ("T.max(C[vi], A[vi, vk])", 'T.min_value("float32")', "float32"),
        ("T.min(C[vi], A[vi, vk])", 'T.max_value("int32")', "int32"),
        ("C[vi] and A[vi, vk]", "T.bool(True)", "bool"),
        ("C[vi] or A[vi, vk]", "T.bool(False)", "bool"),
        ("T.bitwise_and(C[vi], A[vi, vk])", "-1", "int32"),
    ],
)
@pytest.mark.parametrize("factor_axis", [0, 1, -1, -2])
def test_rfactor_of_known_reducers(step: str, start: str, dtype: str, factor_axis: int) -> None:
    func = reduction(step, start, dtype)
    schedule = Schedule(func)
    _, k = schedule.get_loops("C")
    _, k_1 = schedule.split(k, [None, 4])
    schedule.rfactor(k_1, factor_axis)
    check(func, schedule)


@pytest.mark.parametrize("factor", [2, 5, 7])
def test_rfactor_of_a_loop_that_does_not_divide(factor: int) -> None:
    func = reduction("C[vi] + A[vi, vk]", "T.float32(0)", "float32")
    for number in (0, 1):
        schedule = Schedule(func)
        _, k = schedule.get_loops("C")
        loops = schedule.split(k, [None, factor])
        schedule.rfactor(loops[number], 0)
        check(func, schedule)


def test_rfactor_makes_two_blocks() -> None:
    schedule = Schedule(reduction("C[vi] + A[vi, vk]", "T.float32(0)", "float32"))
    _, k = schedule.get_loops("C")
    _, k_1 = schedule.split(k, [None, 4])
    schedule.rfactor(k_1, 0)
    becomes(
        schedule,
        """
@T.prim_func
def main(A: T.Buffer((4, 12), "float32"), C: T.Buffer((4,), "float32")):
    C_rf = T.sblock_alloc_buffer((4, 4))
    for i, k_0, k_1 in T.grid(4, 3, 4):
        with T.sblock("C_rf"):
            vk_1, vi, vk_0 = T.axis.remap("SSR", [k_1, i, k_0])
            with T.init():
                C_rf[vk_1, vi] = T.float32(0)
            C_rf[vk_1, vi] = C_rf[vk_1, vi] + A[vi, vk_0 * 4 + vk_1]
    for i, k_1 in T.grid(4, 4):
        with T.sblock("C"):
            vk_1, vi = T.axis.remap("RS", [k_1, i])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + C_rf[vk_1, vi]
""",
    )


def test_rfactor_of_a_whole_reduction_stores_its_terms() -> None:
    func = reduction("C[vi] + A[vi, vk]", "T.float32(0)", "float32")
    schedule = Schedule(func)
    _, k = schedule.get_loops("C")
    partial = schedule.get(schedule.rfactor(k, 0))
    assert isinstance(partial, BlockRealize)
    assert partial.block.init is None
    check(func, schedule)


def test_rfactor_of_fused_reduction_loops() -> None:
    A = te.placeholder((4, 6, 4), name="A")
    r, s = te.reduce_axis((0, 6), "r"), te.reduce_axis((0, 4), "s")
    C = te.compute((4,), lambda i: te.sum(A[i, r, s], axis=[r, s]), "C")
    func = te.create_prim_func([A, C], "main")
    schedule = Schedule(func)
    _, k_r, k_s = schedule.get_loops("C")
    _, inner = schedule.split(schedule.fuse(k_r, k_s), [None, 8])
    schedule.rfactor(inner, -1)
    check(func, schedule)


def test_rfactor_of_the_place_of_an_extreme_value() -> None:
    func = parse(ARGMAX.replace("CONDITION", LOWER_PLACE))
    for number in (0, 1):
        schedule = Schedule(func)
        _, k = schedule.get_loops("argmax")
        schedule.rfactor(schedule.split(k, [None, 4])[number], 1)
        check(func, schedule)


def test_rfactor_by_the_outer_loop_keeps_the_first_of_equal_values() -> None:
    func = parse(ARGMAX.replace("CONDITION", KEEPS_FIRST))
    schedule = Schedule(func)
    _, k = schedule.get_loops("argmax")
    k_0, _ = schedule.split(k, [None, 4])
    schedule.rfactor(k_0, 0)
    check(func, schedule)


def test_rfactor_of_two_sums_at_once() -> None:
    func = parse("""
@T.prim_func
def main(
    A: T.Buffer((4, 12), "float32"), S: T.Buffer((4,), "float32"), Q: T.Buffer((4,), "float32")
):
    for i, k in T.grid(4, 12):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
                Q[vi] = T.float32(0)
            v_s: T.let = S[vi] + A[vi, vk]
            v_q: T.let = Q[vi] + A[vi, vk] * A[vi, vk]
            S[vi] = v_s
            Q[vi] = v_q
""")
    schedule = Schedule(func)
    _, k = schedule.get_loops("S")
    schedule.rfactor(schedule.split(k, [None, 4])[1], 0)
    check(func, schedule)


def test_the_handles_of_the_reduction_stand_for_its_last_step() -> None:
    schedule = Schedule(matmul_relu())
    block = schedule.get_block("Y")
    _, _, k = schedule.get_loops(block)
    k_0, k_1 = schedule.split(k, [None, 4])
    schedule.rfactor(k_1, 2)
    assert isinstance(schedule.get(k_1), For)
    assert len(schedule.get_loops(block)) == 3
    with refused(schedule, "loop k_0 is not in the program", at="def main"):
        schedule.get(k_0)


# Requirements


def test_rfactor_refuses_a_loop_of_several_blocks() -> None:
    schedule = Schedule(matmul_relu())
    i, _, k = schedule.get_loops("Y")
    schedule.reverse_compute_at("C", i)
    with refused(schedule, "loop i must hold one block: it holds Y, C", at="for i in"):
        schedule.rfactor(i, 0)
    schedule.rfactor(k, 0)


def test_rfactor_refuses_a_block_that_is_no_reduction() -> None:
    schedule = Schedule(matmul_relu())
    i, _ = schedule.get_loops("C")
    with refused(schedule, "block C is not a reduction with an init", at='"C"'):
        schedule.rfactor(i, 0)


def test_rfactor_refuses_an_unknown_combiner() -> None:
    schedule = Schedule(reduction("C[vi] * T.float32(2) + A[vi, vk]", "T.float32(0)", "float32"))
    _, k = schedule.get_loops("C")
    with refused(schedule, "not combine its values by a known commutative reducer", at='"C"'):
        schedule.rfactor(k, 0)


def test_rfactor_refuses_a_start_that_is_no_identity() -> None:
    schedule = Schedule(reduction("C[vi] + A[vi, vk]", "T.float32(1)", "float32"))
    _, k = schedule.get_loops("C")
    with refused(schedule, "not combine its values by a known commutative reducer", at='"C"'):
        schedule.rfactor(k, 0)


def test_rfactor_refuses_another_order_of_equal_values() -> None:
    schedule = scheduled(ARGMAX.replace("CONDITION", KEEPS_FIRST))
    _, k = schedule.get_loops("argmax")
    _, k_1 = schedule.split(k, [None, 4])
    with refused(schedule, "compare the positions of equal values, too", at='"argmax"'):
        schedule.rfactor(k_1, 0)


def test_rfactor_refuses_a_loop_that_is_not_serial() -> None:
    schedule = Schedule(matmul_relu())
    _, _, k = schedule.get_loops("Y")
    schedule.unroll(k)
    with refused(schedule, "loop k is unrolled: only a serial one can be factored", at="for k in"):
        schedule.rfactor(k, 0)


def test_rfactor_refuses_a_spatial_loop() -> None:
    schedule = Schedule(matmul_relu())
    i, j, _ = schedule.get_loops("Y")
    with refused(schedule, "loop j binds v_j, a spatial iterator", at="for j in"):
        schedule.rfactor(j, 0)
    assert schedule.get(i)


def test_rfactor_refuses_a_loop_that_binds_nothing() -> None:
    schedule = Schedule(matmul_relu())
    unit = schedule.add_unit_loop(schedule.get_block("Y"))
    with refused(schedule, "binds no reduction iterator of block Y", at="in range(1)"):
        schedule.rfactor(unit, 0)


def test_rfactor_refuses_a_loop_of_both_kinds() -> None:
    schedule = Schedule(matmul_relu())
    _, j, k = schedule.get_loops("Y")
    k_0, k_1 = schedule.split(k, [None, 4])
    schedule.reorder(k_0, j)
    schedule.fuse(j, k_1)
    with refused(schedule, "binds both spatial and reduction iterators of block Y", at='"Y"'):
        schedule.rfactor(k_0, 0)


def test_rfactor_refuses_an_axis_out_of_range() -> None:
    schedule = Schedule(matmul_relu())
    _, _, k = schedule.get_loops("Y")
    with refused(schedule, "factor_axis 3 is not between -3 and 2", at='"Y"'):
        schedule.rfactor(k, 3)


def test_rfactor_refuses_a_partial_result_without_a_start() -> None:
    schedule = Schedule(reduction("C[vi] + A[vi, vk]", "T.float32(0)", "float32"))
    _, k = schedule.get_loops("C")
    # Two iterations of the inner loop of 16 would never run.
    _, k_1 = schedule.split(k, [1, 14])
    with refused(schedule, "may leave out the start of a partial result", at='"C"'):
        schedule.rfactor(k_1, 0)


def test_rfactor_refuses_a_reduction_that_is_not_first() -> None:
    schedule = Schedule(matmul_relu())
    i, _, k = schedule.get_loops("Y")
    copy = schedule.cache_read("Y", 0, "local")
    schedule.compute_at(copy, i)
    with refused(schedule, "block A_local comes before block Y under loop i", at='"A_local"'):
        schedule.rfactor(k, 0)


def test_rfactor_refuses_inputs_that_later_iterations_find_changed() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 12), "float32"), C: T.Buffer((4,), "float32")):
    for i in range(4):
        for k in range(12):
            with T.sblock("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
        for k in range(12):
            with T.sblock("next"):
                vi, vk = T.axis.remap("SS", [i, k])
                A[3 - vi, vk] = T.float32(1)
""")
    _, k = schedule.get_loops("C")
    with refused(schedule, "block next writes A, which block C reads in later", at='"next"'):
        schedule.rfactor(k, 0)


def test_rfactor_refuses_a_block_under_a_condition() -> None:
    schedule = scheduled("""
@T.prim_func
def main(A: T.Buffer((4, 12), "float32"), C: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 12):
        if i < 2:
            with T.sblock("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vi, vk]
""")
    _, k = schedule.get_loops("C")
    with refused(schedule, "is under a condition or a named value", at="if i < 2"):
        schedule.rfactor(k, 0)
