"""References of matrix products against sums by einsum."""

from __future__ import annotations

import numpy as np

from compiler import ops
from tests.unit.compiler.ops.reference_checks import check


def test_products() -> None:
    check("matmul:3,4,5", [(3, 5), (5, 4)], lambda a, b: np.einsum("ik,kj->ij", a, b))
    check(
        "matmul:3,4,5,batch=2x3,transpose_a=true,transpose_b=true,bias=true",
        [(2, 3, 5, 3), (2, 3, 4, 5), (4,)],
        lambda a, b, c: np.einsum("xyki,xyjk->xyij", a, b) + c,
    )
    check("dense:3,4,5", [(3, 5), (4, 5)], lambda a, b: np.einsum("ik,jk->ij", a, b))


def test_products_of_narrow_types_are_added_up_in_wide_ones() -> None:
    a, b = (np.full(s, 100, np.int8) for s in ((2, 64), (64, 3)))
    got = ops.reference("matmul:2,3,64,out_dtype=int32:int8")(a, b)
    np.testing.assert_array_equal(got, np.full((2, 3), 640_000, np.int32))
