"""`call_library`: products of any layout become calls, and nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import ops
from compiler.driver import build
from compiler.ir.core.library_calls import library_functions
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.schedule.schedule import Schedule
from compiler.script import parse
from tests.unit.compiler.schedule.schedule_asserts import refused

TARGET = "cpu -mcpu=x86-64 -num-cores=1"
BATCHED = """
@T.prim_func
def main(A: T.Buffer((3, 4, 5), "float64"), B: T.Buffer((6, 5), "float64"),
         C: T.Buffer((3, 4, 6), "float64")):
    for b, j, i, k in T.grid(3, 6, 4, 5):
        with T.block("C"):
            vb, vj, vi, vk = T.axis.remap("SSSR", [b, j, i, k])
            with T.init():
                C[vb, vi, vj] = 0.0
            C[vb, vi, vj] = C[vb, vi, vj] + B[vj, vk] * A[vb, vi, vk]
"""
PRODUCTS = {
    "plain": ops.matmul(4, 6, 5),
    "float64, both transposed": ops.matmul(
        4, 6, 5, dtype="float64", transpose_a=True, transpose_b=True
    ),
    "dense": ops.dense(4, 6, 5),
    "batches": ops.batch_matmul(3, 4, 6, 5),
    "a batch of one side, factors exchanged": parse(BATCHED),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_call_computes_the_product(name: str) -> None:
    check_call(PRODUCTS[name], "blas.matmul")


def check_call(func: PrimFunc, function: str) -> None:
    """Compare a kernel that calls a library for a product with the oracle."""
    sch = Schedule(func)
    sch.call_library("C" if func.name == "main" else _product_of(sch), function)
    assert library_functions(sch.func.body) == (function,)
    inputs = random_inputs(func, 0)
    (output,) = interpret(func, inputs)
    expected = interpret(func, inputs)[output]
    result = np.full_like(expected, np.nan)
    build(sch, TARGET)(*inputs.values(), result)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(interpret(sch.func, inputs)[output], expected, rtol=1e-5, atol=1e-5)


def _product_of(sch: Schedule) -> str:
    (block,) = sch.get_child_blocks(sch.get_block("root"))
    return sch.get(block).block.name  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("A[vb, vi, vk]", "A[vb, vi, vk] + 1.0", "is not a product of two matrices"),
        ("= 0.0", "= 1.0", "is not a product of two matrices"),
        ("B[vj, vk] *", "B[vj, vk] - ", "is not a product of two matrices"),
        ('"float64")', '"float16")', "of float32 or float64"),
        ("T.grid(3, 6, 4, 5)", "T.grid(3, 6, 4, 4)", "accessed whole"),
        ("A[vb, vi, vk]", "C[vb, vi, vj]", "is not a product of two matrices"),
    ],
)
def test_what_is_no_product_is_refused(old: str, new: str, message: str) -> None:
    text = BATCHED.replace("0.0", "T.float16(0)") if "16" in new else BATCHED
    sch = Schedule(parse(text.replace(old, new)))
    with refused(sch, message, at='"C"'):
        sch.call_library("C", "blas.matmul")


def test_a_divided_or_parallel_product_is_refused() -> None:
    sch = Schedule(parse(BATCHED))
    loop = sch.get_loops("C")[1]
    outer, _ = sch.split(loop, [2, 3])
    with refused(sch, "must not be divided", at='"C"'):
        sch.call_library("C", "blas.matmul")
    sch.parallel(outer)
    with refused(sch, "must be serial", at="for b"):
        sch.call_library("C", "blas.matmul")


def test_an_unknown_function_is_refused() -> None:
    sch = Schedule(parse(BATCHED))
    with refused(sch, 'no library has "blas.gemm": expected "blas.matmul" or', at='"C"'):
        sch.call_library("C", "blas.gemm")
