"""Products of matrices in the tile registers of a CPU (AMX), of 16 rows of 64 bytes each.

    for k in range(n):  # matrix_tiles               load the tiles of C into registers 0 to 3
        for p in range(16):                          for k in range(n):
            for e in range(2):                           load the tiles of A into 4 and 5,
                for i in range(32):            ->            those of B into 6 and 7
                    for j in range(32):                  add their four products
                        C[i, j] = C[i, j]            store the tiles of C
                            + f32(A[i, k, p, e])
                            * f32(B[k, p, j, e])

An instruction multiplies groups of neighbours along the sum, `e`: two bfloat16 or four bytes. They
are contiguous in both operands, and the columns of C are. Any other loop with the annotation is
emitted as a loop. `docs/numerics.md` states how sums of bfloat16 are rounded.

A loop around that of the rows may have 16 rows in each iteration, such as those of two lines of an
image, whose distance is then another one than that of rows.

The registers are configured before the outermost loop around products and released after it: the
configuration alone takes 200 cycles, a product of four tiles 64 (Emerald Rapids, measured). A loop
that fills C with zeros just before is left out: registers begin with zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import copysign

from compiler.backends.cpu.codegen.emitters.expressions import Expressions
from compiler.backends.cpu.codegen.emitters.scope import CodeScope
from compiler.backends.cpu.codegen.text.frame import Frame
from compiler.backends.cpu.codegen.text.instructions import Instructions
from compiler.ir.core.dtypes import DType, size_bytes
from compiler.ir.core.nodes import (
    BinOp,
    Cast,
    Expr,
    FloatImm,
    For,
    IntImm,
    Let,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import substitute, walk_stmts
from compiler.target.cpu import CpuTarget

KEY = "matrix_tiles"
ROWS = 16
"""Rows of a tile register."""
ROW_BYTES = 64
"""Bytes of a row."""
MAX_TILES = 2
"""Tiles of C along either axis: with those of A and B, they fill the eight registers."""
_LEFT, _RIGHT = 4, 6
"""The first registers of A and of B."""
_CONFIGURATION = (
    1,  # the only palette with registers, and no row to restart at
    *[0] * 3,
    *[ROW_BYTES << 16 | ROW_BYTES] * 4,  # eight times the bytes of a row, in 16 bits each
    *[0] * 4,
    *[ROWS << 24 | ROWS << 16 | ROWS << 8 | ROWS] * 2,  # and the rows, in 8 bits each
    *[0] * 2,
)
"""The operand of `ldtilecfg`, in words of 32 bits."""
_INSTRUCTIONS: dict[tuple[DType, DType, DType], str] = {
    ("bfloat16", "bfloat16", "float32"): "llvm.x86.tdpbf16ps",
    ("int8", "int8", "int32"): "llvm.x86.tdpbssd",
    ("int8", "uint8", "int32"): "llvm.x86.tdpbsud",
    ("uint8", "int8", "int32"): "llvm.x86.tdpbusd",
    ("uint8", "uint8", "int32"): "llvm.x86.tdpbuud",
}
_FEATURES = {"float32": "+amx-bf16", "int32": "+amx-int8"}
_REGISTERS = "+amx-tile"


def multiplies_tiles(target: CpuTarget, left: DType, right: DType, total: DType) -> bool:
    """Return whether the CPU multiplies tiles of two types with sums of the type `total`."""
    is_known = (left, right, total) in _INSTRUCTIONS
    return is_known and _FEATURES[total] in target.features.split(",")


@dataclass(frozen=True, slots=True)
class _TileProduct:
    """A product of tiles: its store, its operands, and the loops in it."""

    store: Store
    left: Load
    right: Load
    groups: For
    neighbours: For
    lines: For | None
    rows: For
    columns: For

    @property
    def inner(self) -> list[For]:
        """The loops inside of the one along the sum."""
        lines = [] if self.lines is None else [self.lines]
        return [self.groups, self.neighbours, *lines, self.rows, self.columns]

    @property
    def tiled(self) -> list[For]:
        """The loops over the sums of a block of tiles."""
        return self.inner[2:]

    @property
    def counts(self) -> tuple[int, int]:
        """The tiles along the rows and along the columns."""
        lines = 1 if self.lines is None else _extent(self.lines)
        return lines * (_extent(self.rows) // ROWS), _extent(self.columns) // ROWS


class MatrixTiles:
    """Emits products of tiles.

    Args:
        instructions: The instructions of the function.
        scope: The surroundings of the loops.
        expressions: Emits the addresses.
        frame: The memory of the function.
        target: The CPU.
    """

    def __init__(
        self,
        instructions: Instructions,
        scope: CodeScope,
        expressions: Expressions,
        frame: Frame,
        target: CpuTarget,
    ) -> None:
        self._instructions = instructions
        self._builder = instructions.builder
        self._scope = scope
        self._addresses = expressions.addresses
        self._frame = frame
        self._target = target
        self._is_configured = False
        self._zeros: For | None = None

    def surround(self, loop: For, emit_loop: Callable[[], None]) -> bool:
        """Emit a loop with configured registers if it is the outermost one around products.

        The tasks of parallel loops configure their own registers: other threads run them.

        Args:
            loop: A loop.
            emit_loop: Emits it.

        Returns:
            Whether it did.
        """
        if self._is_configured or _REGISTERS not in self._target.features.split(","):
            return False
        loops = [stmt for stmt in walk_stmts(loop) if isinstance(stmt, For)]
        if any(inner.kind == "parallel" for inner in loops) or not any(map(_is_annotated, loops)):
            return False
        self._configure()
        emit_loop()
        self._release()
        return True

    def begins_with_zeros(self, first: Stmt, second: Stmt) -> bool:
        """Return whether a statement only fills the sums of the product of tiles after it.

        The product then begins with zeros, and the statement must be left out.
        """
        if not (isinstance(first, For) and isinstance(second, For) and _is_annotated(second)):
            return False
        loops, fill = _nest(first)
        product = self._find(second) if isinstance(fill, Store) else None
        if product is None or not isinstance(fill, Store) or not _is_zero(fill.value):
            return False
        if list(map(_extent, loops)) != list(map(_extent, product.tiled)):
            return False
        names = {a.var: b.var for a, b in zip(loops, product.tiled, strict=True)}
        indices = tuple(substitute(index, names) for index in fill.indices)
        if (fill.buffer, indices) != (product.store.buffer, product.store.indices):
            return False
        self._zeros = second
        return True

    def emit(self, loop: For, run_loop: Callable[[Callable[[], None]], None]) -> bool:
        """Emit a loop by tile registers if it has the form.

        Args:
            loop: A loop with the annotation.
            run_loop: Emits the loop around its body, which it calls.

        Returns:
            Whether it did.
        """
        product = self._find(loop)
        if product is None:
            return False
        down, across = product.counts
        total = Load(product.store.buffer, product.store.indices)
        sums = [(MAX_TILES * i + j, i, j) for i in range(down) for j in range(across)]
        is_alone = not self._is_configured
        if is_alone:
            self._configure()
        self._start(sums, product, begins_with_zeros=self._zeros is loop)

        def step() -> None:
            for i in range(down):
                self._move("tileloadd64", _LEFT + i, product.left, product, (i, 0))
            for j in range(across):
                self._move("tileloadd64", _RIGHT + j, product.right, product, (0, j))
            for register, i, j in sums:
                registers = (register, _LEFT + i, _RIGHT + j)
                self._call(_instruction(product), ", ".join(f"i8 {n}" for n in registers))

        run_loop(step)
        for register, i, j in sums:
            self._move("tilestored64", register, total, product, (i, j))
        self._builder.forget_loads(product.store.buffer)
        if is_alone:
            self._release()
        return True

    def _start(
        self, sums: list[tuple[int, int, int]], product: _TileProduct, *, begins_with_zeros: bool
    ) -> None:
        """Load the registers of sums, or fill them with zeros."""
        total = Load(product.store.buffer, product.store.indices)
        for register, i, j in sums:
            if begins_with_zeros:
                self._call("llvm.x86.tilezero", f"i8 {register}")
            else:
                self._move("tileloadd64", register, total, product, (i, j))
        self._zeros = None

    def _configure(self) -> None:
        name = self._frame.allocate_on_stack(ROW_BYTES, "i8", ROW_BYTES, "tiles")
        words = ", ".join(f"i32 {word}" for word in _CONFIGURATION)
        kind = f"<{len(_CONFIGURATION)} x i32>"
        self._builder.emit_void(f"store {kind} <{words}>, ptr {name}, align {ROW_BYTES}")
        self._call("llvm.x86.ldtilecfg", f"ptr {name}")
        self._is_configured = True

    def _release(self) -> None:
        self._call("llvm.x86.tilerelease", "")
        self._is_configured = False

    def _move(
        self, name: str, register: int, tile: Load, product: _TileProduct, at: tuple[int, int]
    ) -> None:
        """Load or store a register; `at` is the tile's position in the block."""
        down = product.groups if tile is product.right else product.rows
        stride = self._stride(tile, down)
        assert stride is not None, "rows of tiles are at equal distances: `_find` checked it"
        env = self._scope.env
        env.update({loop.var: 0 for loop in product.inner})
        env[product.columns.var] = ROWS * at[1]
        if product.lines is None:
            env[product.rows.var] = ROWS * at[0]
        else:
            env[product.lines.var] = at[0]
        pointer = self._addresses.address(tile.buffer, tile.indices).pointer.name
        for loop in product.inner:
            del env[loop.var]
        row_bytes = stride * size_bytes(tile.buffer.dtype)
        self._call(f"llvm.x86.{name}", f"i8 {register}, ptr {pointer}, i64 {row_bytes}")

    def _call(self, name: str, operands: str) -> None:
        """Call a function with an effect."""
        types = ", ".join(
            "i8 immarg" if part.startswith("i8") else part.split()[0]
            for part in operands.split(", ")
            if part
        )
        self._instructions.externals.add(f"declare void @{name}({types})")
        self._builder.emit_void(f"call void @{name}({operands})")

    def _stride(self, access: Load, loop: For) -> int | None:
        return self._addresses.stride_along(access.buffer, access.indices, loop.var)

    # --- the form ---------------------------------------------------------------------------------

    def _find(self, loop: For) -> _TileProduct | None:
        if self._scope.mask is not None or self._scope.num_lanes() > 1:
            return None
        loops, store = _nest(loop.body)
        if not 4 <= len(loops) <= 5 or not isinstance(store, Store):
            return None
        # That of the sum, too: `begins_with_zeros` looks at a loop before it is emitted.
        for nested in (loop, *loops):
            self._scope.extents[nested.var] = _extent(nested)
        match store.value:
            case BinOp(
                "+", Load() as total, BinOp("*", Cast(_, Load() as a), Cast(_, Load() as b))
            ):
                pass
            case _:
                return None
        if total != Load(store.buffer, store.indices):
            return None
        groups, neighbours, *lines, rows, columns = loops
        for left, right in ((a, b), (b, a)):
            product = _TileProduct(
                store, left, right, groups, neighbours, lines[0] if lines else None, rows, columns
            )
            types = left.buffer.dtype, right.buffer.dtype, store.buffer.dtype
            if multiplies_tiles(self._target, *types) and self._fits(product):
                return product
        return None

    def _fits(self, product: _TileProduct) -> bool:
        """Return whether the operands lie as the instructions take them."""
        group = 4 // size_bytes(product.left.buffer.dtype)
        sizes = [_extent(product.groups), _extent(product.neighbours)]
        are_whole = all(_extent(loop) % ROWS == 0 for loop in (product.rows, product.columns))
        are_few = all(1 <= count <= MAX_TILES for count in product.counts)
        if sizes != [ROWS, group] or not (are_whole and are_few and self._fits_lines(product)):
            return False
        total = Load(product.store.buffer, product.store.indices)
        inner = (product.groups, product.neighbours, product.rows, product.columns)
        strides = [
            [self._stride(access, loop) for loop in inner]
            for access in (total, product.left, product.right)
        ]
        down = [strides[0][2], strides[1][2], strides[2][0]]
        fixed = [[0, 0, down[0], 1], [group, 1, down[1], 0], [down[2], 1, 0, group]]
        return None not in down and strides == fixed

    def _fits_lines(self, product: _TileProduct) -> bool:
        """Return whether lines, if any, have one tile each, and are at equal distances."""
        if product.lines is None:
            return True
        total = Load(product.store.buffer, product.store.indices)
        strides = [self._stride(a, product.lines) for a in (total, product.left, product.right)]
        return _extent(product.rows) == ROWS and None not in strides and strides[2] == 0


def _is_zero(value: Expr) -> bool:
    match value:
        case FloatImm(number):
            return number == 0 and copysign(1, number) > 0
        case _:
            return value == IntImm(0, "int32")


def _is_annotated(loop: For) -> bool:
    return KEY in dict(loop.annotations)


def _extent(loop: For) -> int:
    """Return the iterations of a loop; 0 if they vary."""
    return loop.extent.value if isinstance(loop.extent, IntImm) else 0


def _instruction(product: _TileProduct) -> str:
    buffers = product.left.buffer, product.right.buffer, product.store.buffer
    left, right, total = (buffer.dtype for buffer in buffers)
    return _INSTRUCTIONS[left, right, total]


def _nest(stmt: Stmt) -> tuple[list[For], Stmt]:
    """Return loops in each other, and what they run, without names for parts of it."""
    loops: list[For] = []
    values: dict[Var, Expr] = {}
    while isinstance(stmt, For | Let):
        if isinstance(stmt, For):
            loops.append(stmt)
        else:
            values[stmt.var] = stmt.value
        stmt = stmt.body
    return loops, substitute(stmt, values)
