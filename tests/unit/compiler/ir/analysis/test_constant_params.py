"""Constant parameters: the attribute that lists them, and what the verifier refuses of it."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.analysis.constant_params import (
    KEY,
    constant_params,
    with_constants,
    without_constants,
)
from compiler.ir.analysis.structural import operator_hash, structural_equal, structural_hash
from compiler.ir.core.nodes import AnnotationValue
from compiler.ir.verify.verify import VerifyError, verify
from compiler.script.parser import parse

FUNC = ops.matmul(4, 8, 6, bias=True)


def names(func: object) -> list[str]:
    return [buffer.name for buffer in constant_params(func)]  # type: ignore[arg-type]


def test_constants_are_named_and_come_in_the_order_of_parameters() -> None:
    func = with_constants(FUNC, ["bias", "B"])
    assert dict(func.attrs)[KEY] == (1, 2)
    assert names(func) == ["B", "bias"]
    assert names(parse(func.script())) == ["B", "bias"]
    assert names(FUNC) == []
    with pytest.raises(ValueError, match="'W' is not a parameter: expected A, B, bias"):
        with_constants(FUNC, ["W"])


def test_constants_make_another_workload_and_another_operator() -> None:
    func = with_constants(FUNC, ["B"])
    assert structural_hash(func) != structural_hash(FUNC)
    assert operator_hash(func) != operator_hash(FUNC)
    assert structural_equal(without_constants(func), FUNC)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, "expected a list of positions"),
        (("B",), "expected a list of positions"),
        ((True,), "expected a list of positions"),
        ((7,), "layout_free_buffers has 7: parameters with buffers have 0, 1, 2, 3"),
        ((-1,), "layout_free_buffers has -1"),
        ((3,), "the program writes biased, so it is no constant"),
    ],
)
def test_what_lists_no_constants_is_refused(value: AnnotationValue, message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        verify(FUNC.with_attr(KEY, value))


def test_constants_stay_the_same_parameters_when_scalars_before_them_are_replaced() -> None:
    symbolic = parse(
        """
@T.prim_func(s_tir=True)
def scale(n: T.int32, A: T.Buffer((8,), "int32"), W: T.Buffer((8,), "int32"),
          B: T.Buffer((8,), "int32")):
    T.func_attr({"layout_free_buffers": [2]})
    for i in range(8):
        with T.sblock("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] * W[v] + n
"""
    )
    assert names(symbolic) == ["W"]
    func = symbolic.specialize({"n": 3})
    assert names(func) == ["W"]
    assert dict(func.attrs)[KEY] == (1,)
