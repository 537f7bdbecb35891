"""Prove that two accesses to one element happen at the same values of some variables.

`S[ty * 8 + tx]` is one element for each pair of `ty` and `tx < 8`. So every access of this form to
one element, in loads and stores alike, is by the same thread. The values of other loops may differ.
The two accesses may lie in different loops, so variables are compared by name. For accesses under
the same loops, `compiler.schedule.legality.disjoint_accesses` proves more.

Example, with threads `tx` below 32, and `k` below 4, an ordinary loop:

    A[tx // 8, tx % 8 * 4 + k]    is (0: tx // 8, 1: tx % 8 at scale 4 and a loop at scale 1)
    an access of the same form    to the same element is by the same thread tx
    A[tx // 8, k]                 has another form: nothing follows

    A[f // 16, f % 16], with f = bx * 128 + k * 32 + tx: the indices determine f, which is a sum of
    parts itself, and so determines bx and tx
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd

from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.bijectivity import is_complete
from compiler.ir.arith.bounds import FixedRanges, shared_ranges
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.guards import bounds_of, conjuncts
from compiler.ir.arith.iter_map import Guards, may_overlap, split_of
from compiler.ir.arith.simplify import normal
from compiler.ir.arith.vectors import as_ramp
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import (
    Buffer,
    Call,
    Conditional,
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
from compiler.ir.core.visit import children, is_stmt, substitute, walk, walk_stmts


@frozen
class Part:
    """The term `scale * (source // low % extent)` of an index.

    Attributes:
        source: The name of a variable; of a sum of variables, its own parts. What has one value in
            all accesses is a source of its own, with an extent of 1.
        limit: How many values the source has.
    """

    source: Hashable
    limit: int
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
        common: The extents of variables that have one value in all accesses that are compared.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool
    extents: Mapping[Var, int]
    names: Mapping[Var, Hashable]
    varying: frozenset[Var] = frozenset()
    conditions: tuple[Expr, ...] = ()
    common: Mapping[Var, int] = field(default_factory=dict)

    def sharing(self, common: Mapping[Var, int]) -> Touch:
        """Return the access for a comparison in which more variables have one value."""
        key = tuple(common.items())
        shared = self._shared.get(key)
        if shared is None:
            extents = {var: extent for var, extent in self.extents.items() if var not in common}
            shared = replace(self, extents=extents, common={**self.common, **common})
            self._shared[key] = shared
        return shared

    @cached_property
    def _shared(self) -> dict[tuple[tuple[Var, int], ...], Touch]:
        """The access in comparisons, by the variables that have one value."""
        return {}

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
        return None if ramp is None else (self._form(ramp.base), ramp.stride)

    def _form(self, expr: Expr) -> Affine:
        return normal(substitute(expr, self._zeros), self._ranges)

    @cached_property
    def _all_extents(self) -> dict[Var, int]:
        return {**self.common, **self.extents}

    @cached_property
    def _ranges(self) -> FixedRanges:
        return shared_ranges(self._all_extents)

    @cached_property
    def _zeros(self) -> dict[Var, Expr]:
        """The variables that are always zero."""
        return {v: IntImm(0, dtype_of(v)) for v, extent in self._all_extents.items() if extent == 1}

    @cached_property
    def _limits(self) -> dict[Var, int]:
        """The extents of the variables, as far as the conditions leave them."""
        limits = dict(self._all_extents)
        for terms, bound in self._guards.items():
            if all(atom in limits and scale > 0 for atom, scale in terms):
                for var, scale in terms:
                    assert isinstance(var, Var)
                    limits[var] = min(limits[var], max(1, -(-bound // scale)))
        return limits

    @cached_property
    def _guards(self) -> Guards:
        conditions = tuple(c for condition in self.conditions for c in conjuncts(condition))
        conditions = tuple(substitute(c, self._zeros) for c in conditions)
        return bounds_of(conditions, self._all_extents)

    @cached_property
    def parts(self) -> list[tuple[int, frozenset[Part]] | None]:
        """Each index as a constant and a sum of parts that its value determines.

        None if the index does not determine all that varies in it.
        """
        return [None if ramp is None else self._parts(*ramp) for ramp in self.ramps]

    def _parts(self, form: Affine, stride: int) -> tuple[int, frozenset[Part]] | None:
        lanes = self.lanes if stride else 1
        parts = self._sum(form, [Part("lane", lanes, 1, lanes, stride)] if lanes > 1 else [])
        return None if parts is None else (form.const, parts)

    def _sum(self, form: Affine, parts: Sequence[Part] = ()) -> frozenset[Part] | None:
        """Return the parts of a sum, with some more; None if it does not determine each of them."""
        all_parts = list(parts)
        for atom, scale in form.terms:
            part = self._part(atom, scale)
            if part is None:
                return None
            if part.extent > 1 or part.source == atom:
                all_parts.append(part)
        moving = [(part.scale, part.extent) for part in all_parts if part.extent > 1]
        different = frozenset(all_parts)
        return None if may_overlap(moving) or len(different) < len(all_parts) else different

    def _part(self, atom: Expr, scale: int) -> Part | None:
        if self._has_one_value(atom):
            return Part(atom, 1, 1, 1, scale)
        split = split_of(atom, self._limits, self._guards)
        source: Hashable = None
        if split is not None and isinstance(split.source, Var):
            source = self.names.get(split.source, "loop")
        elif split is not None:
            source = self._sum(affine(split.source))
        if split is None or source is None:
            return None
        return Part(source, split.limit, split.low, split.extent, scale)

    def _has_one_value(self, expr: Expr) -> bool:
        """Return whether an expression has one value in all accesses."""
        return not any(
            node in self.extents or node in self.varying
            if isinstance(node, Var)
            else isinstance(node, Load | Call)
            for node in walk(expr)
        )


def agree_on(touches: Sequence[Touch], names: Iterable[Hashable]) -> bool:
    """Return whether accesses to the same element have the same value of each of the names.

    Only indices that have one form in all accesses count.
    """
    parts: list[Part] = []
    for form, *others in zip(*(touch.parts for touch in touches), strict=True):
        if form is not None and all(other == form for other in others):
            parts += form[1]
    determined = _DeterminedParts(parts)
    return all(map(determined.has, names))


class _DeterminedParts:
    """The parts of variables and sums that follow from some parts."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._parts: dict[Hashable, set[tuple[int, int]]] = {}
        self._limits: dict[Hashable, int] = {}
        self._add(parts)
        num_parts = 0
        while num_parts < self._num_parts():
            num_parts = self._num_parts()
            for source in tuple(self._parts):
                if isinstance(source, frozenset):
                    self._derive(source)

    def has(self, source: Hashable) -> bool:
        """Return whether the parts of a source determine it."""
        parts = self._parts.get(source, set())
        return bool(parts) and is_complete(parts, self._limits[source])

    def _num_parts(self) -> int:
        return sum(map(len, self._parts.values()))

    def _add(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._parts.setdefault(part.source, set()).add((part.low, part.extent))
            self._limits[part.source] = max(part.limit, self._limits.get(part.source, 0))

    def _derive(self, total: frozenset[Part]) -> None:
        """Add what a sum and its variables determine of each other."""
        self._parts[total].update(self._digits_of(total))
        if self.has(total):
            self._add(total)

    def _digits_of(self, total: frozenset[Part]) -> Iterator[tuple[int, int]]:
        """Yield the parts of a sum that are determined parts of its variables.

        Such a part is `sum // scale % extent` if the scales of all coarser ones are multiples of
        `scale * extent`, and all finer ones vary: they do not overlap.
        """
        for part in total:
            is_determined = (part.low, part.extent) in self._parts.get(part.source, ())
            finer = [other for other in total if other.scale < part.scale]
            coarser = gcd(*(other.scale for other in total if other.scale > part.scale))
            width = coarser or part.scale * part.extent
            if (
                (is_determined or self.has(part.source))
                and width % part.scale == 0
                and width >= part.scale * part.extent
                and all(other.extent > 1 for other in finer)
            ):
                yield part.scale, width // part.scale


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
