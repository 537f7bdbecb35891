"""Indices that come out of buffers: no proof says where they go, so they are checked when run.

What they load from a place outside of its buffer is the nearest element inside; what they store
there is not stored.
"""

from __future__ import annotations

from collections.abc import Container

from compiler.ir.core.nodes import Expr, Let, Load, Stmt, Var
from compiler.ir.core.visit import walk, walk_stmts


def loaded_names(stmt: Stmt) -> set[Var]:
    """Return the names in a program for values that depend on what is in buffers."""
    names: set[Var] = set()
    for node in walk_stmts(stmt):
        if isinstance(node, Let) and is_loaded(node.value, names):
            names.add(node.var)
    return names


def is_loaded(expr: Expr, names: Container[Var]) -> bool:
    """Tell whether a value depends on what is in buffers, directly or through a name."""
    return any(isinstance(node, Load) or node in names for node in walk(expr))
