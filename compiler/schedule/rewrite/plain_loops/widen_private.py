"""Give each iteration of plain loops separate elements of a buffer that all of them reuse.

    for i in range(n):                       for i in range(n):
        s[0] = 0                                 s[i, 0] = 0
        for k in range(m):          ->           for k in range(m):
            s[0] = s[0] + A[i, k]                    s[i, 0] = s[i, 0] + A[i, k]
        B[i] = s[0]                              B[i] = s[i, 0]

Then the loops can be distributed over the statements. Lowering shrinks the buffer again. This is
scalar expansion (Kuck et al., "Dependence graphs and compiler optimizations", POPL 1981).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from compiler.ir.core.nodes import (
    BlockRealize,
    Buffer,
    Expr,
    IntImm,
    Var,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_accesses, walk
from compiler.ir.verify.races.accesses import accesses_of
from compiler.ir.verify.races.private import reads_only_own_writes
from compiler.ir.verify.races.shared_access import Loop, SharedAccess

# A chosen bound on a widened buffer: 64 MiB of float32.
_MAX_ELEMENTS = 1 << 24


def widen_private(func: PrimFunc) -> PrimFunc:
    """Give each private buffer of a program without blocks an element for each iteration."""
    widened: dict[Buffer, tuple[Buffer, tuple[Var, ...]]] = {}
    accesses_by_buffer: dict[Buffer, list[SharedAccess]] = {}
    for access in accesses_of(func):
        accesses_by_buffer.setdefault(access.buffer, []).append(access)
    for buffer in func.root.alloc_buffers:
        accesses = accesses_by_buffer.get(buffer, [])
        around = [loop for loop in _shared_loops(accesses) if loop.extent > 1]
        moving = tuple(loop.var for loop in around)
        size = prod([*(loop.extent for loop in around), *static_shape(buffer)])
        is_small = moving and size <= _MAX_ELEMENTS
        if is_small and reads_only_own_writes(accesses, moving, accesses_by_buffer):
            shape = (*(IntImm(loop.extent) for loop in around), *buffer.shape)
            wide = replace(buffer, data=Var(buffer.name, "handle"), shape=shape)
            widened[buffer] = wide, moving
    return _redirected(func, widened) if widened else func


def _shared_loops(accesses: list[SharedAccess]) -> list[Loop]:
    """Return the loops around all of some accesses, or none if an index uses one of them."""
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


def _redirected(func: PrimFunc, widened: dict[Buffer, tuple[Buffer, tuple[Var, ...]]]) -> PrimFunc:
    """Prefix the indices of each access of a widened buffer with the loops' variables."""

    def moved(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        wide, moving = widened[buffer]
        return wide, (*moving, *indices)

    allocated = tuple(widened[b][0] if b in widened else b for b in func.root.alloc_buffers)
    body = map_accesses(func.root.body, widened, moved)
    root = replace(func.root, body=body, alloc_buffers=allocated)
    return replace(func, body=BlockRealize((), func.body.predicate, root))
