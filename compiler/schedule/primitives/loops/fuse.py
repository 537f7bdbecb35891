"""Fuse nested loops into one loop: `fuse`."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import variables
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import BinOp, Expr, For, IntImm, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.promotion import converted, widest
from compiler.schedule.error import refusal
from compiler.schedule.rewrite.rebind import rebind
from compiler.schedule.tree.plain_loop import require_plain
from compiler.schedule.tree.tree import extents_of, loop_at, loop_path, loops_on, replace_at


def fuse(
    func: PrimFunc, loops: Sequence[Var], *, preserve_unit_iters: bool = True
) -> tuple[PrimFunc, Var]:
    """Fuse nested loops into one serial loop.

    Args:
        preserve_unit_iters: Whether the new loop appears in the values of iterators even if it
            has a single iteration.

    Requires:
        The loops have no annotations and no threads. Each is the whole body of the previous one,
        and its extent does not depend on the others.

    Rewrites:
        for i, j in T.grid(n, m):   ->   for i_j_fused in range(n * m):
            body(i, j)                       body(i_j_fused // m, i_j_fused % m)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("fuse", func)
    path = loop_path(func, loops[0], refuse)
    outer = inner = loop_at(path)
    require_plain(outer, refuse)
    sizes = [outer.extent]
    for var in loops[1:]:
        body = inner.body
        if not isinstance(body, For) or body.var is not var:
            reason = f"loop {var.name} is not the whole body of loop {inner.var.name}"
            raise refuse(reason, inner, "structure")
        inner = body
        require_plain(inner, refuse)
        around = variables(inner.extent) & set(loops)
        if around:
            names = ", ".join(sorted(other.name for other in around))
            raise refuse(
                f"the extent of loop {var.name} depends on loop {names}", inner, "loop_kind"
            )
        sizes.append(inner.extent)

    dtype = widest(map(dtype_of, loops))
    fused = Var("_".join([*(var.name for var in loops), "fused"]), dtype)
    sizes = [converted(size, dtype) for size in sizes]
    total: Expr = sizes[0]
    for size in sizes[1:]:
        total = simplify(BinOp("*", total, size))
    extents = {**extents_of(loops_on(path[:-1])), fused: extent_or_unknown(total)}
    values = _parts(fused, loops, sizes)
    body = rebind(inner.body, values, extents, keep_units=preserve_unit_iters)
    return replace_at(func, path, For(fused, total, body)), fused


def _parts(fused: Var, loops: Sequence[Var], sizes: Sequence[Expr]) -> dict[Var, Expr]:
    """Return the value of each loop in terms of the fused loop."""
    values: dict[Var, Expr] = {}
    quotient: Expr = fused
    for number in range(len(loops) - 1, -1, -1):
        size = sizes[number]
        if isinstance(size, IntImm) and size.value == 1:
            values[loops[number]] = IntImm(0, dtype_of(fused))
            continue
        values[loops[number]] = BinOp("%", quotient, size) if number else quotient
        quotient = BinOp("//", quotient, size)
    return values
