"""Programs without their blocks: plain loops, conditions and stores that do the same."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    BlockRealize,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Logic,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_stmt, substitute, walk, walk_stmts


def stripped(func: PrimFunc) -> PrimFunc:
    """Return a program in which each block is replaced by what it does.

    An init becomes a statement that runs if all axes of the reduction are at their start.
    """
    allocated: list[Buffer] = list(func.root.alloc_buffers)

    def visit(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, BlockRealize):
            return map_stmt(stmt, visit, lambda expr: expr)
        block = stmt.block
        allocated.extend(block.alloc_buffers)
        values: dict[Var, Expr] = dict(
            zip((i.var for i in block.iter_vars), stmt.iter_values, strict=True)
        )
        body = visit(block.body)
        if block.init is not None:
            start: Expr | None = None
            for iterator in block.iter_vars:
                if iterator.kind == "reduce":
                    here = Compare("==", iterator.var, IntImm(0, dtype_of(iterator.var)))
                    start = here if start is None else Logic("and", start, here)
            init = block.init if start is None else If(start, block.init)
            body = seq(init, body)
        body = substitute(body, values)
        return body if stmt.predicate == TRUE else If(stmt.predicate, body)

    body = visit(func.root.body)
    root = replace(func.root, body=body, alloc_buffers=tuple(allocated))
    return replace(func, body=replace(func.body, block=root))


def kinds_by_block(func: PrimFunc) -> list[tuple[str, ...]]:
    """Return, block by block, the kinds of the iterators that follow each repeated loop around it.

    A scan that reads no element of its own buffer is spatial: other blocks keep it in its order.
    """
    kinds: list[tuple[str, ...]] = []

    def visit(stmt: Stmt, loops: tuple[Var, ...]) -> Stmt:
        if isinstance(stmt, For):
            is_repeated = stmt.extent != IntImm(1, dtype_of(stmt.extent))
            visit(stmt.body, (*loops, stmt.var) if is_repeated else loops)
        elif isinstance(stmt, BlockRealize) and stmt is not func.body:
            kinds.append(tuple(kinds_of(stmt, loop) for loop in loops))
        else:
            map_stmt(stmt, lambda child: visit(child, loops), lambda expr: expr)
        return stmt

    visit(func.body, ())
    return kinds


def kinds_of(realize: BlockRealize, loop: Var) -> str:
    """Return the kinds of the iterators of a block that follow a loop."""
    block = realize.block
    followed = {
        iterator.kind
        for iterator, value in zip(block.iter_vars, realize.iter_values, strict=True)
        if loop in set(walk(value))
    }
    written = {stmt.buffer for stmt in walk_stmts(block.body) if isinstance(stmt, Store)}
    is_own = any(isinstance(n, Load) and n.buffer in written for n in walk(block.body))
    if "scan" in followed and not is_own:
        followed = followed - {"scan"} | {"spatial"}
    return "+".join(sorted(followed))
