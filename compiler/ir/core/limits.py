"""Limits on the size of a program."""

from __future__ import annotations

from compiler.ir.core.nodes import (
    Allocate,
    Block,
    BlockRealize,
    Expr,
    For,
    If,
    Let,
    Seq,
    Stmt,
    While,
)
from compiler.ir.core.visit import children

# Chosen bounds. Programs that anyone can send stay within them, so that no pass runs for minutes
# and no buffer exceeds the memory of a worker. A 32-bit index reaches all of `MAX_EXTENT`.
MAX_RANK = 16
MAX_EXTENT = 2**31 - 1
MAX_BUFFER_BYTES = 4 << 30
MAX_TOTAL_BYTES = 16 << 30
MAX_NODES = 50_000
# Recursive passes use a few frames a level, and must not exhaust Python's stack.
MAX_DEPTH = 128
# Python's parser accepts 99 levels of indentation; a class and a function enclose a program.
MAX_NEST = 96
# A chosen bound: four times the 64 bytes of an AVX-512 register, which hold the most lanes.
MAX_LANES = 256
MAX_OFFSET_FACTOR = 2**31 - 1


def size_problem(node: Expr | Stmt | Block) -> str | None:
    """Return why a tree is too large, or None if it is not.

    Shared parts count as often as they occur, because a pass visits them as often.
    """
    stack: list[tuple[Expr | Stmt | Block, int, int]] = [(node, 1, 0)]
    count = 0
    while stack:
        top, depth, nest = stack.pop()
        count += 1
        if count > MAX_NODES:
            return f"more than {MAX_NODES} operations, loops and statements"
        if depth > MAX_DEPTH:
            return f"nested deeper than {MAX_DEPTH} levels"
        if nest > MAX_NEST:
            return f"more than {MAX_NEST} loops, blocks, conditions and allocations in each other"
        stack.extend((child, depth + 1, nest + _indents(top, child)) for child in children(top))
    return None


def _indents(parent: Expr | Stmt | Block, child: Expr | Stmt | Block) -> bool:
    """Return whether a part of a statement is printed with more indentation than the statement."""
    match parent:
        case For() | While() | If() | BlockRealize() | Allocate():
            return True
        case Block(init=init):
            return child is init
        case Seq(stmts):
            # The scope of the value ends inside a sequence, which needs an indented `with`.
            return isinstance(child, Let) and child is not stmts[-1]
        case _:
            return False
