"""Indices that are loaded from buffers. No proof bounds them, so kernels check them at run time.

A load at such an index outside of its buffer returns the nearest element inside. A store there has
no effect.
"""

from __future__ import annotations

from collections.abc import Container

from compiler.ir.core.nodes import Expr, Let, Load, Stmt, Var
from compiler.ir.core.visit import walk, walk_stmts


def loaded_names(stmt: Stmt) -> set[Var]:
    """Return the names in a program of values that depend on the contents of buffers."""
    names: set[Var] = set()
    for node in walk_stmts(stmt):
        if isinstance(node, Let) and is_loaded(node.value, names):
            names.add(node.var)
    return names


def is_loaded(expr: Expr, names: Container[Var]) -> bool:
    """Return whether a value depends on the contents of buffers, directly or through a name."""
    return any(isinstance(node, Load) or node in names for node in walk(expr))
