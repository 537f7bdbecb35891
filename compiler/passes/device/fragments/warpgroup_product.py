"""Find the product of matrices that warpgroups compute: its tile, its reduction, its operands.

    for i, j, k in 64, 128, 1000:  # wgmma.m64n128k16.bf16.f32
        if y * 64 + i < 200:
            c[i, j] = c[i, j] + A[y * 64 + i, k] * B[k, x * 128 + j]

The nest is the whole product of a tile: its reduction runs from the first chunk to the last one.
The copy engine reads zeros outside of an operand, so a condition that only keeps indices inside may
be dropped: nothing reads the sums of other elements without the same condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compiler.ir.arith.affine import Affine, from_terms
from compiler.ir.arith.simplify import normal
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import (
    BinOp,
    Cast,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Logic,
    Stmt,
    Store,
    Var,
    static_int,
    static_shape,
)
from compiler.ir.core.scopes import ACCUMULATOR
from compiler.ir.core.visit import walk
from compiler.ir.text.print_expr import show_expr
from compiler.passes.common.error import LoweringError
from compiler.target.tensor_cores import WgmmaInstruction

CHUNK = 64
"""The elements of a chunk of the reduction: 128 bytes, a row of the widest swizzle."""
_STRIDE_BYTES = 16
"""Of the strides of a tensor in global memory, the copy engine takes multiples of this."""
_MAX_RANK = 5

Digits = dict[Var, int]
"""The loops of an axis, each with its factor in the index."""


@dataclass(frozen=True, slots=True)
class MatrixOperand:
    """An operand of a product.

    Attributes:
        load: The access.
        free: The dimension along the rows or the columns of the sums.
        step: The dimension along the reduction.
        extent: The elements of the tile of a consumer along `free`.
        is_shared: Whether all consumers read one tile; otherwise each has a tile of its own, one
            after another.
        corner: The indices of the first element of the first consumer's tile.
    """

    load: Load
    free: int
    step: int
    extent: int
    is_shared: bool
    corner: tuple[Expr, ...]

    @property
    def is_transposed(self) -> bool:
        """Return whether rows in memory run along `free` instead of the reduction."""
        return self.free > self.step


@dataclass(frozen=True, slots=True)
class WarpgroupProduct:
    """The product of a tile: `c[i, j] += a[i, k] * b[k, j]` for all k.

    Attributes:
        depth: The extent of the reduction.
        sums: The access of the sums.
        conditions: What must hold for the product to take place, alike for all threads.
    """

    instruction: WgmmaInstruction
    depth: int
    sums: Store
    a: MatrixOperand
    b: MatrixOperand
    conditions: tuple[Expr, ...]

    @property
    def operands(self) -> tuple[MatrixOperand, MatrixOperand]:
        """Return A and B."""
        return self.a, self.b


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The variables around a nest.

    Attributes:
        ranges: The extents of variables.
        lane: The thread in its warpgroup.
        consumer: The number of the warpgroup; None if there is one.
    """

    ranges: Mapping[Var, int]
    lane: Var
    consumer: Var | None


def warpgroup_product(
    instruction: WgmmaInstruction, loops: list[For], body: Stmt, around: Surroundings
) -> WarpgroupProduct:
    """Return the product that a nest computes.

    Raises:
        LoweringError: If it is not what the instruction and the copy engine can do.
    """
    return _Nest(instruction, loops, around).product(body)


def widened_factors(store: Store) -> tuple[Load, Load] | None:
    """Return the two loads whose product, as float32, a store adds to its element, if it does."""
    match store.value:
        case BinOp(
            "+",
            Load(buffer, indices),
            BinOp("*", Cast(left_type, Load() as left), Cast(right_type, Load() as right)),
        ) if (buffer, indices) == (store.buffer, store.indices) and left_type == right_type == (
            "float32"
        ):
            return left, right
        case _:
            return None


