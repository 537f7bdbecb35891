"""Lowering for CPUs as a whole: no blocks are left, and what a kernel cannot take is refused."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler import ops
from compiler.backends.cpu.lower import lower_for_cpu
from compiler.ir.core.nodes import Allocate, Block, BlockRealize, For, static_shape
from compiler.ir.core.visit import walk, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.script import parse
from tests.targets import level
from tests.unit.compiler.ops.specs import SPECS


@pytest.mark.parametrize("spec", SPECS[::11])
def test_no_block_is_left(spec: str) -> None:
    lowered = lower_for_cpu(ops.from_spec(spec), level(3))
    assert not any(isinstance(node, Block | BlockRealize) for node in walk(lowered))


def test_a_row_of_sums_is_promoted_to_a_small_buffer() -> None:
    sch = lw.Schedule(ops.matmul(64, 64, 64))
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    j_outer, j_inner = sch.split(j, [None, 16])
    sch.reorder(i, j_outer, k, j_inner)
    sch.vectorize(j_inner)
    lowered = lower_for_cpu(sch.func, level(3))
    assert any(isinstance(s, For) and s.kind == "vectorized" for s in walk_stmts(lowered))
    # The row of 16 sums is held beside the loop of the reduction, not in C.
    sizes = [static_shape(s.buffer) for s in walk_stmts(lowered) if isinstance(s, Allocate)]
    assert sizes == [(1, 16)], sizes


@pytest.mark.parametrize(
    ("head", "shape", "message"),
    [
        ("A: T.handle", "(4,), strides=[2]", "dense arrays"),
        ("A: T.handle", "(4,), elem_offset=4", "dense arrays"),
    ],
)
def test_parameters_that_a_kernel_cannot_take_are_refused(
    head: str, shape: str, message: str
) -> None:
    extent = "n" if "n:" in head else "4"
    func = parse(f"""
@T.prim_func
def main({head}):
    B = T.match_buffer(A, {shape}, dtype="float32")
    for i in range({extent}):
        with T.sblock("B"):
            v = T.axis.spatial({extent}, i)
            B[v] = T.float32(0)
""")
    with pytest.raises(LoweringError, match=message):
        lower_for_cpu(func, level(3))
