"""Split marked copies in two: a load into memory of the thread, and a store from there.

    for t in threads:                  for t in threads:
        for v in 4:                        for v in 4:
            S[t, v] = A[t, v]    ->            L[v] = A[t, v]
                                       for t in threads:
                                           for v in 4:
                                               S[t, v] = L[v]

The two are statements of their own in a pipelined loop, so that the load can run ahead: the thread
computes while its elements arrive, and stores them later. A block asks for it by the annotation
`manifest_shared_memory_local_stage`, as in TVM; its value does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Expr,
    For,
    IntImm,
    IterVar,
    Load,
    Range,
    Seq,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.visit import map_stmt, substitute, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.common.thread_loops import is_thread

KEY = "manifest_shared_memory_local_stage"


def separate_local_stages(stmt: Stmt) -> Stmt:
    """Split the copies of annotated blocks.

    Raises:
        LoweringError: If an annotated block is no copy under loops of its own.
    """
    if not any(_is_marked(node) for node in walk_stmts(stmt)):
        return stmt
    split = _separated(stmt)
    for node in walk_stmts(split):
        if _is_marked(node):
            assert isinstance(node, BlockRealize)
            raise LoweringError(
                f"block {node.block.name} has the annotation {KEY}: expected a block with one "
                "store, under loops of its own"
            )
    return split


def _is_marked(stmt: Stmt) -> bool:
    return isinstance(stmt, BlockRealize) and KEY in dict(stmt.block.annotations)


def _separated(stmt: Stmt) -> Stmt:
    """Split the copies under a statement; the nearest block around allocates their memory."""
    new = map_stmt(stmt, _separated, lambda expr: expr)
    if not isinstance(new, BlockRealize):
        return new
    allocated: list[Buffer] = []

    def in_block(inner: Stmt) -> Stmt:
        match inner:
            case BlockRealize():
                return inner
            case Seq(stmts):
                parts = [part for child in stmts for part in _stages(child, allocated)]
                return Seq(tuple(map(in_block, parts)))
            case _:
                return map_stmt(inner, in_block, lambda expr: expr)

    body = in_block(new.block.body)
    buffers = (*new.block.alloc_buffers, *allocated)
    return replace(new, block=replace(new.block, body=body, alloc_buffers=buffers))


def _stages(stmt: Stmt, allocated: list[Buffer]) -> list[Stmt]:
    """Return the two stages of a marked copy; another statement as it is."""
    loops: list[For] = []
    innermost = stmt
    while isinstance(innermost, For):
        loops.append(innermost)
        innermost = innermost.body
    if not (isinstance(innermost, BlockRealize) and _is_marked(innermost)):
        return [stmt]
    store = innermost.block.body
    if not isinstance(store, Store) or innermost.block.init is not None:
        return [stmt]
    serial = [loop for loop in loops if not is_thread(loop)]
    local = Buffer(
        Var(f"{store.buffer.name}_local", "handle"),
        tuple(loop.extent for loop in serial),
        store.buffer.dtype,
        "local",
    )
    allocated.append(local)
    load, store_back = (
        _load(innermost, store, serial, local),
        _store(innermost, store, serial, local),
    )
    return [_nest(loops, load), _nest(loops, store_back)]


def _nest(loops: Sequence[For], realize: BlockRealize) -> Stmt:
    """Return a block under copies of loops; each copy has a variable of its own."""
    names = {loop.var: Var(loop.var.name, loop.var.dtype) for loop in loops}
    stmt = substitute(realize, dict[Var, Expr](names))
    for loop in reversed(loops):
        stmt = replace(loop, var=names[loop.var], body=stmt)
    return stmt


def _load(
    realize: BlockRealize, store: Store, serial: Sequence[For], local: Buffer
) -> BlockRealize:
    positions = _positions(serial)
    block = realize.block
    return _renewed(
        realize,
        replace(
            block,
            name=f"{block.name}_local",
            iter_vars=(*block.iter_vars, *positions),
            writes=(_element(local, positions),),
            body=Store(local, tuple(position.var for position in positions), store.value),
        ),
        serial,
    )


def _store(
    realize: BlockRealize, store: Store, serial: Sequence[For], local: Buffer
) -> BlockRealize:
    positions = _positions(serial)
    block = realize.block
    return _renewed(
        realize,
        replace(
            block,
            iter_vars=(*block.iter_vars, *positions),
            reads=(_element(local, positions),),
            body=replace(store, value=Load(local, tuple(position.var for position in positions))),
        ),
        serial,
    )


def _positions(serial: Sequence[For]) -> tuple[IterVar, ...]:
    return tuple(
        IterVar(Var(f"p{number}", loop.var.dtype), loop.extent, "spatial")
        for number, loop in enumerate(serial)
    )


def _element(local: Buffer, positions: Sequence[IterVar]) -> BufferRegion:
    ranges = tuple(Range(position.var, IntImm(1, dtype_of(position.var))) for position in positions)
    return BufferRegion(local, ranges)


def _renewed(realize: BlockRealize, block: Block, serial: Sequence[For]) -> BlockRealize:
    """Return a stage with iterators of its own, also bound to the positions in local memory."""
    notes = tuple(note for note in block.annotations if note[0] != KEY)
    values = (*realize.iter_values, *(loop.var for loop in serial))
    names = {i.var: Var(i.var.name, i.var.dtype) for i in block.iter_vars}
    renamed = substitute(
        BlockRealize(values, realize.predicate, replace(block, annotations=notes)),
        dict[Var, Expr](names),
    )
    assert isinstance(renamed, BlockRealize)
    iters = tuple(replace(i, var=names[i.var]) for i in block.iter_vars)
    return replace(renamed, block=replace(renamed.block, iter_vars=iters))
