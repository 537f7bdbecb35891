"""The accesses of a lowered program to its buffers, and the box that one run of a scope touches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import TypeAlias

import numpy as np

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import FixedRanges, Ranges, affine_bounds, bounds, shared_ranges
from compiler.ir.arith.simplify import normal
from compiler.ir.arith.values import UnknownError, form_value, grid, value_at
from compiler.ir.arith.vectors import as_ramp
from compiler.ir.core.children import LEAVES
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Not,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import children, is_stmt, walk
from compiler.passes.common.thread_loops import is_thread

Path: TypeAlias = tuple[Stmt, ...]
RampForm: TypeAlias = tuple[Affine, int]
"""An index in linear form, and the distance from its first lane to its last."""
Span: TypeAlias = tuple[Affine, int]
"""The least value of an index, and the number of values."""

# A limit on the points that a condition is tried at, which takes a few milliseconds.
_MAX_POINTS = 1 << 16


@dataclass(frozen=True)
class LoweredAccess:
    """A load or store of a buffer: its indices, and its path from the root down.

    If the buffer is shared, the access counts for all threads at once.
    """

    path: Path
    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool
    is_shared: bool = False

    @property
    def shape(self) -> tuple[Expr, ...]:
        """The extents of the buffer."""
        return self.buffer.shape

    @cached_property
    def is_of_threads(self) -> bool:
        """Whether the access counts for several threads at once."""
        return self.is_shared and any(map(is_thread, self.path))

    def conditions(self, depth: int) -> list[Expr]:
        """Return the conditions inside the scope at `depth` under which the access takes place.

        The extent of a loop that varies with loops around it is a condition.
        """
        conditions: list[Expr] = []
        for node, child in pairwise(self.path[depth:]):
            if isinstance(node, If):
                conditions.append(node.condition if node.then is child else Not(node.condition))
            elif isinstance(node, For) and _varies(node.extent):
                conditions.append(Compare("<", node.var, node.extent))
        return conditions

    def box(self, depth: int) -> list[Span | None]:
        """Return, for each dimension, the corner in terms of outer loops and the extent.

        A dimension is None if unknown, or if it depends on a name that is bound inside the scope at
        `depth`.
        """
        cached = self._boxes.get(depth)
        if cached is None:
            cached = self._boxes[depth] = self._box(depth)
        return cached

    def symbolic_moves(self, depth: int) -> list[tuple[tuple[int, Expr], ...]]:
        """Return how each index moves with the loops of symbolic extents inside a scope.

        They are pairs of a coefficient and an extent, sorted. The box has the largest number of
        values of such an index, not that of a call.
        """
        inside = symbolic_extents(self.path[depth:])
        loops = {var: extent for var, extent in inside.items() if is_symbolic(extent)}
        if not loops:
            return [()] * len(self.indices)
        return [
            ()
            if form is None
            else tuple(sorted(((c, loops[a]) for a, c in form[0].terms if a in loops), key=repr))
            for form in self.forms
        ]

    @cached_property
    def _boxes(self) -> dict[int, list[Span | None]]:
        """Cached boxes by depth."""
        return {}

    def _box(self, depth: int) -> list[Span | None]:
        inside = self.path[depth:]
        loops = {n.var for n in inside if isinstance(n, For)}
        inner = {var: self.extents[var] for var in loops & self.extents.keys()}
        # A loop of one iteration moves no corner. Some indices name it, others were simplified.
        inner |= {var: extent for var, extent in self.extents.items() if extent == 1}
        if self.is_shared:
            for node in self.path[:depth]:
                if isinstance(node, For) and is_thread(node):
                    inner[node.var] = self.extents[node.var]
        # Nothing is known of a loop whose extent is loaded.
        hidden = {node.var for node in inside if isinstance(node, Let)} | (loops - inner.keys())
        spans = [split_form(form, inner, hidden) for form in self.forms]
        # Without threads, vectors may read beyond what a condition admits: the room stays.
        conditions = self.conditions(depth) if self.is_of_threads else []
        return [
            span if span is None or form is None else _trimmed(span, form, conditions, inner)
            for form, span in zip(self.forms, spans, strict=True)
        ]

    @cached_property
    def extents(self) -> dict[Var, int]:
        """Return the extents of the loops around the access that have a limit."""
        return loop_extents(self.path)

    @cached_property
    def unit_loops(self) -> dict[Var, Expr]:
        """Return the loops of one iteration around the access, and their value."""
        return {var: IntImm(0, dtype_of(var)) for var, n in self.extents.items() if n == 1}

    @cached_property
    def _ranges(self) -> FixedRanges:
        return shared_ranges(self.extents)

    @cached_property
    def forms(self) -> list[RampForm | None]:
        """Return the indices in linear form."""
        return [ramp_form(index, self._ranges) for index in self.indices]


def _trimmed(
    span: Span, form: RampForm, conditions: Iterable[Expr], inner: Mapping[Var, int]
) -> Span:
    """Shrink the span of an index to its values at the points at which some conditions hold.

    Threads that copy a tile together may be more than it has elements: a condition excludes some.
    Conditions on the loops inside the scope count, as far as the points are few.
    """
    index, reach = form
    moving = Affine(tuple(t for t in index.terms if inner.keys() >= _variables(t[0])), 0)
    if reach or not moving.terms:
        return span
    variables = {var for atom, _ in moving.terms for var in _variables(atom)}
    decidable = [c for c in conditions if _variables(c) <= inner.keys() and not _loads(c)]
    variables.update(*map(_variables, decidable))
    if not decidable or prod(inner[var] for var in variables) > _MAX_POINTS:
        return span
    points = grid({var: np.arange(inner[var]) for var in variables})
    try:
        holds = np.logical_and.reduce(
            np.broadcast_arrays(*(value_at(c, points) for c in decidable))
        )
        values, holds = np.broadcast_arrays(form_value(moving, points), holds)
    except UnknownError:
        return span
    values = values[holds]
    if not values.size:
        return span
    low, high = affine_bounds(moving, inner) or (0, 0)
    corner, extent = span
    start = int(values.min()) - low
    return corner + Affine((), start), extent - start - (high - int(values.max()))


def _variables(expr: Expr) -> set[Var]:
    return {node for node in walk(expr) if isinstance(node, Var)}


def _varies(extent: Expr) -> bool:
    """Return whether an extent may differ between the runs of a loop in one call."""
    return not isinstance(extent, IntImm) and any(
        isinstance(node, Load) or (isinstance(node, Var) and node.limits is None)
        for node in walk(extent)
    )


def _loads(expr: Expr) -> bool:
    return any(isinstance(node, Load) for node in walk(expr))


def collect_accesses(
    stmt: Stmt, buffers: Container[Buffer], shared: Container[Buffer] = ()
) -> dict[Buffer, list[LoweredAccess]]:
    """Return every load and store of the given buffers, in program order."""
    by_buffer: defaultdict[Buffer, list[LoweredAccess]] = defaultdict(list)

    def visit_expr(expr: Expr, path: Path) -> None:
        if type(expr) in LEAVES:
            return
        for node in walk(expr):
            if isinstance(node, Load) and node.buffer in buffers:
                access = LoweredAccess(
                    path, node.buffer, node.indices, False, node.buffer in shared
                )
                by_buffer[node.buffer].append(access)

    def visit(node: Stmt, path: Path) -> None:
        path = (*path, node)
        for child in children(node):
            if is_stmt(child):
                visit(child, path)  # type: ignore[arg-type]
            else:
                visit_expr(child, path)  # type: ignore[arg-type]
        if isinstance(node, Store) and node.buffer in buffers:
            access = LoweredAccess(path, node.buffer, node.indices, True, node.buffer in shared)
            by_buffer[node.buffer].append(access)

    visit(stmt, ())
    return by_buffer


def common_path(accesses: list[LoweredAccess]) -> Path:
    """Return the nodes that enclose all of the given accesses, from the root down."""
    common = accesses[0].path
    for access in accesses[1:]:
        length = 0
        for a, b in zip(common, access.path, strict=False):
            if a is not b:
                break
            length += 1
        common = common[:length]
    return common


def loop_extents(path: Path) -> dict[Var, int]:
    """Return the extents of the loops of a path; the largest value of an extent that varies."""
    extents: dict[Var, int] = {}
    for node in path:
        if isinstance(node, For):
            if isinstance(node.extent, IntImm):
                extents[node.var] = node.extent.value
                continue
            interval = bounds(node.extent, extents)
            if interval is not None:
                extents[node.var] = interval[1]
    return extents


def is_symbolic(expr: Expr) -> bool:
    """Return whether an expression depends on a symbolic variable of the program."""
    return any(isinstance(node, Var) and node.limits is not None for node in walk(expr))


def symbolic_extents(path: Path) -> dict[Var, Expr]:
    """Return the extents of the loops of a path that are no literals."""
    loops = (node for node in path if isinstance(node, For))
    return {loop.var: loop.extent for loop in loops if not isinstance(loop.extent, IntImm)}


def ramp_form(index: Expr, ranges: Ranges) -> RampForm | None:
    """Return the linear form of an index, and the distance from its first lane to its last."""
    ramp = as_ramp(index)
    if ramp is None:
        return None
    return normal(ramp.base, ranges), ramp.stride * (ramp.lanes - 1)


def split_form(
    ramp: RampForm | None, inner: Mapping[Var, int], hidden: Container[Var] = ()
) -> Span | None:
    """Split an index into its least value over the inner loops and its number of values.

    The least value is in terms of the other variables. Return None if the two can't be separated,
    or if one of the variables is hidden.
    """
    if ramp is None:
        return None
    form, reach = ramp
    fixed: list[tuple[Expr, int]] = []
    moving: list[tuple[Expr, int]] = []
    for atom, coefficient in form.terms:
        if isinstance(atom, Var):
            if atom in hidden:
                return None
            (moving if atom in inner else fixed).append((atom, coefficient))
            continue
        nodes = list(walk(atom))
        names = {node for node in nodes if isinstance(node, Var)}
        if any(isinstance(node, Load) or node in hidden for node in nodes):
            return None
        if not names & inner.keys():
            fixed.append((atom, coefficient))
        elif names <= inner.keys():
            moving.append((atom, coefficient))
        else:
            return None
    interval = affine_bounds(Affine(tuple(moving), 0), inner)
    if interval is None:
        return None
    low, high = interval[0] + min(reach, 0), interval[1] + max(reach, 0)
    return Affine(tuple(fixed), form.const + low, form.dtype), high - low + 1
