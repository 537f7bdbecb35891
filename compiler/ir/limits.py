"""How large a program may be."""

from __future__ import annotations

from compiler.ir.nodes import Block, Expr, Stmt
from compiler.ir.visit import children

MAX_RANK = 16
MAX_EXTENT = 2**31 - 1
MAX_BUFFER_BYTES = 4 << 30
MAX_TOTAL_BYTES = 16 << 30
MAX_NODES = 50_000
# Recursive passes over the tree must not exhaust Python's stack, at a few frames a level.
MAX_DEPTH = 128


def size_problem(node: Expr | Stmt | Block) -> str | None:
    """Return what makes a tree too large, None if nothing does.

    Shared parts count as often as they occur: a pass visits them as often.
    """
    stack: list[tuple[Expr | Stmt | Block, int]] = [(node, 1)]
    count = 0
    while stack:
        top, depth = stack.pop()
        count += 1
        if count > MAX_NODES:
            return f"more than {MAX_NODES} operations, loops and statements"
        if depth > MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH} levels"
        stack.extend((child, depth + 1) for child in children(top))
    return None
