"""The shared part of `read_at` and `write_at`: one block that copies a loop body's accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import affine_bounds
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    For,
    IntImm,
    IterVar,
    Load,
    Range,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.promotion import converted, widest
from compiler.ir.core.scopes import is_shared_scope
from compiler.ir.core.visit import substitute, walk
from compiler.schedule.error import Refuse
from compiler.schedule.index.region import Box
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.rewrite.cache import CopyLocation, region_buffer, require_no_pointer
from compiler.schedule.rewrite.copy_block import CopiedPart, full_parts, read_to_find
from compiler.schedule.rewrite.placement import require_no_vector_around
from compiler.schedule.rewrite.rewrite_access import Mode
from compiler.schedule.tree.tree import loop_at, loop_path, loops_on


@dataclass(frozen=True)
class Body:
    """A loop, the buffer that a block under it accesses, and the other blocks that do."""

    scope: BlockScope
    path: tuple[Stmt, ...]  # from the scope to the loop
    buffer: Buffer

    @property
    def loop(self) -> For:
        """Return the loop."""
        return loop_at(self.path)

    def touching(self, mode: Mode) -> list[PlacedBlock]:
        """Return the blocks under the loop that read the buffer, or write it; refuse without any.

        A block may declare accesses that its body never makes.
        """
        is_read = mode == "read"
        sites = [s for s in self.sites if (s.reads if is_read else s.writes)(self.buffer)]
        if not sites:
            verb = "reads" if is_read else "writes"
            reason = f"no block under loop {self.loop.var.name} {verb} {self.buffer.name},"
            raise self.scope.refuse(
                f"{reason} whatever is declared: there is nothing to copy", self.loop, "not_found"
            )
        return sites

    @property
    def sites(self) -> list[PlacedBlock]:
        """Return the blocks under the loop that access the buffer."""
        return [s for s in self.scope.sites if s.is_under(self.loop) and s.touches(self.buffer)]

    def location(self, position: int) -> CopyLocation:
        """Return a location among the statements of the loop."""
        return CopyLocation(self.path, position)

    def standing(self, site: PlacedBlock, memory_scope: str) -> set[Var]:
        """Return the variables that are fixed while a copy in some memory is used.

        Memory that threads share holds what all of them access.
        """
        fixed = self.location(0).standing(site)
        if not is_shared_scope(memory_scope):
            return fixed
        return fixed - {loop.var for loop in loops_on(self.path) if _is_thread(loop)}


def _is_thread(loop: For) -> bool:
    return loop.thread is not None and not loop.thread.startswith("blockIdx")


def body_of_loop(
    func: PrimFunc, loop: Var, block: str, which: tuple[Mode, int], refuse: Refuse
) -> Body:
    """Return the body of a loop around a block, or refuse.

    Args:
        which: Whether the buffer is one of the block's reads or writes, and its number.
    """
    mode, index = which
    scope, site = scope_of_block(func, block, refuse)
    regions = site.block.reads if mode == "read" else site.block.writes
    buffer = region_buffer(regions, index, mode, site.realize, refuse)
    require_no_pointer(scope, buffer)
    path = loop_path(func, loop, refuse)
    if not site.is_under(path[-1]):
        raise refuse(
            f"loop {loop.name} is not around block {block} in its scope", path[-1], "structure"
        )
    require_no_vector_around(path, refuse)
    return Body(scope, path[len(scope.path) - 1 :], buffer)


def parts_inside(body: Body, box: Box, refuse: Refuse) -> tuple[CopiedPart, ...]:
    """Return the parts of a buffer in a box, or refuse if it may reach outside."""
    parts = tuple(
        full_part if span is None else CopiedPart(span.low, IntImm(span.extent, dtype_of(size)))
        for full_part, span, size in zip(
            full_parts(body.buffer), box, body.buffer.shape, strict=True
        )
    )
    extents = body.sites[0].extents
    for part, size in zip(parts, body.buffer.shape, strict=True):
        interval = affine_bounds(part.low, extents)
        end = extent_or_unknown(part.extent)
        is_whole = part.extent == size and not part.low.terms and part.low.const == 0
        is_inside = is_whole or (
            isinstance(size, IntImm)
            and interval is not None
            and interval[0] >= 0
            and interval[1] + end <= size.value
        )
        if not is_inside:
            reason = f"what is touched of {body.buffer.name} under loop {body.loop.var.name}"
            raise refuse(f"{reason} is not proved to lie in the buffer", body.loop, "not_proved")
    return parts


def copy_block(
    name: str, source: Buffer, target: Buffer, parts: Sequence[CopiedPart], body: Body
) -> Stmt:
    """Return a block that copies a box, with the loops inside."""
    around = {loop.var: loop for loop in body.path if isinstance(loop, For)}
    bound: dict[Var, IterVar] = {}
    for part in parts:
        for node in walk(part.low.to_expr()):
            if isinstance(node, Var) and node in around and node not in bound:
                var = Var(f"v{len(bound)}", node.dtype)
                bound[node] = IterVar(var, around[node].extent, "spatial")
    names = {old: i.var for old, i in bound.items()}
    ranges = tuple(Range(substitute(p.low.to_expr(), names), p.extent) for p in parts)
    # The index depends on outer loops, whose type may be wider than the dimension's.
    dtypes = [widest((dtype_of(r.minimum), dtype_of(r.extent))) for r in ranges]
    loops = [Var(f"ax{n}", dtype) for n, dtype in enumerate(dtypes)]
    at = tuple(_plus(p.low, r.minimum, v) for p, r, v in zip(parts, ranges, loops, strict=True))
    stmt: Stmt = Store(target, at, Load(source, at))
    for loop, r in zip(reversed(loops), reversed(ranges), strict=True):
        stmt = For(loop, converted(r.extent, dtype_of(loop)), stmt)
    block = Block(
        name,
        tuple(bound.values()),
        (BufferRegion(source, ranges), *read_to_find(stmt, source)),
        (BufferRegion(target, ranges),),
        stmt,
        annotations=(("auto_copy", True),),
    )
    return BlockRealize(tuple(bound), TRUE, block)


def _plus(low: Affine, minimum: Expr, var: Var) -> Expr:
    return var if not low.terms and low.const == 0 else BinOp("+", minimum, var)
