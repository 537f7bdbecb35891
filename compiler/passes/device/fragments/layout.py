"""The registers of fragments: which ones hold which tile, and which lane holds which element.

A fragment of 64 by 16 elements of bfloat16 is 4 tiles of 16 by 16, of which a lane holds 8 elements
each: 4 registers of 32 bits a tile, so 16 registers. Sums have one register an element. Tiles are
numbered row by row; leading dimensions, such as the versions of a pipeline, are outermost.

Numbers of rows lie along the last dimension of several elements: those of 64 rows are 8 registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import Ranges
from compiler.ir.arith.simplify import normal
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Cast,
    Expr,
    For,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    static_shape,
)
from compiler.ir.core.scopes import (
    ACCUMULATOR,
    ACCUMULATOR_ROWS,
    MATRIX_A,
    MATRIX_B,
    is_fragment_scope,
)
from compiler.ir.core.visit import walk, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.target.gpus import WARP_SIZE
from compiler.target.tensor_cores import (
    DEVICE_INSTRUCTION,
    MMA_INSTRUCTIONS,
    WARPGROUP_SIZE,
    WGMMA_BY_NOTE,
    WGMMA_COLUMNS,
    FragmentMap,
    MmaInstruction,
    Step,
    WgmmaInstruction,
)

_REGISTER_BYTES = 4
_UNPACKED = (ACCUMULATOR, ACCUMULATOR_ROWS)


@dataclass(frozen=True, slots=True)
class FragmentLayout:
    """The registers of a fragment.

    Attributes:
        buffer: The fragment.
        map: The places of the elements of a tile.
        axes: The dimension along the rows of a tile, and that along its columns; numbers of rows
            have the first one only.
        registers: The array of a lane's registers.
    """

    buffer: Buffer
    map: FragmentMap
    axes: tuple[int, ...]
    registers: Buffer

    @property
    def elements_per_register(self) -> int:
        """Return the number of elements that share a register: one for sums."""
        if self.buffer.scope in _UNPACKED:
            return 1
        return _REGISTER_BYTES // size_bytes(self.buffer.dtype)

    @property
    def registers_per_tile(self) -> int:
        """Return the number of registers that hold a lane's part of a tile."""
        return self.map.num_elements // self.elements_per_register

    def register(self, indices: tuple[Expr, ...], ranges: Ranges) -> Affine:
        """Return the number of the first register of the tile whose corner has some indices.

        Raises:
            LoweringError: If the indices are not those of a corner of a tile.
        """
        total = Affine((), 0)
        shape = static_shape(self.buffer)
        for index, size, extent in zip(indices, self._tile, shape, strict=True):
            form = normal(index, ranges)
            if any(part % size for part in (form.const, *(c for _, c in form.terms))):
                raise LoweringError(
                    f"{self.buffer.name} is accessed at a position that is no multiple of its "
                    f"tiles of {self.map.rows} by {self.map.columns}"
                )
            terms = tuple((atom, c // size) for atom, c in form.terms)
            total = total.scaled(extent // size) + Affine(terms, form.const // size, form.dtype)
        return total.scaled(self.registers_per_tile)

    def distance(self, extent: int, step: Step) -> int | None:
        """Return by how many registers two elements of a lane that lie a step apart are apart.

        Args:
            extent: How many elements follow each other by this step.
            step: The rows and columns from one element to the next.

        Returns:
            The distance; None if lanes do not hold both elements.
        """
        down, right = step[0], step[1] if len(self.axes) > 1 else 0
        if not down and not right:
            return 0
        weight = 1
        for count, held in self.map.element:
            if held == (down, right):
                return weight if extent <= count else None
            weight *= count
        if down % self.map.rows or right % self.map.columns:
            return None
        tiles = [n // size for n, size in zip(static_shape(self.buffer), self._tile, strict=True)]
        distances = [prod(tiles[axis + 1 :]) for axis in self.axes]
        steps = (down // self.map.rows, right // self.map.columns)
        total = sum(count * each for count, each in zip(steps, distances, strict=False))
        return total * self.registers_per_tile

    @property
    def _tile(self) -> tuple[int, ...]:
        """Return the extent of a tile along each dimension."""
        sizes = dict(zip(self.axes, (self.map.rows, self.map.columns), strict=False))
        return tuple(sizes.get(axis, 1) for axis in range(len(self.buffer.shape)))


def is_wgmma(loop: For) -> bool:
    """Return whether a loop is noted to be a product of warpgroups."""
    return dict(loop.annotations).get(DEVICE_INSTRUCTION) in WGMMA_BY_NOTE


def wgmma_of(loop: For) -> WgmmaInstruction:
    """Return the instruction of a product of warpgroups: its columns are those of the sums.

    Raises:
        LoweringError: If no instruction has so many columns.
    """
    note = str(dict(loop.annotations)[DEVICE_INSTRUCTION])
    sums = next(node for node in walk_stmts(loop) if isinstance(node, Store)).buffer
    columns = static_shape(sums)[-1]
    instruction = WGMMA_BY_NOTE[note].get(columns)
    if instruction is None:
        raise LoweringError(
            f"the sums of {sums.name} have {columns} columns: {note} has multiples of 8 up to "
            f"{max(WGMMA_COLUMNS)}; use smaller tiles"
        )
    return instruction


def num_lanes(stmt: Stmt) -> int:
    """Return the number of lanes that hold a fragment together in a kernel."""
    loops = (node for node in walk_stmts(stmt) if isinstance(node, For))
    return WARPGROUP_SIZE if any(map(is_wgmma, loops)) else WARP_SIZE


def touches_fragments(stmt: Stmt) -> bool:
    """Return whether a statement accesses a fragment."""
    return any(
        isinstance(node, Load | Store) and is_fragment_scope(node.buffer.scope)
        for node in walk(stmt)
    )


def allocates_fragments(stmt: Stmt) -> bool:
    """Return whether a statement allocates a fragment."""
    return any(
        isinstance(node, Allocate) and is_fragment_scope(node.buffer.scope)
        for node in walk_stmts(stmt)
    )


def layouts_of(stmt: Stmt) -> dict[Buffer, FragmentLayout]:
    """Return the layouts of the fragments of a program, by the instructions that use them.

    Raises:
        LoweringError: If instructions disagree, or none uses an operand.
    """
    maps: dict[Buffer, FragmentMap] = {}
    for loop in walk_stmts(stmt):
        if isinstance(loop, For) and DEVICE_INSTRUCTION in dict(loop.annotations):
            for buffer, held in _maps_of(loop).items():
                if maps.setdefault(buffer, held) != held:
                    raise LoweringError(f"instructions hold {buffer.name} in different registers")
    fragments = {
        node.buffer
        for node in walk(stmt)
        if isinstance(node, Load | Store) and is_fragment_scope(node.buffer.scope)
    }
    default = next(iter(MMA_INSTRUCTIONS.values())).c
    for buffer in sorted(fragments - maps.keys(), key=lambda b: b.name):
        if buffer.scope == ACCUMULATOR_ROWS:
            maps[buffer] = default.of_rows
        elif buffer.scope == ACCUMULATOR:
            maps[buffer] = default
        else:
            raise LoweringError(
                f"{buffer.name} is an operand of tensor cores, but no instruction uses it: "
                "tensorize the product with an intrinsic such as mma_sync_16x8x16_f16f16f32"
            )
    return {buffer: _layout(buffer, held) for buffer, held in maps.items()}


def _layout(buffer: Buffer, held: FragmentMap) -> FragmentLayout:
    shape = static_shape(buffer)
    axes: tuple[int, ...] = (len(shape) - 2, len(shape) - 1)
    if buffer.scope == ACCUMULATOR_ROWS:
        axes = (max((axis for axis, extent in enumerate(shape) if extent > 1), default=0),)
    sizes = (held.rows, held.columns)[: len(axes)]
    if min(axes) < 0 or any(shape[n] % size for n, size in zip(axes, sizes, strict=True)):
        raise LoweringError(
            f"fragment {buffer.name} of {list(shape)} is not made of whole tiles of "
            f"{' by '.join(map(str, sizes))}"
        )
    elements = prod(shape) // prod(sizes) * held.num_elements
    is_packed = buffer.scope not in _UNPACKED
    packed = _REGISTER_BYTES // size_bytes(buffer.dtype) if is_packed else 1
    count = (IntImm(elements // packed),)
    dtype = "uint32" if is_packed else buffer.dtype
    registers = Buffer(Var(buffer.name, "handle"), count, dtype, "local")
    return FragmentLayout(buffer, held, axes, registers)


@dataclass(frozen=True, slots=True)
class FragmentProduct:
    """The accesses of a product of tiles: `c = c + a * b`."""

    instruction: MmaInstruction
    c: Store
    a: Load
    b: Load


def product_of(instruction_name: object, store: Store) -> FragmentProduct:
    """Return the product that a store with the note of an instruction computes.

    Raises:
        LoweringError: If it is not the product of that instruction.
    """
    instruction = MMA_INSTRUCTIONS.get(str(instruction_name))
    if instruction is None:
        names = ", ".join(MMA_INSTRUCTIONS)
        raise LoweringError(f"there is no device instruction {instruction_name!r}: {names}")
    match store.value:
        case BinOp("+", Load(buffer, indices), BinOp("*", lhs, rhs)) if (buffer, indices) == (
            store.buffer,
            store.indices,
        ):
            by_scope = {
                load.buffer.scope: load
                for load in (_without_cast(lhs), _without_cast(rhs))
                if isinstance(load, Load)
            }
            a, b = by_scope.get(MATRIX_A), by_scope.get(MATRIX_B)
            if a is not None and b is not None and store.buffer.scope == ACCUMULATOR:
                dtypes = (a.buffer.dtype, b.buffer.dtype, store.buffer.dtype)
                operand = instruction.operand
                if dtypes == (operand, operand, instruction.accumulator):
                    return FragmentProduct(instruction, store, a, b)
        case _:
            pass
    raise LoweringError(
        f"the computation of {store.buffer.name} is not what {instruction.name} computes"
    )


def _without_cast(expr: Expr) -> Expr:
    return expr.value if isinstance(expr, Cast) else expr


def _maps_of(loop: For) -> dict[Buffer, FragmentMap]:
    """Return the maps of the fragments of an instruction: three, or the sums of a warpgroup."""
    if is_wgmma(loop):
        sums = next(node for node in walk_stmts(loop) if isinstance(node, Store))
        return {sums.buffer: wgmma_of(loop).c}
    inside = {node.var for node in walk_stmts(loop) if isinstance(node, For)}
    store = next(node for node in walk_stmts(loop) if isinstance(node, Store))
    product = product_of(dict(loop.annotations)[DEVICE_INSTRUCTION], store)
    instruction = product.instruction

    def loops_of(index: Expr) -> set[Var]:
        return inside & {node for node in walk(index) if isinstance(node, Var)}

    rows, columns = loops_of(store.indices[-2]), loops_of(store.indices[-1])
    a, b = instruction.a, instruction.b
    if loops_of(product.a.indices[-1]) <= rows:
        a = a.transposed
    if loops_of(product.b.indices[-2]) <= columns:
        b = b.transposed
    return {store.buffer: instruction.c, product.a.buffer: a, product.b.buffer: b}
