"""The `fuse` primitive."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.ir.nodes import BinOp, Expr, For, IntImm, PrimFunc, Var, dtype_of
from compiler.schedule.error import refusal
from compiler.schedule.rebind import rebind
from compiler.schedule.split import plain_extent
from compiler.schedule.tree import extents_of, loop_at, loop_path, loops_on, replace_at


def fuse(func: PrimFunc, loops: Sequence[Var]) -> tuple[PrimFunc, Var]:
    """Fuse nested loops into one.

    Requires:
        The loops are serial, without annotations, of literal extents. Each is the whole body of
        the one before it.

    Rewrites:
        for i, j in T.grid(n, m):   ->   for i_j_fused in range(n * m):
            body(i, j)                       body(i_j_fused // m, i_j_fused % m)

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("fuse", func)
    path = loop_path(func, loops[0], refuse)
    outer = loop_at(path)
    inner = outer
    sizes = [plain_extent(outer, refuse)]
    for var in loops[1:]:
        body = inner.body
        if not isinstance(body, For) or body.var is not var:
            reason = f"loop {var.name} is not the whole body of loop {inner.var.name}"
            raise refuse(reason, inner)
        inner = body
        sizes.append(plain_extent(inner, refuse))

    dtype = dtype_of(outer.var)
    fused = Var("_".join([*(var.name for var in loops), "fused"]), dtype)
    values: dict[Var, Expr] = {}
    for number, (var, size) in enumerate(zip(loops, sizes, strict=True)):
        scale = math.prod(sizes[number + 1 :])
        value: Expr = fused if scale == 1 else BinOp("//", fused, IntImm(scale, dtype))
        values[var] = value if number == 0 else BinOp("%", value, IntImm(size, dtype))
    total = math.prod(sizes)
    extents = {**extents_of(loops_on(path[:-1])), fused: total}
    body = rebind(inner.body, values, extents)
    return replace_at(func, path, For(fused, IntImm(total, dtype), body)), fused
