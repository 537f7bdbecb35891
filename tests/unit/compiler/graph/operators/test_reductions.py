import math

import numpy as np
import pytest

from compiler.graph.error import ModelError
from compiler.graph.extents import symbol
from compiler.graph.nodes import TensorType
from compiler.graph.operator import find_operator
from tests.unit.compiler.graph.operators.checking import Case, check, numbers

REDUCTIONS = ["sum", "prod", "mean", "max", "min"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "uint8"])
def test_reductions_over_any_axes(dtype: str) -> None:
    x = numbers(2, 3, 4, dtype=dtype, low=0.5)
    ops = [*REDUCTIONS, *(["logsumexp"] if "float" in dtype else [])]
    check(
        *(Case(op, [x]) for op in ops),
        *(Case(op, [x], {"axis": (-1,), "keepdims": True}) for op in ops),
        *(Case(op, [x], {"axis": (2, 0)}) for op in ops),
        *(Case(op, [x], {"axis": ()}) for op in ops),
        *(Case(op, [numbers(dtype=dtype)]) for op in ops),
        tolerance=8,
    )


def test_extremes_of_infinite_elements() -> None:
    x = np.full((2, 3), -math.inf, np.float32)
    [[largest], [smallest], [total]] = check(
        Case("max", [x], {"axis": (1,)}),
        Case("min", [-x], {"axis": (1,)}),
        Case("logsumexp", [x], {"axis": (1,)}),
    )
    assert (largest == -math.inf).all()
    assert (smallest == math.inf).all()
    assert (total == -math.inf).all()


def test_sums_of_large_exponentials_do_not_overflow() -> None:
    [[total]] = check(Case("logsumexp", [np.full((1, 4), 500, np.float32)], {"axis": (1,)}))
    np.testing.assert_allclose(total, 500 + math.log(4))


def test_means_of_integers_are_rounded_towards_zero() -> None:
    [[mean]] = check(Case("mean", [np.array([[-3, -4], [3, 4]])], {"axis": (1,)}))
    np.testing.assert_array_equal(mean, [-3, 3])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64"])
def test_positions_of_extremes(dtype: str) -> None:
    x = np.rint(numbers(3, 5, 4, dtype=dtype, low=0)).astype(dtype)
    check(
        *(
            Case(op, [x], {"axis": axis, "keepdims": keepdims, "select_last_index": last})
            for op in ("argmax", "argmin")
            for axis in (0, -2)
            for keepdims in (False, True)
            for last in (False, True)
        )
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_cumulative_sums_and_products(dtype: str) -> None:
    x = numbers(3, 5, dtype=dtype)
    check(
        *(
            Case(op, [x], {"axis": axis, "exclusive": exclusive, "reverse": reverse})
            for op in ("cumsum", "cumprod")
            for axis in (0, -1)
            for exclusive in (False, True)
            for reverse in (False, True)
        ),
        tolerance=8,
    )


def test_symbolic_extents_and_axes_out_of_range() -> None:
    n = symbol("n")
    operator = find_operator("sum")
    [result] = operator.infer_types(
        [TensorType((n, 4), "float32")], operator.complete({"axis": (1,), "keepdims": True})
    )
    assert result.shape == (n, 1)
    for axis, message in [((2,), "axis is 2"), ((0, -2), "expected each axis once")]:
        with pytest.raises(ModelError, match=message):
            operator.infer_types([result], operator.complete({"axis": axis}))
