"""The columns of features: groups of them, each computed at once for a whole batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from tuner.space.search_space import FeatureMatrix
from tuner.space.tables.nest import Floats

Batch = TypeVar("Batch")
Names: TypeAlias = tuple[str, ...]
FeatureGroup: TypeAlias = tuple[Names, Callable[[Batch], Floats]]
"""The names of some columns, and the function that computes them, one row a column."""


@dataclass(frozen=True, slots=True)
class FeatureColumns(Generic[Batch]):
    """All columns for one kind of target.

    Attributes:
        of_sketch: Those that each sketch has.
        of_nest: Those that follow from the nests of a sketch; without nests they are zeros.
    """

    of_sketch: tuple[FeatureGroup[Batch], ...]
    of_nest: tuple[FeatureGroup[Batch], ...]

    @property
    def names(self) -> Names:
        """Return the names of all columns."""
        return tuple(name for names, _ in (*self.of_sketch, *self.of_nest) for name in names)

    def matrix(self, batch: Batch, num_candidates: int, *, has_nests: bool) -> FeatureMatrix:
        """Return a row of features for each candidate of a batch."""
        groups = (*self.of_sketch, *self.of_nest)
        rows = np.zeros((sum(len(names) for names, _ in groups), num_candidates), np.float32)
        first = 0
        for names, columns in groups if has_nests else self.of_sketch:
            rows[first : first + len(names)] = columns(batch)
            first += len(names)
        return np.ascontiguousarray(rows.T)
