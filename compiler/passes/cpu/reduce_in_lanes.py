"""Reduce along a loop in lanes with partial results, and combine the lanes by halves.

    for k in range(n):  # reduce_in_lanes=16        lanes[0:16] = 0
        S[i] = S[i] + f(i, k)                       for k_0 in range(n // 16):
                                              ->        lanes[0:16] += f(i, k_0 * 16 + (0:16))
                                                    lanes[0:8] += lanes[8:16]
                                                    ...
                                                    S[i] = S[i] + lanes[0]

`rfactor` over the inner part of the loop computes the same. The pass does it for any extent, and
inside other loops: the remainder of the extent goes to the first lanes. The annotation allows
another order of summation. A loop that does anything else than reduce by `+`, `*`, `min` or `max`
stays as it is, as does one whose inner loops reach an element more than once.

Serial loops around, which hold nothing else and reduce to the same elements, run between the start
of the lanes and their combination, so that lanes are combined once for all of them.

`reduce_in_lanes=[16, 4]` also unrolls four steps of `k_0`. If unrolled rows inside of the loop have
a guard, whole tiles of rows are reduced together, and the rows of a last, partial tile one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bijectivity import determined
from compiler.ir.arith.simplify import normal
from compiler.ir.core.dtypes import DType, is_float, smallest_and_largest
from compiler.ir.core.nodes import (
    Allocate,
    ArithOp,
    BinOp,
    Buffer,
    Conditional,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.visit import map_expr, map_stmt, substitute, walk, walk_stmts
from compiler.passes.common.accesses import (
    Path,
    collect_accesses,
    loop_extents,
    ramp_form,
    split_form,
)
from compiler.passes.common.compact_buffers import relative_index
from compiler.passes.cpu.unswitch_guards import whole_condition, without_guards

KEY = "reduce_in_lanes"
_INNER = ("serial", "unrolled")


@dataclass(frozen=True, slots=True)
class _LaneReduction:
    """The reduction of a loop: the store, the loops below that move it, its box, and the lanes."""

    store: Store
    op: ArithOp
    loops: tuple[For, ...]
    lane_indices: tuple[Expr, ...]
    lanes: Buffer


def reduce_in_lanes(stmt: Stmt) -> Stmt:
    """Rewrite the loops with the annotation `reduce_in_lanes`."""
    return _visit(stmt, ())


def _visit(stmt: Stmt, outer: Path) -> Stmt:
    nest = _nest(stmt)
    if nest:
        choice = _choice_of_tiles(nest, outer)
        if choice is not None:
            return _visit(choice, outer)
        result = _in_lanes(nest, outer)
        if result is not None:
            return result
    path = (*outer, stmt)
    return map_stmt(stmt, lambda child: _visit(child, path), lambda expr: expr)


def _nest(stmt: Stmt) -> list[For]:
    """Return a loop with the annotation, after the serial loops that hold nothing else, if any."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        if any(key == KEY for key, _ in stmt.annotations):
            return loops
        if stmt.kind != "serial":
            return []
        stmt = stmt.body
    return []


def _around(loops: Sequence[For], body: Stmt) -> Stmt:
    for loop in reversed(loops):
        body = replace(loop, body=body)
    return body


def _in_lanes(nest: list[For], outer: Path) -> Stmt | None:
    """Return the reductions of a loop in lanes, or None if it does anything else."""
    *loops, loop = nest
    count = _lanes(loop)
    targets = _targets(loop, (*outer, *loops), count) if count > 1 else None
    if not targets:
        return None
    moving = {n for target in targets for index in target.store.indices for n in walk(index)}
    first = max((n + 1 for n, around in enumerate(loops) if around.var in moving), default=0)
    return _around(loops[:first], _rewritten(loop, targets, count, loops[first:]))


def _choice_of_tiles(nest: list[For], outer: Path) -> If | None:
    """Return the reductions of whole tiles of guarded rows and of single rows; None without guards.

    The guards must not depend on the loops.
    """
    rows: list[For] = []
    body = nest[-1].body
    while isinstance(body, For) and body.kind == "unrolled":
        rows.append(body)
        body = body.body
    if not rows or not isinstance(body, If) or body.otherwise is not None:
        return None
    test = whole_condition(rows[0], loop_extents(outer))
    variables = {loop.var for loop in nest}
    if test is None or any(variables & set(walk(c)) for c in (test, body.condition)):
        return None
    single: Stmt = If(body.condition, _around(nest, body.then))
    for row in reversed(rows):
        single = replace(row, body=single, kind="serial")
    return If(test, _around(nest, without_guards(rows[0])), single)


