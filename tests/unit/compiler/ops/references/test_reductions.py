"""References of extremes against searches."""

from __future__ import annotations

import numpy as np

from compiler import ops
from tests.unit.compiler.ops.reference_checks import given


def test_places_of_extremes() -> None:
    (a,) = given((3, 4, 5))
    for axis in range(3):
        got = ops.reference("argmax", 3, 4, 5, axis=axis, dtype="float64")(a)
        for place in np.ndindex(got.shape):
            row = a[(*place[:axis], slice(None), *place[axis:])]
            assert row[got[place]] == max(row)
    got = ops.reference("argmin", 3, 4, 5, axis=(0, 2), dtype="float64")(a)
    for j in range(4):
        assert a[got[j] // 5, j, got[j] % 5] == a[:, j].min()


def test_the_largest_elements() -> None:
    a = np.array([[3.0, 1.0, 3.0, 2.0, 3.0], [0.0, -1.0, 5.0, -1.0, 4.0]])
    values, indices = ops.reference("topk:2,5,k=4:float64")(a)
    np.testing.assert_array_equal(values, [[3, 3, 3, 2], [5, 4, 0, -1]])
    np.testing.assert_array_equal(indices, [[0, 2, 4, 3], [2, 4, 0, 1]])
    values, indices = ops.reference("topk:2,5,k=3,largest=false:float64")(a)
    np.testing.assert_array_equal(values, [[1, 2, 3], [-1, -1, 0]])
    np.testing.assert_array_equal(indices, [[1, 3, 0], [1, 3, 0]])
