"""Reductions of tensor expressions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiler import te
from compiler.ir.interpret.oracle.oracle import interpret, random_inputs
from compiler.ir.verify.verify import VerifyError
from tests.unit.compiler.te.tensors import matrix


def test_a_reduction_axis_may_start_anywhere() -> None:
    A = matrix()
    k = te.reduce_axis((1, 3), name="k")
    func = te.create_prim_func([A, te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")])
    inputs = random_inputs(func, 0)
    np.testing.assert_allclose(interpret(func, inputs)["B"], inputs["A"][:, 1:3].sum(1), rtol=1e-6)


def test_where_leaves_terms_out() -> None:
    A = matrix()
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((4,), lambda i: te.max(A[i, k], axis=k, where=k < i + 1), name="B")
    func = te.create_prim_func([A, B])
    inputs = random_inputs(func, 0)
    expected = [inputs["A"][i, : i + 1].max() for i in range(4)]
    np.testing.assert_array_equal(interpret(func, inputs)["B"], expected)


def test_max_takes_two_values_or_an_axis() -> None:
    A = matrix()
    k = te.reduce_axis((0, 4), name="k")
    array = random_inputs(te.create_prim_func([A, te.compute((1,), lambda i: A[i, i])]), 0)["A"]
    for element, expected in (
        (lambda i: te.max(A[i, 0], 0), np.maximum(array[:, 0], 0)),
        (lambda i: te.min(0.5, A[i, 0]), np.minimum(array[:, 0], 0.5)),
        (lambda i: te.max(A[i, k], axis=k), array.max(1)),
        (lambda i: te.max(A[i, k], k), array.max(1)),
        (lambda i: te.min(A[i, k], axis=[k]), array.min(1)),
    ):
        func = te.create_prim_func([A, te.compute((4,), element, name="B")])
        np.testing.assert_array_equal(interpret(func, {"A": array})["B"], expected)


def test_an_axis_that_is_not_reduced_over_is_refused() -> None:
    A = matrix()
    k, r = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 4), name="r")
    B = te.compute((4,), lambda i: te.sum(A[i, r], axis=k), name="B")
    with pytest.raises(VerifyError, match="variable r is not defined here"):
        te.create_prim_func([A, B])


@pytest.mark.parametrize(
    "element",
    [
        lambda total, a: total * 2 + 1,
        lambda total, a: 2 * total,
        lambda total, a: a - total,
        lambda total, a: total / a,
        lambda total, a: -total,
        lambda total, a: total > 0,
        lambda total, a: np.float32(2) * total,
        lambda total, a: np.exp(total),
        lambda total, a: te.sqrt(total),
        te.max,
        lambda total, a: total.astype("float64"),
        lambda total, a: (total, a),
    ],
)
def test_a_part_of_an_element_is_no_reduction(element: Any) -> None:
    A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), "k")
    with pytest.raises(TypeError, match="a reduction must be the whole element: give it a tensor"):
        te.compute((4,), lambda i: element(te.sum(A[i, k], k), A[i, 0]), name="B")
