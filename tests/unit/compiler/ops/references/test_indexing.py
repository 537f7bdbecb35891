"""References of lookups and running sums against loops."""

from __future__ import annotations

import numpy as np

from compiler import ops
from tests.unit.compiler.ops.reference_checks import Array, check, given


def test_elements_by_indices() -> None:
    (a,), indices = given((4, 5)), np.array([[3, 0, 9], [1, -2, 2]], np.int32)
    clipped = indices.clip(0, 3)
    got = ops.reference("take:4,5,indices=2x3:float64")(a, indices)
    for place in np.ndindex(2, 3, 5):
        assert got[place] == a[clipped[place[:2]], place[2]]
    got = ops.reference("gather:4,5,indices=2x3:float64")(a, indices)
    for i, j in np.ndindex(2, 3):
        assert got[i, j] == a[clipped[i, j], j]


def test_running_sums() -> None:
    def slow(a: Array) -> Array:
        return np.array([[a[i, : j + 1].sum() for j in range(5)] for i in range(3)])

    check("cumsum:3,5", [(3, 5)], slow)
    check("cumsum:5,3,axis=0", [(5, 3)], lambda a: slow(a.T).T)


def test_bags_of_rows() -> None:
    (table, weights), indices = given((4, 5), (2, 3)), np.array([[3, 0, 9], [1, -2, 2]], np.int32)
    rows = [[table[3], table[0], table[3]], [table[1], table[0], table[2]]]
    got = ops.reference("embedding_bag:4,5,2,3:float64")(table, indices)
    np.testing.assert_allclose(got, [sum(bag) for bag in rows])
    got = ops.reference("embedding_bag:4,5,2,3,mode=mean:float64")(table, indices)
    np.testing.assert_allclose(got, [sum(bag) / 3 for bag in rows])
    got = ops.reference("embedding_bag:4,5,2,3,weights=true:float64")(table, indices, weights)
    expected = [sum(w * r for w, r in zip(*bag)) for bag in zip(weights, rows)]  # noqa: B905
    np.testing.assert_allclose(got, expected)


def test_bags_between_offsets() -> None:
    """The second bag is empty, the third has more indices than `length`."""
    (table, weights), indices = given((4, 5), (7,)), np.array([3, 0, 9, 1, -2, 2, 1], np.int32)
    offsets = np.array([0, 2, 2, 7], np.int32)
    rows = [[table[3], table[0]], [np.zeros(5)], [table[3], table[1], table[0], table[2]]]
    spec = "embedding_bag:4,5,3,4,total=7"
    got = ops.reference(f"{spec}:float64")(table, indices, offsets)
    np.testing.assert_allclose(got, [sum(bag) for bag in rows])
    got = ops.reference(f"{spec},mode=mean:float64")(table, indices, offsets)
    np.testing.assert_allclose(got, [sum(bag) / len(bag) for bag in rows])
    got = ops.reference(f"{spec},weights=true:float64")(table, indices, weights, offsets)
    last = sum(w * r for w, r in zip(weights[2:6], rows[2], strict=True))
    expected = [weights[0] * table[3] + weights[1] * table[0], np.zeros(5), last]
    np.testing.assert_allclose(got, expected)