def _requested(loop: For) -> tuple[int, int]:
    """Return the requested lanes, and the steps to unroll; zeros if the annotation is invalid."""
    match dict(loop.annotations)[KEY]:
        case int() as lanes:
            return lanes, 1
        case (int() as lanes, int() as steps):
            return lanes, max(1, steps)
        case _:
            return 0, 0


def _lanes(loop: For) -> int:
    """Return the number of lanes, a power of two: the requested one, or what the extent allows."""
    num_lanes, _ = _requested(loop)
    extent = loop.extent
    if loop.kind != "serial" or not isinstance(extent, IntImm) or num_lanes < 1:
        return 1
    return 1 << (max(1, min(num_lanes, extent.value)).bit_length() - 1)


def _targets(loop: For, outer: Path, count: int) -> list[_LaneReduction] | None:
    """Return the reductions of a loop, or None if it does anything else."""
    for node in walk_stmts(loop.body):
        if isinstance(node, If | Allocate) or (isinstance(node, For) and node.kind not in _INNER):
            return None
    stores = [node for node in walk_stmts(loop.body) if isinstance(node, Store)]
    if len({store.buffer.data for store in stores}) < len(stores):
        return None
    targets = [_target(loop, store, outer, count) for store in stores]
    reductions = [target for target in targets if target is not None]
    return reductions if len(reductions) == len(targets) else None


def _target(loop: For, store: Store, outer: Path, count: int) -> _LaneReduction | None:
    buffer = store.buffer
    op = _operation(store)
    accesses = collect_accesses(loop, {buffer})[buffer]
    if op is None or len(accesses) != 2 or _is_guarded(store):
        return None
    if any(isinstance(n, Var) and n == loop.var for i in store.indices for n in walk(i)):
        return None
    path = accesses[-1].path[1:]
    below = {node.var: node for node in path if isinstance(node, For)}
    hidden = {node.var for node in path if isinstance(node, Let)}
    ranges = {**loop_extents(outer), **loop_extents(accesses[-1].path)}
    inner = {var: ranges[var] for var in below if var in ranges}
    forms = [split_form(ramp_form(i, ranges), inner, hidden) for i in store.indices]
    dimensions = [part for part in forms if part is not None]
    if len(dimensions) < len(forms) or len(inner) < len(below):
        return None
    corner: list[Affine] = [low for low, _ in dimensions]
    shape = (*(IntImm(extent) for _, extent in dimensions), IntImm(count))
    variables = {n for index in store.indices for n in walk(index) if isinstance(n, Var)}
    moving = variables & below.keys()
    loops = tuple(node for var, node in below.items() if var in moving)
    elements = (normal(index, ranges) for index in store.indices)
    if not moving <= determined(elements, inner, variables - moving):
        return None  # the loops would combine the lanes of an element more than once
    if any(n in below and n not in moving for node in loops for n in walk(node.extent)):
        return None  # the loops run with others only
    return _LaneReduction(
        store,
        op,
        loops,
        tuple(map(relative_index, store.indices, corner)),
        Buffer(Var(f"{buffer.name}_lanes", "handle"), shape, buffer.dtype, "local"),
    )


def _operation(store: Store) -> ArithOp | None:
    """Return the reducer of a store: its value combines the current value and another one."""
    current = Load(store.buffer, store.indices)
    match store.value:
        case BinOp("+" | "*" | "min" | "max" as op, lhs, rhs) if current in (lhs, rhs):
            return op
        case _:
            return None


def _is_guarded(store: Store) -> bool:
    return any(
        isinstance(node, Load) and node.buffer == store.buffer
        for guard in walk(store.value)
        if isinstance(guard, Conditional)
        for node in walk(guard)
    )


