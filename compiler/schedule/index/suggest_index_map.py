"""The layout in which loops read a buffer one element after the other.

The position of an element in memory is written as a sum of splits of the loops. The new layout has
a dimension for each split, in the order of the loops: the innermost loop moves the last one. With
`B[i // 16 * 4 + j // 16, i % 16 * 16 + j % 16]` read in loops `i` and `j`, the map is
`lambda a, b: (a // 4, b // 16, a % 4, b % 16)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from compiler.ir.arith.iter_map import NO_GUARDS, IterSplit
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.schedule.index.index_map import IndexMap
from compiler.schedule.index.iter_form import splits_in_order


def suggest_index_map(
    shape: Sequence[int], indices: Sequence[Expr], extents: Mapping[Var, int]
) -> IndexMap | None:
    """Return the layout for an access in loops; None if the loops do not read whole buffers.

    Args:
        shape: The shape of the buffer.
        indices: The indices of the access.
        extents: The loops, the outermost first, and how often they run.
    """
    splits = splits_in_order(_flat(indices, shape), extents, NO_GUARDS)
    if splits is None or not all(isinstance(split.source, Var) for split in splits):
        return None
    if not splits or splits[-1].scale != 1 or prod(d.extent for d in splits) != prod(shape):
        return None
    params = tuple(Var(f"i{n}") for n in range(len(shape)))
    ranges = dict(zip(params, shape, strict=True))
    rest = _flat(params, shape)
    digits: dict[IterSplit, Expr] = {}
    for split in reversed(splits):
        # The rest is simplified by its ranges step by step: at once, less would cancel.
        rest, size = simplify(rest, ranges), IntImm(split.extent)
        digits[split] = simplify(BinOp("%", rest, size), ranges)
        rest = BinOp("//", rest, size)
    depths: dict[Expr, int] = {var: depth for depth, var in enumerate(extents)}
    in_order = sorted(splits, key=lambda split: (depths[split.source], -split.low))
    return IndexMap(params, tuple(digits[split] for split in in_order))


def _flat(indices: Sequence[Expr], shape: Sequence[int]) -> Expr:
    """Return the position of an element in memory."""
    position: Expr = IntImm(0)
    for index, size in zip(indices, shape, strict=True):
        position = BinOp("+", BinOp("*", position, IntImm(size)), index)
    return position
