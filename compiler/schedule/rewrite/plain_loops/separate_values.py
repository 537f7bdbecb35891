"""Give each value of an element that is replaced in place a buffer of its own, but the last.

    for i in range(n):                    for i in range(n):
        Y[i] = f(A[i])                        Y_before[i] = f(A[i])
    for i in range(n):            ->      for i in range(n):
        Y[i] = g(Y[i])                        Y[i] = g(Y_before[i])

Then no statement overwrites what another one has computed, and each can be moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.core.nodes import Buffer, Expr, For, Load, Stmt, Store, Var
from compiler.ir.core.visit import map_expr, map_stmt, substitute, walk
from compiler.ir.text.names import unique
from compiler.schedule.rewrite.plain_loops.iterators import reads, reduction_loops
from compiler.schedule.rewrite.plain_loops.statements import Part, Statement, statements_of


def separate_values(
    parts: Sequence[Part], used_names: set[str]
) -> tuple[list[Part], tuple[Buffer, ...]]:
    """Return parts in which values have their own buffers, and these buffers."""
    new_buffers: list[Buffer] = []
    result = list(parts)
    for number in range(1, len(result)):
        before, statement = result[number - 1], result[number]
        if not _is_overwritten(result, number):
            continue
        assert isinstance(before, Statement), "that is required"
        assert isinstance(statement, Statement), "that is required"
        (old,) = statement.written
        name = unique(f"{old.name}_{'before' if before.init is None else 'sum'}", used_names)
        used_names.add(name)
        new = replace(old, data=Var(name, "handle"))
        new_buffers.append(new)
        result[number - 1] = _redirected(before, old, new, stores=True)
        result[number] = _redirected(statement, old, new, stores=False)
    return result, tuple(new_buffers)


def _is_overwritten(parts: Sequence[Part], number: int) -> bool:
    """Return whether a statement replaces each element that the previous one computed.

    Nothing else may have accessed the buffer before.
    """
    before, statement = parts[number - 1], parts[number]
    if not (isinstance(before, Statement) and isinstance(statement, Statement)):
        return False
    first, second = before.body, statement.body
    if not (isinstance(first, Store) and isinstance(second, Store)):
        return False
    if first.buffer != second.buffer or before.conditions or statement.conditions:
        return False
    if before.init is None and reads(first.value, first.buffer):
        return False
    loops, others = _spatial(before), statement.loops
    same: dict[Var, Expr] = {a.var: b.var for a, b in zip(loops, others, strict=False)}
    if [loop.extent for loop in loops] != [loop.extent for loop in others]:
        return False
    if tuple(substitute(index, same) for index in first.indices) != second.indices:
        return False
    used = {node for index in second.indices for node in walk(index)}
    if any(loop.var not in used for loop in others):
        return False
    loads = [n for n in walk(second.value) if isinstance(n, Load) and n.buffer == second.buffer]
    if not loads or any(load.indices != second.indices for load in loads):
        return False
    return not any(
        isinstance(node, Load | Store) and node.buffer == first.buffer
        for earlier in parts[: number - 1]
        for statement in statements_of(earlier)
        for node in (*walk(statement.body), *(walk(statement.init) if statement.init else ()))
    )


def _spatial(statement: Statement) -> tuple[For, ...]:
    reduced = reduction_loops(statement)
    return tuple(loop for loop in statement.loops if loop not in reduced)


def _redirected(statement: Statement, old: Buffer, new: Buffer, *, stores: bool) -> Statement:
    """Redirect the loads of a statement to another buffer, and its stores, too, if requested."""

    def on_expr(expr: Expr) -> Expr:
        moved = map_expr(expr, on_expr)
        return (
            Load(new, moved.indices) if isinstance(moved, Load) and moved.buffer == old else moved
        )

    def on_stmt(stmt: Stmt) -> Stmt:
        moved = map_stmt(stmt, on_stmt, on_expr)
        if stores and isinstance(moved, Store) and moved.buffer == old:
            return replace(moved, buffer=new)
        return moved

    init = None if statement.init is None else on_stmt(statement.init)
    return replace(statement, body=on_stmt(statement.body), init=init)
