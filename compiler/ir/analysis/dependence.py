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

from collections.abc import Collection, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from compiler.ir.arith.bijectivity import is_complete
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import may_overlap, split_of
from compiler.ir.arith.simplify import normal
from compiler.ir.arith.vectors import as_ramp
from compiler.ir.core.frozen import frozen
from compiler.ir.core.nodes import Buffer, Expr, For, Let, Load, Stmt, Store, Var
from compiler.ir.core.visit import children, is_stmt, walk_stmts


@frozen
class Part:
    """The term `scale * (variable // low % extent)` of an index, with the name of the variable."""

    name: Hashable
    limit: int  # how many values the variable has
    low: int
    extent: int
    scale: int


@dataclass(frozen=True, slots=True)
class Touch:
    """A load or store, with the loops around it that the analysis considers.

    Attributes:
        names: The name of each variable in comparisons; for a thread, that of its axis.
        extents: The variables that vary in a known range.
        varying: The other variables that vary.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool
    extents: Mapping[Var, int]
    names: Mapping[Var, Hashable]
    varying: frozenset[Var] = frozenset()

    def parts(self) -> list[tuple[int, frozenset[Part]] | None]:
        """Return each index as a constant and a sum of parts that its value determines.

        Return None if the index does not determine all that varies in it.
        """
        return [self._parts(index) for index in self.indices]

    def _parts(self, index: Expr) -> tuple[int, frozenset[Part]] | None:
        ramp = as_ramp(index)
        if ramp is None:
            return None
        form = normal(ramp.base, self.extents)
        parts: list[Part] = []
        if ramp.stride and ramp.lanes > 1:
            parts.append(Part("lane", ramp.lanes, 1, ramp.lanes, ramp.stride))
        for atom, scale in form.terms:
            split = split_of(atom, self.extents)
            if split is None and isinstance(atom, Var) and atom not in self.varying:
                parts.append(Part(atom, 1, 1, 1, scale))  # one value in both accesses
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


def agree_on(one: Touch, other: Touch, names: Iterable[Hashable]) -> bool:
    """Return whether accesses to the same element have the same value of each of the names."""
    common: dict[Hashable, set[Part]] = {}
    for a, b in zip(one.parts(), other.parts(), strict=True):
        if a is not None and a == b:
            for part in a[1]:
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
) -> list[Touch]:
    """Return the accesses of a statement in program order.

    Args:
        stmt: The statement.
        extents: The variables around it that may differ between two accesses, with their extents.
        names: The names in comparisons of the variables that matter.
        varying: The variables around it that may differ and have no known extent.
    """
    touches: list[Touch] = []
    # The value of a name may come out of a buffer, or depend on a loop: it may differ, too.
    all_varying = frozenset(varying).union(n.var for n in walk_stmts(stmt) if isinstance(n, Let))

    def visit_expr(expr: Expr, inside: Mapping[Var, int]) -> None:
        for child in children(expr):
            visit_expr(child, inside)  # type: ignore[arg-type]
        if isinstance(expr, Load):
            touches.append(Touch(expr.buffer, expr.indices, False, inside, names, all_varying))

    def visit(node: Stmt, inside: Mapping[Var, int]) -> None:
        if isinstance(node, For):
            inside = {**inside, node.var: extent_or_unknown(node.extent)}
        for child in children(node):
            if is_stmt(child):
                visit(child, inside)  # type: ignore[arg-type]
            else:
                visit_expr(child, inside)  # type: ignore[arg-type]
        if isinstance(node, Store):
            touches.append(Touch(node.buffer, node.indices, True, inside, names, all_varying))

    visit(stmt, extents)
    return touches
