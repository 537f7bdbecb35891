"""Decide whether two threads touch one element, by trying the points of the loops.

The proof of `compiler.ir.analysis.dependence` is quick, but it misses many accesses that never
meet. Those are tried here at each point of the loops around them. So an access becomes a table with
a row for each point: the element, and the thread.

Example, with threads `tx` below 64, `v` below 4, and `r` below 8:

    S[(tx * 4 + v) // 16, (tx * 4 + v) % 16]     the thread of each element is known: 4 * tx + v
    S[tx // 32 * 8 + r, tx % 16]                 its thread 16 meets thread 0 of the first access

A variable that is no loop of an access and does not vary has one value in all accesses. Terms of
such variables are left out if all accesses add the same. An index that stays unknown counts as any
element of its dimension. Accesses that differ in one dimension at each value of common variables
need no trial of the others.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.ir.analysis.dependence import Touch, agree_on
from compiler.ir.arith.affine import Affine
from compiler.ir.arith.guards import conjuncts
from compiler.ir.arith.values import UnknownError, Values, form_value, grid, value_at
from compiler.ir.core.nodes import Call, Expr, Load, Var
from compiler.ir.core.visit import walk

# A limit on the points of all accesses of a test. So many take about 50 ms; the accesses to a tile
# of shared memory have 2^12 to 2^16.
MAX_POINTS = 1 << 21
# Threads that meet do so early: most tests that find a conflict find it among so few points.
_FIRST_POINTS = 1 << 11
# Conditions may add variables, up to so many points: to ignore a condition costs a barrier only.
_CONDITION_POINTS = 1 << 17
# The limit on the numbers of elements: a table of them has one place for each.
_MAX_KEYS = 1 << 62

_LANE = Var("lane")
_NOTHING: Mapping[Var, int] = MappingProxyType({})

Numbers: TypeAlias = NDArray[np.int64]
_Axes: TypeAlias = dict[Var, range]


def may_conflict(
    one: Touch,
    other: Touch,
    names: Collection[Hashable],
    common: Mapping[Var, int] = _NOTHING,
) -> bool:
    """Return whether different threads may touch one element, one in each of two accesses.

    The answer is exact if the loops determine the indices and conditions, within the limits on
    points. If not, it may be true of accesses that never meet.

    Args:
        one: An access.
        other: An access to the same buffer.
        names: The names whose values identify a thread.
        common: The extents of variables that have one value in both accesses.
    """
    touches = [touch.sharing(common) for touch in ((one,) if one is other else (one, other))]
    if agree_on(touches, names):
        return False
    return _Trial(touches, names, common).meet(among_all=one is other)


def are_disjoint(touches: Sequence[Touch], names: Collection[Hashable]) -> bool:
    """Return whether any two accesses to one element are surely by the same thread."""
    return agree_on(touches, names) or not _Trial(touches, names, _NOTHING).meet(among_all=True)


class _PointTable(NamedTuple):
    """An access at some points: columns of the keys of its elements, and of its threads."""

    keys: list[Numbers]
    threads: list[Numbers]


class _Trial:
    """Tries accesses to one buffer at the points of their loops."""

    def __init__(
        self, touches: Sequence[Touch], names: Collection[Hashable], common: Mapping[Var, int]
    ) -> None:
        self._touches = touches
        self._common = common
        self._threads = {name: max(t.extent_of(name) for t in touches) for name in names}
        self._extents = [{**t.extents, **common, _LANE: t.lanes} for t in touches]
        self._indices: list[list[Affine]] = [[] for _ in touches]
        self._conditions: list[list[Expr]] = [[] for _ in touches]
        # By access, the variables of the indices and conditions that are considered.
        self._used: list[set[Var]] = [set() for _ in touches]
        for dimension in range(len(touches[0].indices)):
            self._add_dimension(dimension)

    def meet(self, *, among_all: bool) -> bool:
        """Return whether two threads meet in one element, as far as the points may show.

        Args:
            among_all: Whether any two accesses count; if not, the first counts with the second.
        """
        if not among_all and self._is_apart_in_a_dimension():
            return False
        if self._num_points() > MAX_POINTS:
            return True
        conditions = self._known_conditions()
        quick = [c for c in conditions if _variables([c[1]]) <= self._used[c[0]]]
        # Conditions only exclude points. Those on more variables multiply the points, so they are
        # considered only if the others leave a conflict.
        self._add_conditions(quick)
        return self._meet_among_points(among_all) and (
            not self._add_conditions([c for c in conditions if c not in quick])
            or self._meet_among_points(among_all)
        )

    def _is_apart_in_a_dimension(self) -> bool:
        """Return whether some index of the accesses always differs, by their common variables.

        The versions of a buffer in a pipeline differ so, however many points a tile has.
        """
        for forms in zip(*self._indices, strict=True):
            variables = _variables([atom for form in forms for atom, _ in form.terms])
            if variables <= self._common.keys():
                axes = {var: np.arange(self._common[var]) for var in variables}
                if math.prod(map(len, axes.values())) <= MAX_POINTS:
                    points = grid(axes)
                    first, *others = (form_value(form, points) for form in forms)
                    if all(np.all(first != other) for other in others):
                        return True
        return False

    # What the loops determine

    def _add_dimension(self, dimension: int) -> None:
        """Consider the indices in a dimension if the loops determine them in all accesses."""
        forms = [self._form(touch, dimension) for touch in self._touches]
        whole = [form for form in forms if form is not None]
        if len(whole) < len(forms):
            return
        parts = [self._split(t, form) for t, form in zip(self._touches, whole, strict=True)]
        if all(fixed == parts[0][1] for _, fixed in parts):
            whole = [moving for moving, _ in parts]
        if all(
            self._is_known(atom, extents)
            for form, extents in zip(whole, self._extents, strict=True)
            for atom, _ in form.terms
        ):
            for number, form in enumerate(whole):
                self._indices[number].append(form)
                self._used[number] |= _variables([atom for atom, _ in form.terms])

    def _form(self, touch: Touch, dimension: int) -> Affine | None:
        ramp = touch.ramps[dimension]
        if ramp is None:
            return None
        form, stride = ramp
        return form + Affine(((_LANE, stride),), 0) if stride else form

    def _split(self, touch: Touch, form: Affine) -> tuple[Affine, frozenset[tuple[Expr, int]]]:
        """Split an index into what may differ between accesses, and what has one value in all."""
        moving_vars = {*touch.extents, *touch.varying, _LANE} - self._common.keys()
        moving: list[tuple[Expr, int]] = []
        fixed: list[tuple[Expr, int]] = []
        for atom, scale in form.terms:
            moves = any(node in moving_vars or isinstance(node, Load | Call) for node in walk(atom))
            (moving if moves else fixed).append((atom, scale))
        return Affine(tuple(moving), form.const), frozenset(fixed)

    def _is_known(self, expr: Expr, extents: Mapping[Var, int]) -> bool:
        variables = _variables([expr])
        if any(extents.get(var, MAX_POINTS + 1) > MAX_POINTS for var in variables):
            return False
        try:
            value_at(expr, dict.fromkeys(variables, np.zeros(1, np.int64)))
        except UnknownError:
            return False
        return True

    def _known_conditions(self) -> list[tuple[int, Expr]]:
        """Return the conditions that the loops determine, each with the number of its access."""
        return [
            (number, part)
            for number, touch in enumerate(self._touches)
            for condition in touch.conditions
            for part in conjuncts(condition)
            if self._is_known(part, self._extents[number])
        ]

    def _add_conditions(self, conditions: Sequence[tuple[int, Expr]]) -> bool:
        """Consider conditions as far as the points stay few; return whether any is considered."""
        is_any = False
        for number, condition in conditions:
            before = self._used[number]
            self._used[number] = before | _variables([condition])
            if self._num_points() > _CONDITION_POINTS:
                self._used[number] = before
            else:
                self._conditions[number].append(condition)
                is_any = True
        return is_any

    # The points

    def _num_points(self) -> int:
        return sum(math.prod(map(len, axes.values())) for axes in self._axes())

    def _axes(self) -> list[_Axes]:
        """Return, for each access, the values of the variables that matter."""
        common = set[Var]().union(*self._used) & self._common.keys()
        all_axes = []
        for touch, extents, used in zip(self._touches, self._extents, self._used, strict=True):
            axes = {var: range(extents[var]) for var in extents if var in used | common}
            for name, extent in self._threads.items():
                # Threads whose number has no influence act alike: the first and last are enough.
                axes.setdefault(touch.var_of(name), range(0, extent, max(extent - 1, 1)))
            all_axes.append(axes)
        return all_axes

    def _meet_among_points(self, among_all: bool) -> bool:
        """Return whether two threads meet; a few points are tried first."""
        is_long = self._num_points() > _FIRST_POINTS
        return (is_long and self._meet_at(_FIRST_POINTS, among_all)) or self._meet_at(
            MAX_POINTS, among_all
        )

    def _meet_at(self, most: int, among_all: bool) -> bool:
        tables = [self._table(n, _shortened(axes, most)) for n, axes in enumerate(self._axes())]
        keys = _joined([table.keys for table in tables])
        threads = _joined([table.threads for table in tables])
        if keys is None or threads is None:
            return True
        if among_all:
            keys, threads = [np.concatenate(keys)] * 2, [np.concatenate(threads)] * 2
        return _share_a_key(keys, threads)

    def _table(self, number: int, axes: _Axes) -> _PointTable:
        touch = self._touches[number]
        points = grid({var: np.asarray(values) for var, values in axes.items()})
        shape = tuple(map(len, axes.values()))
        holds: Values = np.ones(1, bool)
        for condition in self._conditions[number]:
            holds = holds & value_at(condition, points).astype(bool)
        holds = np.broadcast_to(holds, shape)

        def column(values: Values) -> Numbers:
            spread: Numbers = np.broadcast_to(values, shape)
            return spread[holds] if self._conditions[number] else spread.reshape(-1)

        indices = [form_value(form, points) for form in self._indices[number]]
        common = [points[var] for var in self._common if var in axes]
        return _PointTable(
            [column(values) for values in (np.zeros(1, np.int64), *common, *indices)],
            [column(points[touch.var_of(name)]) for name in self._threads],
        )


def _variables(exprs: Collection[Expr]) -> set[Var]:
    return {node for expr in exprs for node in walk(expr) if isinstance(node, Var)}


def _shortened(axes: _Axes, most: int) -> _Axes:
    """Return the first values of variables, at most so many points."""
    axes = dict(axes)
    while math.prod(map(len, axes.values())) > most:
        longest = max(axes, key=lambda var: len(axes[var]))
        axes[longest] = axes[longest][: len(axes[longest]) // 2]
    return axes


def _joined(tables: Sequence[Sequence[Numbers]]) -> list[Numbers] | None:
    """Return one number for each row of some tables, equal for equal rows; None if too large."""
    ends = np.cumsum([len(columns[0]) for columns in tables])[:-1]
    joined: Numbers = np.zeros(sum(len(columns[0]) for columns in tables), np.int64)
    size = 1
    for columns in zip(*tables, strict=True):
        column = np.concatenate(columns)
        low, high = int(column.min(initial=0)), int(column.max(initial=0))
        size *= high - low + 1
        if size > _MAX_KEYS:
            return None
        joined = joined * (high - low + 1) + (column - low)
    if size > 4 * len(joined):
        joined = np.unique(joined, return_inverse=True)[1]
    return np.split(joined, ends)


def _share_a_key(keys: Sequence[Numbers], threads: Sequence[Numbers]) -> bool:
    """Return whether a key of the first table has another thread in the second."""
    size = max(int(column.max(initial=-1)) for column in keys) + 1
    thread_of = np.full(size, -1)
    thread_of[keys[0]] = threads[0]
    has_several = np.zeros(size, bool)
    has_several[keys[0][thread_of[keys[0]] != threads[0]]] = True
    met = thread_of[keys[1]]
    return bool(((met >= 0) & (has_several[keys[1]] | (met != threads[1]))).any())
