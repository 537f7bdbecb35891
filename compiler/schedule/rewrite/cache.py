"""The shared part of the primitives that copy buffers: position, contents and users of a copy.

A copy goes between the only block of a scope that writes a buffer and the first block after it that
reads its output, in the innermost loop around both. A buffer that the scope never writes is copied
before everything else; one that it never reads, after everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    For,
    IntImm,
    Load,
    Seq,
    Stmt,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.schedule.error import Refuse
from compiler.schedule.index.access import BlockAccess
from compiler.schedule.index.region import Box, hull
from compiler.schedule.legality.coverage import covers_reads, read_box
from compiler.schedule.legality.guard import dense_box
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.rewrite.placement import require_no_vector_around
from compiler.schedule.tree.tree import (
    Path,
    allocate_in,
    find_block,
    fresh_buffer_name,
    insert_in,
    loops_on,
    realize_at,
    replace_at,
)

_SCOPES = re.compile(
    r"(global|shared|local)(\.\w+)*|warp|wmma\.(matrix_a|matrix_b|accumulator(_rows)?)"
    r"|texture(-\w+|\.\w+)*|amx\.tmm|m16n8k8\.matrix[ABC]",
    re.ASCII,
)

CONCURRENT = ("parallel", "thread_binding")
"""The kinds of loops whose iterations run side by side; those of vectorized ones are in step."""


@dataclass(frozen=True)
class CopyLocation:
    """The position of a copy: before statement `position` in the body of the end of `path`.

    The path leads from the scope to a loop, or is the scope alone.
    """

    path: Path
    position: int

    @property
    def is_scope(self) -> bool:
        """Return whether the copy is in the scope itself, outside of any loop."""
        return len(self.path) == 1

    @property
    def domains(self) -> dict[Var, Expr]:
        """Return the extents of the loops around the copy, and of the iterators of its scope."""
        loops = {loop.var: loop.extent for loop in loops_on(self.path)}
        return {**loops, **{i.var: i.extent for i in realize_at(self.path[:1]).block.iter_vars}}

    def standing(self, site: PlacedBlock) -> set[Var]:
        """Return the variables that are fixed while the copy, or its whole subject, runs once."""
        return {loop.var for loop in loops_on(self.path)} | (
            set(site.extents) - {loop.var for loop in site.loops}
        )

    def concurrent_loop(self) -> For | None:
        """Return a loop around the copy whose iterations are concurrent."""
        return next((loop for loop in loops_on(self.path) if loop.kind in CONCURRENT), None)


def region_buffer(
    regions: Sequence[BufferRegion], index: int, access: str, at: BlockRealize, refuse: Refuse
) -> Buffer:
    """Return the buffer of one of the regions that a block reads or writes."""
    if not 0 <= index < len(regions):
        numbered_names = ", ".join(f"{n}: {r.buffer.name}" for n, r in enumerate(regions)) or "none"
        raise refuse(
            f"block {at.block.name} has no {access} {index}; it has {numbered_names}",
            at,
            "not_found",
        )
    return regions[index].buffer


def require_memory_scope(scope: str, at: object, refuse: Refuse) -> None:
    """Refuse an invalid name of a memory scope; the empty one is "global"."""
    if scope and not _SCOPES.fullmatch(scope):
        raise refuse(f'"{scope}" is not the name of a memory scope', at, "invalid_argument")


def cache_of(
    func: PrimFunc, buffer: Buffer, scope: str, shape: tuple[Expr, ...] | None = None
) -> Buffer:
    """Return a new buffer like another, in a memory scope, perhaps of another shape."""
    data = Var(fresh_buffer_name(func, f"{buffer.name}_{scope}"), "handle")
    shape = buffer.shape if shape is None else shape
    return Buffer(data, shape, buffer.dtype, scope or "global")


# Where


def only_writer(scope: BlockScope, buffer: Buffer) -> PlacedBlock | None:
    """Return the block of a scope that writes a buffer, if one does; refuse if several do."""
    writers = scope.writers(buffer)
    if len(writers) > 1:
        reason = f"blocks {writers[0].name} and {writers[1].name} both write {buffer.name}"
        raise scope.refuse(f"{reason}: a copy has one source", writers[1].realize, "dependence")
    return writers[0] if writers else None


def require_no_pointer(scope: BlockScope, buffer: Buffer) -> None:
    """Refuse if the elements of a buffer that a block accesses are unknown.

    They are unknown if an opaque call takes the storage undeclared, or if the values of the block's
    iterators depend on the buffer.
    """
    for site in scope.sites:
        for expr in (*site.realize.iter_values, site.realize.predicate):
            if any(isinstance(n, Load) and n.buffer == buffer for n in walk(expr)):
                reason = f"the iterators of block {site.name} depend on {buffer.name}"
                raise scope.refuse(reason, site.realize, "dependence")
        if buffer.name in site.facts.hidden:
            reason = f"block {site.name} passes on the storage of {buffer.name}"
            raise scope.refuse(
                f"{reason}, so the touched elements are unknown", site.realize, "not_proved"
            )


def place_before(
    scope: BlockScope, writer: PlacedBlock | None, readers: Sequence[PlacedBlock]
) -> CopyLocation:
    """Return the position before the first of some readers, all of which come after the writer."""
    if writer is None:
        location = CopyLocation((scope.realize,), 0)
    elif not readers:
        location = CopyLocation((scope.realize,), len(stmts_of(scope.realize)))
    else:
        first = min(readers, key=scope.position)
        if scope.position(first) < scope.position(writer):
            reason = f"block {first.name} reads before block {writer.name} writes"
            raise scope.refuse(
                f"{reason}: there is nothing to copy yet", first.realize, "dependence"
            )
        path = common_path([writer, first])
        position = child_position(path[-1], first)
        if child_position(path[-1], writer) >= position:
            reason = f"blocks {writer.name} and {first.name} share a condition"
            raise scope.refuse(f"{reason}, which can't contain a copy", first.realize, "structure")
        location = CopyLocation(path, position)
    require_no_vector_around((*scope.path, *location.path), scope.refuse)
    return location


def place_between(
    scope: BlockScope, readers: Sequence[PlacedBlock], writer: PlacedBlock
) -> CopyLocation:
    """Return the position before some readers of what was there before a block writes.

    It is in the loops around the readers and the writer, unless these run once.
    """
    first = min(readers, key=scope.position)
    path = common_path([*readers, writer])
    while isinstance(path[-1], For) and path[-1].extent == IntImm(1, dtype_of(path[-1].extent)):
        path = path[:-1]
    require_no_vector_around((*scope.path, *path), scope.refuse)
    return CopyLocation(path, child_position(path[-1], first))


def common_path(sites: Iterable[PlacedBlock]) -> Path:
    """Return the longest path from the scope to statements around all of some blocks.

    It ends in a loop or in the scope.
    """
    first, *others = [site.path[:-1] for site in sites]
    depth = len(first)
    for other in others:
        same = (a is b for a, b in zip(first, other, strict=False))
        depth = min(depth, next((n for n, equal in enumerate(same) if not equal), len(other)))
    path = first[:depth]
    while not isinstance(path[-1], For | BlockRealize):
        path = path[:-1]
    return path


def body_of(stmt: Stmt) -> Stmt:
    """Return the body of a loop or a block."""
    if isinstance(stmt, BlockRealize):
        return stmt.block.body
    assert isinstance(stmt, For), "only loops and blocks have a body"
    return stmt.body


def child_position(stmt: Stmt, site: PlacedBlock) -> int:
    """Return the number of the statement in a loop or a block that contains a block below it."""
    return next(n for n, child in enumerate(stmts_of(stmt)) if site.is_under(child))


def stmts_of(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return the statements in the body of a loop or a block."""
    body = body_of(stmt)
    return body.stmts if isinstance(body, Seq) else (body,)


