"""Thread constructs of lowered programs: loops over threads, barriers, one-by-one statements."""

from __future__ import annotations

from compiler.ir.core.nodes import Call, Evaluate, For, IntImm, Stmt, StringImm, Var
from compiler.ir.core.visit import walk_stmts

BARRIER = Evaluate(Call("tvm_storage_sync", (StringImm("shared"),), "int32"))
LANES = "threadIdx.x"
"""The axis along which the threads of a warp follow each other."""
_ALONE = ("one_by_one", True)


def is_thread(stmt: Stmt) -> bool:
    """Return whether a statement is a loop over the threads of one block, real or virtual."""
    return (
        isinstance(stmt, For) and stmt.thread is not None and not stmt.thread.startswith("blockIdx")
    )


def has_threads(stmt: Stmt) -> bool:
    """Return whether a program has loops that are bound to axes of threads or blocks."""
    return any(isinstance(node, For) and node.thread is not None for node in walk_stmts(stmt))


def is_barrier(stmt: Stmt) -> bool:
    """Return whether a statement is a barrier between the threads of a block."""
    return (
        isinstance(stmt, Evaluate)
        and isinstance(stmt.value, Call)
        and stmt.value.name == "tvm_storage_sync"
    )


def one_by_one(stmt: Stmt) -> Stmt:
    """Mark a statement that one thread finishes before the next thread begins it."""
    return For(Var("one_by_one"), IntImm(1), stmt, annotations=(_ALONE,))


def is_one_by_one(stmt: Stmt) -> bool:
    """Return whether a statement has the mark of `one_by_one`."""
    return isinstance(stmt, For) and _ALONE in stmt.annotations
