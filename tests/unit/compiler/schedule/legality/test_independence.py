"""Loops whose iterations are independent."""

from __future__ import annotations

from compiler import ops
from compiler.ir.core.program import PrimFunc
from compiler.schedule.legality.independence import (
    IterationNest,
    has_disjoint_iterations,
    is_iteration_private,
    reordering_problem,
)
from tests.unit.compiler.schedule.legality.positions import placed, program


def nest_of(func: PrimFunc, block: str, num_loops: int) -> IterationNest:
    scope, site = placed(func, block)
    return IterationNest(scope, site.loops[:num_loops])


def test_rows_of_a_product_are_disjoint_and_steps_are_not() -> None:
    func = ops.matmul(4, 4, 8)
    output = func.buffers[-1]
    assert has_disjoint_iterations(nest_of(func, "C", 1), output)
    assert has_disjoint_iterations(nest_of(func, "C", 2), output)
    assert not has_disjoint_iterations(nest_of(func, "C", 3), output)


def test_steps_of_a_sum_may_be_reordered() -> None:
    func = ops.matmul(4, 4, 8)
    nest = nest_of(func, "C", 3)
    order = [loop.var for loop in nest.chain][::-1]
    assert reordering_problem(nest, func.buffers[-1], order) is None


def test_two_blocks_that_share_a_buffer_forbid_another_order() -> None:
    func = program(
        """
B = T.alloc_buffer((8,), "float32")
for i in range(8):
    with T.sblock("B"):
        v = T.axis.spatial(8, i)
        B[v] = A[v]
    with T.sblock("C"):
        v = T.axis.spatial(8, i)
        C[v] = B[v]
""",
        'A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")',
    )
    nest = nest_of(func, "B", 1)
    (shared,) = (buffer for buffer in nest.written() if buffer.name == "B")
    problem = reordering_problem(nest, shared, [nest.chain[0].var])
    assert problem == "blocks B, C share B across iterations"
    assert has_disjoint_iterations(nest, shared)
    assert is_iteration_private(nest, shared)
