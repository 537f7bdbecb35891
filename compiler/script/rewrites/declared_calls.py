"""Calls of registered functions that need no declaration of their own.

    T.call_packed("my.scale", X, Y)     ->      with T.sblock("my_scale"):
                                                    T.reads(X[0:64])
                                                    T.writes(Y[0:64])
                                                    T.call_packed("my.scale", X.data, Y.data)

That holds for a function that is registered in this process with its number of outputs, and for a
call between the loops of a function.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from compiler.executor.functions.registry import num_outputs_of
from compiler.ir.core.library_calls import library_call, whole
from compiler.ir.core.nodes import TRUE, Block, BlockRealize, Buffer, Seq, Stmt, seq
from compiler.ir.core.program import PrimFunc


def with_declared_calls(func: PrimFunc, at: Callable[[Block, Stmt], Block]) -> PrimFunc:
    """Return a function with a block around each call whose function is registered.

    Args:
        func: The function.
        at: Gives a new block the position of its call; returns the block.
    """
    body = func.root.body
    statements = body.stmts if isinstance(body, Seq) else (body,)
    if all(library_call(stmt) is None for stmt in statements):
        return func
    if func.root.reads or func.root.writes:
        return _below_root(func, at)
    buffers = {b.data: b for b in (*func.buffers, *func.root.alloc_buffers)}
    names: set[str] = set()

    def declared(stmt: Stmt) -> Stmt:
        call = library_call(stmt)
        passed = [] if call is None else [buffers.get(handle) for handle in call.handles]
        buffers_passed = [b for b in passed if b is not None]
        num_outputs = None if call is None else num_outputs_of(call.function)
        if (
            call is None
            or num_outputs is None
            or len(buffers_passed) < max(num_outputs, len(passed))
        ):
            return stmt
        name = _fresh(re.sub(r"\W", "_", call.function), names)
        return BlockRealize((), TRUE, at(_block(name, stmt, buffers_passed, num_outputs), stmt))

    root = replace(func.root, body=seq(*map(declared, statements)))
    return replace(func, body=replace(func.body, block=root))


def _below_root(func: PrimFunc, at: Callable[[Block, Stmt], Block]) -> PrimFunc:
    """Return a function whose only statement is a block with a call, which was read as its root."""
    block = func.root
    root = Block("root", (), (), (), block.body, alloc_buffers=block.alloc_buffers)
    inner = at(replace(block, alloc_buffers=()), block.body)
    root = replace(root, body=BlockRealize((), TRUE, inner))
    return replace(func, body=replace(func.body, block=root))


def _block(name: str, stmt: Stmt, passed: list[Buffer], num_outputs: int) -> Block:
    reads, writes = passed[:-num_outputs], passed[-num_outputs:]
    return Block(
        name,
        (),
        tuple(whole(buffer) for buffer in dict.fromkeys(reads)),
        tuple(whole(buffer) for buffer in dict.fromkeys(writes)),
        stmt,
    )


def _fresh(name: str, names: set[str]) -> str:
    number, fresh = 0, name
    while fresh in names:
        number += 1
        fresh = f"{name}_{number}"
    names.add(fresh)
    return fresh
