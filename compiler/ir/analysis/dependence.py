"""Prove that two accesses to one element happen at the same values of some variables.

`S[ty * 8 + tx]` is one element for each pair of `ty` and `tx < 8`. So every access of this form to
one element, in loads and stores alike, is by the same thread. The values of other loops may differ.
The two accesses may lie in different loops, so variables are compared by name. For accesses under
the same loops, `compiler.schedule.legality.disjoint_accesses` proves more.

Example, with threads `tx` below 32, and `k` below 4, an ordinary loop:

    A[tx // 8, tx % 8 * 4 + k]    is (0: tx // 8, 1: tx % 8 at scale 4 and a loop at scale 1)
    an access of the same form    to the same element is by the same thread tx
    A[tx // 8, k]                 has another form: nothing follows
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import is_complete
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import may_overlap, split_of
from compiler.ir.arith.simplify import normal
from compiler.ir.arith.vectors import as_ramp
from compiler.ir.core.expr_types import lanes_of
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import (
    Buffer,
    Conditional,
    Expr,
    For,
    If,
    Let,
    Load,
    Not,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import children, is_stmt, walk_stmts


@frozen
class Part:
    """The term `scale * (variable // low % extent)` of an index, with the name of the variable."""

    name: Hashable
    limit: int  # how many values the variable has
    low: int
    extent: int
    scale: int


@dataclass(frozen=True)
class Touch:
    """A load or store, with the loops around it that the analysis considers.

    Attributes:
        names: The name of each variable in comparisons; for a thread, that of its axis.
        extents: The variables that vary in a known range.
        varying: The other variables that vary.
        conditions: The conditions under which it takes place.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool
    extents: Mapping[Var, int]
    names: Mapping[Var, Hashable]
    varying: frozenset[Var] = frozenset()
    conditions: tuple[Expr, ...] = ()

    @property
    def lanes(self) -> int:
        """The number of elements that it touches at once."""
        return max(map(lanes_of, self.indices), default=1)

    def var_of(self, name: Hashable) -> Var:
        """Return the innermost variable of a name; a new one if the access has none."""
        return self._vars.get(name) or self._vars.setdefault(name, Var(str(name)))

    def extent_of(self, name: Hashable) -> int:
        """Return how many values the variable of a name has."""
        return self.extents.get(self.var_of(name), 1)

    @cached_property
    def _vars(self) -> dict[Hashable, Var]:
        return {self.names[var]: var for var in self.extents if var in self.names}

    @cached_property
    def ramps(self) -> list[tuple[Affine, int] | None]:
        """Each index in linear form, and the step between its lanes; None if it is no ramp."""
        return [self._ramp(index) for index in self.indices]

    def _ramp(self, index: Expr) -> tuple[Affine, int] | None:
        ramp = as_ramp(index)
        return None if ramp is None else (normal(ramp.base, self.extents), ramp.stride)

    @cached_property
    def parts(self) -> list[tuple[int, frozenset[Part]] | None]:
        """Each index as a constant and a sum of parts that its value determines.

        None if the index does not determine all that varies in it.
        """
        return [None if ramp is None else self._parts(*ramp) for ramp in self.ramps]

    def _parts(self, form: Affine, stride: int) -> tuple[int, frozenset[Part]] | None:
        parts: list[Part] = []
        if stride and self.lanes > 1:
            parts.append(Part("lane", self.lanes, 1, self.lanes, stride))
        for atom, scale in form.terms:
            split = split_of(atom, self.extents)
            if split is None and isinstance(atom, Var) and atom not in self.varying:
                parts.append(Part(atom, 1, 1, 1, scale))  # one value in all accesses
            elif split is None or not isinstance(split.source, Var):
                return None
            elif split.extent > 1:
                name = self.names.get(split.source, "loop")
                parts.append(Part(name, split.limit, split.low, split.extent, scale))
        different = frozenset(parts)
        moving = [(part.scale, part.extent) for part in parts if part.extent > 1]
        if may_overlap(moving) or len(different) < len(parts):
            return None
        return form.const, different


def agree_on(touches: Sequence[Touch], names: Iterable[Hashable]) -> bool:
    """Return whether accesses to the same element have the same value of each of the names.

    Only indices that have one form in all accesses count.
    """
    common: dict[Hashable, set[Part]] = {}
    for form, *others in zip(*(touch.parts for touch in touches), strict=True):
        if form is not None and all(other == form for other in others):
            for part in form[1]:
                common.setdefault(part.name, set()).add(part)
    return all(_is_determined(common.get(name, set())) for name in names)


def _is_determined(parts: Collection[Part]) -> bool:
    """Return whether some parts of a variable determine it."""
    limit = max((part.limit for part in parts), default=0)
    return bool(parts) and is_complete(((part.low, part.extent) for part in parts), limit)


def touches_of(
    stmt: Stmt,
    extents: Mapping[Var, int],
    names: Mapping[Var, Hashable],
    varying: AbstractSet[Var] = frozenset(),
    conditions: tuple[Expr, ...] = (),
) -> list[Touch]:
    """Return the accesses of a statement in program order.

    Args:
        stmt: The statement.
        extents: The variables around it that may differ between two accesses, with their extents.
        names: The names in comparisons of the variables that matter.
        varying: The variables around it that may differ and have no known extent.
        conditions: The conditions around it.
    """
    # The value of a name may come out of a buffer, or depend on a loop: it may differ, too.
    all_varying = frozenset(varying).union(n.var for n in walk_stmts(stmt) if isinstance(n, Let))
    collector = _TouchCollector(names, all_varying)
    collector.stmt(stmt, extents, conditions)
    return collector.touches


class _TouchCollector:
    """Collects accesses in program order."""

    def __init__(self, names: Mapping[Var, Hashable], varying: frozenset[Var]) -> None:
        self.touches: list[Touch] = []
        self._names = names
        self._varying = varying

    def stmt(self, stmt: Stmt, extents: Mapping[Var, int], conditions: tuple[Expr, ...]) -> None:
        if isinstance(stmt, If):
            self._expr(stmt.condition, extents, conditions)
            self.stmt(stmt.then, extents, (*conditions, stmt.condition))
            if stmt.otherwise is not None:
                self.stmt(stmt.otherwise, extents, (*conditions, Not(stmt.condition)))
            return
        if isinstance(stmt, For):
            extents = {**extents, stmt.var: extent_or_unknown(stmt.extent)}
        for child in children(stmt):
            if is_stmt(child):
                self.stmt(child, extents, conditions)  # type: ignore[arg-type]
            else:
                self._expr(child, extents, conditions)  # type: ignore[arg-type]
        if isinstance(stmt, Store):
            self._add(stmt.buffer, stmt.indices, extents, conditions, is_store=True)

    def _expr(self, expr: Expr, extents: Mapping[Var, int], conditions: tuple[Expr, ...]) -> None:
        if isinstance(expr, Conditional):
            self._expr(expr.condition, extents, conditions)
            self._expr(expr.then, extents, (*conditions, expr.condition))
            self._expr(expr.otherwise, extents, (*conditions, Not(expr.condition)))
            return
        for child in children(expr):
            self._expr(child, extents, conditions)  # type: ignore[arg-type]
        if isinstance(expr, Load):
            self._add(expr.buffer, expr.indices, extents, conditions, is_store=False)

    def _add(
        self,
        buffer: Buffer,
        indices: tuple[Expr, ...],
        extents: Mapping[Var, int],
        conditions: tuple[Expr, ...],
        *,
        is_store: bool,
    ) -> None:
        self.touches.append(
            Touch(buffer, indices, is_store, extents, self._names, self._varying, conditions)
        )