def insert_copy(
    scope: BlockScope, location: CopyLocation, nest: Stmt, cache: Buffer | None
) -> PrimFunc:
    """Return the program with a copy at its position, and its buffer allocated in the scope."""
    full_path = (*scope.path[:-1], *location.path)
    body = body_of(location.path[-1])
    func = replace_at(scope.func, (*full_path, body), insert_in(body, location.position, nest))
    if cache is None:
        return func
    again = find_block(func, scope.realize.block.name)
    assert again is not None, "the scope is still there"
    return allocate_in(func, again, cache)


# What


def box_of_writes(site: PlacedBlock, buffer: Buffer, fixed: set[Var]) -> Box:
    """Return a box that contains all writes of a block to a buffer while `fixed` do not change."""
    return _hull_of(site, [a for a in site.facts.writes if a.buffer == buffer], fixed)


def box_of_reads(site: PlacedBlock, buffer: Buffer, fixed: set[Var]) -> Box:
    """Return a box that contains all reads of a block from a buffer while `fixed` do not change."""
    return _hull_of(site, [a for a in site.facts.reads if a.buffer == buffer], fixed)


def _hull_of(site: PlacedBlock, accesses: Sequence[BlockAccess], fixed: set[Var]) -> Box:
    return hull_of([read_box(site, access, fixed) for access in accesses])


