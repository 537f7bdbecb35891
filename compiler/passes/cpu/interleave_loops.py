"""Run a vectorized loop in the iterations of the loop after it, as its annotation requests.

    for j in vectorized(768):  # interleave         for k_0 in 6:
        next[j] = A[i + 1, j] + R[i + 1, j]             lanes[0:128] += f(now[k_0 * 128 + (0:128)])
    for k_0 in 6:                              ->       for j in vectorized(128):
        lanes[0:128] += f(now[...])                         next[...] = A[...] + R[...]

The first loop reads a row that is in a distant cache, the second one computes with a row in the
nearest. One after the other, the core would wait for the first, because the instructions of the
second do not all fit its queues. The loops must access different buffers, or different versions of
one, as `pipeline_loops` makes them, and the iterations of the second divide the first; otherwise
they stay as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from compiler.ir.arith.affine import affine
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    For,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.visit import map_stmt, substitute, walk, walk_stmts

KEY = "interleave"
_Access: TypeAlias = Load | Store


def interleave_loops(stmt: Stmt) -> Stmt:
    """Rewrite the loops with the annotation `interleave`."""
    new = map_stmt(stmt, interleave_loops, lambda expr: expr)
    if not isinstance(new, Seq):
        return new
    stmts = list(new.stmts)
    for position in range(len(stmts) - 2, -1, -1):
        moved = _requested(stmts[position])
        if moved is None or not _are_independent(moved, stmts[position + 1]):
            continue
        joined = _joined(moved, stmts[position + 1])
        if joined is not None:
            stmts[position : position + 2] = [joined]
    return seq(*stmts)


def _requested(stmt: Stmt) -> For | None:
    """Return a statement if it is a loop with the annotation, perhaps in loops of one iteration."""
    while isinstance(stmt, For):
        if any(key == KEY for key, _ in stmt.annotations):
            is_plain = stmt.kind in ("serial", "unrolled", "vectorized")
            return stmt if is_plain and isinstance(stmt.extent, IntImm) else None
        if stmt.extent != IntImm(1):
            return None
        stmt = substitute(stmt.body, {stmt.var: IntImm(0)})
    return None


def _are_independent(first: Stmt, second: Stmt) -> bool:
    """Return whether a statement may run inside of another one.

    No element that one of them writes is accessed by the other. Threads that run one after another
    have loops of one variable in several places; inside of these, it would have another value.
    """
    named = {node for node in walk(first) if isinstance(node, Var)}
    named |= {node.var for node in walk_stmts(first) if isinstance(node, For | Let)}
    if any(isinstance(node, For | Let) and node.var in named for node in walk_stmts(second)):
        return False
    accesses, others = _accesses(first), _accesses(second)
    return all(
        all(_differ(a, b) for a in accesses[data] for b in others[data])
        for data in accesses.keys() & others.keys()
        if any(isinstance(access, Store) for access in (*accesses[data], *others[data]))
    )


def _accesses(stmt: Stmt) -> dict[Var, list[_Access]]:
    accesses: dict[Var, list[_Access]] = {}
    for node in walk(stmt):
        if isinstance(node, Load | Store):
            accesses.setdefault(node.buffer.data, []).append(node)
    return accesses


def _differ(first: _Access, second: _Access) -> bool:
    """Return whether two accesses are to different versions of a buffer, as pipelines have them."""
    match first.indices[:1], second.indices[:1]:
        case (BinOp("%", lhs, IntImm(count)),), (BinOp("%", rhs, IntImm(other)),) if count == other:
            distance = affine(lhs) - affine(rhs)
            is_alike = first.buffer == second.buffer
            return is_alike and not distance.terms and distance.const % count != 0
        case _:
            return False


def _joined(moved: For, stmt: Stmt) -> Stmt | None:
    """Return a statement with a loop in the iterations of its first long loop; None without one."""
    match stmt:
        case Allocate(buffer, body):
            joined = _joined(moved, body)
            return None if joined is None else Allocate(buffer, joined)
        case Seq(stmts):
            for position, child in enumerate(stmts):
                joined = _joined(moved, child)
                if joined is not None:
                    return Seq((*stmts[:position], joined, *stmts[position + 1 :]))
            return None
        case For(var, IntImm(count), body, "serial") if count > 1:
            assert isinstance(moved.extent, IntImm), "`_requested` checked it"
            length, rest = divmod(moved.extent.value, count)
            if rest:
                return None
            lane = Var(moved.var.name)
            index = BinOp("+", BinOp("*", var, IntImm(length)), lane)
            part = substitute(moved.body, {moved.var: index})
            loop = replace(moved, var=lane, extent=IntImm(length), body=part, annotations=())
            return replace(stmt, body=seq(body, loop))
        case _:
            return None
