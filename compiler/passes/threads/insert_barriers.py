"""Insert barriers between statements through which threads of a block exchange data in memory.

    for tx in 32:                           for tx in 32:
        S[tx] = A[tx]             ->            S[tx] = A[tx]
        B[tx] = S[31 - tx]                      T.tvm_storage_sync("shared")
                                                B[tx] = S[31 - tx]

A barrier goes between two statements if one stores to an element that the other touches, unless
both accesses are surely of the same thread. One more barrier keeps a correct program correct, so
accesses that can't be proved disjoint get one. A condition on thread numbers excludes some threads:
a barrier under it is impossible.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from dataclasses import dataclass, field, replace

from compiler.ir.analysis.dependence import Touch, agree_on, touches_of
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Evaluate,
    Expr,
    For,
    If,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.visit import map_stmt, walk, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.common.realize_blocks import NOTHING
from compiler.passes.common.thread_loops import (
    BARRIER,
    is_barrier,
    is_one_by_one,
    is_thread,
)


@dataclass(slots=True)
class _BarrierSpan:
    """A part of a program: its accesses before its first barrier, and after its last."""

    stmt: Stmt
    head: list[Touch]
    tail: list[Touch]
    has_barrier: bool


@dataclass(frozen=True, slots=True)
class _ThreadPosition:
    """Facts at a position inside the loops over threads.

    Attributes:
        extents: The loops around the position, from the outermost loop over threads.
        names: The axes of the variables of threads.
        varying: Variables that may differ from thread to thread.
        is_divergent: Whether some threads may not reach the position.
    """

    extents: Mapping[Var, int] = field(default_factory=dict)
    names: Mapping[Var, Hashable] = field(default_factory=dict)
    varying: frozenset[Var] = frozenset()
    is_divergent: bool = False

    def inside(self, loop: For) -> _ThreadPosition:
        """Return the facts in the body of a loop."""
        extents = {**self.extents, loop.var: extent_or_unknown(loop.extent)}
        if not is_thread(loop):
            return replace(self, extents=extents)
        return replace(
            self,
            extents=extents,
            names={**self.names, loop.var: loop.thread},
            varying=self.varying | {loop.var},
        )


def insert_barriers(stmt: Stmt, private: Container[Buffer]) -> Stmt:
    """Insert barriers into the loops over threads of a program.

    Args:
        stmt: The program, in which no loop over an axis lies in another over the same axis.
        private: The buffers that each thread has a copy of.

    Raises:
        LoweringError: If a barrier is needed at a position that not all threads reach.
    """
    stored = {node.buffer for node in walk_stmts(stmt) if isinstance(node, Store)}

    def visit(node: Stmt) -> Stmt:
        if isinstance(node, For) and is_thread(node):
            return _Inserter(private, stored).span(node, _ThreadPosition()).stmt
        if is_barrier(node):
            return NOTHING  # all threads of the earlier loops have reached this point
        return map_stmt(node, visit, lambda expr: expr)

    return visit(stmt)


class _Inserter:
    """Inserts barriers into one outermost loop over threads."""

    def __init__(self, private: Container[Buffer], stored: set[Buffer]) -> None:
        self._private = private
        self._stored = stored

    def span(self, stmt: Stmt, region: _ThreadPosition) -> _BarrierSpan:
        """Return a statement with the barriers that it needs inside."""
        if is_barrier(stmt):
            if region.is_divergent:
                raise LoweringError(
                    "a barrier stands under a condition that may differ from thread to thread: "
                    "threads that come there would wait for those that do not"
                )
            return _BarrierSpan(stmt, [], [], has_barrier=True)
        if is_one_by_one(stmt):
            return self._plain(stmt, region)
        match stmt:
            case Seq(stmts):
                total = self.span(stmts[0], region)
                for child in stmts[1:]:
                    total = self._then(total, self.span(child, region), region)
                return total
            case For():
                return self._loop(stmt, region)
            case If():
                return self._branch(stmt, region)
            case Let(var, value, body):
                varies = not self._is_uniform(value, region)
                inner = replace(region, varying=region.varying | {var}) if varies else region
                first = self._plain(Evaluate(value), region)
                joined = self._then(first, self.span(body, inner), region)
                following = joined.stmt.stmts[1:] if isinstance(joined.stmt, Seq) else ()
                return replace(joined, stmt=Let(var, value, seq(*following)))
            case Allocate(buffer, body):
                joined = self.span(body, region)
                return replace(joined, stmt=Allocate(buffer, joined.stmt))
            case _:
                return self._plain(stmt, region)

    def _plain(self, stmt: Stmt, region: _ThreadPosition) -> _BarrierSpan:
        touches = [
            touch
            for touch in touches_of(stmt, region.extents, region.names, region.varying)
            if touch.buffer in self._stored and touch.buffer not in self._private
        ]
        return _BarrierSpan(stmt, touches, touches, has_barrier=False)

    def _then(
        self, first: _BarrierSpan, second: _BarrierSpan, region: _ThreadPosition
    ) -> _BarrierSpan:
        """Join two spans, with a barrier between them if they need one."""
        if self._conflict(first.tail, second.head, region) is None:
            head = first.head if first.has_barrier else [*first.head, *second.head]
            tail = second.tail if second.has_barrier else [*first.tail, *second.tail]
            has_barrier = first.has_barrier or second.has_barrier
            return _BarrierSpan(seq(first.stmt, second.stmt), head, tail, has_barrier)
        self._check_place(first, second, region)
        return _BarrierSpan(
            seq(first.stmt, BARRIER, second.stmt), first.head, second.tail, has_barrier=True
        )

    def _loop(self, loop: For, region: _ThreadPosition) -> _BarrierSpan:
        if not self._is_uniform(loop.extent, region):
            region = replace(region, is_divergent=True)
        body = self.span(loop.body, region.inside(loop))
        stmt = replace(loop, body=body.stmt)
        # A barrier separates serial iterations. The iterations of a loop over threads need none.
        if (
            not is_thread(loop)
            and extent_or_unknown(loop.extent) > 1
            and self._conflict(body.tail, body.head, region) is not None
        ):
            self._check_place(body, body, region)
            stmt = replace(loop, body=seq(body.stmt, BARRIER))
            return _BarrierSpan(stmt, body.head, [], has_barrier=True)
        return replace(body, stmt=stmt)

    def _branch(self, branch: If, region: _ThreadPosition) -> _BarrierSpan:
        first = self._plain(Evaluate(branch.condition), region)
        if not self._is_uniform(branch.condition, region):
            region = replace(region, is_divergent=True)
        then = self.span(branch.then, region)
        otherwise = None if branch.otherwise is None else self.span(branch.otherwise, region)
        return _BarrierSpan(
            If(branch.condition, then.stmt, None if otherwise is None else otherwise.stmt),
            [*first.head, *then.head, *([] if otherwise is None else otherwise.head)],
            [*first.tail, *then.tail, *([] if otherwise is None else otherwise.tail)],
            then.has_barrier or (otherwise is not None and otherwise.has_barrier),
        )

    def _check_place(
        self, first: _BarrierSpan, second: _BarrierSpan, region: _ThreadPosition
    ) -> None:
        shared = self._conflict(first.tail, second.head, region)
        if shared is not None and region.is_divergent:
            raise LoweringError(
                f"threads share {shared.name}, but the condition around may differ from thread to "
                "thread: there is no place for the barrier that they need"
            )

    def _is_uniform(self, expr: Expr, region: _ThreadPosition) -> bool:
        """Return whether an expression surely has one value for all threads."""
        return not any(
            node in region.varying
            if isinstance(node, Var)
            else isinstance(node, Load) and node.buffer in self._stored
            for node in walk(expr)
        )

    def _conflict(
        self, before: list[Touch], after: list[Touch], region: _ThreadPosition
    ) -> Buffer | None:
        """Return a buffer through which different threads may conflict.

        For divergent threads, only stores to shared memory that another thread loads count.
        """
        for earlier in before:
            for other in after:
                if earlier.buffer != other.buffer or not (earlier.is_store or other.is_store):
                    continue
                if region.is_divergent and (
                    earlier.is_store == other.is_store
                    or not earlier.buffer.scope.startswith("shared")
                ):
                    continue
                axes = {
                    touch.names[var]
                    for touch in (earlier, other)
                    for var, extent in touch.extents.items()
                    if var in touch.names and extent > 1
                }
                if not agree_on(earlier, other, axes):
                    return earlier.buffer
        return None
