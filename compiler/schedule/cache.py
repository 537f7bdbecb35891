"""What `cache_read` and `cache_write` share: the copy of a buffer, and where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.ir.nodes import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    For,
    IntImm,
    IterVar,
    Load,
    PrimFunc,
    Range,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.visit import replace_buffers
from compiler.schedule.digits import Extents
from compiler.schedule.error import Refuse
from compiler.schedule.placement import clip, make_nest
from compiler.schedule.region import Box
from compiler.schedule.scope import Scope
from compiler.schedule.site import Site
from compiler.schedule.tree import (
    Path,
    allocate_in,
    find_block,
    fresh_buffer_name,
    insert_in,
    replace_at,
)


def region_buffer(
    regions: Sequence[BufferRegion], index: int, what: str, site: Site, refuse: Refuse
) -> Buffer:
    """Return the buffer of one of the regions that a block reads or writes."""
    if not 0 <= index < len(regions):
        known = ", ".join(f"{n}: {r.buffer.name}" for n, r in enumerate(regions)) or "none"
        raise refuse(f"block {site.name} has no {what} {index}; it has {known}", site.realize)
    return regions[index].buffer


def cache_of(func: PrimFunc, buffer: Buffer, scope: str, site: Site, refuse: Refuse) -> Buffer:
    """Return a new buffer like another, in a memory scope."""
    if not scope or not all(part.isidentifier() for part in scope.split(".")):
        raise refuse(f'"{scope}" is not the name of a memory scope', site.realize)
    name = fresh_buffer_name(func, f"{buffer.name}_{scope}")
    return Buffer(Var(name, "handle"), buffer.shape, buffer.dtype, scope)


def copy_nest(name: str, source: Buffer, target: Buffer, box: Box, around: Extents) -> Stmt:
    """Return loops that copy a box of one buffer to another of the same shape.

    Args:
        name: What to call the block.
        box: The elements to copy; None stands for all of a dimension.
        around: The extents of the loops that the box names.
    """
    iter_vars = tuple(IterVar(Var(f"v{n}"), size, "spatial") for n, size in enumerate(source.shape))
    indices = tuple(i.var for i in iter_vars)
    point = tuple(Range(var, IntImm(1)) for var in indices)
    block = Block(
        name,
        iter_vars,
        (BufferRegion(source, point),),
        (BufferRegion(target, point),),
        Store(target, indices, Load(source, indices)),
    )
    spans = [clip(i, span) for i, span in zip(iter_vars, box, strict=True)]
    return make_nest(block, spans, around)


def common_path(sites: Iterable[Site]) -> Path:
    """Return the longest path from the scope that leads to all of some blocks, themselves not.

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
    """Return what a loop or a block runs."""
    if isinstance(stmt, BlockRealize):
        return stmt.block.body
    assert isinstance(stmt, For), "only loops and blocks have a body"
    return stmt.body


def child_position(stmt: Stmt, site: Site) -> int:
    """Return which of the statements that a loop or a block runs holds a block below it."""
    body = body_of(stmt)
    stmts = body.stmts if isinstance(body, Seq) else (body,)
    return next(n for n, child in enumerate(stmts) if site.is_under(child))


def insert_copy(scope: Scope, path: Path, position: int, nest: Stmt, cache: Buffer) -> PrimFunc:
    """Return the program with a copy among the statements below `path`, and its buffer."""
    whole = (*scope.path[:-1], *path)
    body = body_of(path[-1])
    func = replace_at(scope.func, (*whole, body), insert_in(body, position, nest))
    again = find_block(func, scope.realize.block.name)
    assert again is not None, "the scope is still there"
    return allocate_in(func, again, cache)


def redirect(func: PrimFunc, names: Iterable[str], old: Buffer, new: Buffer) -> PrimFunc:
    """Return the program with one buffer replaced by another in some blocks."""
    for name in names:
        path = find_block(func, name)
        assert path is not None, "the blocks are in the program"
        func = replace_at(func, path, replace_buffers(path[-1], {old: new}))
    return func
