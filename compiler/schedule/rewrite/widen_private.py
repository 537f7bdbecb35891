"""Give each iteration of plain loops elements of its own in a buffer that they use one by one.

    for i in range(n):                       for i in range(n):
        s[0] = 0                                 s[i, 0] = 0
        for k in range(m):          ->           for k in range(m):
            s[0] = s[0] + A[i, k]                    s[i, 0] = s[i, 0] + A[i, k]
        B[i] = s[0]                              B[i] = s[i, 0]

So the loops can be distributed over the statements; lowering shrinks the buffer again.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    Expr,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_expr, map_stmt, walk
from compiler.ir.verify.races.accesses import Loop, SharedAccess, accesses_of
from compiler.ir.verify.races.private import is_own

_MAX_ELEMENTS = 1 << 24


def widen_private(func: PrimFunc) -> PrimFunc:
    """Return a program without blocks whose private buffers have an element an iteration."""
    places: dict[Buffer, tuple[Buffer, tuple[Var, ...]]] = {}
    touching: dict[Buffer, list[SharedAccess]] = {}
    for access in accesses_of(func):
        touching.setdefault(access.buffer, []).append(access)
    for buffer in func.root.alloc_buffers:
        accesses = touching.get(buffer, [])
        around = [loop for loop in _shared_loops(accesses) if loop.extent > 1]
        moving = tuple(loop.var for loop in around)
        size = prod([*(loop.extent for loop in around), *static_shape(buffer)])
        if moving and size <= _MAX_ELEMENTS and is_own(accesses, moving):
            shape = (*(IntImm(loop.extent) for loop in around), *buffer.shape)
            wide = replace(buffer, data=Var(buffer.name, "handle"), shape=shape)
            places[buffer] = wide, moving
    return _redirected(func, places) if places else func


def _shared_loops(accesses: list[SharedAccess]) -> list[Loop]:
    """Return the loops around all of some accesses that tell none of them apart yet."""
    shared: list[Loop] = []
    for loops in zip(*(access.loops for access in accesses), strict=False):
        if any(loop.number != loops[0].number for loop in loops):
            break
        shared.append(loops[0])
    if any(_uses(access, loop.var) for access in accesses for loop in shared):
        return []
    return shared


def _uses(access: SharedAccess, var: Var) -> bool:
    return any(node is var for index in access.indices for node in walk(index))


def _redirected(func: PrimFunc, places: dict[Buffer, tuple[Buffer, tuple[Var, ...]]]) -> PrimFunc:
    def on_expr(expr: Expr) -> Expr:
        new = map_expr(expr, on_expr)
        if isinstance(new, Load) and new.buffer in places:
            wide, moving = places[new.buffer]
            return Load(wide, (*moving, *new.indices))
        return new

    def on_stmt(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, on_stmt, on_expr)
        if isinstance(new, Store) and new.buffer in places:
            wide, moving = places[new.buffer]
            return Store(wide, (*moving, *new.indices), new.value)
        return new

    allocated = tuple(places[b][0] if b in places else b for b in func.root.alloc_buffers)
    root = replace(func.root, body=on_stmt(func.root.body), alloc_buffers=allocated)
    return replace(func, body=BlockRealize((), func.body.predicate, root))
