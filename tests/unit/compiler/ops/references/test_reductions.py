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
