"""Programs and buffers in one line."""

from __future__ import annotations

from dataclasses import replace

from compiler import ops
from compiler.ir.core.nodes import BinOp, IntImm, Var, make_buffer
from compiler.ir.text.one_line import describe_buffer, describe_func
from compiler.script import parse


def test_a_program_is_its_signature() -> None:
    assert describe_func(ops.matmul(4, 6, 8, "float16")) == (
        "matmul(A: float16[4, 8], B: float16[8, 6], converted: float16[4, 6])"
    )


def test_symbolic_extents_and_scalars_are_named() -> None:
    func = parse("""
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        with T.sblock("A"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = T.float32(0)
""")
    assert describe_func(func) == "main(A: float32[n, 4], n: int32)"


def test_an_extent_may_be_computed() -> None:
    buffer = replace(make_buffer("A", (1, 3)), shape=(BinOp("*", Var("n"), IntImm(2)), IntImm(3)))
    assert describe_buffer(buffer) == "A: float32[n * 2, 3]"
