"""Split a loop into nested loops: `split`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.simplify import equal, prove, simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Compare, Expr, For, IntImm, Stmt, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.print_expr import show_expr
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.rewrite.rebind import rebind
from compiler.schedule.tree.plain_loop import require_plain
from compiler.schedule.tree.tree import extents_of, loop_at, loop_path, loops_on, replace_at


def split(
    func: PrimFunc,
    loop: Var,
    factors: Sequence[int | Expr | None],
    *,
    preserve_unit_iters: bool = True,
    disable_predication: bool = False,
) -> tuple[PrimFunc, tuple[Var, ...]]:
    """Split a loop into a nest of serial loops, the outermost first.

    If the factors make more iterations than the loop has, the blocks below get a predicate.

    Args:
        factors: The extents of the new loops. One of them may be None, and is then the smallest
            that makes enough iterations.
        preserve_unit_iters: Whether new loops of a single iteration appear in the values of
            iterators.
        disable_predication: Whether a predicate may not be added.

    Requires:
        The loop has no annotations and no thread. At most one factor is None; the others are
        positive, and their product is not less than the extent. Without predication it is
        provably equal to the extent.

    Rewrites:
        for i in range(n):      ->   for i_0, i_1 in T.grid(ceil(n / f), f):
            body(i)                      body(i_0 * f + i_1)    # where i_0 * f + i_1 < n

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("split", func)
    path = loop_path(func, loop, refuse)
    old = loop_at(path)
    require_plain(old, refuse)
    sizes = loop_sizes(factors, old, refuse)

    dtype = dtype_of(loop)
    new = tuple(Var(f"{loop.name}_{n}", dtype) for n in range(len(sizes)))
    around = extents_of(loops_on(path[:-1]))
    extents = {**around, **dict(zip(new, map(extent_or_unknown, sizes), strict=True))}
    index = mixed_radix(new, sizes)
    inside = Compare("<", index, old.extent)
    is_exact = [size for size in sizes if size != IntImm(1, dtype)] == [old.extent]
    is_exact = is_exact or equal(_product(sizes), old.extent)
    guard = None if is_exact or prove(inside, extents) else inside
    if guard is not None and disable_predication:
        reason = f"the factors {_shown(factors)} make more iterations than loop {loop.name} has"
        raise refuse(
            f"{reason}: without a predicate they would be run too", old, "invalid_argument"
        )
    body: Stmt = rebind(old.body, {loop: index}, extents, guard, keep_units=preserve_unit_iters)
    for var, size in zip(reversed(new), reversed(sizes), strict=True):
        body = For(var, size, body)
    return replace_at(func, path, body), new


def _product(sizes: Sequence[Expr]) -> Expr:
    total = sizes[0]
    for size in sizes[1:]:
        total = BinOp("*", total, size)
    return total


def mixed_radix(loops: Sequence[Var], sizes: Sequence[Expr]) -> Expr:
    """Return the combined index of nested loops, the last of them running fastest."""
    total: Expr = loops[0]
    for var, size in zip(loops[1:], sizes[1:], strict=True):
        is_one = isinstance(size, IntImm) and size.value == 1
        total = BinOp("+", total if is_one else BinOp("*", total, size), var)
    return total


def loop_sizes(factors: Sequence[int | Expr | None], loop: For, refuse: Refuse) -> tuple[Expr, ...]:
    """Return the extents of the new loops for some factors, or refuse."""
    name, dtype = loop.var.name, dtype_of(loop.var)
    if not factors:
        raise refuse(f"loop {name} can't be split by no factors", loop, "invalid_argument")
    sizes = [_size(factor, loop, refuse) for factor in factors]
    given_sizes = [size for size in sizes if size is not None]
    if len(sizes) - len(given_sizes) > 1:
        raise refuse(
            f"at most one factor may be None, got {_shown(factors)}", loop, "invalid_argument"
        )
    literal = math.prod(size.value for size in given_sizes if isinstance(size, IntImm))
    product: Expr = IntImm(literal, dtype)
    for size in given_sizes:
        if not isinstance(size, IntImm):
            product = simplify(BinOp("*", product, size))
    if len(given_sizes) == len(sizes):
        _require_enough(product, factors, loop, refuse)
    inferred = _ceil_div(loop.extent, product)
    return tuple(inferred if size is None else size for size in sizes)


def _size(factor: int | Expr | None, loop: For, refuse: Refuse) -> Expr | None:
    if factor is None:
        return None
    size = IntImm(factor, dtype_of(loop.var)) if isinstance(factor, int) else factor
    if isinstance(size, IntImm) and size.value < 1:
        raise refuse(
            f"factor {size.value} of loop {loop.var.name} is not positive", loop, "invalid_argument"
        )
    return size


def _require_enough(
    product: Expr, factors: Sequence[int | Expr | None], loop: For, refuse: Refuse
) -> None:
    """Refuse if the factors do not provably make all iterations of a loop."""
    if not prove(Compare(">=", product, loop.extent), {}):
        is_known = isinstance(product, IntImm) and isinstance(loop.extent, IntImm)
        reason = f"the product {show_expr(product)} of the factors {_shown(factors)}"
        verb = "is" if is_known else "may be"
        raise refuse(
            f"{reason} {verb} less than the extent {show_expr(loop.extent)} of loop "
            f"{loop.var.name}",
            loop,
            "invalid_argument",
        )


def _ceil_div(extent: Expr, product: Expr) -> Expr:
    dtype = dtype_of(extent)
    if isinstance(product, IntImm) and product.value == 1:
        return extent
    reach = BinOp("-", BinOp("+", extent, product), IntImm(1, dtype))
    return simplify(BinOp("//", reach, product))


def _shown(factors: Sequence[int | Expr | None]) -> str:
    shown = (f if f is None or isinstance(f, int) else show_expr(f) for f in factors)
    return f"[{', '.join(map(str, shown))}]"
