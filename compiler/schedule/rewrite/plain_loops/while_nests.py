"""Blocks of plain loops around a `while`, which stays whole: each nest of loops becomes one block.

    for i in range(n):                            for i in range(n):
        x: T.int32 = 0                                with T.sblock("B"):
        while x < A[i]:              ->                   vi = T.axis.spatial(n, i)
            x += 3                                        x = T.sblock_alloc_buffer((1,), "int32")
        B[i] = x                                          ...

The iterators are spatial if no two runs of the block touch an element that one of them writes, and
opaque otherwise, which keeps the loops in their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from compiler.ir.analysis.regions import with_regions
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    Evaluate,
    Expr,
    For,
    IntImm,
    IterKind,
    IterVar,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, transform, walk_stmts
from compiler.ir.text.names import unique
from compiler.schedule.legality.block_kind import Unclassified, classify_block


def blocks_around_while(func: PrimFunc) -> PrimFunc:
    """Return a program without blocks in blocks, one for each outermost nest of loops."""
    shared: list[Buffer] = []
    used_names = {"root"}
    nests: list[Stmt] = []
    for part in _parts(func.root.body, shared):
        nest = _nest(part, used_names)
        used_names.update(s.block.name for s in walk_stmts(nest) if isinstance(s, BlockRealize))
        nests.append(nest)
    buffers = (*func.root.alloc_buffers, *shared)
    root = replace(func.root, body=seq(*nests), alloc_buffers=buffers)
    return replace(func, body=replace(func.body, block=root))


def _parts(stmt: Stmt, shared: list[Buffer]) -> Iterator[Stmt]:
    """Yield the outermost statements, and note the buffers that they share."""
    match stmt:
        case Allocate(buffer, body):
            shared.append(buffer)
            yield from _parts(body, shared)
        case Seq(stmts):
            for child in stmts:
                yield from _parts(child, shared)
        case Evaluate():
            pass
        case _:
            yield stmt


def _nest(stmt: Stmt, used_names: set[str]) -> Stmt:
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.thread is None and isinstance(stmt.extent, IntImm):
        loops.append(stmt)
        stmt = stmt.body
    private = tuple(s.buffer for s in walk_stmts(stmt) if isinstance(s, Allocate))
    body = transform(stmt, on_stmt=lambda s: s.body if isinstance(s, Allocate) else None)
    stored = [s.buffer for s in walk_stmts(body) if isinstance(s, Store)]
    named = [buffer.name for buffer in stored if buffer not in private]
    name = unique(named[-1] if named else "block", used_names)
    block = _block(name, loops, body, private, "spatial")
    if isinstance(classify_block(block), Unclassified):
        block = _block(name, loops, body, private, "opaque")
    nest: Stmt = BlockRealize(tuple(loop.var for loop in loops), TRUE, block)
    for loop in reversed(loops):
        nest = replace(loop, body=nest)
    return nest


def _block(
    name: str, loops: Sequence[For], body: Stmt, private: tuple[Buffer, ...], kind: IterKind
) -> Block:
    iter_vars = tuple(
        IterVar(Var(f"v_{loop.var.name}", loop.var.dtype), loop.extent, kind) for loop in loops
    )
    values: dict[Var, Expr] = {
        loop.var: iter_var.var for loop, iter_var in zip(loops, iter_vars, strict=True)
    }
    whole = Block(name, iter_vars, (), (), substitute(body, values), alloc_buffers=private)
    return with_regions(whole)
