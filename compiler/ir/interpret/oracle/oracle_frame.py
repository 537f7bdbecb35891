"""The context of a statement of the oracle: lanes, values of variables, and a mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from compiler.ir.core.nodes import Var
from compiler.ir.interpret.oracle.vectorized_eval import Array, Box

Names: TypeAlias = Mapping[Var, Array]


@dataclass(frozen=True, slots=True)
class OracleFrame:
    """The lanes that a statement runs for, the values of variables, and a mask.

    Only lanes for which the mask is true take part; None stands for all.
    """

    box: Box
    names: Names
    mask: Array | None = None

    def named(self, names: Names) -> OracleFrame:
        """Return the frame with more variables."""
        return OracleFrame(self.box, {**self.names, **names}, self.mask)

    def across(self, box: Box) -> OracleFrame:
        """Return the frame with more lanes."""
        return OracleFrame(self.box.joined(box), self.names, self.mask)

    def where(self, condition: Array) -> OracleFrame | None:
        """Return the frame of the lanes for which a condition holds; None if there are none."""
        if condition.all():
            return self
        if not condition.any():
            return None
        ndim = max(condition.ndim, 0 if self.mask is None else self.mask.ndim)
        mask = condition if self.mask is None else aligned(self.mask, ndim) & condition
        return OracleFrame(self.box, self.names, mask) if mask.any() else None


def all_zero(values: list[Array]) -> Array:
    """Return where all of the given arrays are zero, as an array."""
    ndim = max(value.ndim for value in values)
    holds = np.asarray(True)
    for value in values:
        holds = holds & (aligned(value, ndim) == 0)
    return holds


def aligned(array: Array, ndim: int) -> Array:
    """Return an array with additional axes of length one at its end."""
    return array.reshape(array.shape + (1,) * (ndim - array.ndim))
