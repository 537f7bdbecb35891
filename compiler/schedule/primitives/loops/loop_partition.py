"""Partition the range of a loop into consecutive loops: `loop_partition`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from compiler.ir.analysis.regions import read_outside_blocks
from compiler.ir.arith.iter_map import variables_of
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    BufferRegion,
    Expr,
    For,
    IntImm,
    Range,
    Stmt,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_stmt, substitute
from compiler.ir.text.names import unique
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.index.access import facts_of
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.rewrite.rebind import rebind
from compiler.schedule.rewrite.renew import renewed
from compiler.schedule.tree.plain_loop import literal_extent, require_plain
from compiler.schedule.tree.tree import (
    blocks,
    extents_of,
    loop_at,
    loop_path,
    loops_on,
    replace_at,
    statements,
)

T = TypeVar("T")


def loop_partition(
    func: PrimFunc,
    loop: Var,
    factors: Sequence[int | None],
) -> tuple[PrimFunc, tuple[Var, ...]]:
    """Partition a loop into several that run one after another, each in a separate block.

    The loops are called `i0, i1, ...`. Enclosing blocks hold the parts: `C_i_common` all of them,
    `C_i0_partition` one; the blocks of a part are copies, called `C_i0`. The enclosing blocks
    declare no regions: those of the copies count. An iterator that takes its value from the loop
    alone has the part as its range. The regions of its block are then those of the whole part, as
    in TVM.

    Args:
        factors: The number of iterations of each loop. One of them may be None, and gets the rest.
            Without a None, one more loop gets the rest.

    Requires:
        The loop has no annotations and no thread, has a literal extent, and binds spatial
        iterators only. There are at least two parts; at most one factor is None; the others are
        positive, and their sum is less than the extent.

    Rewrites:
        for i in range(n):   ->   for i0 in range(a):
            body(i)                   body(i0)
                                  for i1 in range(n - a):
                                      body(i1 + a)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("loop_partition", func)
    path = loop_path(func, loop, refuse)
    old = loop_at(path)
    require_plain(old, refuse)
    sizes = _sizes(with_rest(factors), literal_extent(old, refuse), old, refuse)
    _require_spatial(BlockScope.around(func, path, refuse), old)
    first = next((s for s in statements(old) if isinstance(s, BlockRealize)), None)
    if first is None:
        raise refuse(f"loop {loop.name} contains no block", old, "structure")

    dtype = dtype_of(loop)
    used_names = {realize.block.name for realize in blocks(func)}
    around = extents_of(loops_on(path[:-1]))
    new: list[Var] = []
    parts: list[Stmt] = []
    start = 0
    for number, size in enumerate(sizes):
        var = Var(f"{loop.name}{number}", dtype)
        value = _shifted(var, start)
        copy = _with_suffix(_cut(renewed(old.body), loop, var, start, size), var.name, used_names)
        body = rebind(copy, {loop: value}, {**around, var: size})
        part = For(var, IntImm(size, dtype), body)
        parts.append(_holder(f"{first.block.name}_{var.name}_partition", part, used_names))
        new.append(var)
        start += size
    common_block = _holder(f"{first.block.name}_{loop.name}_common", seq(*parts), used_names)
    return replace_at(func, path, common_block), tuple(new)


def with_rest(factors: Sequence[T | None]) -> tuple[T | None, ...]:
    """Return factors with a None for the rest, appended if there is none."""
    has_rest = any(factor is None for factor in factors)
    return tuple(factors) if has_rest else (*factors, None)


def _sizes(factors: Sequence[int | None], extent: int, loop: For, refuse: Refuse) -> list[int]:
    """Return the number of iterations of each part, or refuse."""
    name = loop.var.name
    given_sizes = [factor for factor in factors if factor is not None]
    if len(factors) - len(given_sizes) > 1:
        raise refuse(
            f"at most one factor may be None, got {list(factors)}", loop, "invalid_argument"
        )
    for factor in given_sizes:
        if factor < 1:
            raise refuse(
                f"factor {factor} of loop {name} is not positive", loop, "invalid_argument"
            )
    remaining = extent - sum(given_sizes)
    if not given_sizes or remaining < 1:
        reason = f"factors {list(factors)} don't make several parts of loop {name}"
        raise refuse(f"{reason}, which has {extent} iterations", loop, "invalid_argument")
    return [remaining if factor is None else factor for factor in factors]


