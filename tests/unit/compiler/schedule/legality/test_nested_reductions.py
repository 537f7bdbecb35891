"""Reductions nested in another block and indexed by its iterators, which are fixed in its scope."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.verify.verify import verify
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import refused, scheduled

NESTED = """
@T.prim_func
def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((6, 8), "float32"),
         C: T.Buffer((8, 8), "float32")):
    for io, jo in T.grid(2, 2):
        with T.sblock("outer"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            for i, j, k in T.grid(4, 4, 6):
                with T.sblock("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vio * 4 + vi, vjo * 4 + vj] = 0.0
                    C[vio * 4 + vi, vjo * 4 + vj] = (
                        C[vio * 4 + vi, vjo * 4 + vj] + A[vio * 4 + vi, vk] * B[vk, vjo * 4 + vj]
                    )
"""


def product(sch: Schedule) -> np.ndarray:
    """Run the program of a schedule, which has to be legal, on whole numbers."""
    verify(sch.func)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype("float32") for shape in ((8, 6), (6, 8)))
    result = evaluate(sch.func, {"A": a, "B": b, "C": np.zeros((8, 8), "float32")})["C"]
    np.testing.assert_array_equal(result, a @ b)
    return result


def test_primitives_apply_below_a_block() -> None:
    sch = scheduled(NESTED)
    copy = sch.cache_write("C", 0, "local")
    assert "C_local = T.sblock_alloc_buffer((4, 4)" in sch.func.script()
    i, j, k = sch.get_loops("C")
    sch.reorder(k, i, j)
    sch.decompose_reduction("C", k)
    sch.vectorize(sch.get_loops(copy)[-1])
    sch.vectorize(sch.get_loops("C_update")[-1])
    product(sch)


def test_factors_of_a_nested_reduction() -> None:
    sch = scheduled(NESTED)
    k = sch.get_loops("C")[2]
    part, _ = sch.split(k, [2, 3])
    sch.rfactor(part, 0)
    product(sch)


@pytest.mark.parametrize("bound", ["blockIdx.x", "threadIdx.x"])
def test_loops_around_and_below_a_block_are_bound(bound: str) -> None:
    sch = scheduled(NESTED)
    sch.bind(sch.get_loops("outer")[0], "blockIdx.y")
    sch.bind(sch.get_loops("C")[0], bound)
    product(sch)


def test_elements_that_the_fixed_iterators_do_not_separate_are_shared() -> None:
    # All runs of the block write the same four rows.
    text = NESTED.replace("C[vio * 4 + vi", "C[vi").replace("vjo * 4 + vj]", "vjo + vj]")
    sch = scheduled(text)
    with refused(sch, "not proved to touch different elements of C", at='"outer"'):
        sch.parallel(sch.get_loops("outer")[0])
    sch.parallel(sch.get_loops("C")[0])


def test_names_that_change_in_the_scope_are_not_fixed() -> None:
    # `x` has another value in each iteration, so that iterations share elements.
    sch = scheduled("""
@T.prim_func
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((16,), "int32")):
    for i in range(4):
        x = T.let(i % 2)
        with T.sblock("C"):
            vi = T.axis.spatial(4, i)
            C[vi + x * 3] = C[vi + x * 3] + A[vi]
""")
    with refused(sch, "iterations of loop i are not proved", at='"C"'):
        sch.parallel(sch.get_loops("C")[0])
