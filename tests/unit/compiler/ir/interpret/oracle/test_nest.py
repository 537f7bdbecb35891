"""How the oracle runs nests of loops: it does what the scalar evaluator does."""

from typing import Any

from numpy.typing import NDArray

from compiler.ir.core.nodes import (
    For,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.inputs import param_roles, random_inputs
from compiler.ir.interpret.oracle import nest
from compiler.ir.interpret.oracle.oracle import compare, interpret
from compiler.script import parse
from tests.unit.compiler.ir.interpret.oracle.oracle_strategies import way as way

Array = NDArray[Any]


def agrees(text: str) -> PrimFunc:
    """Hold the oracle against the scalar evaluator on a program."""
    func = parse(text)
    inputs = random_inputs(func, 0)
    assert compare(func, evaluate(func, inputs), interpret(func, inputs)) < 1e-5
    return func


TILED = """
@T.prim_func
def main(A: T.Buffer((10, 12), "float32"), B: T.Buffer((12, 8), "float32"),
         C: T.Buffer((10, 8), "float32")):
    for i0, j0, k0 in T.grid(3, 2, 3):
        for i1, k1, j1 in T.grid(4, 4, 4):
            with T.block("C"):
                vi = T.axis.spatial(10, i0 * 4 + i1)
                vj = T.axis.spatial(8, j0 * 4 + j1)
                vk = T.axis.reduce(12, k0 * 4 + k1)
                T.where(i0 * 4 + i1 < 10)
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""


def test_tiles_are_run_at_once() -> None:
    func = agrees(TILED)
    loop = func.root.body
    assert isinstance(loop, For)
    found = nest.nest_at(loop)
    assert found is not None
    assert (found.num_lanes, found.num_steps) == (12 * 8, 12)
    assert found.reduction is not None


def test_loops_that_several_blocks_share() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), C: T.Buffer((6, 8), "float32")):
    B = T.alloc_buffer((6, 8), "float32")
    S = T.alloc_buffer((6,), "float32")
    for i in range(6):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.exp(A[vi, vj])
        for k in range(8):
            with T.block("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = 0.0
                S[vi] = S[vi] + B[vi, vk]
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] / S[vi]
""")


def test_iterations_that_meet_run_in_order() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((4, 9), "float32"), B: T.Buffer((4, 9), "float32")):
    for i in range(4):
        with T.block("start"):
            vi = T.axis.spatial(4, i)
            B[vi, 0] = A[vi, 0]
    for t, i in T.grid(8, 4):
        with T.block("scan"):
            vt = T.axis.scan(8, t)
            vi = T.axis.spatial(4, i)
            B[vi, vt + 1] = B[vi, vt] * 0.5 + A[vi, vt + 1]
""")


def test_spatial_iterators_that_depend_on_order_get_it() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = T.if_then_else(vi > 0, B[vi - 1], 0.0) + A[vi]
""")


def test_steps_are_taken_in_the_order_of_the_loops() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    for i, k0, k1 in T.grid(4, 2, 4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            vk = T.axis.reduce(8, k1 * 2 + k0)
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] * 0.5 + A[vi, vk]
""")


def test_values_get_names_before_anything_is_stored() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), P: T.Buffer((4,), "int32"), M: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 8):
        with T.block("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                P[vi] = -1
                M[vi] = T.min_value("float32")
            p: T.let[T.int32] = T.Select(M[vi] >= A[vi, vk], P[vi], vk)
            m: T.let[T.float32] = T.Select(M[vi] >= A[vi, vk], M[vi], A[vi, vk])
            M[vi] = m
            P[vi] = p
""")


def test_conditions_hold_for_some_lanes() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((6, 8), "float32"), B: T.Buffer((6, 8), "float32")):
    for i, j in T.grid(6, 8):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            if vi < vj and A[vi, vj] > 0.0:
                B[vi, vj] = A[vi, vj]
            else:
                B[vi, vj] = -1.0
                if vi == 3:
                    for k in range(3):
                        B[vi, vj] = B[vi, vj] + A[k, vj]
""")


def test_blocks_in_blocks_with_views_and_memory_of_their_own() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(2, 2):
        with T.block("outer"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            T.writes(C[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
            B = T.alloc_buffer((4, 4), "float32")
            V = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4),
                               strides=["s", 1], offset_factor=1)
            for x, y in T.grid(4, 4):
                with T.block("inner"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    B[vx, vy] = V[vx, vy] * 2.0
            for x, y in T.grid(4, 4):
                with T.block("back"):
                    vx, vy = T.axis.remap("SS", [x, y])
                    C[vi * 4 + vx, vj * 4 + vy] = B[vy, vx]
""")


def test_vectors() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
    for i in range(4):
        B[i, 0:8] = A[i, 0:8] * T.Broadcast(T.Cast("float32", i), 8)
        B[i, T.Ramp(0, 2, 4)] = B[i, T.Ramp(1, 2, 4)] + B[i, T.Ramp(0, 2, 4)]
""")


def test_statements_outside_of_blocks_and_loops_of_varying_length() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((6, 6), "int32"), B: T.Buffer((6,), "int32")):
    for i in range(6):
        B[i] = 0
        for j in range(i + 1):
            B[i] = B[i] + A[i, j]
""")


def test_elements_at_places_that_memory_tells() -> None:
    agrees("""
@T.prim_func
def main(A: T.Buffer((6, 4), "float32"), I: T.Buffer((6,), "int32"),
         B: T.Buffer((6, 4), "float32")):
    for i, j in T.grid(6, 4):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = 0.0
    for i, j in T.grid(6, 4):
        with T.block("scatter"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[T.max(T.min(I[vi], 5), 0), vj] = B[T.max(T.min(I[vi], 5), 0), vj] + A[vi, vj]
""")


def test_a_parameter_that_is_written_in_part_keeps_the_rest() -> None:
    func = agrees("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi * 2] = A[vi]
""")
    assert param_roles(func) == (("A", "B"), ("B",))


def test_a_parameter_that_is_written_piece_by_piece_is_no_input() -> None:
    func = agrees("""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((3, 8), "float32")):
    for i in range(3):
        with T.block("a"):
            vi = T.axis.spatial(3, i)
            B[0, vi] = A[vi]
    for i, j in T.grid(3, 4):
        with T.block("b"):
            vi = T.axis.spatial(5, i * 2 + j // 2)
            T.where(i * 2 + j // 2 < 5)
            B[0, vi + 3] = A[vi + 3]
    for i, j in T.grid(2, 8):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi + 1, 7 - vj] = A[vj]
""")
    assert param_roles(func) == (("A",), ("B",))