class _Nest:
    """A nest with the note of an instruction."""

    def __init__(
        self, instruction: WgmmaInstruction, loops: list[For], around: Surroundings
    ) -> None:
        self._instruction = instruction
        self._around = around
        self._extents = {loop.var: static_int(loop.extent) for loop in loops}
        self._ranges = {**around.ranges, **self._extents}

    def product(self, body: Stmt) -> WarpgroupProduct:
        conditions = []
        while isinstance(body, If):
            conditions.append(body.condition)
            body = body.then
        assert isinstance(body, Store)
        left, right = self._factors(body)
        rows, columns = (self._digits(self._form(index)) for index in body.indices[-2:])
        steps = {v: c for v, c in self._all_digits(left).items() if v not in {**rows, **columns}}
        if not self._runs_along(left, rows):
            left, right = right, left
        a, b = self._operand(left, rows, steps), self._operand(right, columns, steps)
        operands = (a, b)
        m, n, _ = self._instruction.shape
        extents = [operand.extent for operand in operands]
        if extents[0] % m or extents[1] != n:
            raise LoweringError(
                f"the sums of {body.buffer.name} are {extents[0]} by {extents[1]}: "
                f"{self._instruction.name} computes rows that are multiples of {m}, and {n} columns"
            )
        depth = self._extent(steps)
        for operand in operands:
            self._check_memory(operand, depth)
        remaining = tuple(self._conditions_of_all(conditions, operands))
        return WarpgroupProduct(self._instruction, depth, body, a, b, remaining)

    def _factors(self, store: Store) -> tuple[Load, Load]:
        factors = widened_factors(store)
        is_sum = (store.buffer.scope, store.buffer.dtype) == (ACCUMULATOR, "float32")
        operand = self._instruction.operand
        if (
            factors is None
            or not is_sum
            or {(load.buffer.scope, load.buffer.dtype) for load in factors} != {("global", operand)}
        ):
            raise LoweringError(
                f"the computation of {store.buffer.name} is not what {self._instruction.name} "
                f"computes: a sum of products of {operand} from global memory, as float32"
            )
        return factors

    # --- axes -----------------------------------------------------------------------------------

    def _form(self, index: Expr) -> Affine:
        return normal(index, self._ranges)

    def _digits(self, form: Affine) -> Digits:
        """Return the loops of the nest in an index."""
        digits = {atom: c for atom, c in form.terms if isinstance(atom, Var)}
        return {var: c for var, c in digits.items() if var in self._extents}

    def _all_digits(self, load: Load) -> Digits:
        return {v: c for index in load.indices for v, c in self._digits(self._form(index)).items()}

    def _runs_along(self, load: Load, digits: Digits) -> bool:
        return any(self._digits(self._form(index)) == digits for index in load.indices)

    def _extent(self, digits: Digits) -> int:
        """Return the extent of an axis, over which the loops run in order."""
        reached = 1
        for var, factor in sorted(digits.items(), key=lambda item: item[1]):
            if factor != reached:
                raise LoweringError(
                    f"loop {var.name} of a product of warpgroups does not run over a contiguous "
                    "range: split and reorder loops without gaps"
                )
            reached *= self._extents[var]
        return reached

    # --- operands -------------------------------------------------------------------------------

    def _operand(self, load: Load, free_digits: Digits, steps: Digits) -> MatrixOperand:
        name = load.buffer.name
        forms = [self._form(index) for index in load.indices]
        digits = [self._digits(form) for form in forms]
        dimensions = [n for n, each in enumerate(digits) if each]
        free, step = (
            next((n for n, each in enumerate(digits) if each == expected), -1)
            for expected in (free_digits, steps)
        )
        if sorted((free, step)) != dimensions or max(free, step) != len(forms) - 1:
            raise LoweringError(
                f"the copy engine can't fetch tiles of {name}: one of its dimensions must run "
                "along the sums, one along the reduction, and one of the two must be the last"
            )
        extent = self._extent(free_digits)
        consumer = self._around.consumer
        distance = forms[free].coefficient(consumer) if consumer is not None else 0
        if distance not in (0, extent):
            raise LoweringError(
                f"the tiles of {name} of two warpgroups are {distance} elements apart: expected "
                f"{extent}, the extent of a tile"
            )
        corner = []
        for dimension, form in enumerate(forms):
            removed = {*digits[dimension], *([consumer] if dimension == free else [])}
            rest = from_terms(((a, c) for a, c in form.terms if a not in removed), form.const)
            corner.append(rest.to_expr())
        self._check_same_for_all_threads(name, corner)
        return MatrixOperand(load, free, step, extent, distance == 0, tuple(corner))

    def _check_same_for_all_threads(self, name: str, corner: list[Expr]) -> None:
        for index in corner:
            if self._varies(index):
                raise LoweringError(
                    f"the tile of {name} begins at {show_expr(index)}, which differs from thread "
                    "to thread: one thread fetches the tiles of all"
                )

    def _check_memory(self, operand: MatrixOperand, depth: int) -> None:
        """Check what the copy engine requires of a tensor."""
        buffer = operand.load.buffer
        shape = static_shape(buffer)
        row_bytes = shape[-1] * size_bytes(buffer.dtype)
        if row_bytes % _STRIDE_BYTES or not 2 <= len(shape) <= _MAX_RANK:
            raise LoweringError(
                f"the copy engine can't fetch {buffer.name} of {list(shape)}: it takes tensors of "
                f"2 to {_MAX_RANK} dimensions whose rows are multiples of {_STRIDE_BYTES} bytes; "
                "pad the rows, or use mma.sync"
            )
        is_whole = operand.corner[operand.step] == IntImm(0) and depth == shape[operand.step]
        if depth % CHUNK and not is_whole:
            raise LoweringError(
                f"the reduction of {depth} elements is a part of {buffer.name} and no multiple of "
                f"{CHUNK}: the last chunk would have elements of the next part"
            )
        if operand.is_transposed and operand.extent % CHUNK:
            raise LoweringError(
                f"the rows of {buffer.name} run along the sums: a tile of {operand.extent} of its "
                f"elements must be a multiple of {CHUNK}"
            )

    def _varies(self, expr: Expr) -> bool:
        """Return whether an expression may differ from thread to thread, or inside of the nest."""
        varying = {self._around.lane, self._around.consumer, *self._extents}
        return any(node in varying for node in walk(expr) if isinstance(node, Var))

    def _conditions_of_all(
        self, conditions: list[Expr], operands: tuple[MatrixOperand, ...]
    ) -> Iterator[Expr]:
        """Yield the conditions on the whole product; drop those that keep an index inside.

        Raises:
            LoweringError: If there is another condition.
        """
        limits = [
            (self._form(index), extent)
            for operand in operands
            for index, extent in zip(
                operand.load.indices, static_shape(operand.load.buffer), strict=True
            )
        ]
        for part in (part for condition in conditions for part in _conjuncts(condition)):
            match part:
                case Compare("<", index, IntImm(limit)) if any(
                    self._is_equal(index, form) and limit == extent for form, extent in limits
                ):
                    pass
                case _ if self._varies(part):
                    raise LoweringError(
                        f"a product of warpgroups computes whole tiles: the condition "
                        f"{show_expr(part)} inside of it is impossible"
                    )
                case _:
                    yield part

    def _is_equal(self, index: Expr, form: Affine) -> bool:
        difference = self._form(index) - form
        return not difference.terms and difference.const == 0


def _conjuncts(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Logic) and condition.op == "and":
        yield from _conjuncts(condition.lhs)
        yield from _conjuncts(condition.rhs)
    else:
        yield condition