def _require_spatial(scope: BlockScope, loop: For) -> None:
    """Refuse if a loop binds an iterator that is not spatial: each part would restart it."""
    for site in scope.sites:
        if not site.is_under(loop):
            continue
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
            if iter_var.kind != "spatial" and loop.var in variables_of(value):
                reason = f"loop {loop.var.name} binds the {iter_var.kind} iterator"
                reason = f"{reason} {iter_var.var.name} of block {site.name}"
                raise scope.refuse(reason, site.realize, "block_kind")


def _shifted(var: Var, start: int) -> Expr:
    return BinOp("+", var, IntImm(start, dtype_of(var))) if start else var


def _cut(stmt: Stmt, loop: Var, part: Var, start: int, size: int) -> Stmt:
    """Restrict the iterators that take their values from a loop to one part of it.

    The loop of the part starts at zero, and so do they.
    """

    def visit(node: Stmt) -> Stmt:
        node = map_stmt(node, visit, lambda expr: expr)
        if not isinstance(node, BlockRealize) or loop not in node.iter_values:
            return node
        position = node.iter_values.index(loop)
        iter_var = node.block.iter_vars[position]
        if iter_var.kind != "spatial":
            return node
        iter_vars = list(node.block.iter_vars)
        iter_vars[position] = replace(iter_var, extent=IntImm(size, dtype_of(iter_var.var)))
        values = list(node.iter_values)
        values[position] = part
        block = _with_boxes(replace(node.block, iter_vars=tuple(iter_vars)), iter_var.var, start)
        shift = {iter_var.var: _shifted(iter_var.var, start)} if start else {}
        shifted = substitute(replace(node, iter_values=tuple(values), block=block), shift)
        assert isinstance(shifted, BlockRealize), "substitution keeps the kind of a statement"
        return shifted

    return visit(stmt)


def _with_boxes(block: Block, cut: Var, start: int) -> Block:
    """Return a block with the regions of a whole part, of buffers that iterators index.

    Args:
        cut: The iterator whose range begins at `start`.
    """
    ranges = {
        i.var: Range(IntImm(start if i.var is cut else 0, dtype_of(i.var)), i.extent)
        for i in block.iter_vars
    }
    facts = facts_of(block)

    def boxed(region: BufferRegion) -> BufferRegion:
        index_tuples = {access.indices for access in facts.accesses(region.buffer)}
        if len(index_tuples) != 1:
            return region
        (indices,) = index_tuples
        box = [ranges[index] for index in indices if isinstance(index, Var) and index in ranges]
        return replace(region, region=tuple(box)) if len(box) == len(indices) else region

    return replace(
        block, reads=tuple(map(boxed, block.reads)), writes=tuple(map(boxed, block.writes))
    )


def _with_suffix(stmt: Stmt, suffix: str, used_names: set[str]) -> Stmt:
    """Give the blocks of a part unique names."""

    def visit(node: Stmt) -> Stmt:
        node = map_stmt(node, visit, lambda expr: expr)
        if not isinstance(node, BlockRealize):
            return node
        return replace(
            node, block=replace(node.block, name=_fresh(node.block.name, suffix, used_names))
        )

    return visit(stmt)


def _fresh(name: str, suffix: str, used_names: set[str]) -> str:
    fresh = unique(f"{name}_{suffix}", used_names)
    used_names.add(fresh)
    return fresh


def _holder(name: str, body: Stmt, used_names: set[str]) -> BlockRealize:
    """Return a block without iterators around a statement.

    It declares the reads outside of its inner blocks, which no other node declares.
    """
    fresh = unique(name, used_names)
    used_names.add(fresh)
    return BlockRealize((), TRUE, Block(fresh, (), read_outside_blocks(body), (), body))