def _identity(op: ArithOp, dtype: DType) -> Expr:
    if op in ("+", "*"):
        start = int(op == "*")
        return FloatImm(float(start), dtype) if is_float(dtype) else IntImm(start, dtype)
    if is_float(dtype):
        return FloatImm(inf if op == "min" else -inf, dtype)
    smallest, largest = smallest_and_largest(dtype)
    return IntImm(int(largest if op == "min" else smallest), dtype)


def _rewritten(loop: For, targets: list[_LaneReduction], count: int, around: Sequence[For]) -> Stmt:
    assert isinstance(loop.extent, IntImm), "the extent is constant: the caller checked it"
    num_full, remainder = divmod(loop.extent.value, count)
    stmts: list[Stmt] = []
    _, steps = _requested(loop)
    num_long = num_full // steps * steps
    if num_long:
        outer, inner = Var(f"{loop.var.name}_0"), Var(f"{loop.var.name}_1")
        index = BinOp("+", BinOp("*", outer, IntImm(steps)), inner)
        main = _step(loop, targets, BinOp("*", index, IntImm(count)), count)
        main = For(inner, IntImm(steps), main, "unrolled")
        stmts.append(For(outer, IntImm(num_long // steps), main))
    if num_full > num_long:
        outer = Var(f"{loop.var.name}_0")
        first = BinOp("+", BinOp("*", outer, IntImm(count)), IntImm(num_long * count))
        stmts.append(For(outer, IntImm(num_full - num_long), _step(loop, targets, first, count)))
    if remainder:
        stmts.append(_step(loop, targets, IntImm(num_full * count), remainder))
    starts = [_each(target, _started(target, count)) for target in targets]
    stmts = [*starts, _around(around, seq(*stmts))]
    for target in targets:
        half = count // 2
        while half:
            stmts.append(_each(target, _folded(target, half)))
            half //= 2
        stmts.append(_each(target, _finish(target)))
    result = seq(*stmts)
    for target in targets:
        result = Allocate(target.lanes, result)
    return result


def _step(loop: For, targets: list[_LaneReduction], first: Expr, lanes: int) -> Stmt:
    """Return the body of a loop, run for `lanes` iterations at once from `first` on."""
    by_buffer = {target.store.buffer: target for target in targets}

    def run(lane: Expr) -> Stmt:
        def visit_expr(expr: Expr) -> Expr:
            new = map_expr(expr, visit_expr)
            if isinstance(new, Load) and new.buffer in by_buffer:
                return _at(by_buffer[new.buffer], lane)
            return new

        def visit(stmt: Stmt) -> Stmt:
            new = map_stmt(stmt, visit, visit_expr)
            if isinstance(new, Store):
                target = by_buffer[new.buffer]
                return Store(target.lanes, (*target.lane_indices, lane), new.value)
            return new

        return visit(substitute(loop.body, {loop.var: BinOp("+", first, lane)}))

    return _over(lanes, run)


def _at(target: _LaneReduction, lane: Expr) -> Load:
    return Load(target.lanes, (*target.lane_indices, lane))


def _started(target: _LaneReduction, count: int) -> Stmt:
    start = _identity(target.op, target.lanes.dtype)
    return _over(count, lambda lane: Store(target.lanes, (*target.lane_indices, lane), start))


def _folded(target: _LaneReduction, half: int) -> Stmt:
    """Return the statements that combine the upper half of the lanes with the lower half."""

    def fold(lane: Expr) -> Stmt:
        value = BinOp(target.op, _at(target, lane), _at(target, BinOp("+", lane, IntImm(half))))
        return Store(target.lanes, (*target.lane_indices, lane), value)

    return _over(half, fold)


def _finish(target: _LaneReduction) -> Stmt:
    current = Load(target.store.buffer, target.store.indices)
    return replace(target.store, value=BinOp(target.op, current, _at(target, IntImm(0))))


def _over(lanes: int, make: Callable[[Expr], Stmt]) -> Stmt:
    lane = Var("lane")
    return For(lane, IntImm(lanes), make(lane), "vectorized")


def _each(target: _LaneReduction, stmt: Stmt) -> Stmt:
    """Run a statement for each element of the target."""
    for loop in reversed(target.loops):
        stmt = replace(loop, body=stmt, annotations=())
    return stmt
