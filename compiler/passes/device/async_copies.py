"""Turn marked copies from global to shared memory into asynchronous ones.

    for v in vectorized(4):                        async_copy(S[t * 4], A[i * 64 + t * 4], 16)
        S[t * 4 + v] = A[i * 64 + t * 4 + v]   ->

The call takes the first elements as loads, and the number of bytes: 4, 8 or 16, aligned to as many.
A fourth argument is a condition: if it does not hold, zeros arrive. Other copies stay as they are,
which is slower but correct: their data is there when the thread goes on.
"""

from __future__ import annotations

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import FixedRanges
from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.dtypes import bits
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.layout import strides_of
from compiler.ir.core.nodes import (
    Buffer,
    Call,
    Conditional,
    Evaluate,
    Expr,
    FloatImm,
    For,
    IntImm,
    Load,
    Logic,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.scopes import is_shared_scope
from compiler.ir.core.visit import map_stmt, substitute, uses
from compiler.passes.common.asynchronous import is_asynchronous

_WIDTHS = (4, 8, 16)  # the sizes in bytes of `cp.async`


def copy_asynchronously(stmt: Stmt) -> Stmt:
    """Rewrite the copies under the mark of asynchronous statements, and remove the marks."""
    anywhere = FixedRanges()

    def visit(node: Stmt, *, is_marked: bool) -> Stmt:
        if is_asynchronous(node):
            assert isinstance(node, For)
            return visit(node.body, is_marked=True)
        copy = _async_copy(node, anywhere) if is_marked else None
        if copy is not None:
            return copy
        return map_stmt(node, lambda child: visit(child, is_marked=is_marked), lambda expr: expr)

    return visit(stmt, is_marked=False)


def _async_copy(stmt: Stmt, anywhere: FixedRanges) -> Stmt | None:
    """Return the asynchronous form of a copy of neighbouring elements, if it has one."""
    lane: Var | None = None
    lanes, store = 1, stmt
    if isinstance(stmt, For) and stmt.kind == "vectorized" and isinstance(stmt.extent, IntImm):
        lane, lanes, store = stmt.var, stmt.extent.value, stmt.body
    if not (isinstance(store, Store) and is_shared_scope(store.buffer.scope)):
        return None
    value, valid = _guarded_value(store.value, anywhere)
    if not (isinstance(value, Load) and value.buffer.scope == "global"):
        return None
    size = lanes * bits(store.buffer.dtype) // 8
    depends = lane is not None and any(uses(condition, lane) for condition in valid)
    if size not in _WIDTHS or depends or value.buffer.dtype != store.buffer.dtype:
        return None
    ranges = FixedRanges({} if lane is None else {lane: lanes})
    target = _first_element(store.buffer, store.indices, lane, ranges, anywhere)
    source = _first_element(value.buffer, value.indices, lane, ranges, anywhere)
    if target is None or source is None:
        return None
    return Evaluate(Call("async_copy", (target, source, IntImm(size), *valid), "int32"))


def _guarded_value(value: Expr, anywhere: FixedRanges) -> tuple[Expr, tuple[Expr, ...]]:
    """Return what a copy loads, and the condition under which it is not zero, if it has one."""
    match value:
        case Conditional(condition, then, FloatImm(0.0) | IntImm(0)):
            inner, conditions = _guarded_value(then, anywhere)
            for other in conditions:
                condition = Logic("and", condition, other)
            return inner, (simplify(condition, anywhere),)
        case _:
            return value, ()


def _first_element(
    buffer: Buffer,
    indices: tuple[Expr, ...],
    lane: Var | None,
    ranges: FixedRanges,
    anywhere: FixedRanges,
) -> Load | None:
    """Return the first of some neighbouring elements, if it is aligned to all of them."""
    if lane is None:
        return Load(buffer, indices)
    offset = Affine((), 0)
    for index, stride in zip(indices, strides_of(buffer), strict=True):
        offset = offset + normal(index, ranges).scaled(stride)
    rest = [(atom, scale) for atom, scale in offset.terms if atom is not lane]
    if offset.coefficient(lane) != 1 or any(uses(atom, lane) for atom, _ in rest):
        return None
    lanes = ranges[lane]
    assert isinstance(lanes, int)
    if offset.const % lanes or any(scale % lanes for _, scale in rest):
        return None
    first: dict[Var, Expr] = {lane: IntImm(0, dtype_of(lane))}
    return Load(buffer, tuple(simplify(substitute(index, first), anywhere) for index in indices))
