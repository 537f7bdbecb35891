"""Check point by point that a scope loads only elements that the same run has stored.

Boxes say too little where elements are skipped, or where a condition excludes some. Few elements
are quickly tried, in each iteration of the loops around the scope.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.ir.arith.guards import conjuncts
from compiler.ir.arith.iter_map import variables
from compiler.ir.arith.values import UnknownError, grid, value_at
from compiler.ir.arith.vectors import as_ramp
from compiler.ir.core.nodes import Buffer, Expr, For, IntImm, Stmt, Var, static_shape
from compiler.passes.common.accesses import LoweredAccess, common_path

Numbers: TypeAlias = NDArray[np.int64]

# A limit on the points of an access, and on the elements in all runs: a few milliseconds each.
_MAX_POINTS = 1 << 16
_MAX_ELEMENTS = 1 << 20
LANE = Var("lane")
"""The number of an element in a vector."""
_NEVER = np.iinfo(np.int64).max


def covers_points(
    load: LoweredAccess, stores: Sequence[LoweredAccess], depth: int, dims: Sequence[int]
) -> bool:
    """Return whether some stores before a load wrote each element that it reads, in the same run.

    Args:
        load: The load.
        stores: Stores that come before it in the program.
        depth: The number of nodes around the scope whose runs are meant.
        dims: The dimensions that count.

    Returns:
        False, too, if that can't be tried: for symbolic extents, indices that are loaded, or too
        many points.
    """
    if not all(isinstance(size, IntImm) for size in load.shape):
        return False
    load, *stores = (
        replace(access, buffer=_part(access.buffer, dims), indices=_at(access.indices, dims))
        for access in (load, *stores)
    )
    used = set[Var]().union(*(_used(access, depth) for access in (load, *stores)))
    runs = [node.var for node in load.path[:depth] if isinstance(node, For) and node.var in used]
    if not load.extents.keys() >= set(runs):
        return False
    num_keys = prod(load.extents[var] for var in runs) * prod(static_shape(load.buffer))
    read = _touched(load, used, runs, depth)
    if read is None or num_keys > _MAX_ELEMENTS:
        return False
    unwritten = np.ones(len(read.keys), bool)
    for store in stores:
        written = _touched(store, used, runs, depth)
        if written is not None:
            loops = _loops(common_path([store, load])[depth:])
            first = np.full(num_keys, _NEVER)
            np.minimum.at(first, written.keys, written.order(loops, load.extents))
            unwritten &= first[read.keys] > read.order(loops, load.extents)
    return not unwritten.any()


@dataclass(frozen=True, slots=True)
class _Touched:
    """What an access touches: a row for each point at which it happens.

    Attributes:
        keys: The number of the run and the element, as one number.
        points: The values of loops.
    """

    keys: Numbers
    points: Mapping[Var, Numbers]

    def order(self, loops: Sequence[Var], extents: Mapping[Var, int]) -> Numbers:
        """Return a number that grows in the order in which the iterations of some loops run."""
        total = np.zeros(len(self.keys), np.int64)
        for var in loops:
            if var in self.points:
                total = total * extents[var] + self.points[var]
        return total


def _touched(
    access: LoweredAccess, used: Collection[Var], runs: Sequence[Var], depth: int
) -> _Touched | None:
    """Return what an access touches, or None if it can't be tried."""
    ramps = [as_ramp(index) for index in access.indices]
    lanes = max((ramp.lanes for ramp in ramps if ramp is not None), default=1)
    extents = {var: access.extents.get(var) for var in _loops(access.path) if var in used}
    sizes = [extent for extent in extents.values() if extent is not None]
    if len(sizes) < len(extents) or prod(sizes) * lanes > _MAX_POINTS:
        return None
    axes = {**dict(zip(extents, map(np.arange, sizes), strict=True)), LANE: np.arange(lanes)}
    at = grid(axes)
    shape = tuple(map(len, axes.values()))
    happens = np.ones(shape, bool)
    for condition in _conditions(access, depth):
        try:
            happens = happens & value_at(condition, at).astype(bool)
        except UnknownError:
            if access.is_store:
                return None
    keys = np.zeros(shape, np.int64)
    for var in runs:
        keys = keys * access.extents[var] + at[var]
    for ramp, size in zip(ramps, static_shape(access.buffer), strict=True):
        if ramp is None:
            return None
        try:
            index = value_at(ramp.base, at) + ramp.stride * at[LANE]
        except UnknownError:
            return None
        happens = happens & (index >= 0) & (index < size)
        keys = keys * size + index
    points = {var: np.broadcast_to(at[var], shape)[happens] for var in axes}
    return _Touched(keys[happens], points)


def _part(buffer: Buffer, dims: Sequence[int]) -> Buffer:
    return replace(buffer, shape=_at(buffer.shape, dims))


def _at(exprs: Sequence[Expr], dims: Sequence[int]) -> tuple[Expr, ...]:
    return tuple(exprs[dim] for dim in dims)


def _loops(path: Sequence[Stmt]) -> list[Var]:
    return [node.var for node in path if isinstance(node, For)]


def _conditions(access: LoweredAccess, depth: int) -> list[Expr]:
    """Return the conditions of an access; of a load those that limit its indices.

    Without one of its conditions, a load only reads more.
    """
    parts = [part for condition in access.conditions(depth) for part in conjuncts(condition)]
    if access.is_store:
        return parts
    indexing = set[Var]().union(*map(variables, access.indices))
    return [part for part in parts if not indexing.isdisjoint(variables(part))]


def _used(access: LoweredAccess, depth: int) -> set[Var]:
    return set[Var]().union(*map(variables, [*access.indices, *_conditions(access, depth)]))
