"""The `split` primitive."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.ir.affine import Affine
from compiler.ir.nodes import Compare, Expr, For, IntImm, PrimFunc, Stmt, Var, dtype_of
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.rebind import rebind
from compiler.schedule.tree import extents_of, loop_at, loop_path, loops_on, replace_at


def split(
    func: PrimFunc, loop: Var, factors: Sequence[int | None]
) -> tuple[PrimFunc, tuple[Var, ...]]:
    """Split a loop into a nest of loops, the outermost first.

    Where the factors make more iterations than the loop has, the blocks below get a predicate.

    Args:
        factors: The extents of the new loops; one of them may be None, and is then the least
            that makes enough iterations.

    Requires:
        The loop is serial, without annotations, of a literal extent. The factors are positive,
        and their product is not less than the extent.

    Rewrites:
        for i in range(n):      ->   for i_0, i_1 in T.grid(ceil(n / f), f):
            body(i)                      body(i_0 * f + i_1)    # where i_0 * f + i_1 < n

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("split", func)
    path = loop_path(func, loop, refuse)
    old = loop_at(path)
    extent = plain_extent(old, refuse)
    sizes = _sizes(factors, extent, old, refuse)

    dtype = dtype_of(loop)
    new = tuple(Var(f"{loop.name}_{n}", dtype) for n in range(len(sizes)))
    extents = {**extents_of(loops_on(path[:-1])), **dict(zip(new, sizes, strict=True))}
    scales = [math.prod(sizes[n + 1 :]) for n in range(len(sizes))]
    index = Affine(tuple(zip(new, scales, strict=True)), 0, dtype).to_expr()
    guard: Expr | None = None
    if math.prod(sizes) > extent:
        guard = Compare("<", index, IntImm(extent, dtype))
    body: Stmt = rebind(old.body, {loop: index}, extents, guard)
    for var, size in zip(reversed(new), reversed(sizes), strict=True):
        body = For(var, IntImm(size, dtype), body)
    return replace_at(func, path, body), new


def plain_extent(loop: For, refuse: Refuse) -> int:
    """Return the extent of a loop that may be split or fused, or refuse."""
    if loop.kind != "serial":
        raise refuse(f"loop {loop.var.name} is already {loop.kind}", loop)
    if loop.annotations:
        names = ", ".join(key for key, _ in loop.annotations)
        raise refuse(f"loop {loop.var.name} has annotations: {names}", loop)
    if not isinstance(loop.extent, IntImm):
        raise refuse(f"the extent of loop {loop.var.name} is not a literal", loop)
    return loop.extent.value


def _sizes(
    factors: Sequence[int | None], extent: int, loop: For, refuse: Refuse
) -> tuple[int, ...]:
    name = loop.var.name
    if not factors:
        raise refuse(f"loop {name} can't be split by no factors", loop)
    known = [factor for factor in factors if factor is not None]
    if len(factors) - len(known) > 1:
        raise refuse(f"at most one factor may be None, got {list(factors)}", loop)
    for factor in known:
        if factor < 1:
            raise refuse(f"factor {factor} of loop {name} is not positive", loop)
    product = math.prod(known)
    if len(known) == len(factors) and product < extent:
        reason = f"the product {product} of the factors {list(factors)}"
        raise refuse(f"{reason} is less than the extent {extent} of loop {name}", loop)
    rest = -(-extent // product)
    return tuple(rest if factor is None else factor for factor in factors)
