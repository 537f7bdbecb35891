"""Rewrite statements over the elements of a tile for those that a lane holds in registers.

    P[i, j] = exp(S[i, j] - M[i])     ->     P[e] = exp(S[e] - M[e // 2])

Tiles are used together if each lane holds the same elements of them: so sums of one product can be
the operand of another one. A lane holds the numbers of those rows of which it holds elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.nodes import Buffer, Expr, IntImm, Load, Stmt, Store, Var
from compiler.ir.core.scopes import MATRIX_A, MATRIX_B
from compiler.ir.core.visit import map_expr, map_stmt, substitute, walk
from compiler.passes.common.error import LoweringError
from compiler.passes.device.fragments.layout import FragmentLayout
from compiler.passes.device.fragments.tile_nest import TileNest, linear, number, variables_in
from compiler.target.tensor_cores import FragmentMap, Step

AXES = ("row", "column")


@dataclass(frozen=True)
class ElementDigit:
    """A digit of the number of an element that a lane holds.

    Attributes:
        value: Its value: that of a loop, or a constant.
        extent: The number of its values.
        step: The rows and columns from one value to the next.
    """

    value: Expr
    extent: int
    step: Step


@dataclass(frozen=True)
class HeldElement:
    """An element of a tile that a lane holds; rewrites statements for it.

    Attributes:
        layouts: The registers of all fragments.
        held: The tile that the nest runs over.
        digits: The digits of the number of the element.
        nest: The nest over the elements of all tiles.
        lane: The number of the lane.
        ranges: The extents of all variables.
    """

    layouts: Mapping[Buffer, FragmentLayout]
    held: FragmentLayout
    digits: tuple[ElementDigit, ...]
    nest: TileNest
    lane: Var
    ranges: Mapping[Var, int]

    def stmt(self, stmt: Stmt) -> Stmt:
        """Return a statement for the element."""
        if isinstance(stmt, Store) and stmt.buffer in self.layouts:
            return Store(*self.register(stmt), self.expr(stmt.value))
        return map_stmt(stmt, self.stmt, self.expr)

    def expr(self, expr: Expr) -> Expr:
        """Return an expression for the element."""
        return simplify(self._rewritten(expr), self.ranges)

    def _rewritten(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in self.layouts:
            return Load(*self.register(expr))
        if isinstance(expr, Var):
            return self.nest.substituted(expr, self._position)
        return map_expr(expr, self._rewritten)

    def register(self, access: Load | Store) -> tuple[Buffer, tuple[Expr, ...]]:
        """Return the register of a fragment at the element, as a buffer and an index.

        Raises:
            LoweringError: If another lane holds it, or only instructions know its place.
        """
        layout = self.layouts[access.buffer]
        if access.buffer.scope in (MATRIX_A, MATRIX_B):
            raise LoweringError(
                f"{access.buffer.name} is an operand of tensor cores: only instructions read it"
            )
        self._require_lane(layout, access)
        corner = dict.fromkeys(AXES, IntImm(0))
        indices = tuple(self.nest.substituted(index, corner) for index in access.indices)
        first = layout.register(indices, self.ranges).to_expr()
        terms = [(first, 1)]
        for digit in self.digits:
            distance = layout.distance(digit.extent, digit.step)
            if distance is None:
                raise self._apart(access)
            terms.append((digit.value, distance))
        return layout.registers, (simplify(linear(*terms), self.ranges),)

    @property
    def _position(self) -> dict[str, Expr]:
        """Return the position of the element in the tile."""
        lanes = self.held.map.lane
        return {
            name: linear(
                (number(self.lane, [(extent, step[axis]) for extent, step in lanes]), 1),
                *((digit.value, digit.step[axis]) for digit in self.digits),
            )
            for axis, name in enumerate(AXES)
        }

    def _require_lane(self, layout: FragmentLayout, access: Load | Store) -> None:
        """Refuse an access at another position of a tile than that of the element."""
        if layout.map.lane != _along(self.held.map, len(layout.axes)).lane:
            raise self._apart(access)
        along = dict(zip(layout.axes, AXES, strict=False))
        for axis, index in enumerate(access.indices):
            form = normal(substitute(index, self.nest.values), self.ranges)
            for name, digits in self.nest.digits.items():
                for digit in digits:
                    step = digit.step if along.get(axis) == name else 0
                    if form.coefficient(digit.var) != step:
                        raise self._apart(access)
            compound = variables_in(atom for atom, _ in form.terms if not isinstance(atom, Var))
            if not compound.isdisjoint(d.var for each in self.nest.digits.values() for d in each):
                raise self._apart(access)

    def _apart(self, access: Load | Store) -> LoweringError:
        return LoweringError(
            f"elements of {access.buffer.name} and {self.held.buffer.name} that are used together "
            "are in different lanes: use both at the same row and column, counted from a tile's"
        )


def _along(held: FragmentMap, num_axes: int) -> FragmentMap:
    """Return a map, or that of its rows if there is one axis only."""
    return held if num_axes > 1 else held.of_rows


def fragment_accesses(stmt: Stmt, layouts: Mapping[Buffer, FragmentLayout]) -> list[Load | Store]:
    """Return the accesses of fragments, that of a store first."""
    return [n for n in walk(stmt) if isinstance(n, Load | Store) and n.buffer in layouts]
