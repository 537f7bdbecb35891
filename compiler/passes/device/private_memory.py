"""Give intermediate results that stay within a thread or a block memory of their own.

    W = workspace((4096,))                   for tx in 64:  # threadIdx.x
    for tx in 64:  # threadIdx.x                 w = alloc((4096,), scope="local")
        for i in 64: W[i] = f(tx, i)     ->      for i in 64: w[i] = f(tx, i)
        B[tx] = g(W[0], ..., W[63])              B[tx] = g(w[0], ..., w[63])

All threads use the same elements of `W`, each for itself: that is legal, because each may have a
copy. A buffer whose values stay within a thread becomes local memory if it is small, or if threads
would overwrite each other's values. One whose values stay within a block becomes shared memory if
blocks would overwrite each other's. Other buffers stay in global memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from compiler.ir.analysis.conflicts import are_disjoint
from compiler.ir.analysis.dependence import touches_of
from compiler.ir.core.nodes import Allocate, Buffer, For, Stmt, static_shape
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_stmt
from compiler.passes.common.accesses import LoweredAccess, collect_accesses
from compiler.passes.common.error import LoweringError
from compiler.passes.common.written_first import is_written_first
from compiler.passes.device.hoist_axes import is_axis_loop

# A thread has 255 registers at most; larger arrays live in the memory of the device anyway.
_MAX_LOCAL_ELEMENTS = 256


def privatize(stmt: Stmt, workspaces: Sequence[Buffer]) -> tuple[Stmt, list[Buffer]]:
    """Move workspaces that one kernel uses into the memory of its threads or blocks.

    Returns:
        The program, and the workspaces that remain.

    Raises:
        LoweringError: If blocks may overwrite each other's values.
    """
    remaining: list[Buffer] = []
    inside: dict[int, list[Buffer]] = {}
    scopes: dict[Buffer, Buffer] = {}
    accesses = collect_accesses(stmt, set(workspaces))
    for buffer in workspaces:
        scope = _scope(accesses[buffer])
        if scope == "global":
            remaining.append(buffer)
        else:
            kernel = next(filter(is_axis_loop, accesses[buffer][0].path))
            scopes[buffer] = replace(buffer, scope=scope)
            inside.setdefault(id(kernel), []).append(buffer)

    def visit(node: Stmt) -> Stmt:
        if is_axis_loop(node):
            return _allocated(node, inside.get(id(node), []))
        return map_stmt(node, visit, lambda expr: expr)

    return (replace_buffers(visit(stmt), scopes), remaining) if scopes else (stmt, remaining)


def _allocated(kernel: Stmt, buffers: Sequence[Buffer]) -> Stmt:
    """Allocate buffers inside the loops over the axes of a kernel."""
    if isinstance(kernel, For) and is_axis_loop(kernel):
        return replace(kernel, body=_allocated(kernel.body, buffers))
    for buffer in buffers:
        kernel = Allocate(buffer, kernel)
    return kernel


def _scope(accesses: Sequence[LoweredAccess]) -> str:
    """Return the memory scope for a buffer of the host.

    Raises:
        LoweringError: If blocks may overwrite each other's values.
    """
    kernels = {id(next(filter(is_axis_loop, access.path), None)) for access in accesses}
    path = accesses[0].path if accesses else ()
    bound = [depth + 1 for depth, node in enumerate(path) if is_axis_loop(node)]
    if len(kernels) != 1 or not bound:
        return "global"
    buffer, kernel = accesses[0].buffer, path[bound[0] - 1]
    if is_written_first(accesses, bound[-1]):
        is_small = _size(accesses, bound[-1]) <= _MAX_LOCAL_ELEMENTS
        return "global" if not is_small and _is_apart(buffer, kernel, bound, path) else "local"
    blocks = [depth for depth in bound if _axis(path[depth - 1]).startswith("blockIdx")]
    if not blocks or _is_apart(buffer, kernel, blocks, path):
        return "global"
    if is_written_first([replace(access, is_shared=True) for access in accesses], blocks[-1]):
        return "shared"
    if not any(access.is_store for access in accesses):
        return "global"
    raise LoweringError(
        f"blocks of one kernel may use the same elements of {buffer.name}, but can't wait for each "
        "other: bind the loops that write it and those that read it in two kernels, or keep it in "
        '"shared" memory'
    )


def _size(accesses: Sequence[LoweredAccess], depth: int) -> int:
    """Return how many elements one run of a scope touches, about."""
    boxes = [access.box(depth) for access in accesses]
    return prod(
        max(full if span is None else span[1] for span in spans)
        for full, *spans in zip(static_shape(accesses[0].buffer), *boxes, strict=True)
    )


def _is_apart(buffer: Buffer, kernel: Stmt, depths: Sequence[int], path: Sequence[Stmt]) -> bool:
    """Return whether the loops at some depths of a path split a buffer into separate parts."""
    loops = [loop for depth in depths if isinstance(loop := path[depth - 1], For)]
    names = {loop.var: loop.thread for loop in loops}
    touches = [touch for touch in touches_of(kernel, {}, names) if touch.buffer == buffer]
    return are_disjoint(touches, [n for v, n in names.items() if touches[0].extents[v] > 1])


def _axis(stmt: Stmt) -> str:
    assert isinstance(stmt, For)
    return str(stmt.thread)
