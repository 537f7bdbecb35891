"""Turn each outermost bound nest into a kernel, and each other statement into one of one thread.

    W = alloc((64,))                        # W is a workspace
    for i in 64:                            for tx in 1:  # threadIdx.x
        W[i] = A[i]                ->           for i in 64: W[i] = A[i]
    for tx in 64:  # threadIdx.x            for tx in 64:  # threadIdx.x
        B[tx] = W[63 - tx]                      B[tx] = W[63 - tx]

Buffers of the host become workspaces in global memory. Memory of a thread or a block stays in its
kernel, unless several kernels use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compiler.ir.arith.bounds import FixedRanges
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    Block,
    Buffer,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    static_int,
)
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import children, map_accesses, map_stmt, substitute, walk_stmts
from compiler.passes.common.realize_blocks import NOTHING
from compiler.passes.common.thread_loops import has_threads, is_barrier
from compiler.passes.device.hoist_axes import hoist_axes, is_axis_loop


@dataclass(slots=True)
class FormedKernels:
    """A program whose outermost loops over threads are its kernels, and its global memory."""

    stmt: Stmt
    workspaces: list[Buffer] = field(default_factory=list)


def form_kernels(stmt: Stmt) -> FormedKernels:
    """Form the kernels of a program without blocks.

    Raises:
        LoweringError: If blocks would have to wait for each other.
    """
    stmt = _without_unit_loops(_bind_rest(stmt))
    users = _users(stmt, _host_buffers(stmt))
    spilled = _spilled(users)
    if spilled:
        stmt = replace_buffers(stmt, spilled)
        users = _users(stmt, _host_buffers(stmt))
    workspaces = [buffer for buffer in users if buffer.scope == "global" and users[buffer]]
    inside: dict[int, list[Buffer]] = {}
    for buffer, kernels in users.items():
        if buffer.scope != "global" and kernels:
            inside.setdefault(kernels.pop(), []).append(buffer)

    def visit(node: Stmt) -> Stmt:
        if isinstance(node, For) and node.thread is not None:
            kernel = _Rescoper(node, workspaces).stmt(node, {})
            return hoist_axes(kernel, inside.get(id(node), ()))
        if isinstance(node, Allocate):
            return visit(node.body)
        return map_stmt(node, visit, lambda expr: expr)

    return FormedKernels(visit(stmt), workspaces)


def _spilled(users: Mapping[Buffer, set[int]]) -> dict[Buffer, Buffer]:
    """Return the memory of threads and blocks that several kernels use, as global memory."""
    return {
        buffer: replace(buffer, scope="global")
        for buffer, kernels in users.items()
        if buffer.scope != "global" and len(kernels) > 1
    }


def _bind_rest(stmt: Stmt) -> Stmt:
    """Give each statement outside of bound loops a thread of its own."""
    if is_barrier(stmt):
        return NOTHING  # the kernels before have finished
    if isinstance(stmt, For) and stmt.thread is not None:
        return stmt
    if isinstance(stmt, Allocate):
        return Allocate(stmt.buffer, _bind_rest(stmt.body))
    if isinstance(stmt, Seq) or has_threads(stmt):
        return map_stmt(stmt, _bind_rest, lambda expr: expr)
    if stmt == NOTHING:
        return stmt
    return For(Var("thread"), IntImm(1), stmt, "thread_binding", "threadIdx.x")


def _without_unit_loops(stmt: Stmt) -> Stmt:
    """Replace the variables of loops of one iteration, which would hide what indices share."""

    def visit(node: Stmt, zeros: Mapping[Var, Expr]) -> Stmt:
        if isinstance(node, For) and isinstance(node.extent, IntImm) and node.extent.value == 1:
            body = visit(node.body, {**zeros, node.var: IntImm(0, dtype_of(node.var))})
            is_plain = node.thread is None and not node.annotations
            return body if is_plain else replace(node, body=body)
        return map_stmt(node, lambda child: visit(child, zeros), lambda expr: new_expr(expr, zeros))

    def new_expr(expr: Expr, zeros: Mapping[Var, Expr]) -> Expr:
        return simplify(substitute(expr, zeros), ranges) if zeros else expr

    ranges = FixedRanges()

    return visit(stmt, {})


def _host_buffers(stmt: Stmt) -> list[Buffer]:
    """Return the buffers that are allocated outside of kernels."""
    if isinstance(stmt, For) and stmt.thread is not None:
        return []
    buffers = [stmt.buffer] if isinstance(stmt, Allocate) else []
    match stmt:
        case Seq(stmts):
            return [buffer for child in stmts for buffer in _host_buffers(child)]
        case For(body=body) | Let(body=body) | Allocate(body=body):
            return [*buffers, *_host_buffers(body)]
        case If(_, then, otherwise):
            rest = [] if otherwise is None else _host_buffers(otherwise)
            return [*_host_buffers(then), *rest]
        case _:
            return []


def _users(stmt: Stmt, buffers: list[Buffer]) -> dict[Buffer, set[int]]:
    """Return the identities of the kernels that use each buffer; 0 stands for the host."""
    users: dict[Buffer, set[int]] = {buffer: set() for buffer in buffers}

    def visit(node: Stmt | Expr | Block, kernel: int) -> None:
        if isinstance(node, Load | Store) and node.buffer in users:
            users[node.buffer].add(kernel)
        if isinstance(node, For) and node.thread is not None and not kernel:
            kernel = id(node)
        for child in children(node):
            visit(child, kernel)

    visit(stmt, 0)
    return users


class _Rescoper:
    """Gives global buffers that a kernel allocates memory of their threads, or a workspace."""

    def __init__(self, kernel: Stmt, workspaces: list[Buffer]) -> None:
        self._workspaces = workspaces
        self._threads = {
            loop.thread
            for loop in walk_stmts(kernel)
            if is_axis_loop(loop) and isinstance(loop, For) and static_int(loop.extent) > 1
        }

    def stmt(self, stmt: Stmt, entered: dict[str, For]) -> Stmt:
        if isinstance(stmt, For) and is_axis_loop(stmt) and stmt.thread is not None:
            entered = {**entered, stmt.thread: stmt}
        if isinstance(stmt, Allocate) and stmt.buffer.scope == "global":
            return self._moved(stmt, entered)
        return map_stmt(stmt, lambda child: self.stmt(child, entered), lambda expr: expr)

    def _moved(self, stmt: Allocate, entered: dict[str, For]) -> Stmt:
        buffer = stmt.buffer
        if all(axis is None or axis in entered for axis in self._threads):
            new = replace(buffer, scope="local")
            return self.stmt(replace_buffers(Allocate(buffer, stmt.body), {buffer: new}), entered)
        loops = tuple(entered.values())
        shape = (*(loop.extent for loop in loops), *buffer.shape)
        wide = Buffer(Var(buffer.name, "handle"), shape, buffer.dtype)
        self._workspaces.append(wide)

        def with_axes(_: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
            return wide, (*(loop.var for loop in loops), *indices)

        return self.stmt(map_accesses(stmt.body, {buffer}, with_axes), entered)
