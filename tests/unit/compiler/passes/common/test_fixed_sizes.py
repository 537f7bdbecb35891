"""A branch for one size has that size as a constant."""

from __future__ import annotations

import pytest

from compiler.ir.analysis.specialize import with_limits
from compiler.ir.core.nodes import For, If, IntImm, Stmt, Var
from compiler.ir.core.visit import walk_stmts
from compiler.passes.common.fixed_sizes import fix_sizes
from compiler.script import parse

PROGRAM = """
@T.prim_func
def main(A: T.Buffer(("n", 4), "float32"), C: T.Buffer(("n", 4), "float32")):
    T.func_attr({{"tir_var_upper_bound": {{"n": 64}}, "tir_var_lower_bound": {{"n": {low}}}}})
    if {condition}:
        for i, j in T.grid(n, 4):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj]
    else:
        for i, j in T.grid(n, 4):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] + T.float32(1)
"""


def extents(stmt: Stmt | None) -> list[int | None]:
    """Return the extents of the outer loops of a branch; None for a symbolic one."""
    assert stmt is not None
    loops = [node for node in walk_stmts(stmt) if isinstance(node, For) and node.var.name == "i"]
    return [loop.extent.value if isinstance(loop.extent, IntImm) else None for loop in loops]


@pytest.mark.parametrize(
    ("low", "condition", "then", "otherwise"),
    [
        (1, "n <= 1", 1, None),
        (1, "n < 2", 1, None),
        (1, "n == 7", 7, None),
        (1, "n != 7", None, 7),
        (1, "n > 1", None, 1),
        (1, "n >= 64", 64, None),
        (7, "n <= 7", 7, None),
        (1, "n <= 7", None, None),
        (1, "n >= 3 and n <= 3", 3, None),
        (1, "n < 3 or n > 3", None, 3),
        (1, "n % 8 == 1", None, None),
    ],
)
def test_a_branch_of_one_size_has_it_as_a_constant(
    low: int, condition: str, then: int | None, otherwise: int | None
) -> None:
    func = with_limits(parse(PROGRAM.format(low=low, condition=condition)))
    fixed = fix_sizes(func.body)
    branch = next(node for node in walk_stmts(fixed) if isinstance(node, If))
    assert extents(branch.then) == [then]
    assert extents(branch.otherwise) == [otherwise]
    if then is None and otherwise is None:
        assert fixed is func.body


def test_buffers_stay_those_of_the_kernel() -> None:
    func = with_limits(parse(PROGRAM.format(low=1, condition="n <= 1")))
    assert isinstance(func.buffers[0].shape[0], Var)
    blocks = [node for node in walk_stmts(fix_sizes(func.body)) if hasattr(node, "block")]
    regions = [r.buffer for block in blocks for r in block.block.reads]
    assert regions
    assert all(buffer in func.buffers for buffer in regions)
