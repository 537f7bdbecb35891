"""Lengthen short rows of small buffers to whole vectors.

    allocate T[2, 14]                            allocate T[2, 16]
    for y in unrolled(2):                        for y in unrolled(2):
        for x in vectorized(14):         ->          for x in vectorized(16):
            T[y, x] += P[y + r, x + s] * W[r, s]         T[y, x] += P[y + r, x + s] * W[r, s]

On a CPU with vectors of 16, 14 elements are three operations, of 8, 4 and 2 elements, but 16 are
one. The rows of images of neural networks often have 7, 14 or 28 elements. The new elements hold
anything, and start as zeros (`padded_buffers`); no statement reads them, except to compute other
new elements. Only buffers that the program allocates get longer rows: parameters have the elements
that they have. Rows of large buffers become longer only if the loop reads them, and stores into
small ones.

On a Zen 5, a depthwise convolution of 240 images of 14 x 14 by 5 x 5 takes 0.56 of the time in
tiles of two rows, and 0.41 in tiles of seven. A convolution of ten groups of 24 x 28 x 28 by 3 x 3,
whose padded image is large, takes 0.72.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.simplify import normal
from compiler.ir.core.dtypes import bits, size_bytes
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Expr,
    For,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_stmt, walk, walk_stmts
from compiler.passes.common.accesses import Path, loop_extents
from compiler.passes.common.compact_buffers import MAX_FIXED_BYTES
from compiler.passes.cpu.drop_guards import may_trap

MAX_GROWTH = 1.25
"""Growth of the rows of large buffers, such as padded images: they need more cache then. Chosen."""


def fill_vectors(stmt: Stmt, vector_bits: int) -> Stmt:
    """Lengthen the vectorized loops over rows that end in more than one part of a vector."""
    allocated = {node.buffer for node in walk_stmts(stmt) if isinstance(node, Allocate)}
    # A call that gets the address of a buffer knows the length of its rows.
    addresses = {node for node in walk(stmt) if isinstance(node, Var)}
    growing = {buffer for buffer in allocated if buffer.data not in addresses}
    return _ShortRows(growing, vector_bits).run(stmt) if growing else stmt


class _ShortRows:
    """The loops of one program, and the lengths of rows that they need."""

    def __init__(self, allocated: set[Buffer], vector_bits: int) -> None:
        self._allocated = allocated
        self._vector_bits = vector_bits
        self._lengths: dict[Buffer, int] = {}

    def run(self, stmt: Stmt) -> Stmt:
        new = self._visit(stmt, ())
        longer = {
            buffer: Buffer(
                Var(buffer.name, "handle"),
                (*buffer.shape[:-1], IntImm(length)),
                buffer.dtype,
                buffer.scope,
            )
            for buffer, length in self._lengths.items()
        }
        return replace_buffers(new, longer) if longer else new

    def _visit(self, stmt: Stmt, outer: Path) -> Stmt:
        path = (*outer, stmt)
        if isinstance(stmt, For) and stmt.kind == "vectorized" and isinstance(stmt.extent, IntImm):
            lanes = self._whole_lanes(stmt, stmt.extent.value)
            needs = self._needed_lengths(path, lanes - stmt.extent.value)
            if needs is None:
                return stmt
            for buffer, length in needs.items():
                self._lengths[buffer] = max(length, self._lengths.get(buffer, 0))
            return For(stmt.var, IntImm(lanes), stmt.body, stmt.kind, stmt.thread, stmt.annotations)
        return map_stmt(stmt, lambda child: self._visit(child, path), lambda expr: expr)

    def _whole_lanes(self, loop: For, extent: int) -> int:
        """Return the elements of a row whose last vector is one, and not several parts."""
        types = [node.buffer.dtype for node in walk(loop) if isinstance(node, Load | Store)]
        lanes = max(1, self._vector_bits // max(map(bits, types), default=self._vector_bits))
        rest = extent % lanes
        return extent - rest + (1 << (rest - 1).bit_length()) if rest.bit_count() > 1 else extent

    def _needed_lengths(self, path: Path, extra: int) -> dict[Buffer, int] | None:
        """Return the lengths of rows that a longer loop needs; None if it can't be longer.

        Args:
            path: The statements from the root down to the loop.
            extra: The number of new elements.
        """
        loop = path[-1]
        assert isinstance(loop, For), "the path of a loop ends in it"
        if not extra or not isinstance(loop.body, Store):
            return None
        ranges = loop_extents(path)
        needs: dict[Buffer, int] = {}
        for access in walk(loop.body):
            if may_trap(access):
                return None
            if not isinstance(access, Load | Store) or not _moves(access.indices, loop.var):
                continue
            length = self._length(access, loop, ranges, extra)
            if length is None:
                return None
            needs[access.buffer] = max(length, needs.get(access.buffer, 0))
        return needs

    def _length(
        self, access: Load | Store, loop: For, ranges: dict[Var, int], extra: int
    ) -> int | None:
        """Return the length of rows that holds what a longer loop accesses; None if there is no."""
        buffer, last = access.buffer, normal(access.indices[-1], ranges)
        sizes = [n.value for n in buffer.shape if isinstance(n, IntImm)]
        is_small = prod(sizes) * size_bytes(buffer.dtype) <= MAX_FIXED_BYTES
        if buffer not in self._allocated or len(sizes) < len(buffer.shape):
            return None
        others = [atom for atom, _ in last.terms if atom is not loop.var]
        if last.coefficient(loop.var) != 1 or _moves((*access.indices[:-1], *others), loop.var):
            return None
        interval = affine_bounds(last, ranges)
        if isinstance(access, Store):
            # Other elements of the row would be overwritten.
            is_row = interval == (0, sizes[-1] - 1) and loop.extent == buffer.shape[-1]
            return sizes[-1] + extra if is_small and is_row else None
        length = None if interval is None else max(sizes[-1], interval[1] + 1 + extra)
        fits = length is not None and (is_small or length <= MAX_GROWTH * sizes[-1])
        return length if fits else None


def _moves(indices: Iterable[Expr], var: Var) -> bool:
    return any(var is node for index in indices for node in walk(index))
