"""The `loop_partition` primitive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.names import unique
from compiler.ir.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Expr,
    For,
    IntImm,
    PrimFunc,
    Stmt,
    Var,
    dtype_of,
    seq,
)
from compiler.ir.regions import with_regions
from compiler.ir.visit import map_stmt
from compiler.schedule.digits import variables_of
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.plain_loop import literal_extent, require_plain
from compiler.schedule.rebind import rebind
from compiler.schedule.renew import renewed
from compiler.schedule.scope import Scope
from compiler.schedule.tree import (
    blocks,
    extents_of,
    loop_at,
    loop_path,
    loops_on,
    replace_at,
    statements,
)


def loop_partition(
    func: PrimFunc,
    loop: Var,
    factors: Sequence[int | None],
    *,
    preserve_unit_iters: bool = True,
) -> tuple[PrimFunc, tuple[Var, ...]]:
    """Cut a loop into several that run one after another, each in a block of its own.

    The loops are called `i0, i1, ...`. Blocks around them hold the parts: `C_i_common` all of
    them, `C_i0_partition` one; the blocks of a part are copies, called `C_i0`.

    Args:
        factors: How many iterations each loop has; one of them may be None, and is the rest. If
            none is, one more loop has the rest.
        preserve_unit_iters: Whether loops of a single iteration appear in iterators' values.

    Requires:
        The loop is without annotations and thread, of a literal extent, and binds spatial
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
    sizes = _sizes(factors, literal_extent(old, refuse), old, refuse)
    _require_spatial(Scope.around(func, path, refuse), old)
    first = next((s for s in statements(old) if isinstance(s, BlockRealize)), None)
    if first is None:
        raise refuse(f"there is no block under loop {loop.name}", old)

    dtype = dtype_of(loop)
    taken = {realize.block.name for realize in blocks(func)}
    around = extents_of(loops_on(path[:-1]))
    new: list[Var] = []
    parts: list[Stmt] = []
    start = 0
    for number, size in enumerate(sizes):
        var = Var(f"{loop.name}{number}", dtype)
        value: Expr = BinOp("+", var, IntImm(start, dtype)) if start else var
        copy = _with_suffix(renewed(old.body), var.name, taken)
        body = rebind(copy, {loop: value}, {**around, var: size}, keep_units=preserve_unit_iters)
        part = For(var, IntImm(size, dtype), body)
        parts.append(_holder(f"{first.block.name}_{var.name}_partition", part, taken))
        new.append(var)
        start += size
    whole = _holder(f"{first.block.name}_{loop.name}_common", seq(*parts), taken)
    return replace_at(func, path, whole), tuple(new)


def _sizes(factors: Sequence[int | None], extent: int, loop: For, refuse: Refuse) -> list[int]:
    """Return how many iterations each part has, or refuse."""
    name = loop.var.name
    known = [factor for factor in factors if factor is not None]
    if len(factors) - len(known) > 1:
        raise refuse(f"at most one factor may be None, got {list(factors)}", loop)
    for factor in known:
        if factor < 1:
            raise refuse(f"factor {factor} of loop {name} is not positive", loop)
    rest = extent - sum(known)
    if not known or rest < 1:
        reason = f"factors {list(factors)} don't make several parts of loop {name}"
        raise refuse(f"{reason}, which has {extent} iterations", loop)
    given = factors if len(known) < len(factors) else (*factors, None)
    return [rest if factor is None else factor for factor in given]


def _require_spatial(scope: Scope, loop: For) -> None:
    """Refuse if a loop binds an iterator that is not spatial: each part would start it anew."""
    for site in scope.sites:
        if not site.is_under(loop):
            continue
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True):
            if iter_var.kind != "spatial" and loop.var in variables_of(value):
                reason = f"loop {loop.var.name} binds the {iter_var.kind} iterator"
                reason = f"{reason} {iter_var.var.name} of block {site.name}"
                raise scope.refuse(reason, site.realize)


def _with_suffix(stmt: Stmt, suffix: str, taken: set[str]) -> Stmt:
    """Give the blocks of a part names of their own."""

    def visit(node: Stmt) -> Stmt:
        node = map_stmt(node, visit, lambda expr: expr)
        if not isinstance(node, BlockRealize):
            return node
        return replace(node, block=replace(node.block, name=_fresh(node.block.name, suffix, taken)))

    return visit(stmt)


def _fresh(name: str, suffix: str, taken: set[str]) -> str:
    fresh = unique(f"{name}_{suffix}", taken)
    taken.add(fresh)
    return fresh


def _holder(name: str, body: Stmt, taken: set[str]) -> BlockRealize:
    """Return a block without iterators around a statement."""
    fresh = unique(name, taken)
    taken.add(fresh)
    return BlockRealize((), TRUE, with_regions(Block(fresh, (), (), (), body)))
