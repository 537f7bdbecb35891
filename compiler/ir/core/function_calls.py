"""Calls of one function of a module by another.

    Module.scale(A.data, Y.data, 4)

A call is a statement: it passes whole buffers, by their storage, and values for the parameters that
are no buffers. It is only legal within a module; `compiler.ir.modules` inlines it, so that neither
schedules nor backends see one.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.ir.core.nodes import Call, Evaluate, Expr, Stmt, StringImm
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts

FUNCTION_CALL = "call_function"


def call_function(name: str, args: Iterable[Expr]) -> Evaluate:
    """Return the statement that calls the function `name` of the module."""
    return Evaluate(Call(FUNCTION_CALL, (StringImm(name), *args), "int32"))


def called_function(stmt: Stmt) -> tuple[str, tuple[Expr, ...]] | None:
    """Return the name and the arguments of a call; None if the statement is none."""
    match stmt:
        case Evaluate(Call(name, (StringImm(function), *args), _)) if name == FUNCTION_CALL:
            return function, tuple(args)
        case _:
            return None


def call_problem(func: PrimFunc) -> str | None:
    """Return why a function is no program alone, and what to do; None if it calls no other."""
    for _, name in calls_in(func.body):
        return (
            f"{func.name} calls {name}, a function of a module: pass the module, or the function "
            "of lw.inline_calls(module)"
        )
    return None


def calls_in(stmt: Stmt) -> list[tuple[Stmt, str]]:
    """Return the calls below a statement in program order, each with the name of its function."""
    calls = ((node, called_function(node)) for node in walk_stmts(stmt))
    return [(node, called[0]) for node, called in calls if called is not None]
