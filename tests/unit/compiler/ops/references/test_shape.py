"""References that move elements, element by element."""

from __future__ import annotations

import numpy as np

from tests.unit.compiler.ops.reference_checks import Array, check


def test_a_transposition_permutes_indices() -> None:
    def slow(a: Array) -> Array:
        out = np.zeros((4, 2, 3))
        for i, j, k in np.ndindex(2, 3, 4):
            out[k, i, j] = a[i, j, k]
        return out

    check("transpose:2,3,4,axes=2x0x1", [(2, 3, 4)], slow)
    check("transpose:2,3", [(2, 3)], lambda a: np.array(list(zip(*a, strict=True))))


def test_a_concatenation_puts_one_tensor_behind_the_other() -> None:
    def slow(a: Array, b: Array) -> Array:
        return np.array([[*row, *more] for row, more in zip(a, b, strict=True)])

    check("concat:2,3,sizes=3x4,axis=1", [(2, 3), (2, 4)], slow)


def test_padding_surrounds_a_tensor_with_a_value() -> None:
    def slow(a: Array) -> Array:
        out = np.full((2 + 1 + 0, 3 + 2 + 1), 7.0)
        for i, j in np.ndindex(2, 3):
            out[i + 1, j + 2] = a[i, j]
        return out

    check("pad:2,3,pad_before=1x2,pad_after=0x1,pad_value=7.0", [(2, 3)], slow)
