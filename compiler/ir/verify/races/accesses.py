"""The accesses of a program in terms of its loops, with the barriers between them.

Names, iterators of blocks and views are replaced by their values. Loops that are bound to one axis
in one kernel share one variable, because they are the same threads. A kernel is a bound loop
without another bound loop around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compiler.ir.analysis.reducer import combined_buffers
from compiler.ir.arith.bounds import reach
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BinOp,
    BlockRealize,
    Broadcast,
    Buffer,
    Call,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Not,
    Ramp,
    Seq,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_expr, operands_of, walk, walk_stmts
from compiler.ir.verify.races.shared_access import LANE, Loop, SharedAccess
from compiler.ir.verify.verify_buffers import stored_buffers

# Names of names may grow exponentially; a larger value counts as unknown.
_MAX_NODES = 512
_ZERO = IntImm(0, "int64")


def accesses_of(func: PrimFunc) -> list[SharedAccess]:
    """Return the accesses of a static program to the buffers that it stores, in program order."""
    collector = _RaceAccesses(func)
    collector.program(func)
    return collector.accesses


@dataclass(frozen=True, slots=True)
class _Context:
    """Facts at a position in the program.

    Attributes:
        values: The values of variables, in terms of loops.
        sizes: The number of nodes of these values.
        ranges: The ranges of the loops.
        loops: The loops around.
        conditions: The conditions that hold here.
        views: The buffers that views refer to, with the corner of each view.
        homes: See `SharedAccess`.
        axes: The variables of the axes of the kernel.
        reduced: The buffers that the block around reduces into, and the loops that it reduces over.
        is_divergent: Whether some threads may not reach this position.
        epoch: See `SharedAccess`.
        time: See `SharedAccess`.
    """

    values: Mapping[Var, Expr] = field(default_factory=dict)
    sizes: Mapping[Var, int] = field(default_factory=dict)
    ranges: Mapping[Var, tuple[int, int]] = field(default_factory=dict)
    loops: tuple[Loop, ...] = ()
    conditions: tuple[Expr, ...] = ()
    views: Mapping[Buffer, tuple[Buffer, tuple[Expr, ...]]] = field(default_factory=dict)
    homes: Mapping[Buffer, int] = field(default_factory=dict)
    axes: Mapping[str, Var] = field(default_factory=dict)
    reduced: tuple[frozenset[Buffer], frozenset[Var]] = (frozenset(), frozenset())
    is_divergent: bool = False
    epoch: Expr = _ZERO
    time: Expr = _ZERO

    def later(self, epochs: int, time: int) -> _Context:
        """Return the position after some barriers and statements."""
        if not epochs and not time:
            return self
        return replace(self, epoch=_sum(self.epoch, epochs), time=_sum(self.time, time))

    def having(self, condition: Expr) -> _Context:
        """Return the position with one more condition that holds."""
        return replace(self, conditions=(*self.conditions, condition))


@dataclass(frozen=True, slots=True)
class _Length:
    """The number of barriers and statements in a part of the program."""

    epochs: int
    time: int


class _RaceAccesses:
    """Walks a program twice: the first walk finds the lengths of the bodies of loops."""

    def __init__(self, func: PrimFunc) -> None:
        self.accesses: list[SharedAccess] = []
        self._stored = stored_buffers(func.body)
        self._bodies: list[_Length] = []  # of the loops, in program order
        self._num_loops = 0
        self._num_stores = 0

    def program(self, func: PrimFunc) -> None:
        self.stmt(func.body, _Context())
        self.accesses, self._num_loops, self._num_stores = [], 0, 0
        self.stmt(func.body, _Context())

    def stmt(self, stmt: Stmt, context: _Context) -> _Length:  # noqa: C901 - one case a node
        match stmt:
            case Store(buffer, indices, value):
                self._num_stores += 1
                self._loads((*indices, value), context)
                self._touch(stmt, buffer, indices, context.later(0, 1), value)
                return _Length(0, 2)
            case Evaluate(Call("tvm_storage_sync")) if not context.is_divergent:
                return _Length(1, 1)
            case Evaluate(value):
                self._loads((value,), context)
                return _Length(0, 1)
            case Let(var, value, body):
                self._loads((value,), context)
                length = self.stmt(body, self._naming(var, value, context, context).later(0, 1))
                return _Length(length.epochs, length.time + 1)
            case Seq(stmts):
                epochs = time = 0
                for child in stmts:
                    length = self.stmt(child, context.later(epochs, time))
                    epochs, time = epochs + length.epochs, time + length.time
                return _Length(epochs, time)
            case If():
                return self._branch(stmt, context)
            case For():
                return self._loop(stmt, context)
            case While():
                return self._while(stmt, context)
            case Allocate(_, body):
                return self.stmt(body, context)
            case BlockRealize():
                return self._realize(stmt, context)

    def _branch(self, branch: If, context: _Context) -> _Length:
        self._loads((branch.condition,), context)
        holds = self._resolved(branch.condition, context)
        inside = self._under(holds, context).later(0, 1)
        length = self.stmt(branch.then, inside.having(holds))
        epochs, time = length.epochs, length.time
        if branch.otherwise is not None:
            length = self.stmt(branch.otherwise, inside.having(Not(holds)))
            epochs, time = max(epochs, length.epochs), max(time, length.time)
        return _Length(epochs, time + 1)

    def _under(self, condition: Expr, context: _Context) -> _Context:
        """Return the position below a condition, at which threads may diverge."""
        threads = {var for axis, var in context.axes.items() if not axis.startswith("blockIdx")}
        varies = any(
            node in threads
            if isinstance(node, Var)
            else isinstance(node, Load) and node.buffer in self._stored
            for node in walk(condition)
        )
        return replace(context, is_divergent=True) if varies else context

    def _loop(self, loop: For, context: _Context) -> _Length:
        self._loads((loop.extent,), context)
        number = self._num_loops
        self._num_loops += 1
        if number == len(self._bodies):
            self._bodies.append(_Length(0, 0))
        body = self._bodies[number]
        extent = self._resolved(loop.extent, context)
        most = max(reach(extent, context.ranges)[1], 1)
        axes = context.axes
        if loop.thread is not None and not axes:
            bound = (s for s in walk_stmts(loop) if isinstance(s, For))
            axes = {s.thread: Var(s.thread, s.var.dtype) for s in bound if s.thread is not None}
        var = loop.var if loop.thread is None else axes[loop.thread]
        loops = context.loops
        if all(around.var is not var for around in loops):
            loops = (*loops, Loop(var, most, loop.kind, loop.thread, number))
        inside = replace(
            self._under(extent, context),
            values={**context.values, loop.var: var},
            ranges={**context.ranges, var: (0, most - 1)},
            loops=loops,
            axes=axes,
            epoch=context.epoch if loop.thread else _sum(context.epoch, body.epochs, var),
            time=_sum(context.time, body.time, var),
        )
        if not isinstance(extent, IntImm):
            inside = inside.having(Compare("<", var, extent))
        body = self.stmt(loop.body, inside)
        self._bodies[number] = body
        return _Length(body.epochs * (1 if loop.thread else most), body.time * most)

    def _while(self, loop: While, context: _Context) -> _Length:
        """Walk a loop of unknown length: two iterations stand for all, none of which is certain.

        No index depends on the number of the iteration.
        """
        number = self._num_loops
        self._num_loops += 1
        if number == len(self._bodies):
            self._bodies.append(_Length(0, 0))
        body, var = self._bodies[number], Var("iteration")
        holds = self._resolved(loop.condition, context)
        inside = replace(
            self._under(holds, context),
            ranges={**context.ranges, var: (0, 1)},
            loops=(*context.loops, Loop(var, 2, "serial", None, number)),
            epoch=_sum(context.epoch, body.epochs, var),
            time=_sum(context.time, body.time, var),
        )
        self._loads((loop.condition,), inside)
        inner = self.stmt(loop.body, inside.later(0, 1).having(holds))
        self._bodies[number] = body = _Length(inner.epochs, inner.time + 1)
        return _Length(2 * body.epochs, 2 * body.time)

    def _realize(self, realize: BlockRealize, context: _Context) -> _Length:
        """Walk a block: barriers surround it if all threads reach it."""
        block, wait = realize.block, int(not context.is_divergent)
        self._loads((*realize.iter_values, realize.predicate), context)
        inside = context.later(wait, 1)
        over: set[Var] = set()
        for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True):
            inside = self._naming(iter_var.var, value, context, inside)
            if iter_var.kind != "spatial":
                over.update(n for n in walk(inside.values[iter_var.var]) if isinstance(n, Var))
        if realize.predicate != TRUE:
            holds = self._resolved(realize.predicate, context)
            inside = self._under(holds, inside).having(holds)
        views = dict(context.views)
        for match in block.match_buffers:
            source, corner = match.source.buffer, tuple(r.minimum for r in match.source.region)
            views[match.buffer] = self._without_views(source, corner, replace(inside, views=views))
        allocated = dict.fromkeys(block.alloc_buffers, len(context.loops))
        combined = frozenset(views.get(b, (b, ()))[0] for b in combined_buffers(block))
        inside = replace(
            inside,
            views=views,
            homes={**context.homes, **allocated},
            reduced=(combined, frozenset(over)) if over else context.reduced,
        )
        time = 1
        if block.init is not None:
            time += self.stmt(block.init, inside).time
        body = self.stmt(block.body, inside.later(0, time))
        return _Length(body.epochs + 2 * wait, body.time + time + 1)

    # Expressions

    def _naming(self, var: Var, value: Expr, outside: _Context, inside: _Context) -> _Context:
        """Return a position with a variable bound to a value of the outer position."""
        size = sum(outside.sizes.get(n, 1) if isinstance(n, Var) else 1 for n in walk(value))
        is_small = size <= _MAX_NODES
        resolved = self._resolved(value, outside) if is_small else Var(var.name, var.dtype)
        return replace(
            inside,
            values={**inside.values, var: resolved},
            sizes={**inside.sizes, var: min(size, _MAX_NODES)},
        )

    def _resolved(self, expr: Expr, context: _Context) -> Expr:
        """Return an expression in terms of loops; for a vector, its element with number `LANE`."""

        def visit(node: Expr) -> Expr:
            if isinstance(node, Var):
                return context.values.get(node, node)
            if isinstance(node, Broadcast):
                return visit(node.value)
            new = map_expr(node, visit)
            if isinstance(new, Ramp):
                step = BinOp("*", LANE, IntImm(new.stride, dtype_of(new.base)))
                return BinOp("+", new.base, step)
            return new

        return visit(expr)

    def _without_views(
        self, buffer: Buffer, indices: tuple[Expr, ...], context: _Context
    ) -> tuple[Buffer, tuple[Expr, ...]]:
        """Return an access with views replaced by the buffers they view, in terms of loops."""
        numbers = tuple(self._resolved(index, context) for index in indices)
        if buffer not in context.views:
            return buffer, numbers
        source, corner = context.views[buffer]
        lead = len(corner) - len(numbers)
        moved = (_added(low, n) for low, n in zip(corner[lead:], numbers, strict=True))
        return source, (*corner[:lead], *moved)

    def _loads(self, exprs: tuple[Expr, ...], context: _Context) -> None:
        for expr in exprs:
            if isinstance(expr, Conditional):
                self._loads((expr.condition,), context)
                holds = self._resolved(expr.condition, context)
                self._loads((expr.then,), context.having(holds))
                self._loads((expr.otherwise,), context.having(Not(holds)))
                continue
            self._loads(operands_of(expr), context)
            if isinstance(expr, Load):
                self._touch(expr, expr.buffer, expr.indices, context)

    def _touch(
        self,
        node: Load | Store,
        buffer: Buffer,
        indices: tuple[Expr, ...],
        context: _Context,
        value: Expr | None = None,
    ) -> None:
        source, source_indices = self._without_views(buffer, indices, context)
        if source not in self._stored:
            return
        lanes = lanes_of(Load(buffer, indices))
        loops = context.loops
        if lanes > 1:
            loops = (*loops, Loop(LANE, lanes, "serial", None, -1))
        combined, over = context.reduced
        self.accesses.append(
            SharedAccess(
                node,
                source,
                source_indices,
                store=self._num_stores,
                value=None if value is None else self._resolved(value, context),
                conditions=context.conditions,
                loops=loops,
                homes=context.homes,
                reduced=over if source in combined else frozenset(),
                epoch=context.epoch,
                time=context.time,
            )
        )


def _added(a: Expr, b: Expr) -> Expr:
    return b if isinstance(a, IntImm) and a.value == 0 else BinOp("+", a, b)


def _sum(total: Expr, factor: int, var: Var | None = None) -> Expr:
    """Return `total + factor * var`, or `total + factor` without a variable."""
    if not factor:
        return total
    number: Expr = IntImm(factor, "int64")
    if var is not None:
        number = BinOp("*", var, number)
    return BinOp("+", total, number)
