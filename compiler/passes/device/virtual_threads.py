"""Run the virtual threads of a thread together, statement by statement.

    for v in 2:  # vthread.x                for k in 8:
        for k in 8:                             S[tx] = A[k, tx]
            S[tx] = A[k, tx]          ->        for v in 2:  # unrolled
            l[0] += S[v * 16 + tx]                  l[v, 0] += S[v * 16 + tx]

So virtual threads share loads and barriers. Each has its own copy of local memory: a buffer that
does not tell them apart by its indices gets one more dimension. TVM has this as
InjectVirtualThread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from compiler.ir.analysis.conflicts import are_disjoint
from compiler.ir.analysis.dependence import Touch
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Evaluate,
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
from compiler.ir.core.scopes import is_private_scope
from compiler.ir.core.visit import map_accesses, map_stmt, substitute, walk, walk_stmts
from compiler.passes.common.accesses import LoweredAccess, collect_accesses, loop_extents
from compiler.passes.common.error import LoweringError
from compiler.passes.common.realize_blocks import NOTHING
from compiler.passes.common.thread_loops import is_barrier


def is_virtual(stmt: Stmt) -> bool:
    """Return whether a statement is a loop over virtual threads."""
    return isinstance(stmt, For) and stmt.thread is not None and stmt.thread.startswith("vthread")


def unroll_virtual_threads(stmt: Stmt, reduced: Mapping[Buffer, Collection[Var]]) -> Stmt:
    """Rewrite the loops over virtual threads of a program into unrolled loops.

    Args:
        stmt: A program in which no loop over an axis lies in another over the same axis.
        reduced: The loops that carry a reduction into each buffer.

    Raises:
        LoweringError: If only some virtual threads run a loop over others.
    """
    if not any(is_virtual(node) for node in walk_stmts(stmt)):
        return stmt
    private = {
        node.buffer
        for node in walk_stmts(stmt)
        if isinstance(node, Allocate) and is_private_scope(node.buffer.scope)
    }
    copies = _Copies()
    for buffer, accesses in collect_accesses(stmt, private).items():
        loops = [n for a in accesses for n in a.path if isinstance(n, For) and is_virtual(n)]
        carried = reduced.get(buffer, ())
        axes = {
            str(loop.thread): static_int(loop.extent) for loop in loops if loop.var not in carried
        }
        if axes and not _are_disjoint(accesses, axes):
            copies.add(buffer, axes)
    return _unrolled(copies.redirected(stmt, {}), ())


def _are_disjoint(accesses: list[LoweredAccess], axes: Mapping[str, int]) -> bool:
    """Return whether only one virtual thread touches each element."""
    touches = [
        Touch(
            access.buffer,
            access.indices,
            access.is_store,
            loop_extents(access.path),
            {n.var: n.thread for n in access.path if isinstance(n, For) and is_virtual(n)},
        )
        for access in accesses
    ]
    return are_disjoint(touches, axes)


@dataclass(slots=True)
class _Copies:
    """The buffers of which each virtual thread has a copy, with one dimension an axis."""

    axes: dict[Buffer, Mapping[str, int]] = field(default_factory=dict)
    wide: dict[Buffer, Buffer] = field(default_factory=dict)

    def add(self, buffer: Buffer, axes: Mapping[str, int]) -> None:
        shape = (*map(IntImm, axes.values()), *buffer.shape)
        self.axes[buffer] = axes
        self.wide[buffer] = replace(buffer, data=Var(buffer.name, "handle"), shape=shape)

    def redirected(self, stmt: Stmt, threads: Mapping[str, Expr]) -> Stmt:
        """Redirect each access to the copy of its virtual thread."""
        if isinstance(stmt, For) and is_virtual(stmt):
            threads = {**threads, str(stmt.thread): stmt.var}
            return replace(stmt, body=self.redirected(stmt.body, threads))
        if isinstance(stmt, Allocate):
            body = self.redirected(stmt.body, threads)
            return Allocate(self.wide.get(stmt.buffer, stmt.buffer), body)
        if isinstance(stmt, Store):
            return self._stored(stmt, threads)
        return map_stmt(
            stmt,
            lambda child: self.redirected(child, threads),
            lambda expr: self._loads(expr, threads),
        )

    def _stored(self, store: Store, threads: Mapping[str, Expr]) -> Stmt:
        """Store to the copy of a virtual thread; outside of their loops, to all copies."""
        axes = self.axes.get(store.buffer, {})
        loops = [(Var(axis), IntImm(n), axis) for axis, n in axes.items() if axis not in threads]
        threads = {**threads, **{axis: var for var, _, axis in loops}}
        stmt: Stmt = map_accesses(store, self.wide, self._moved(threads))
        for var, extent, axis in loops:
            stmt = For(var, extent, stmt, "thread_binding", axis)
        return stmt

    def _loads(self, expr: Expr, threads: Mapping[str, Expr]) -> Expr:
        if not any(isinstance(node, Load) and node.buffer in self.wide for node in walk(expr)):
            return expr
        stmt = map_accesses(Evaluate(expr), self.wide, self._moved(threads))
        assert isinstance(stmt, Evaluate)
        return stmt.value

    def _moved(
        self, threads: Mapping[str, Expr]
    ) -> Callable[[Buffer, tuple[Expr, ...]], tuple[Buffer, tuple[Expr, ...]]]:
        def moved(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
            numbers = (threads.get(axis, IntImm(0)) for axis in self.axes[buffer])
            return self.wide[buffer], (*numbers, *indices)

        return moved


def _unrolled(stmt: Stmt, threads: tuple[For, ...]) -> Stmt:
    """Move loops over virtual threads inwards, around the statements that depend on them."""
    if isinstance(stmt, For) and is_virtual(stmt):
        return _unrolled(stmt.body, (*threads, stmt))
    if not threads:
        return map_stmt(stmt, lambda child: _unrolled(child, ()), lambda expr: expr)
    match stmt:
        case Seq():
            return map_stmt(stmt, lambda child: _unrolled(child, threads), lambda expr: expr)
        case Allocate(buffer, body):
            return Allocate(buffer, _unrolled(body, threads))
        case For(kind="serial" | "unrolled") if not _depends(stmt.extent, threads):
            return replace(stmt, body=_unrolled(stmt.body, threads))
        case If(condition, then, otherwise) if not _depends(condition, threads):
            other = None if otherwise is None else _unrolled(otherwise, threads)
            return If(condition, _unrolled(then, threads), other)
        case Let(var, value, body) if not _depends(value, threads):
            return Let(var, value, _unrolled(body, threads))
        case _:
            return stmt if is_barrier(stmt) or stmt == NOTHING else _around(stmt, threads)


def _around(stmt: Stmt, threads: tuple[For, ...]) -> Stmt:
    """Put loops over the virtual threads that differ in a statement around it."""
    if any(is_virtual(node) for node in walk_stmts(stmt)):
        raise LoweringError(
            "a loop over virtual threads lies in a vectorized loop, or in a condition that differs "
            "between other virtual threads: bind it outside"
        )
    # A statement that reads what it stores is a step of a reduction over the virtual threads.
    is_update = isinstance(stmt, Store) and stmt.buffer in _loaded(stmt)
    for loop in reversed(threads):
        if is_update or loop.var in {node for node in walk(stmt) if isinstance(node, Var)}:
            var = Var(loop.var.name, loop.var.dtype)
            stmt = For(var, loop.extent, substitute(stmt, {loop.var: var}), "unrolled")
    return stmt


def _loaded(stmt: Stmt) -> set[Buffer]:
    return {node.buffer for node in walk(stmt) if isinstance(node, Load)}


def _depends(expr: Expr, threads: tuple[For, ...]) -> bool:
    names = {loop.var for loop in threads}
    return any(isinstance(node, Var) and node in names for node in walk(expr))