def hull_of(boxes: Sequence[Box]) -> Box:
    """Return a box that contains the given boxes."""
    box = boxes[0]
    for other in boxes[1:]:
        box = tuple(hull(a, b) for a, b in zip(box, other, strict=True))
    return box


def is_all_written(site: PlacedBlock, buffer: Buffer, box: Box, fixed: set[Var]) -> bool:
    """Return whether a block surely writes each element of a box while `fixed` do not change."""
    for span, size in zip(box, buffer.shape, strict=True):
        # A box that may reach beyond the end, or begins there, is unknown: the whole dimension is
        # copied then, including elements before its beginning.
        limit = extent_or_unknown(size)
        if span is not None and (span.extent if span.low.terms else span.low.const) >= limit:
            return False
    return any(
        access.buffer == buffer
        and access.is_certain
        and dense_box(site, access, fixed, is_final=False) == box
        for access in site.facts.writes
    )


def require_certain_write(site: PlacedBlock, buffer: Buffer, refuse: Refuse) -> None:
    """Refuse if a run of a block may leave its element unwritten: a copy would overwrite it."""
    if not any(a.buffer == buffer and a.is_certain for a in site.facts.writes):
        reason = f"block {site.name} writes {buffer.name} under a condition, and a copy of all that"
        raise refuse(f"{reason} it may write would overwrite the rest", site.realize, "dependence")


# Who


def require_steady_indices(
    scope: BlockScope, indices: Iterable[Expr], location: CopyLocation, users: Sequence[PlacedBlock]
) -> None:
    """Refuse if a copy, or a moved block, could find other elements than the blocks that use it.

    Its indices may load from buffers. No block writes these between it and a user, whichever comes
    first.
    """
    nodes = (node for index in indices for node in walk(index))
    loaded = dict.fromkeys(node.buffer for node in nodes if isinstance(node, Load))
    if not loaded:
        return
    around = location.path[-1]
    positions = [child_position(around, user) for user in users]
    between = range(min(location.position, *positions), max(location.position, max(positions) + 1))
    for buffer in loaded:
        for writer in scope.writers(buffer):
            if writer.is_under(around) and child_position(around, writer) in between:
                reason = f"block {users[0].name} finds elements by {buffer.name}, which block"
                raise scope.refuse(
                    f"{reason} {writer.name} writes in between", writer.realize, "dependence"
                )


def require_copy_holds(
    scope: BlockScope,
    buffer: Buffer,
    writer: PlacedBlock,
    readers: Sequence[PlacedBlock],
    location: CopyLocation,
) -> None:
    """Refuse unless readers find the same values in the copy as in the buffer.

    The copy holds the output of the writer. Elements that it never writes count only if a block
    outside of the scope may have written them. Concurrent iterations must each read only their own
    output.
    """
    is_strict = not scope.is_local(buffer) or location.concurrent_loop() is not None
    for reader in readers:
        if is_strict and not covers_reads(writer, reader, buffer):
            reason = f"block {writer.name} is not proved to write all that block {reader.name}"
            raise scope.refuse(f"{reason} reads of {buffer.name}", reader.realize, "not_proved")


def named_readers(
    scope: BlockScope, site: PlacedBlock, buffer: Buffer, names: Sequence[str]
) -> list[PlacedBlock]:
    """Return blocks of a scope, given by name, that read a buffer and do not write it."""
    by_name = {reader.name: reader for reader in scope.readers(buffer)}
    for name in names:
        if name not in by_name:
            reason = f"block {name} does not read {buffer.name} in the scope of block {site.name}"
            raise scope.refuse(reason, site.realize, "invalid_argument")
        if by_name[name].writes(buffer):
            reason = f"block {name} writes {buffer.name}, which it reads"
            raise scope.refuse(reason, by_name[name].realize, "dependence")
    return [by_name[name] for name in names]
