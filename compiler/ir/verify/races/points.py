"""Find two points of the loops at which accesses race, by trying the points.

Loops with too many points are tried in part. A race that is found is real in any case, but the rest
may contain more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.ir.arith.values import UnknownError, grid, value_at
from compiler.ir.core.nodes import Expr, Load, Var
from compiler.ir.core.visit import walk
from compiler.ir.verify.races.shared_access import SharedAccess

# The minimum number of points to try for one access.
_MIN_POINTS = 1 << 8

Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Instance:
    """An access at one point of the loops."""

    access: SharedAccess
    point: Mapping[Var, int]


@dataclass(frozen=True, slots=True)
class Question:
    """A query for a race among accesses to one buffer.

    Attributes:
        accesses: The accesses.
        moving: The variables whose values identify iterations or threads.
        fixed: The variables that have one value for all.
        waits: Whether a barrier between two threads prevents a race.
        may_repeat: Whether writing one value twice is allowed.
        most_points: The approximate limit on points to try.
    """

    accesses: Sequence[SharedAccess]
    moving: Collection[Var]
    fixed: Collection[Var]
    waits: bool = False
    may_repeat: bool = False
    most_points: int = 1 << 19


def find_race(question: Question) -> tuple[Instance, Instance] | None:
    """Return two accesses that race, a store first; None if none are found."""
    tables = [_table(access, question) for access in question.accesses]
    sizes = [table.num_rows for table in tables]
    keys = _joined([table.keys for table in tables], sizes)
    keys = np.unique(keys, return_inverse=True)[1]
    threads = _joined([table.threads for table in tables], sizes)
    values = _joined([table.values for table in tables], sizes)
    is_store = np.repeat([access.is_store for access in question.accesses], sizes)
    rows = _first_race(keys, threads, values, is_store)
    if rows is None:
        return None
    ends = np.cumsum(sizes)
    first_instance, second_instance = (
        _instance(row, ends, tables, question.accesses) for row in rows
    )
    return first_instance, second_instance


def _first_race(
    keys: Numbers, threads: Numbers, values: Numbers, is_store: NDArray[np.bool_]
) -> tuple[int, int] | None:
    """Return the rows of two accesses to one element by different threads, of which one stores."""
    low, high = _ends_by_key(keys, threads, is_store)
    least, most = _ends_by_key(keys, values, is_store)
    is_written = high[keys] >= low[keys]
    by_others = is_written & ((low[keys] != threads) | (high[keys] != threads))
    races = by_others & ~(is_store & (least[keys] == most[keys]))
    if not races.any():
        return None
    second = int(races.argmax())
    first = (keys == keys[second]) & is_store & (threads != threads[second])
    return int(first.argmax()), second


def _ends_by_key(
    keys: Numbers, numbers: Numbers, is_store: NDArray[np.bool_]
) -> tuple[Numbers, Numbers]:
    """Return the least and the greatest number of the stores with each key."""
    size = int(keys.max(initial=-1)) + 1
    extremes = np.iinfo(np.int64)
    low, high = np.full(size, extremes.max), np.full(size, extremes.min)
    np.minimum.at(low, keys[is_store], numbers[is_store])
    np.maximum.at(high, keys[is_store], numbers[is_store])
    return low, high


@dataclass(frozen=True, slots=True)
class _Table:
    """An access at many points: a row a point.

    Attributes:
        points: The values of the variables that differ between the points.
        num_rows: The number of points.
        keys: The values that are equal for accesses to one element that may conflict.
        threads: The values that identify the iteration or thread.
        values: The values that determine the stored value, if it matters.
    """

    points: Mapping[Var, Numbers]
    num_rows: int
    keys: Sequence[Numbers]
    threads: Sequence[Numbers]
    values: Sequence[Numbers]


def _table(access: SharedAccess, question: Question) -> _Table:
    exprs = [access.indices[dim] for dim in known_dims(question.accesses)]
    if question.waits:
        exprs.append(access.epoch)
    conditions = [c for c in access.conditions if is_known(c, access)]
    used = variables_of([*exprs, *conditions])
    in_value: set[Var] = set()
    may_repeat = question.may_repeat and _has_plain_value(access)
    if may_repeat and access.value is not None:
        in_value = variables_of([access.value])
    most = max(_MIN_POINTS, question.most_points // len(question.accesses))
    axes = _axes(access, used | in_value, question, most)
    at = grid(axes)
    shape = tuple(len(axis) for axis in axes.values())
    holds = np.ones(shape, bool)
    for condition in conditions:
        holds = holds & value_at(condition, at).astype(bool)

    def column(value: Any) -> Numbers:
        spread: Numbers = np.broadcast_to(np.asarray(value, np.int64), shape)[holds]
        return spread

    points = {var: column(at[var]) for var in axes}
    num_rows = int(holds.sum())
    if may_repeat:
        value = _joined([[points[var] for var in axes if var in in_value]], [num_rows])
    else:
        value = np.arange(num_rows)
    return _Table(
        points,
        num_rows,
        [
            *(column(at.get(var, 0)) for var in question.fixed),
            *(column(value_at(e, at)) for e in exprs),
        ],
        [column(at.get(var, 0)) for var in question.moving],
        [column(access.store), value],
    )


def _has_plain_value(access: SharedAccess) -> bool:
    """Return whether the stored value is independent of the previous one."""
    return access.value is not None and not any(
        isinstance(node, Load) and node.buffer == access.node.buffer for node in walk(access.value)
    )


def _axes(
    access: SharedAccess, used: Collection[Var], question: Question, most: int
) -> dict[Var, Numbers]:
    """Return the values to try of each variable; as few as possible of those without influence."""
    axes: dict[Var, Numbers] = {}
    for loop in access.loops:
        if loop.var in question.fixed and loop.var in used:
            axes[loop.var] = np.unique([0, min(1, loop.extent - 1), loop.extent - 1])
        elif loop.var in used:
            axes[loop.var] = np.arange(min(loop.extent, most))
        elif loop.var in question.moving:
            axes[loop.var] = np.arange(min(loop.extent, 2))
    while math.prod(map(len, axes.values())) > most:
        longest = max(axes, key=lambda var: len(axes[var]))
        axes[longest] = axes[longest][: len(axes[longest]) // 2]
    return axes


def known_dims(accesses: Sequence[SharedAccess]) -> list[int]:
    """Return the dimensions of a buffer in which all accesses have known indices."""
    return [
        dim
        for dim in range(len(accesses[0].indices))
        if all(is_known(access.indices[dim], access) for access in accesses)
    ]


def is_known(expr: Expr, access: SharedAccess) -> bool:
    """Return whether the loops around an access determine an expression."""
    try:
        value_at(expr, {loop.var: np.zeros(1, np.int64) for loop in access.loops})
    except UnknownError:
        return False
    return True


def variables_of(exprs: Sequence[Expr]) -> set[Var]:
    """Return the variables in some expressions."""
    return {node for expr in exprs for node in walk(expr) if isinstance(node, Var)}


def _joined(rows: Sequence[Sequence[Numbers]], sizes: Sequence[int]) -> Numbers:
    """Return one number a row, equal for rows of equal columns; the tables follow one another."""
    joined = np.zeros(sum(sizes), np.int64)
    size = 1
    for parts in zip(*rows, strict=True):
        column = np.concatenate(parts)
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        if size * (high - low + 1) >= 1 << 62:
            joined = np.unique(joined, return_inverse=True)[1]
            column = np.unique(column, return_inverse=True)[1]
            low, high, size = 0, len(column), len(joined) + 1
        joined = joined * (high - low + 1) + (column - low)
        size *= high - low + 1
    return joined


def _instance(
    row: int, ends: Numbers, tables: Sequence[_Table], accesses: Sequence[SharedAccess]
) -> Instance:
    number = int(np.searchsorted(ends, row, side="right"))
    table = tables[number]
    column = row - int(ends[number]) + table.num_rows
    return Instance(accesses[number], {v: int(p[column]) for v, p in table.points.items()})
