"""Asynchronous copies of a device: the mark of statements that copy, and the calls that await them.

A thread ends a group of copies with `async_commit_group()`. `async_wait_group(n)` returns when all
groups of the thread but the last `n` have arrived. The names are those of PTX.
"""

from __future__ import annotations

from compiler.ir.core.nodes import Call, Evaluate, For, IntImm, Stmt, Var

COMMIT = Evaluate(Call("async_commit_group", (), "int32"))
_ASYNCHRONOUS = ("asynchronous_copy", True)


def await_groups(in_flight: int) -> Stmt:
    """Return the call that waits for all groups of copies but the last `in_flight`."""
    return Evaluate(Call("async_wait_group", (IntImm(in_flight),), "int32"))


def asynchronous(stmt: Stmt) -> Stmt:
    """Mark a statement whose copies to shared memory may run while the thread goes on."""
    return For(Var("asynchronous"), IntImm(1), stmt, annotations=(_ASYNCHRONOUS,))


def is_asynchronous(stmt: Stmt) -> bool:
    """Return whether a statement has the mark of `asynchronous`."""
    return isinstance(stmt, For) and _ASYNCHRONOUS in stmt.annotations
