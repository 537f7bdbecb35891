"""Copies of rows into groups of neighbours, transposed in registers (annotation `group_copy`).

    for g in range(384):  # group_copy            for g in range(0, 384, 16):
        for j in range(16):                           load 64 bytes of 16 rows, in words of 32 bits
            for e in vectorized(2):          ->       transpose the 16 x 16 words
                B[g, j, e] = A[j, 2*g + e]            store 64 bytes of B for each g

A group, the elements `e`, is a word: two bfloat16 or four bytes. Without this, each word is copied
alone: the panels of 768 x 768 bfloat16 took twice the time of the product of 128 rows with them
(Emerald Rapids). Any other loop with the annotation is emitted as a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from compiler.backends.cpu.codegen.emitters.expressions import Expressions
from compiler.backends.cpu.codegen.emitters.scope import CodeScope
from compiler.backends.cpu.codegen.operations.transposes import transpose
from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import For, IntImm, Load, Store

KEY = "group_copy"
WORD_BYTES = 4
"""Bytes of a group."""
SIZE = 16
"""Rows and words of a tile that is transposed: vectors of 512 bits."""
_RunRange: TypeAlias = Callable[[For, str, str, Callable[[], None]], None]


@dataclass(frozen=True, slots=True)
class _GroupCopy:
    """A copy: its store, its load, and its loops."""

    store: Store
    load: Load
    rows: For
    neighbours: For


class GroupCopies:
    """Emits copies of rows into groups.

    Args:
        instructions: The instructions of the function.
        scope: The surroundings of the loops.
        expressions: Emits the addresses.
    """

    def __init__(
        self, instructions: Instructions, scope: CodeScope, expressions: Expressions
    ) -> None:
        self._builder = instructions.builder
        self._scope = scope
        self._addresses = expressions.addresses

    def emit(self, loop: For, extent: int, run_range: _RunRange) -> bool:
        """Emit a loop with the annotation by tiles if it has the form.

        Args:
            loop: The loop over groups.
            extent: Its iterations.
            run_range: Emits a loop over a range around its body, which it calls.

        Returns:
            Whether it did.
        """
        copy = self._find(loop)
        if copy is None or extent % SIZE:
            return False
        env = self._scope.env

        def step() -> None:
            number = env[loop.var]
            assert isinstance(number, RegisterValue), "the number of a tile is a loop's register"
            first = self._builder.emit(f"mul nuw nsw i64 {number.name}, {SIZE}")
            env[loop.var] = RegisterValue(first, self._builder.depth)
            for row in range(0, _extent(copy.rows), SIZE):
                self._transpose(loop, copy, row)

        run_range(loop, "0", str(extent // SIZE), step)
        self._builder.forget_loads(copy.store.buffer)
        return True

    def _transpose(self, loop: For, copy: _GroupCopy, first: int) -> None:
        env, builder, kind = self._scope.env, self._builder, f"<{SIZE} x i32>"
        alignment = size_bytes(copy.load.buffer.dtype)
        env[copy.neighbours.var] = 0
        rows = []
        for row in range(first, first + SIZE):
            env[copy.rows.var] = row
            pointer = self._addresses.address(copy.load.buffer, copy.load.indices).pointer.name
            rows.append(builder.emit(f"load {kind}, ptr {pointer}, align {alignment}"))
        env[copy.rows.var] = first
        target = self._addresses.address(copy.store.buffer, copy.store.indices).pointer.name
        distance = (self._stride(copy.store, loop) or 0) * alignment
        for number, column in enumerate(transpose(builder, rows, "i32", SIZE, 32)):
            step = f"getelementptr inbounds i8, ptr {target}, i64 {number * distance}"
            pointer = builder.emit(step)
            builder.emit_void(f"store {kind} {column}, ptr {pointer}, align {alignment}")
        del env[copy.neighbours.var], env[copy.rows.var]

    def _find(self, loop: For) -> _GroupCopy | None:
        rows = loop.body
        neighbours = rows.body if isinstance(rows, For) else None
        store = neighbours.body if isinstance(neighbours, For) else None
        match rows, neighbours, store:
            case For(), For(), Store(value=Load() as load):
                pass
            case _:
                return None
        if self._scope.mask is not None or self._scope.num_lanes() > 1:
            return None
        for inner in (rows, neighbours):
            self._scope.extents[inner.var] = _extent(inner)
        group, item_bytes = _extent(neighbours), size_bytes(load.buffer.dtype)
        is_word = group * item_bytes == WORD_BYTES and load.buffer.dtype == store.buffer.dtype
        strides = [
            [self._stride(access, by) for by in (loop, rows, neighbours)]
            for access in (store, load)
        ]
        is_known = all(stride is not None for access in strides for stride in access)
        is_transposed = strides[0][1:] == [group, 1] and strides[1][::2] == [group, 1]
        if not (is_word and is_known and is_transposed) or _extent(rows) % SIZE:
            return None
        return _GroupCopy(store, load, rows, neighbours)

    def _stride(self, access: Load | Store, loop: For) -> int | None:
        return self._addresses.stride_along(access.buffer, access.indices, loop.var)


def _extent(loop: For) -> int:
    """Return the iterations of a loop; 0 if they vary."""
    return loop.extent.value if isinstance(loop.extent, IntImm) else 0
