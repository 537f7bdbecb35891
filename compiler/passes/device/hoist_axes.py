"""Move the loops over blocks and threads of a kernel to its outside, one loop an axis.

    for bx in 4:  # blockIdx.x              for bx in 4:  # blockIdx.x
        for tx in 32:  # threadIdx.x            for tx in 32:  # threadIdx.x
            S[tx] = A[tx]                           S[tx] = A[tx]
        T[0] = S[1]                     ->          if tx == 0:
        for i in 32:  # threadIdx.x                     T[0] = S[1]
            B[i] = S[i]                             B[tx] = S[tx]

A statement outside of the loops over an axis is the work of the first thread of that axis, except
stores to memory of which each thread has its own. Virtual threads stay where they are.

A fragment belongs to a warp, whose lanes are the threads along threadIdx.x: all of them run the
statements that touch it, outside of any loop over that axis.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Cast,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    static_int,
)
from compiler.ir.core.scopes import is_fragment_scope, is_shared_scope
from compiler.ir.core.visit import map_stmt, substitute, walk, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.common.thread_loops import LANES, is_barrier
from compiler.passes.device.fragments.layout import (
    allocates_fragments,
    num_lanes,
    touches_fragments,
)
from compiler.passes.device.kernel import Axis
from compiler.target.gpus import WARP_SIZE

_ORDER = tuple(f"{kind}.{letter}" for kind in ("blockIdx", "threadIdx") for letter in "zyx")


def is_axis_loop(stmt: Stmt) -> bool:
    """Return whether a statement is a loop over the blocks or the real threads of a kernel."""
    return isinstance(stmt, For) and stmt.thread in _ORDER


def hoist_axes(kernel: Stmt, buffers: Iterable[Buffer]) -> Stmt:
    """Return a kernel with one loop an axis, all of them outermost.

    Args:
        kernel: The outermost bound loop, inside of which loops over one axis have one extent.
        buffers: The buffers that the kernel allocates besides those that it allocates itself.

    Raises:
        LoweringError: If blocks would have to wait for each other, or if fragments are used by
            something else than whole warps.
    """
    has_fragments = allocates_fragments(kernel) or any(is_fragment_scope(b.scope) for b in buffers)
    axes = _axes_of(kernel, has_fragments=has_fragments)
    body = _Hoister(kernel, axes, has_fragments=has_fragments).visit(kernel, frozenset(), {})
    for buffer in buffers:
        body = Allocate(buffer, body)
    for name in reversed(_ORDER):
        if name in axes:
            axis = axes[name]
            extent = IntImm(axis.extent, dtype_of(axis.var))
            body = For(axis.var, extent, body, "thread_binding", name)
    return body


def _axes_of(kernel: Stmt, *, has_fragments: bool) -> dict[str, Axis]:
    axes: dict[str, Axis] = {}
    for loop in walk_stmts(kernel):
        if isinstance(loop, For) and loop.thread in _ORDER:
            axes.setdefault(loop.thread, Axis(loop.thread, loop.var, static_int(loop.extent)))
    if has_fragments:
        expected = num_lanes(kernel)
        lanes = axes.setdefault(LANES, Axis(LANES, Var("lane"), expected))
        if lanes.extent != expected:
            owner = "warp" if expected == WARP_SIZE else "warpgroup"
            raise LoweringError(
                f"a kernel with fragments has {lanes.extent} threads along {LANES}: expected the "
                f"{expected} lanes of a {owner}; bind the loops over {owner}s to threadIdx.y"
            )
    # A kernel of virtual threads alone has one real thread.
    return axes or {"threadIdx.x": Axis("threadIdx.x", Var("thread"), 1)}


class _Hoister:
    """Removes the loops over axes; a position is inside the loops of the `entered` axes."""

    def __init__(self, kernel: Stmt, axes: Mapping[str, Axis], *, has_fragments: bool) -> None:
        self._kernel = kernel
        self._axes = axes
        self._has_fragments = has_fragments

    def visit(self, stmt: Stmt, entered: Collection[str], renamed: Mapping[Var, Expr]) -> Stmt:
        if isinstance(stmt, For) and stmt.thread is not None and stmt.thread in self._axes:
            axis_var: Expr = self._axes[stmt.thread].var
            if dtype_of(axis_var) != dtype_of(stmt.var):
                axis_var = Cast(dtype_of(stmt.var), axis_var)
            if stmt.thread == LANES and self._has_fragments and touches_fragments(stmt.body):
                raise LoweringError(
                    f"fragments are used inside loop {stmt.var.name} over {LANES}, but all lanes "
                    "of a warp use a fragment together: bind the loops over warps to threadIdx.y"
                )
            return self.visit(stmt.body, {*entered, stmt.thread}, {**renamed, stmt.var: axis_var})
        idle = [a for n, a in self._axes.items() if n not in entered and a.extent > 1]
        if any(is_axis_loop(node) or is_barrier(node) for node in walk_stmts(stmt)):
            return map_stmt(
                stmt,
                lambda child: self.visit(child, entered, renamed),
                lambda expr: substitute(expr, renamed),
            )
        stmt = substitute(stmt, renamed)
        self._check_blocks(stmt, idle)
        return self._guarded(stmt, idle) if idle else stmt

    def _guarded(self, stmt: Stmt, idle: list[Axis]) -> Stmt:
        """Let one thread alone run the stores to memory that idle threads have in common."""
        alone = [self._alone(node, idle) for node in walk_stmts(stmt) if isinstance(node, Store)]
        if not any(alone):
            return stmt
        if any(axes != alone[0] for axes in alone):
            return map_stmt(stmt, lambda child: self._guarded(child, idle), lambda expr: expr)
        for axis in reversed(alone[0]):
            stmt = If(Compare("==", axis.var, IntImm(0, dtype_of(axis.var))), stmt)
        return stmt

    def _alone(self, store: Store, idle: list[Axis]) -> list[Axis]:
        """Return the idle axes of whose threads the first one alone runs a store."""
        if is_shared_scope(store.buffer.scope):
            idle = [axis for axis in idle if not _counts_blocks(axis)]
        elif store.buffer.scope != "global":
            return []
        # The lanes of a warp copy a fragment together.
        return [axis for axis in idle if axis.thread != LANES or not touches_fragments(store)]

    def _check_blocks(self, stmt: Stmt, idle: list[Axis]) -> None:
        """Refuse a statement outside of the loops over blocks that would have to wait for them."""
        for axis in filter(_counts_blocks, idle):
            inside = [
                node
                for loop in walk_stmts(self._kernel)
                if isinstance(loop, For) and loop.thread == axis.thread
                for node in walk(loop)
                if isinstance(node, Load | Store)
            ]
            stored = {node.buffer for node in inside if isinstance(node, Store)}
            touched = {node.buffer for node in inside if node.buffer.scope == "global"}
            for node in walk(stmt):
                if (isinstance(node, Load) and node.buffer in stored) or (
                    isinstance(node, Store) and node.buffer in touched
                ):
                    raise LoweringError(
                        f"{node.buffer.name} is used inside and outside of the loops over "
                        f"{axis.thread} of one kernel, but blocks can't wait for each other: bind "
                        "the loops in two kernels"
                    )


def _counts_blocks(axis: Axis) -> bool:
    return axis.thread.startswith("blockIdx")


def axes_around(kernel: Stmt) -> tuple[tuple[Axis, ...], Stmt]:
    """Return the axes of a kernel whose loops are outermost, and its body."""
    axes: list[Axis] = []
    allocated: list[Buffer] = []
    while is_axis_loop(kernel) or isinstance(kernel, Allocate):
        if isinstance(kernel, Allocate):
            allocated.append(kernel.buffer)
        elif isinstance(kernel, For) and kernel.thread is not None:
            axes.append(Axis(kernel.thread, kernel.var, static_int(kernel.extent)))
        kernel = kernel.body  # type: ignore[union-attr] # a loop or an allocation
    for buffer in reversed(allocated):
        kernel = Allocate(buffer, kernel)
    return tuple(axes), kernel
