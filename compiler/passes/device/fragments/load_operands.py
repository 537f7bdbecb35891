"""Load tiles of operands: by `ldmatrix` from shared memory, or element by element.

`ldmatrix.x4` loads four matrices of 8 rows of 16 bytes: lane l gives the address of row l % 8 of
matrix l // 8, and gets element l % 4 of row l // 4 of each. With `.trans` it gets the element of
the transposed matrix, which 16-bit types alone have.

Sums of one product become an operand of another in registers: a lane holds the same elements of
two tiles of sums, 16 by 8, and of one tile of 16-bit elements, 16 by 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.dtypes import DType, size_bytes
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.layout import strides_of
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Call,
    Cast,
    Evaluate,
    Expr,
    For,
    IntImm,
    Load,
    Ramp,
    Stmt,
    Store,
    Var,
    static_int,
)
from compiler.ir.core.scopes import is_shared_scope
from compiler.ir.core.visit import substitute, walk
from compiler.passes.common.error import LoweringError
from compiler.passes.device.fragments.held_elements import ElementDigit, HeldElement
from compiler.passes.device.fragments.layout import FragmentLayout
from compiler.passes.device.fragments.tile_nest import TileNest, linear, number, variables_in

ROW_BYTES = 16
_LINES = 8
_MATRICES = 4
_HALF, _WORD = 2, 4
_ZERO = IntImm(0)
_UNSIGNED: dict[int, DType] = {1: "uint8", 2: "uint16", 4: "uint32"}


def load_operand(
    layouts: Mapping[Buffer, FragmentLayout],
    loops: list[For],
    body: Stmt,
    lane: Var,
    ranges: dict[Var, int],
) -> Stmt:
    """Lower a nest that fills a fragment of an operand, from memory or from sums.

    Raises:
        LoweringError: If it does not fill whole tiles, or only under a condition, or if lanes do
            not hold the sums that they convert.
    """
    layout = layouts[next(n for n in walk(body) if isinstance(n, Store)).buffer]
    if not isinstance(body, Store):
        raise LoweringError(
            f"{layout.buffer.name} is filled under a condition: fill shared memory under it, and "
            "load all of the fragment"
        )
    nest = TileNest(list(loops))
    rows, columns = (normal(index, ranges) for index in body.indices[-2:])
    nest.axis("row", rows, layout.map.rows)
    nest.axis("column", columns, layout.map.columns)
    operand = _Operand(layouts, layout, nest, body, lane, ranges)
    return operand.by_matrices() or operand.by_elements()


@dataclass
class _Operand:
    """One load of an operand.

    Attributes:
        layouts: The registers of all fragments.
        layout: Those of the operand.
        nest: The loops over its tiles.
        store: The store of an element.
        lane: The number of the lane.
        outer: The extents of the variables outside.
        pair: The loop over tiles of which two are loaded at once, and the loop over the pairs.
    """

    layouts: Mapping[Buffer, FragmentLayout]
    layout: FragmentLayout
    nest: TileNest
    store: Store
    lane: Var
    outer: dict[Var, int]
    pair: tuple[Var, Var] | None = None

    @property
    def ranges(self) -> dict[Var, int]:
        """Return the extents of all variables."""
        pair = {} if self.pair is None else {self.pair[0]: 1 << 20}
        return {**self.nest.ranges(self.outer), **pair}

    def at(self, expr: Expr, row: Expr, column: Expr, second: Expr = _ZERO) -> Expr:
        """Return an expression at a position in the current tile, or in the one after it."""
        new = self.nest.substituted(expr, {"row": row, "column": column})
        if self.pair is not None:
            tile, pair = self.pair
            new = substitute(new, {tile: linear((pair, 2), (second, 1))})
        return simplify(new, self.ranges)

    def first_register(self) -> Affine:
        """Return the number of the first register of the current tile."""
        indices = (self.at(index, _ZERO, _ZERO) for index in self.store.indices)
        return self.layout.register(tuple(indices), self.ranges)

    # --- matrices -------------------------------------------------------------------------------

    def by_matrices(self) -> Stmt | None:
        """Return the loads of whole matrices; None if rows are not contiguous or not aligned."""
        source = self.store.value
        if not isinstance(source, Load) or not is_shared_scope(source.buffer.scope):
            return None
        is_transposed = self._is_transposed(source)
        if is_transposed is None:
            return None
        digits = self.layout.map.element[1 if self.layout.elements_per_register > 1 else 0 :]
        has_two = self.layout.registers_per_tile < _MATRICES and self._pair_tiles()
        line_axis = self._axis if is_transposed else 1 - self._axis
        row, column = (
            number(
                self.lane,
                [(_LINES, int(axis == line_axis)), *((n, step[axis]) for n, step in digits)],
            )
            for axis in (0, 1)
        )
        count = self.layout.registers_per_tile * (2 if has_two else 1)
        second = BinOp("//", self.lane, IntImm(_LINES * self.layout.registers_per_tile))
        *leading, start = (self.at(index, row, column, second) for index in source.indices)
        indices = (*leading, Ramp(start, 1, ROW_BYTES // size_bytes(source.buffer.dtype)))
        target = Load(self.layout.registers, (self.first_register().to_expr(),))
        name = f"ldmatrix.x{count}" + (".trans" if is_transposed else "")
        return self.nest.around(
            Evaluate(Call(name, (target, Load(source.buffer, indices)), "int32"))
        )

    @property
    def _axis(self) -> int:
        """Return the axis, row or column, along which the elements of a register lie."""
        return 0 if self.layout.map.lane[0][1][0] else 1

    def _is_transposed(self, source: Load) -> bool | None:
        """Return whether the rows in memory lie across those of the matrices.

        None if they are not contiguous, or not aligned.
        """
        element = size_bytes(source.buffer.dtype)
        chunk = ROW_BYTES // element
        strides = strides_of(source.buffer)
        position = linear(*zip(source.indices, strides, strict=True))
        form = normal(substitute(position, self.nest.values), self.ranges)
        inside = {d.var for digits in self.nest.digits.values() for d in digits}
        names = ("row", "column")
        for is_transposed, axis in ((False, self._axis), (True, 1 - self._axis)):
            unit = next(d for d in self.nest.digits[names[axis]] if d.step == 1)
            if form.coefficient(unit.var) != 1 or unit.extent % chunk:
                continue
            rest = [(atom, factor) for atom, factor in form.terms if atom != unit.var]
            is_aligned = not any(part % chunk for part in (form.const, *(c for _, c in rest)))
            compound = variables_in(atom for atom, _ in rest if not isinstance(atom, Var))
            if is_aligned and not compound & inside and (element == _HALF or not is_transposed):
                return is_transposed
        return None

    def _pair_tiles(self) -> bool:
        """Take two tiles at once, if a loop runs over tiles whose registers follow each other."""
        register = self.first_register()
        for position, loop in enumerate(self.nest.tiles):
            extent = static_int(loop.extent)
            follows = register.coefficient(loop.var) == self.layout.registers_per_tile
            if follows and extent % 2 == 0:
                pair = Var(f"{loop.var.name}_pair", loop.var.dtype)
                self.nest.tiles[position] = replace(loop, var=pair, extent=IntImm(extent // 2))
                self.pair = (loop.var, pair)
                return True
        return False

    # --- elements -------------------------------------------------------------------------------

    def by_elements(self) -> Stmt:
        """Return a loop over the registers of a lane, each of which is put together."""
        held = self.layout.map
        packed = self.layout.elements_per_register
        digits = held.element[1 if packed > 1 else 0 :]
        loops = [
            For(Var(f"e{n}"), IntImm(extent), self.store) for n, (extent, _) in enumerate(digits)
        ]
        of_loops = [
            ElementDigit(loop.var, extent, step)
            for loop, (extent, step) in zip(loops, digits, strict=True)
        ]
        of_register = held.element[: 1 if packed > 1 else 0]
        ranges = self.ranges | {loop.var: static_int(loop.extent) for loop in loops}
        parts: list[Expr] = []
        for number_of_part in range(packed):
            inside = [ElementDigit(IntImm(number_of_part), *digit) for digit in of_register]
            every = (*inside, *of_loops)
            held_element = HeldElement(
                self.layouts, self.layout, every, self.nest, self.lane, ranges
            )
            parts.append(held_element.expr(self.store.value))
        place_in_tile, step = [], 1
        for loop in loops:
            place_in_tile.append((loop.var, step))
            step *= static_int(loop.extent)
        register = linear((self.first_register().to_expr(), 1), *place_in_tile)
        body: Stmt = Store(self.layout.registers, (register,), _packed(parts))
        for loop in loops:
            body = replace(loop, body=body, kind="unrolled")
        return self.nest.around(body)


def _packed(parts: list[Expr]) -> Expr:
    """Return the bits of elements in one word, the first in the lowest bits."""
    dtype = dtype_of(parts[0])
    width = size_bytes(dtype)
    converted = [part.value for part in parts if isinstance(part, Cast)]
    if width == _HALF and [dtype_of(value) for value in converted] == ["float32", "float32"]:
        return Call(f"pack_{dtype}", tuple(converted), "uint32")  # one instruction converts both
    word: Expr | None = None
    for number_of_part, part in enumerate(parts):
        bits: Expr = Call("reinterpret", (part,), _UNSIGNED[width])
        bits = bits if width == _WORD else Cast("uint32", bits)
        if number_of_part:
            bits = BinOp("<<", bits, IntImm(8 * width * number_of_part, "uint32"))
        word = bits if word is None else BinOp("|", word, bits)
    assert word is not None
    return word
