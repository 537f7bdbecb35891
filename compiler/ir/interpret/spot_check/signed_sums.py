"""Sums of slices with random signs, by NumPy or by the array library of a device."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Slices: TypeAlias = Callable[[slice], Any]
"""Returns some slices of an array, as three dimensions: those before the axis, it, those after."""

SLICES_OF_SUM = 32
"""Slices of one sum. A wrong slice is hidden by the rounding of the others, which grows with the
root of this number; the expected sums take the time of the whole product, divided by this number.
Chosen.
"""


class SumMismatchError(Exception):
    """Sums of the elements of a result that differ from those of the oracle."""


@dataclass(frozen=True, slots=True)
class SignedSums:
    """Which slices along an axis are added, and with which signs.

    Sum `s` has the slices `s`, `s + num_sums`, `s + 2 * num_sums` and so on: neighbours are in
    different sums, so that those that are wrong together, as in a tile, do not cancel.

    Attributes:
        signs: 1 or -1 for each slice.
    """

    signs: NDArray[np.int8]

    @classmethod
    def drawn(cls, extent: int, rng: np.random.Generator) -> SignedSums:
        """Return sums of all slices of an axis with random signs."""
        return cls(rng.choice(np.array((-1, 1), np.int8), extent))

    @property
    def num_sums(self) -> int:
        """Return the number of sums."""
        return math.ceil(len(self.signs) / SLICES_OF_SUM)

    def of(self, xp: Any, slices: Slices) -> Any:
        """Return the sums as an array of three dimensions.

        Args:
            xp: The module of the arrays: NumPy, or CuPy.
            slices: The array, of a type that holds the sums.
        """
        signs = xp.asarray(self.signs)
        sums: Any = None
        for start in range(0, len(self.signs), self.num_sums):
            part = slice(start, min(start + self.num_sums, len(self.signs)))
            signed = slices(part) * signs[part, None]
            if sums is None:
                sums = signed
            else:
                sums[:, : signed.shape[1]] += signed
        return sums


def three_dims(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Return the number of elements before an axis, its extent, and the number after it."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def slices_of(array: NDArray[Any], axis: int, dtype: Any) -> Slices:
    """Return the slices of an array along an axis, in a wider type."""
    flat = array.reshape(three_dims(array.shape, axis))
    return lambda part: flat[:, part].astype(dtype)
