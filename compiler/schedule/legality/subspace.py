"""Divide the iterators of a block between outer and inner loops.

Each iterator becomes `outer * size + inner`. `outer` consists of outer loops, and `inner`, which
has the range 0, ..., `size` - 1, of inner loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TypeAlias

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import covering_sources
from compiler.ir.arith.extents import UNKNOWN
from compiler.ir.arith.guards import conjuncts, upper_bound
from compiler.ir.arith.iter_map import Extents, Terms, count_of, terms_of, variables, variables_of
from compiler.ir.arith.simplify import normal, prove, simplify
from compiler.ir.core.dtypes import DType, is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import TRUE, BinOp, Compare, Expr, IntImm, Var
from compiler.ir.core.visit import substitute
from compiler.schedule.legality.guard import conjunction
from compiler.schedule.legality.placed_block import PlacedBlock

_Term: TypeAlias = tuple[Expr, int]


@dataclass(frozen=True, slots=True)
class IteratorPart:
    """A value in terms of some loops, and the number of its values, counted from zero."""

    value: Expr
    extent: Expr

    @property
    def size(self) -> int | None:
        """Return the extent as a number; None if it is symbolic."""
        return self.extent.value if isinstance(self.extent, IntImm) else None

    @property
    def is_unit(self) -> bool:
        """Return whether it has a single value."""
        return self.size == 1


@dataclass(frozen=True, slots=True)
class Division:
    """The parts of each iterator, and those of the predicate."""

    outer: tuple[IteratorPart, ...]
    inner: tuple[IteratorPart, ...]
    outer_predicate: Expr = TRUE
    inner_predicate: Expr = TRUE


def divide(site: PlacedBlock, inner: AbstractSet[Var], *, keep_unit_loops: bool) -> Division | None:
    """Divide a block's iterators and predicate, or return None if that is not possible.

    Args:
        inner: The variables of the inner loops; all others are outer ones.
        keep_unit_loops: Whether the parts use loops of one iteration.
    """
    units: dict[Var, Expr] = {}
    if not keep_unit_loops:
        units = {v: IntImm(0, dtype_of(v)) for v, n in site.extents.items() if n == 1}
    values = [simplify(substitute(v, units), site.extents) for v in site.realize.iter_values]
    guards = _guards(substitute(site.realize.predicate, units), site.extents)
    if guards is None:
        return None
    divider = _Divider(site, inner, guards)
    return divider.by_splits(values) or divider.by_sides(values)


@dataclass(slots=True)
class _Guard:
    """A condition that bounds a sum of terms: by a number, or by a symbolic size."""

    condition: Expr
    bound: int
    size: Expr | None = None
    is_inner: bool | None = None  # the side that used it


def _guards(predicate: Expr, extents: Extents) -> dict[Terms, _Guard] | None:
    """Return the conditions of a predicate by the sums they bound; None if one is not a bound."""
    guards: dict[Terms, _Guard] = {}
    for condition in conjuncts(predicate):
        if prove(condition, extents):
            continue
        bound = _symbolic_bound(condition, extents) or upper_bound(condition, extents)
        if bound is None or not bound[0]:
            return None
        terms, limit = bound
        common = math.gcd(*(scale for _, scale in terms))
        terms = frozenset((atom, scale // common) for atom, scale in terms)
        if isinstance(limit, int):
            guard = _Guard(condition, -(-limit // common))
        elif common == 1:
            guard = _Guard(condition, UNKNOWN, limit)
        else:
            return None
        if terms not in guards or guard.bound < guards[terms].bound:
            guards[terms] = guard
    return guards


def _symbolic_bound(condition: Expr, extents: Extents) -> tuple[Terms, Expr] | None:
    """Parse a condition as `terms < size` with a symbolic size."""
    match condition:
        case Compare("<", lhs, rhs) if is_integer(dtype_of(rhs)):
            symbols = variables(rhs)
            form = normal(lhs, extents)
            if symbols and symbols.isdisjoint(extents) and not form.const:
                return terms_of(form), rhs
    return None


@dataclass
class _Divider:
    site: PlacedBlock
    inner: AbstractSet[Var]
    guards: dict[Terms, _Guard] = field(default_factory=dict)

    def by_splits(self, values: Sequence[Expr]) -> Division | None:
        """Divide sums of splits; the iterators must be independent of one another."""
        forms = [normal(value, self.site.extents) for value in values]
        pairs = [self._pair(form) for form in forms]
        divided = [pair for pair in pairs if pair is not None]
        if len(divided) < len(pairs) or not self._are_independent(forms, divided):
            return None
        if any(guard.is_inner is None for guard in self.guards.values()):
            return None
        return Division(
            tuple(outer for outer, _ in divided),
            tuple(inner for _, inner in divided),
            self._predicate(is_inner=False),
            self._predicate(is_inner=True),
        )

    def by_sides(self, values: Sequence[Expr]) -> Division | None:
        """Assign each whole iterator to the only side whose loops it uses, if there is no guard."""
        if self.guards:
            return None
        outer: list[IteratorPart] = []
        inner: list[IteratorPart] = []
        for iter_var, value in zip(self.site.block.iter_vars, values, strict=True):
            unit = IteratorPart(IntImm(0, dtype_of(value)), IntImm(1, dtype_of(value)))
            undivided = IteratorPart(value, iter_var.extent)
            used = variables(value)
            if used and used <= self.inner:
                outer.append(unit)
                inner.append(undivided)
            elif used.isdisjoint(self.inner):
                outer.append(undivided)
                inner.append(unit)
            else:
                return None
        return Division(tuple(outer), tuple(inner))

    def _predicate(self, *, is_inner: bool) -> Expr:
        used = (g.condition for g in self.guards.values() if g.is_inner is is_inner)
        return conjunction(tuple(used))

    def _pair(self, form: Affine) -> tuple[IteratorPart, IteratorPart] | None:
        """Divide one sum into its outer and inner part."""
        outer: list[_Term] = []
        inner: list[_Term] = []
        for atom, scale in form.terms:
            used = variables(atom)
            if scale < 0 or not (used <= self.inner or used.isdisjoint(self.inner)):
                return None
            (inner if used <= self.inner else outer).append((atom, scale))
        small = self._part(inner, 1, form.dtype, is_inner=True)
        if form.const or small is None or (outer and small.size is None):
            return None
        large = self._part(outer, small.size or 1, form.dtype, is_inner=False)
        return None if large is None else (large, small)

    def _part(
        self, terms: list[_Term], unit: int, dtype: DType, *, is_inner: bool
    ) -> IteratorPart | None:
        """Return the sum of some terms over `unit`, if they leave no gap and do not overlap."""
        extents = self.site.extents
        group: list[_Term] = []
        size = 1
        symbolic: Expr | None = None
        counted = [(count_of(atom, extents), atom, scale) for atom, scale in terms]
        for count, atom, scale in sorted(counted, key=lambda c: (c[2], c[0] or 0)):
            if count is None or symbolic is not None or scale != size * unit:
                return None
            group.append((atom, size))
            if count >= UNKNOWN:
                symbolic = self._unknown_extent(atom, size)
                if symbolic is None:
                    return None
            size *= count
            guard = self.guards.get(frozenset(group))
            if guard is not None and guard.is_inner is None:
                guard.is_inner = is_inner
                size = min(size, guard.bound)
                symbolic = guard.size or symbolic
        value = Affine(tuple(reversed(group)), 0, dtype).to_expr()
        return IteratorPart(value, IntImm(size, dtype) if symbolic is None else symbolic)

    def _unknown_extent(self, atom: Expr, scale: int) -> Expr | None:
        """Return the extent of a symbolic loop, times a scale."""
        for loop in self.site.loops:
            if loop.var is atom:
                return simplify(BinOp("*", loop.extent, IntImm(scale, dtype_of(loop.extent))))
        return None

    def _are_independent(
        self, forms: Sequence[Affine], parts: list[tuple[IteratorPart, IteratorPart]]
    ) -> bool:
        """Return whether the iterators take all combinations of their values."""
        sizes = [o.size * i.size for o, i in parts if o.size is not None and i.size is not None]
        if len(sizes) == len(forms):
            bounds = {terms: guard.bound for terms, guard in self.guards.items()}
            return covering_sources(forms, sizes, self.site.extents, bounds) is not None
        used = [var for form in forms for var in variables_of(form)]
        atoms = [atom for form in forms for atom, _ in form.terms]
        return len(used) == len(set(used)) and all(isinstance(atom, Var) for atom in atoms)
