"""Give each thread of a block its own copy of local memory.

    l = alloc(1, scope="local")             l = alloc((32, 1), scope="local")
    for tx in 32:                           for tx in 32:
        l[0] = A[tx]              ->            l[tx, 0] = A[tx]
    for tx in 32:                           for tx in 32:
        B[tx] = l[0]                            B[tx] = l[tx, 0]

If threads use disjoint elements already (`l[tx * 4 + i]`), one buffer serves all. The same is true
of a buffer into which all threads reduce together, and that all of them read afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from compiler.ir.analysis.conflicts import are_disjoint
from compiler.ir.analysis.dependence import Touch
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    seq,
    static_int,
)
from compiler.ir.core.visit import map_expr, map_stmt, substitute, walk
from compiler.passes.common.accesses import LoweredAccess, collect_accesses, loop_extents
from compiler.passes.common.compact_buffers import private_buffers
from compiler.passes.common.error import LoweringError
from compiler.passes.common.realize_blocks import Realized
from compiler.passes.common.thread_loops import is_thread
from compiler.passes.common.written_first import is_written_first

Axes = Mapping[str, int]


def separate_threads(realized: Realized, unified: Collection[Var]) -> Realized:
    """Rewrite the local buffers that a program allocates outside of its threads.

    Args:
        realized: A program without blocks, and the loops that carry reductions.
        unified: The variables of loops over threads that stand for several loops of the program.

    Raises:
        LoweringError: If a thread may read from local memory what another thread has written.
    """
    stmt, carried = realized.stmt, realized.carried
    outside = {buffer for buffer, thread in private_buffers(stmt).items() if thread is None}
    apart: dict[Buffer, Axes] = {}
    differing: dict[Buffer, set[str | None]] = {}
    for buffer, accesses in collect_accesses(stmt, outside).items():
        axes = _axes(accesses, carried.get(buffer, set()))
        if axes and not _are_disjoint(accesses):
            _check_flow(buffer, accesses, unified)
            apart[buffer] = axes
            differing[buffer] = _differs_along(accesses)
    separator = _Separator(apart, differing)
    still = {separator.wide.get(buffer, buffer): loops for buffer, loops in carried.items()}
    return Realized(separator.stmt(stmt, {}), still) if apart else realized


def _axes(accesses: list[LoweredAccess], carried: set[Var]) -> Axes:
    """Return the axes over which threads have copies; none if several kernels use the buffer."""
    kernels = {id(next(filter(_is_bound, access.path), None)) for access in accesses}
    loops = [n for a in accesses for n in a.path if isinstance(n, For) and is_thread(n)]
    if len(kernels) > 1:
        return {}
    reduced = {loop.thread for loop in loops if loop.var in carried}
    return {
        loop.thread: static_int(loop.extent)
        for loop in loops
        if loop.thread is not None and loop.thread not in reduced
    }


def _is_bound(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.thread is not None


def _are_disjoint(accesses: list[LoweredAccess]) -> bool:
    """Return whether only one thread touches each element."""
    touches = []
    for access in accesses:
        loops = {n.var: n.thread for n in access.path if isinstance(n, For) and is_thread(n)}
        extents = loop_extents(access.path)
        touches.append(Touch(access.buffer, access.indices, access.is_store, extents, loops))
    axes = {
        touch.names[var]
        for touch in touches
        for var, extent in touch.extents.items()
        if var in touch.names and extent > 1
    }
    return are_disjoint(touches, axes)


def _differs_along(accesses: list[LoweredAccess]) -> set[str | None]:
    """Return the axes whose threads may hold different values: they write in loops over them."""
    return {axis for access in accesses if access.is_store for axis in _axes_around(access)}


def _axes_around(access: LoweredAccess) -> set[str | None]:
    return {node.thread for node in access.path if isinstance(node, For) and is_thread(node)}


def _check_flow(buffer: Buffer, accesses: list[LoweredAccess], unified: Collection[Var]) -> None:
    """Refuse a buffer that carries values between threads through several loops over one axis.

    In a loop that was one loop in the source, threads run one after another.
    """
    loops: dict[str | None, set[Var]] = {}
    for access in accesses:
        for node in access.path:
            if isinstance(node, For) and is_thread(node):
                loops.setdefault(node.thread, set()).add(node.var)
    if all(len(same) == 1 and same.isdisjoint(unified) for same in loops.values()):
        return
    numbers = {var: Var(str(axis)) for axis, same in loops.items() for var in same}
    depth = next(
        position + 1
        for position, node in enumerate(accesses[0].path)
        if isinstance(node, Allocate) and node.buffer == buffer
    )
    alike = [
        replace(
            access,
            path=tuple(node for node in access.path if not is_thread(node)),
            indices=tuple(substitute(index, numbers) for index in access.indices),
        )
        for access in accesses
    ]
    if not is_written_first(alike, depth):
        raise LoweringError(
            f"{buffer.name} is in local memory, of which each thread has its own: can't prove that "
            "threads read only what they have written themselves; threads share what is in "
            '"shared" memory'
        )


class _Separator:
    """Rewrites accesses; `place` maps the axes of threads to their variables at a position."""

    def __init__(
        self, apart: Mapping[Buffer, Axes], differing: Mapping[Buffer, set[str | None]]
    ) -> None:
        self._differing = dict(differing)
        self._axes: dict[Buffer, Axes] = {}
        self.wide: dict[Buffer, Buffer] = {}
        for buffer, axes in apart.items():
            self._give_each_thread(buffer, axes)

    def _give_each_thread(self, buffer: Buffer, axes: Axes) -> None:
        self._axes[buffer] = axes
        shape = (*map(IntImm, axes.values()), *buffer.shape)
        self.wide[buffer] = replace(buffer, data=Var(buffer.name, "handle"), shape=shape)

    def _absent(self, expr: Expr, thread_ids: Mapping[str, Expr]) -> Axes:
        """Return the thread axes of local memory that an expression reads outside their loops."""
        return {
            axis: extent
            for node in walk(expr)
            if isinstance(node, Load)
            for axis, extent in self._axes.get(node.buffer, {}).items()
            if axis not in thread_ids
        }

    def stmt(self, stmt: Stmt, thread_ids: Mapping[str, Expr]) -> Stmt:
        match stmt:
            case For(thread=str() as axis) if is_thread(stmt):
                return replace(stmt, body=self.stmt(stmt.body, {**thread_ids, axis: stmt.var}))
            case Store(buffer) if buffer in self._axes:
                return self._store(stmt, thread_ids)
            case Store():
                self._require_one_value(stmt, thread_ids)
                return map_stmt(stmt, lambda s: s, lambda e: self.expr(e, thread_ids))
            case Allocate(buffer, body) if buffer in self._axes:
                return Allocate(self.wide[buffer], self.stmt(body, thread_ids))
            case Let(_, value, _) if self._absent(value, thread_ids):
                return self._bind_in_each_thread(stmt, thread_ids)
            case If(condition, _, _) if outside := self._absent(condition, thread_ids):
                raise LoweringError(
                    "a condition reads local memory, of which each thread has its own, outside of "
                    f"the loops over {', '.join(outside)}"
                )
            case _:
                return map_stmt(
                    stmt, lambda s: self.stmt(s, thread_ids), lambda e: self.expr(e, thread_ids)
                )

    def _store(self, store: Store, thread_ids: Mapping[str, Expr]) -> Stmt:
        """Store to the copy of each thread; outside of the loops over an axis, to all copies."""
        axes = self._axes[store.buffer]
        absent = {axis: extent for axis, extent in axes.items() if axis not in thread_ids}
        loops = {axis: Var(axis.replace(".", "_")) for axis in absent}
        thread_ids = {**thread_ids, **loops}
        moved = tuple(self.expr(index, thread_ids) for index in store.indices)
        new: Stmt = Store(
            self.wide[store.buffer],
            (*self._numbers(store.buffer, thread_ids), *moved),
            self.expr(store.value, thread_ids),
        )
        for axis, extent in absent.items():
            new = For(loops[axis], IntImm(extent), new)
        return new

    def _bind_in_each_thread(self, let: Let, thread_ids: Mapping[str, Expr]) -> Stmt:
        """Put a name into local memory, because each thread has another value of it."""
        private_buffer = Buffer(Var(let.var.name, "handle"), (), dtype_of(let.value), "local")
        self._give_each_thread(private_buffer, self._absent(let.value, thread_ids))
        self._differing[private_buffer] = set(self._axes[private_buffer])
        with_loads = substitute(let.body, {let.var: Load(private_buffer, ())})
        first, second = (
            self.stmt(s, thread_ids) for s in (Store(private_buffer, (), let.value), with_loads)
        )
        return Allocate(self.wide[private_buffer], seq(first, second))

    def _require_one_value(self, store: Store, thread_ids: Mapping[str, Expr]) -> None:
        """Refuse a store to visible memory of a value that differs between threads."""
        read = {node.buffer for node in walk(store) if isinstance(node, Load)}
        for buffer in read & self._axes.keys():
            for axis in (self._axes[buffer].keys() - thread_ids.keys()) & self._differing[buffer]:
                raise LoweringError(
                    f"{buffer.name} is in local memory, of which each thread has its own: it is "
                    f"written under a loop over {axis}, and {store.buffer.name} is computed from "
                    'it outside of any; threads share what is in "shared" memory'
                )

    def expr(self, expr: Expr, thread_ids: Mapping[str, Expr]) -> Expr:
        new = map_expr(expr, lambda e: self.expr(e, thread_ids))
        if isinstance(new, Load) and new.buffer in self._axes:
            numbers = self._numbers(new.buffer, thread_ids)
            return Load(self.wide[new.buffer], (*numbers, *new.indices))
        return new

    def _numbers(self, buffer: Buffer, thread_ids: Mapping[str, Expr]) -> tuple[Expr, ...]:
        return tuple(thread_ids.get(axis, IntImm(0)) for axis in self._axes[buffer])
