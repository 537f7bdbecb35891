"""Divide a nest over the elements of a fragment into loops over tiles, and positions in a tile.

for i in 64:                              for i_tile in 4:
    for j in 8:                     ->        acc[i_tile * 16 + row, column] = 0
        acc[i, j] = 0                             with row in 0..15 and column in 0..7
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compiler.ir.arith.affine import Affine, from_terms
from compiler.ir.core.nodes import BinOp, Expr, For, IntImm, Stmt, Var, static_int
from compiler.ir.core.visit import substitute, walk
from compiler.passes.common.error import LoweringError


@dataclass(frozen=True, slots=True)
class TileDigit:
    """A loop inside of a tile: its variable is `position // step % extent`."""

    var: Var
    step: int
    extent: int

    def at(self, position: Expr) -> Expr:
        """Return the value of the variable at a position in the tile."""
        if self.step > 1:
            position = BinOp("//", position, IntImm(self.step))
        return BinOp("%", position, IntImm(self.extent))


@dataclass(slots=True)
class TileNest:
    """A nest of which some loops run over tiles, and the others inside of one.

    Attributes:
        tiles: The loops over tiles, outermost first.
        values: The variables that were split, by the new ones.
        digits: For each axis of the tile, the loops inside.
    """

    tiles: list[For]
    values: dict[Var, Expr] = field(default_factory=dict)
    digits: dict[str, list[TileDigit]] = field(default_factory=dict)

    def axis(self, name: str, form: Affine, size: int) -> None:
        """Find the loops that run over an axis of the tile.

        Args:
            name: The name of the axis.
            form: The index along it.
            size: The extent of the tile.

        Raises:
            LoweringError: If the loops do not run over whole tiles.
        """
        digits: list[TileDigit] = []
        for loop in list(self.tiles):
            coefficient = form.coefficient(loop.var)
            if coefficient % size:
                digits.append(self._inside(loop, coefficient, size))
        reached = 1
        for digit in sorted(digits, key=lambda digit: digit.step):
            if digit.step != reached:
                raise _no_tiles(size)
            reached *= digit.extent
        if reached != size:
            raise _no_tiles(size)
        self.digits[name] = digits

    def _inside(self, loop: For, coefficient: int, size: int) -> TileDigit:
        """Take a loop out of those over tiles; leave the part of it that counts tiles."""
        extent = static_int(loop.extent)
        inner = size // abs(coefficient)
        if coefficient < 0 or size % coefficient or (extent > inner and extent % inner):
            raise _no_tiles(size)
        position = self.tiles.index(loop)
        if extent <= inner:
            del self.tiles[position]
            return TileDigit(loop.var, coefficient, extent)
        tile, rest = Var(f"{loop.var.name}_tile", loop.var.dtype), Var(loop.var.name)
        self.tiles[position] = replace(
            loop, var=tile, extent=IntImm(extent // inner), annotations=()
        )
        self.values[loop.var] = linear((tile, inner), (rest, 1))
        return TileDigit(rest, coefficient, inner)

    def at(self, positions: Mapping[str, Expr]) -> dict[Var, Expr]:
        """Return the values of the loops inside of a tile at a position in it."""
        return {
            digit.var: digit.at(positions[name])
            for name, digits in self.digits.items()
            for digit in digits
        }

    def around(self, body: Stmt) -> Stmt:
        """Return the loops over tiles around a body; registers have constant numbers in them."""
        for loop in reversed(self.tiles):
            body = For(loop.var, loop.extent, body, "unrolled")
        return body

    def ranges(self, outer: Mapping[Var, int]) -> dict[Var, int]:
        """Return the extents of all variables."""
        inner = {d.var: d.extent for digits in self.digits.values() for d in digits}
        return {**outer, **{loop.var: static_int(loop.extent) for loop in self.tiles}, **inner}

    def substituted(self, expr: Expr, position: Mapping[str, Expr]) -> Expr:
        """Return an expression at a position in the current tile."""
        return substitute(substitute(expr, self.values), self.at(position))


def _no_tiles(size: int) -> LoweringError:
    return LoweringError(
        f"a loop over a fragment does not run over whole tiles of {size} elements: split loops "
        "by the shape of the instruction"
    )


def perfect_nest(stmt: Stmt) -> tuple[list[For], Stmt]:
    """Return the loops of a nest without statements between them, and its body."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    return loops, stmt


def variables_in(exprs: Iterable[Expr]) -> set[Var]:
    """Return the variables of expressions."""
    return {node for expr in exprs for node in walk(expr) if isinstance(node, Var)}


def linear(*terms: tuple[Expr, int]) -> Expr:
    """Return a sum of expressions times factors."""
    return from_terms(terms, 0).to_expr()


def number(lane: Expr, digits: Sequence[tuple[int, int]]) -> Expr:
    """Return the sum of the digits of a lane times their steps.

    Args:
        lane: The lane.
        digits: The extent of each digit, the lowest first, and its step.
    """
    parts: list[tuple[int, int, int]] = []  # the weight, the extent and the step of a digit
    weight = 1
    for extent, step in digits:
        if parts and (weight, step) == (parts[-1][0] * parts[-1][1], parts[-1][1] * parts[-1][2]):
            parts[-1] = (parts[-1][0], parts[-1][1] * extent, parts[-1][2])
        elif step:
            parts.append((weight, extent, step))
        weight *= extent
    return linear(
        *(
            (BinOp("%", BinOp("//", lane, IntImm(begin)), IntImm(extent)), step)
            for begin, extent, step in parts
        )
    )
