"""Blocks of a program with their positions."""

from __future__ import annotations

from compiler.ir.core.nodes import For, Var
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import refusal
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.tree.tree import loops_below
from compiler.script import parse


def program(body: str, params: str) -> PrimFunc:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    return parse(f"@T.prim_func\ndef main({params}):\n{lines}\n")


def placed(func: PrimFunc, block: str) -> tuple[BlockScope, PlacedBlock]:
    return scope_of_block(func, block, refusal("test", func))


def loops(func: PrimFunc) -> dict[str, For]:
    return {loop.var.name: loop for loop in loops_below(func.body)}


def variables(func: PrimFunc) -> dict[str, Var]:
    return {name: loop.var for name, loop in loops(func).items()}
