"""`while` loops in a program: most passes leave the statements around them as they are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from compiler.ir.core.nodes import Allocate, Seq, Stmt, While, seq
from compiler.ir.core.visit import walk_stmts


def has_while(stmt: Stmt) -> bool:
    """Return whether a statement is or has a loop of unknown length."""
    return any(isinstance(node, While) for node in walk_stmts(stmt))


def apart_from_while(stmt: Stmt, rewrite: Callable[[Stmt], Stmt]) -> Stmt:
    """Rewrite the statements of a program beside those with a loop of unknown length."""
    if not has_while(stmt):
        return rewrite(stmt)
    match stmt:
        case Seq(stmts):
            parts: list[Stmt] = []
            for has, group in groupby(stmts, has_while):
                if has:
                    parts += (apart_from_while(child, rewrite) for child in group)
                else:
                    parts.append(rewrite(seq(*group)))
            return seq(*parts)
        case Allocate(buffer, body):
            return Allocate(buffer, apart_from_while(body, rewrite))
        case _:
            return stmt
