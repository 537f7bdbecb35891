"""Move the copies of constant operands out of a program, so that they are made only once.

    for k in ...:                            for k in ...:
        P[...] = W[...]  # packed     ->         P[...] = W[...]     # ahead of time
        C[...] += A[...] * P[...]            ---
                                             for k in ...:
                                                 C[...] += A[...] * P[...]

A copy that is many times larger than the constants, such as weights unpacked from 4 bits, stays: it
would be read from memory more slowly than it is made. So do those of blocks with the annotation
`made_in_each_run`.

The value of each element must follow from its position alone. Then it does not matter that a loop
around the copy made it part by part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import prod

from compiler.ir.arith.bounds import bounds
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import (
    Allocate,
    BlockRealize,
    Buffer,
    For,
    If,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    static_shape,
)
from compiler.ir.core.visit import map_stmt, walk, walk_stmts
from compiler.passes.common.accesses import collect_accesses, is_symbolic, loop_extents
from compiler.passes.common.realize_blocks import NOTHING, in_order

KEY = "made_in_each_run"
"""The annotation of a block whose result stays in the program although it follows from constants.
"""
MAX_GROWTH = 4
"""Limit of the bytes of a copy, as a multiple of those of the constants that it is made of: the
Winograd transform of 3 x 3 weights for tiles of 4 needs 36 / 9. Weights of 4 bits that are unpacked
to float32 have 8 times as many.
"""


def constant_copies(body: Stmt, constants: AbstractSet[Buffer]) -> list[Buffer]:
    """Return the allocated buffers that follow from constants alone, in program order.

    Args:
        body: A program of blocks.
        constants: Buffers that are never written.
    """
    realizes = [node for node in walk_stmts(body) if isinstance(node, BlockRealize)]
    allocated = {buffer for realize in realizes for buffer in realize.block.alloc_buffers}
    stores = Counter(node.buffer for node in walk_stmts(body) if isinstance(node, Store))
    constant_buffers = set(constants)
    copies: list[Buffer] = []
    for realize in realizes:
        store = realize.block.body
        if not isinstance(store, Store) or store.buffer not in allocated:
            continue
        if not all(isinstance(extent, IntImm) for extent in store.buffer.shape):
            continue  # its size is known in a call, not when constants are packed
        stays = is_unpacked(store) or KEY in dict(realize.block.annotations)
        is_packed = stores[store.buffer] == 1 and not stays
        if is_packed and _follows(realize, store, constant_buffers):
            constant_buffers.add(store.buffer)
            copies.append(store.buffer)
    return copies


def is_unpacked(store: Store) -> bool:
    """Return whether a block writes many times the bytes of what it reads."""
    sources = {node.buffer for node in walk(store.value) if isinstance(node, Load)}
    return _size_bytes(store.buffer) > MAX_GROWTH * sum(map(_size_bytes, sources))


def _size_bytes(buffer: Buffer) -> int:
    return prod(static_shape(buffer)) * size_bytes(buffer.dtype)


def _follows(realize: BlockRealize, store: Store, constant_buffers: AbstractSet[Buffer]) -> bool:
    """Return whether the stored values follow from position and known buffers alone."""
    block = realize.block
    spatial = {i.var for i in block.iter_vars if i.kind == "spatial"}
    named_indices = set(store.indices)
    values = list(walk(store.value))
    is_determined = all(
        node in named_indices
        or not isinstance(node, Var)
        or node in {b.data for b in constant_buffers}
        for node in values
    )
    loads = [node for node in values if isinstance(node, Load)]
    return (
        block.init is None
        and not block.match_buffers
        and len(named_indices) == len(store.indices)
        and all(index in spatial or isinstance(index, IntImm) for index in store.indices)
        and is_determined
        and bool(loads)
        and all(load.buffer in constant_buffers for load in loads)
    )


def split_copies(stmt: Stmt, copies: AbstractSet[Buffer]) -> tuple[Stmt, Stmt]:
    """Return the program that makes the copies, and the one that uses them, without blocks."""

    def only(node: Stmt, is_wanted: bool) -> Stmt:
        match node:
            case Store(buffer):
                return node if (buffer in copies) == is_wanted else NOTHING
            case Allocate(buffer, body) if is_wanted or buffer in copies:
                return only(body, is_wanted)
            case Seq(stmts):
                return in_order(only(child, is_wanted) for child in stmts)
            case For(var, extent, body) if is_wanted and is_symbolic(extent):
                # Copies of constants do not depend on sizes, which only calls know.
                part = only(body, is_wanted)
                return part if var not in set(walk(part)) else replace(node, body=part)
            case If(condition, then, otherwise) if is_wanted and is_symbolic(condition):
                return in_order(only(p, is_wanted) for p in (then, otherwise) if p is not None)
            case For() | Let() | Allocate():
                body = only(node.body, is_wanted)
                return NOTHING if body == NOTHING else map_stmt(node, lambda _: body, lambda e: e)
            case If(_, then, otherwise):
                parts = [only(p, is_wanted) for p in (then, otherwise) if p is not None]
                if all(part == NOTHING for part in parts):
                    return NOTHING
                return If(node.condition, parts[0], parts[1] if len(parts) > 1 else None)
            case _:
                return NOTHING if is_wanted else node

    return only(stmt, True), only(stmt, False)


def with_room(copies: Iterable[Buffer], stmt: Stmt) -> dict[Buffer, Buffer]:
    """Return a larger buffer for each copy that the program reads beyond its end.

    Blocks of panels that do not divide an extent reach beyond its end. The values read there are
    not used, but a sum can stay in registers only if it can be read. A copy in the workspace has
    the room.
    """
    copied = tuple(copy for copy in copies if copy.shape)
    accesses = collect_accesses(stmt, set(copied))
    enlarged: dict[Buffer, Buffer] = {}
    for copy in copied:
        first, *inner_extents = static_shape(copy)
        reached = [bounds(a.indices[0], loop_extents(a.path)) for a in accesses.get(copy, ())]
        most = max((interval[1] + 1 for interval in reached if interval is not None), default=0)
        if most > first:
            enlarged[copy] = replace(copy, shape=tuple(IntImm(n) for n in (most, *inner_extents)))
    return enlarged
