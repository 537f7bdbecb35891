"""Shrink each intermediate buffer to the box that one run of its innermost scope touches.

A buffer that a schedule computes inside a loop needs room for one iteration of that loop only.
The pass finds the innermost scope that holds every access, and that is not inside a loop that
carries a value in the buffer from one iteration to the next. It allocates the buffer there, and
makes the indices relative to the corner of the box. A buffer that threads share has room for all
threads. TVM has this as CompactBufferAllocation.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType

from compiler.ir.analysis.conflicts import are_disjoint
from compiler.ir.analysis.dependence import Touch
from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import bounds
from compiler.ir.arith.simplify import normal
from compiler.ir.arith.vectors import on_base
from compiler.ir.core.dtypes import size_bytes
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
from compiler.ir.core.scopes import is_private_scope, is_shared_scope
from compiler.ir.core.visit import children, is_stmt, map_expr, map_stmt, walk_stmts
from compiler.passes.common.accesses import (
    LoweredAccess,
    Span,
    collect_accesses,
    common_path,
    loop_extents,
)
from compiler.passes.common.align_buffers import Alignment, aligned_shape
from compiler.passes.common.thread_loops import is_thread
from compiler.passes.common.written_first import is_written_first

# Chosen: as much as a function of a CPU keeps on its stack (`MAX_STACK_BYTES`).
MAX_FIXED_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class _Placement:
    """The new home of a buffer: inside the body of `at`, with corner `corner`."""

    at: Stmt | None
    corner: tuple[Affine, ...]
    buffer: Buffer


def compact_buffers(
    stmt: Stmt,
    carried: Mapping[Buffer, set[Var]],
    alignments: Mapping[Buffer, Alignment] = MappingProxyType({}),
) -> Stmt:
    """Shrink the allocations of `stmt`, move them inwards, and pad those to be aligned.

    Args:
        stmt: A program without blocks.
        carried: The loops that carry a value of each buffer.
        alignments: The alignment of each buffer that has one.
    """
    allocated = [node.buffer for node in walk_stmts(stmt) if isinstance(node, Allocate)]
    if not allocated:
        return stmt
    stmt = _with_distinct_loops(stmt)
    private = private_buffers(stmt)
    floors = _floors(stmt, private)
    accesses = collect_accesses(stmt, set(allocated), set(allocated) - private.keys())
    placements = {
        buffer: _placement_of(buffer, accesses[buffer], carried.get(buffer, set()), floors[buffer])
        for buffer in allocated
        if accesses[buffer]
    }
    for buffer, alignment in alignments.items():
        if buffer in placements:
            placements[buffer] = _aligned(placements[buffer], alignment)
    return _rewrite(stmt, placements)


def _aligned(placement: _Placement, alignment: Alignment) -> _Placement:
    small = placement.buffer
    return replace(placement, buffer=replace(small, shape=aligned_shape(small.shape, alignment)))


def private_buffers(stmt: Stmt) -> dict[Buffer, Stmt | None]:
    """Return the buffers that each thread has a copy of, each with its innermost thread loop.

    They are the local buffers and fragments, and the non-shared buffers that a thread allocates
    while it runs.
    """
    innermost_threads: dict[Buffer, Stmt | None] = {}

    def visit(node: Stmt, thread: Stmt | None) -> None:
        if isinstance(node, Allocate):
            scope = node.buffer.scope
            if is_private_scope(scope) or (thread is not None and not is_shared_scope(scope)):
                innermost_threads[node.buffer] = thread
        inside = node if is_thread(node) else thread
        for child in children(node):
            if is_stmt(child):
                visit(child, inside)  # type: ignore[arg-type]

    visit(stmt, None)
    return innermost_threads


def _floors(stmt: Stmt, private: Container[Buffer]) -> dict[Buffer, Stmt | None]:
    """Return the loop that each buffer must stay inside, if any.

    A buffer that a thread allocates stays inside that thread. If threads share it, it stays inside
    their block.
    """
    floors: dict[Buffer, Stmt | None] = {}

    def visit(node: Stmt, bound: Stmt | None, block: Stmt | None) -> None:
        if isinstance(node, Allocate):
            floors[node.buffer] = bound if node.buffer in private else block
        if isinstance(node, For) and node.thread is not None:
            bound = node
            block = block if is_thread(node) else node
        for child in children(node):
            if is_stmt(child):
                visit(child, bound, block)  # type: ignore[arg-type]

    visit(stmt, None, None)
    return floors


def _with_distinct_loops(stmt: Stmt) -> Stmt:
    """Return the statement with each loop object used once, so that identity finds a loop."""
    visited: set[int] = set()

    def visit(node: Stmt) -> Stmt:
        new = map_stmt(node, visit, lambda expr: expr)
        if isinstance(new, For):
            new = replace(new) if id(new) in visited else new
            visited.add(id(new))
        return new

    return visit(stmt)


def _placement_of(
    buffer: Buffer, accesses: list[LoweredAccess], carried: set[Var], outer: Stmt | None
) -> _Placement:
    common = common_path(accesses)
    if accesses[0].is_of_threads and not is_shared_scope(buffer.scope):
        # Threads that see each other's elements would have a copy each inside their loop.
        loops = (n for n, node in enumerate(common) if is_thread(node))
        shared = (n for n in loops if not _are_disjoint(accesses, common[n]))
        common = common[: next(shared, None)]
    floor = next((n + 1 for n, node in enumerate(common) if node is outer), 0)
    # Allocate directly inside a loop, or at the top, but never below a loop that carries a value.
    depths = [floor]
    unrolled: list[int] = []
    for position, node in enumerate(common):
        if isinstance(node, For):
            if node.var in carried or node.kind == "vectorized":
                break
            if node.kind == "unrolled" or unrolled:
                unrolled.append(position + 1)
            elif position >= floor:
                depths.append(position + 1)
    # The iterations of an unrolled loop together touch a box, unless their indices are irregular.
    is_irregular = any(span is None for access in accesses for span in access.box(depths[-1]))
    inside = [d for d in unrolled if d > floor] if is_irregular else []
    candidates = [*reversed(inside), *reversed(depths)]
    depth = next(d for d in candidates if d == floor or is_written_first(accesses, d))
    # Iterations that run at once share a buffer only if they touch disjoint elements. The verifier
    # has proved that each reads only what it wrote, even if `is_written_first` can't prove it.
    # A loop around the parallel loop may still carry values.
    inner = next((d for d in depths if d > depth and isinstance(common[d - 1], For)), None)
    if inner is not None and _is_parallel(common[inner - 1]):
        depth = depth if _are_disjoint(accesses, common[inner - 1]) else inner
    at = common[depth - 1] if depth else None
    boxes = [access.box(depth) for access in accesses]
    spans = [
        _hull([box[dimension] for box in boxes], _most(full))
        for dimension, full in enumerate(buffer.shape)
    ]
    extents = _extents(buffer, [extent for _, extent in spans])
    small = Buffer(Var(buffer.name, "handle"), extents, buffer.dtype, buffer.scope)
    return _Placement(at, tuple(corner for corner, _ in spans), small)


def _most(extent: Expr) -> int:
    """Return the largest value of an extent."""
    interval = bounds(extent, {})
    assert interval is not None, "a symbolic extent has limits"
    return interval[1]


def _extents(buffer: Buffer, most: Sequence[int]) -> tuple[Expr, ...]:
    """Return the extents of a buffer of which at most so much is touched.

    A dimension that may be touched as a whole gets its symbolic extent, if the buffer were large
    otherwise: then its size is that of the call, and not the largest.
    """
    if prod(most) * size_bytes(buffer.dtype) <= MAX_FIXED_BYTES:
        return tuple(map(IntImm, most))
    return tuple(
        full if touched == _most(full) else IntImm(touched)
        for full, touched in zip(buffer.shape, most, strict=True)
    )


def _is_parallel(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "parallel"


def _are_disjoint(accesses: list[LoweredAccess], loop: Stmt) -> bool:
    """Return whether different iterations of a loop touch different elements."""
    assert isinstance(loop, For)
    touches = [
        Touch(a.buffer, a.indices, a.is_store, loop_extents(a.path), {loop.var: loop.var})
        for a in accesses
    ]
    return are_disjoint(touches, [loop.var])


def _hull(parts: list[Span | None], full: int) -> Span:
    """Return one corner and extent that cover all parts, or the full dimension."""
    full_span = (Affine((), 0), full)
    first = parts[0]
    if first is None:
        return full_span
    low, high = 0, first[1]
    for part in parts[1:]:
        if part is None:
            return full_span
        shift = part[0] - first[0]
        if shift.terms:
            return full_span
        low, high = min(low, shift.const), max(high, shift.const + part[1])
    if high - low >= full:
        return full_span
    corner = Affine(first[0].terms, first[0].const + low, first[0].dtype)
    return corner, high - low


def _rewrite(stmt: Stmt, placements: Mapping[Buffer, _Placement]) -> Stmt:
    homes: dict[int, list[Buffer]] = {}
    for placement in placements.values():
        homes.setdefault(id(placement.at), []).append(placement.buffer)

    def visit_expr(expr: Expr) -> Expr:
        new = map_expr(expr, visit_expr)
        if isinstance(new, Load) and new.buffer in placements:
            placement = placements[new.buffer]
            return Load(placement.buffer, _relative(new.indices, placement))
        return new

    def visit(node: Stmt) -> Stmt:
        if isinstance(node, Allocate):
            return visit(node.body)
        new = map_stmt(node, visit, visit_expr)
        if isinstance(new, Store) and new.buffer in placements:
            placement = placements[new.buffer]
            return Store(placement.buffer, _relative(new.indices, placement), new.value)
        if isinstance(new, For) and id(node) in homes:
            return replace(new, body=_allocate(homes[id(node)], new.body))
        return new

    return _allocate(homes.get(id(None), []), visit(stmt))


def _relative(indices: tuple[Expr, ...], placement: _Placement) -> tuple[Expr, ...]:
    return tuple(map(relative_index, indices, placement.corner))


def relative_index(index: Expr, corner: Affine) -> Expr:
    """Return an index, which may be a vector, relative to a corner."""
    if not corner.terms and corner.const == 0:
        return index
    return on_base(index, lambda base: (normal(base) - corner).to_expr())


def _allocate(buffers: list[Buffer], body: Stmt) -> Stmt:
    for buffer in buffers:
        body = Allocate(buffer, body)
    return body
