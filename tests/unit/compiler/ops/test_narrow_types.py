"""Operators of narrow floats: sums have 32 bits, and defects are beyond the tolerance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from compiler import ops
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.dtypes import DType, is_narrow_float
from compiler.ir.core.nodes import BinOp, Block, BlockRealize, For, IntImm, Load, Stmt, Store, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_stmt, walk, walk_stmts
from compiler.ir.interpret.error_growth import CheckCase, check_case
from compiler.ir.interpret.oracle.oracle import Mismatch, compare, interpret
from compiler.ir.interpret.tolerance import tolerance
from compiler.script import parse
from tests.unit.compiler.ops.specs import SPECS

NARROW: tuple[DType, ...] = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_FIRST_SPECS = {name: f"{name}:{args}" for name, args, *_ in (s.split(":") for s in SPECS[::-1])}
WITHOUT_NARROW_TYPES = {"conv2d_winograd", "quantized_conv2d", "quantized_dense", "requantize"}
# A number of terms of which each is more than the rounding of the result: 16 or 2.
REDUCTIONS = """
matmul:8,8,{k} batch_matmul:2,4,4,{k} dense:8,8,{k},bias=true linear_relu:8,8,{k} mm_relu:8,8,{k}
matmul_bias_relu:8,8,{k} conv1d:1,{k},6,4,2 conv2d:1,{k},6,6,4,2 conv3d:1,{k},3,3,3,4,2
conv2d_transpose:1,{k},4,4,4,2 conv2d_nchwc:1,{k},4,4,4,2,1,0,1,2,4 depthwise_conv2d:1,4,6,6,2
avg_pool2d:1,4,6,6,2 softmax:8,{k} log_softmax:8,{k} layer_norm:8,{k} rms_norm:8,{k}
attention:1,2,8,{k},8 grouped_query_attention:1,4,2,2,{k},8 sum:8,{k},axis=1 mean:8,{k},axis=1
prod:8,{k},axis=1 row_sum:8,{k} group_norm:2,4,{k},groups=2 embedding_bag:10,8,4,{k}
""".split()  # noqa: SIM905 - as they are typed


def check(func: PrimFunc, case: CheckCase, got: dict[str, np.ndarray]) -> None:
    compare(func, got, case.expected, case.growth)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("name", sorted(_FIRST_SPECS))
def test_zeros_are_no_result(name: str, dtype: DType) -> None:
    if name in WITHOUT_NARROW_TYPES:
        with pytest.raises(ops.OperatorError, match="is not supported"):
            ops.from_spec(f"{_FIRST_SPECS[name]}:{dtype}")
        return
    func = ops.from_spec(f"{_FIRST_SPECS[name]}:{dtype}")
    case = check_case(func, 0)
    check(func, case, dict(case.expected))
    if not any(expected.astype(float).any() for expected in case.expected.values()):
        return  # the inputs are below one, so that `trunc` has only zeros
    with pytest.raises(Mismatch):
        check(func, case, {name: np.zeros_like(array) for name, array in case.expected.items()})


def test_all_operators_are_tried() -> None:
    assert _FIRST_SPECS.keys() == ops.OPERATORS.keys()


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("spec", REDUCTIONS)
def test_a_missing_term_is_beyond_the_tolerance(spec: str, dtype: DType) -> None:
    func = ops.from_spec(f"{spec.format(k=2 if dtype.startswith('float8') else 16)}:{dtype}")
    case = check_case(func, 0)
    # Two scores of 8 terms hardly depend on one of them: 8 bits do not show it.
    invisible = {"products"} if dtype.startswith("float8") else set()
    mutants = list(without_last_terms(func, invisible))
    assert mutants, "the operator sums"
    for mutant in mutants:
        with pytest.raises(Mismatch):
            check(func, case, interpret(mutant, case.inputs))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    "spec", [*REDUCTIONS, "cumsum:4,{k}", "lstm_cell:4,{k},4", "gru_cell:4,{k},4"]
)
def test_sums_have_32_bits(spec: str, dtype: DType) -> None:
    func = ops.from_spec(f"{spec.format(k=16)}:{dtype}")
    sums = [stmt for stmt in walk_stmts(func.body) if isinstance(stmt, Store) and _is_sum(stmt)]
    assert sums
    assert not any(is_narrow_float(stmt.buffer.dtype) for stmt in sums)
    assert func.buffers[-1].dtype == dtype


def test_a_type_of_sums_that_is_given_is_used() -> None:
    explicit = ops.from_spec("matmul:4,5,6,acc_dtype=float32:bfloat16")
    assert structural_equal(explicit, ops.from_spec("matmul:4,5,6:bfloat16"))
    narrow = ops.from_spec("matmul:4,5,6,acc_dtype=bfloat16:bfloat16")
    assert {node.buffer.dtype for node in walk(narrow.body) if isinstance(node, Store)} == {
        "bfloat16"
    }


def test_a_long_sum_of_narrow_values_is_exact() -> None:
    """A sum in bfloat16 stays at 256: one more is less than half of its rounding."""
    func = ops.row_sum(2, 4096, "bfloat16")
    inputs = {"A": np.ones((2, 4096), dtype="bfloat16")}
    (got,) = interpret(func, inputs).values()
    np.testing.assert_array_equal(got.astype(float), [4096, 4096])


def test_zeros_are_no_result_of_a_long_sum_in_a_narrow_type() -> None:
    text = """
@T.prim_func
def main(A: T.Buffer((4, 4096), "bfloat16"), B: T.Buffer((4,), "bfloat16")):
    for i, k in T.grid(4, 4096):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.bfloat16(0)
            B[vi] = B[vi] + A[vi, vk]
"""
    func = parse(text)
    assert tolerance(func) == 0.5
    case = check_case(func, 0)
    with pytest.raises(Mismatch):
        check(func, case, {"B": np.zeros_like(case.expected["B"])})


def without_last_terms(func: PrimFunc, others: set[str]) -> Iterator[PrimFunc]:
    """Yield the program without the last step of one loop of a sum; `others` are left alone."""
    steps = {
        value: realize.block
        for realize in walk_stmts(func.body)
        if isinstance(realize, BlockRealize) and _sums(realize.block, others)
        for iterator, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if iterator.kind == "reduce" and isinstance(value, Var)
    }
    for var in steps:
        body = _shortened(func.body, var)
        assert isinstance(body, BlockRealize)
        yield replace(func, body=body)


def _shortened(stmt: Stmt, var: Var) -> Stmt:
    if isinstance(stmt, For) and stmt.var is var:
        assert isinstance(stmt.extent, IntImm)
        return replace(stmt, extent=IntImm(stmt.extent.value - 1))
    return map_stmt(stmt, lambda child: _shortened(child, var), lambda expr: expr)


def _sums(block: Block, others: set[str]) -> bool:
    return isinstance(block.body, Store) and _is_sum(block.body) and block.name not in others


def _is_sum(store: Store) -> bool:
    """Return whether a statement adds to an element, or multiplies it."""
    is_term = isinstance(store.value, BinOp) and store.value.op in {"+", "*"}
    loads = (node for node in walk(store.value) if isinstance(node, Load))
    return is_term and any(load.buffer == store.buffer for load in loads)
