"""Programs that can be scheduled: each loop has its own variable, and each block its own name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.core.function_calls import called_function
from compiler.ir.core.nodes import Allocate, BlockRealize, Evaluate, For, Stmt, Var, While
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_stmt, walk_stmts
from compiler.ir.text.names import unique
from compiler.schedule.error import refusal
from compiler.schedule.tree.tree import statements, with_block


def schedulable(func: PrimFunc) -> PrimFunc:
    """Return a program in which each block has a unique name.

    Raises:
        ScheduleError: If two loops share a variable, or the program was lowered.
    """
    refuse = refusal("Schedule", func)
    names: list[str] = []
    variables: set[Var] = set()
    for stmt in statements(func.body):
        match stmt:
            case BlockRealize(block=block):
                names.append(block.name)
            case For(var=var):
                if var in variables:
                    raise refuse(f"two loops share the variable {var.name}", stmt, "illegal_result")
                variables.add(var)
            case While() if any(isinstance(s, BlockRealize) for s in walk_stmts(stmt)):
                reason = "a `while` has blocks in it, whose number of runs is unknown"
                raise refuse(f"{reason}: put it into a block", stmt, "illegal_result")
            case Allocate():
                raise refuse("the program is lowered already", stmt, "illegal_result")
            case Evaluate() if called_function(stmt) is not None:
                reason = "the function calls another one: schedule the module"
                raise refuse(reason, stmt, "illegal_result")
            case _:
                pass
    return func if len(set(names)) == len(names) else _with_unique_names(func, names)


def _with_unique_names(func: PrimFunc, names: Sequence[str]) -> PrimFunc:
    """Name blocks that share a name `C`, `C_1`, `C_2`, ... in program order."""
    used_names = set(names)
    earlier: set[str] = set()

    def renamed(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, BlockRealize):
            return map_stmt(stmt, renamed, lambda expr: expr)
        name = stmt.block.name
        if name in earlier:
            name = unique(name, used_names)
            used_names.add(name)
        earlier.add(name)
        block = stmt.block if name == stmt.block.name else replace(stmt.block, name=name)
        init = None if block.init is None else renamed(block.init)
        return with_block(stmt, replace(block, init=init, body=renamed(block.body)))

    body = renamed(func.body)
    assert isinstance(body, BlockRealize), "the root stays"
    return replace(func, body=body)
