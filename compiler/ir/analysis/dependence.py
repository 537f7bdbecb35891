"""When two accesses to one element surely happen at the same values of some variables.

`S[ty * 8 + tx]` is one element for each pair of `ty` and `tx < 8`: every access to it, in the
loads and stores that are of this form, is the same thread. The values of other loops may differ.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from compiler.ir.arith.simplify import normal
from compiler.ir.arith.vectors import as_ramp
from compiler.ir.core.nodes import Buffer, Expr, For, IntImm, Load, Stmt, Store, Var
from compiler.ir.core.visit import children, is_stmt

Digit = tuple[int, Hashable, int]
"""A term of an index: its coefficient, what varies, and how many values that takes."""


@dataclass(frozen=True, slots=True)
class Touch:
    """A load or store, with the loops around it as far as they are looked at.

    `names` tells what a variable counts as in comparison with other accesses: a thread by its
    axis; `extents` holds all variables that vary.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    is_store: bool
    extents: Mapping[Var, int]
    names: Mapping[Var, Hashable]

    def digits(self) -> list[tuple[int, frozenset[Digit]] | None]:
        """Return each index as a number written in digits, with what is added to it.

        It is None where the index does not determine what varies in it.
        """
        return [self._digits(index) for index in self.indices]

    def _digits(self, index: Expr) -> tuple[int, frozenset[Digit]] | None:
        ramp = as_ramp(index)
        if ramp is None:
            return None
        form = normal(ramp.base, self.extents)
        found: list[Digit] = []
        if ramp.stride and ramp.lanes > 1:
            found.append((ramp.stride, "lane", ramp.lanes))
        for atom, coefficient in form.terms:
            if not isinstance(atom, Var):
                return None
            extent = self.extents.get(atom)
            if extent is None:
                found.append((coefficient, atom, 1))  # one value in both accesses
            elif extent > 1:
                found.append((coefficient, self.names.get(atom, "loop"), extent))
        reach = 0
        for coefficient, _, extent in sorted(found, key=lambda digit: abs(digit[0])):
            if extent > 1 and abs(coefficient) <= reach:
                return None
            reach += abs(coefficient) * (extent - 1)
        digits = frozenset(found)
        return (form.const, digits) if len(digits) == len(found) else None


def most_iterations(loop: For) -> int:
    """Return how often a loop runs; where that varies, more than it surely does."""
    return loop.extent.value if isinstance(loop.extent, IntImm) else 1 << 31


def agree_on(one: Touch, other: Touch, names: Iterable[Hashable]) -> bool:
    """Tell whether accesses to the same element have the same value of each of the names."""
    agreed: set[Hashable] = set()
    for a, b in zip(one.digits(), other.digits(), strict=True):
        if a is not None and a == b:
            agreed.update(name for _, name, _ in a[1])
    return agreed.issuperset(names)


def touches_of(
    stmt: Stmt, extents: Mapping[Var, int], names: Mapping[Var, Hashable]
) -> list[Touch]:
    """Return the accesses of a statement in the order of the program.

    Args:
        stmt: The statement.
        extents: The variables around it that may differ between two accesses, with their extents.
        names: What the variables that matter are called in comparisons.
    """
    found: list[Touch] = []

    def visit_expr(expr: Expr, inside: Mapping[Var, int]) -> None:
        for child in children(expr):
            visit_expr(child, inside)  # type: ignore[arg-type]
        if isinstance(expr, Load):
            found.append(Touch(expr.buffer, expr.indices, False, inside, names))

    def visit(node: Stmt, inside: Mapping[Var, int]) -> None:
        if isinstance(node, For):
            inside = {**inside, node.var: most_iterations(node)}
        for child in children(node):
            if is_stmt(child):
                visit(child, inside)  # type: ignore[arg-type]
            else:
                visit_expr(child, inside)  # type: ignore[arg-type]
        if isinstance(node, Store):
            found.append(Touch(node.buffer, node.indices, True, inside, names))

    visit(stmt, extents)
    return found
