"""Floats that become integers: each operation before it has the precision of its type."""

from __future__ import annotations

import numpy as np
import pytest

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.interpret.rounded_conversions import with_rounded_conversions


def converted(literal: float, *, has_integers: bool = True) -> PrimFunc:
    """Return `B = int32(A * literal + 0.5)`."""
    A = te.placeholder((3,), "float32", name="A")
    B = te.compute(
        (3,),
        lambda i: (A[i] * literal + 0.5).astype("int32" if has_integers else "float64"),
        name="B",
    )
    return te.create_prim_func([A, B])


# In float32, 5 * 0.1 is a half although 0.1 is above a tenth, and 8388607.5 + 0.5 is exact.
@pytest.mark.parametrize("literal", [0.1, 1.0])
def test_operations_and_literals_have_the_precision_of_float32(literal: float) -> None:
    values = np.array([5, 8388607.5, 16777217], np.float32)
    exact = (values * np.float32(literal) + np.float32(0.5)).astype(np.int32)
    for results in (interpret, evaluate):
        got = results(converted(literal), {"A": values})["B"]
        np.testing.assert_array_equal(got, exact)


def test_a_product_just_below_an_integer_is_that_integer_in_float32() -> None:
    A = te.placeholder((1,), "float32", name="A")
    B = te.compute((1,), lambda i: (A[i] * 25.0).astype("int32"), name="B")
    func = te.create_prim_func([A, B])
    value = np.array([1 / 25], np.float32)
    assert int(float(value[0]) * 25.0) == 0
    assert interpret(func, {"A": value})["B"][0] == 1
    assert evaluate(func, {"A": value})["B"][0] == 1


def test_programs_without_such_conversions_stay_as_they_are() -> None:
    func = converted(0.1, has_integers=False)
    assert with_rounded_conversions(func) is func
