"""Whether indices lie inside the dimensions of a buffer, by the ranges of loops alone.

The extent of a loop may be symbolic, as that of a dimension: `i` below `n` lies inside `n`, which
the ranges of both do not tell. `compiler.ir.arith.facts` also uses conditions, and is slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import Ranges, affine_bounds, bounds
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import Buffer, Expr, IntImm, Var

_NO_EXTENTS: Mapping[Var, Expr] = MappingProxyType({})


def are_inside(
    indices: Sequence[Expr],
    buffer: Buffer,
    ranges: Ranges,
    extents: Mapping[Var, Expr] = _NO_EXTENTS,
) -> bool:
    """Return whether indices surely lie inside the dimensions of a buffer.

    Args:
        indices: One for each dimension.
        buffer: The buffer.
        ranges: The ranges of the variables.
        extents: The extents of loops, as far as they are symbolic.
    """
    for index, extent in zip(indices, buffer.shape, strict=True):
        interval = bounds(index, ranges)
        if interval is None or interval[0] < 0:
            return False
        if isinstance(extent, IntImm) and interval[1] >= extent.value:
            return False
        if not isinstance(extent, IntImm) and not _is_below(index, extent, ranges, extents):
            return False
    return True


def _is_below(index: Expr, extent: Expr, ranges: Ranges, extents: Mapping[Var, Expr]) -> bool:
    distance = normal(index, ranges) - normal(extent, ranges)
    total = Affine((), distance.const, distance.dtype)
    for atom, scale in distance.terms:
        if isinstance(atom, Var) and atom in extents:
            # It is at most its extent less one, and at least zero.
            last = normal(extents[atom], ranges) - Affine((), 1)
            total += last.scaled(max(scale, 0))
        else:
            total += Affine(((atom, scale),), 0, distance.dtype)
    interval = affine_bounds(total, ranges)
    return interval is not None and interval[1] < 0
