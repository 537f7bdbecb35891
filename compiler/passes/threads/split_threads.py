"""Run the threads of a block one after another: split the loop over threads at each barrier.

    for tx in 32:                               for tx in 32:
        a = A[tx]                                   a_[tx] = A[tx]
        S[tx] = a                                   S[tx] = a_[tx]
        T.tvm_storage_sync("shared")      ->    for tx in 32:
        B[tx] = a + S[31 - tx]                      B[tx] = a_[tx] + S[31 - tx]

So all threads have finished the statements before a barrier when the first thread passes it. A
value that a thread keeps across a barrier gets one element for each thread. Loops that hold a
barrier move outside of the loops over threads. That is legal because all threads have the same
number of iterations. The method is loop fission, as in MCUDA (Stratton et al., LCPC 2008).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Expr,
    For,
    If,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.visit import map_accesses, map_stmt, substitute, walk, walk_stmts
from compiler.passes.common.realize_blocks import NOTHING, in_order
from compiler.passes.common.thread_loops import is_barrier, is_thread

Threads = tuple[For, ...]


def split_threads(stmt: Stmt, private: Container[Buffer]) -> Stmt:
    """Turn loops over threads and blocks of threads into plain loops.

    Args:
        stmt: A program with all its barriers.
        private: The buffers that each thread has a copy of.
    """

    def visit(node: Stmt) -> Stmt:
        if isinstance(node, For) and is_thread(node):
            return _serial(_split(node, (), private))
        return map_stmt(node, visit, lambda expr: expr)

    return _serial(visit(stmt))


def _serial(stmt: Stmt) -> Stmt:
    def visit(node: Stmt) -> Stmt:
        new = map_stmt(node, visit, lambda expr: expr)
        if isinstance(new, For) and new.thread is not None:
            return replace(new, kind="serial", thread=None)
        return new

    return visit(stmt)


def _split(stmt: Stmt, threads: Threads, private: Container[Buffer]) -> Stmt:
    if is_barrier(stmt):
        return NOTHING
    if not any(is_barrier(node) for node in walk_stmts(stmt)):
        return _around(threads, stmt)
    match stmt:
        case Seq(stmts):
            return _sequence(stmts, threads, private)
        case For() if is_thread(stmt):
            return _split(stmt.body, (*threads, stmt), private)
        case For():
            # A parallel loop shares no barrier with the threads.
            kind = stmt.kind if stmt.kind == "unrolled" or stmt.thread else "serial"
            return replace(stmt, body=_split(stmt.body, threads, private), kind=kind)
        case If(condition, then, otherwise):
            else_branch = None if otherwise is None else _split(otherwise, threads, private)
            return If(condition, _split(then, threads, private), else_branch)
        case Let():
            return _split_let(stmt, threads, private)
        case Allocate(buffer, body):
            if buffer not in private or not threads:
                return Allocate(buffer, _split(body, threads, private))
            wide = _per_thread(buffer, threads)
            moved = _redirect(body, {buffer: wide}, threads)
            return Allocate(wide, _split(moved, threads, private))
        case _:
            raise AssertionError("a barrier is a statement")


def _sequence(stmts: tuple[Stmt, ...], threads: Threads, private: Container[Buffer]) -> Stmt:
    """Split between the statements that hold barriers; the others stay together."""
    parts: list[Stmt] = []
    together: list[Stmt] = []

    def finish() -> None:
        if together:
            parts.append(_around(threads, seq(*together)))
            together.clear()

    for stmt in stmts:
        if not any(is_barrier(node) for node in walk_stmts(stmt)):
            together.append(stmt)
            continue
        finish()
        if not is_barrier(stmt):
            parts.append(_split(stmt, threads, private))
    finish()
    return in_order(parts)


def _around(threads: Threads, stmt: Stmt) -> Stmt:
    for loop in reversed(threads):
        stmt = replace(loop, body=stmt)
    return stmt


def _split_let(let: Let, threads: Threads, private: Container[Buffer]) -> Stmt:
    """Store a value that differs between threads in memory, so that it survives a barrier."""
    thread_vars = {loop.var for loop in threads}
    if not any(node in thread_vars or isinstance(node, Load) for node in walk(let.value)):
        return replace(let, body=_split(let.body, threads, private))
    dtype = dtype_of(let.value)
    private_buffer = _per_thread(Buffer(Var(let.var.name, "handle"), (), dtype, "local"), threads)
    indices = tuple(loop.var for loop in threads)
    first = _around(threads, Store(private_buffer, indices, let.value))
    body = substitute(let.body, {let.var: Load(private_buffer, indices)})
    return Allocate(private_buffer, seq(first, _split(body, threads, private)))


def _per_thread(buffer: Buffer, threads: Threads) -> Buffer:
    shape = (*(loop.extent for loop in threads), *buffer.shape)
    return Buffer(Var(buffer.name, "handle"), shape, buffer.dtype, buffer.scope)


def _redirect(stmt: Stmt, wide: Mapping[Buffer, Buffer], threads: Threads) -> Stmt:
    """Prefix the indices of each access of a buffer with the thread indices."""
    numbers: tuple[Expr, ...] = tuple(loop.var for loop in threads)
    return map_accesses(stmt, wide, lambda buffer, indices: (wide[buffer], (*numbers, *indices)))
