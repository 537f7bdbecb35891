"""Insert barriers between statements through which threads of a block exchange data in memory.

    for tx in 32:                           for tx in 32:
        S[tx] = A[tx]             ->            S[tx] = A[tx]
        B[tx] = S[31 - tx]                      T.tvm_storage_sync("shared")
                                                B[tx] = S[31 - tx]

A barrier goes between two statements if one stores to an element that another thread touches in the
other (`compiler.ir.analysis.conflicts`). One more barrier keeps a correct program correct, so
accesses of which too little is known get one. A condition on thread numbers excludes some threads:
a barrier under it is impossible. A vectorized loop that needs barriers becomes a serial one.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from compiler.ir.analysis.conflicts import may_conflict
from compiler.ir.analysis.dependence import Touch, touches_of
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Not,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.visit import map_stmt, substitute, walk, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.common.realize_blocks import NOTHING
from compiler.passes.common.thread_loops import (
    BARRIER,
    is_barrier,
    is_one_by_one,
    is_thread,
)

# Names of names may grow exponentially; a larger value counts as unknown.
_MAX_NODES = 128


@dataclass(slots=True)
class _BarrierSpan:
    """A part of a program: its accesses before its first barrier, and after its last.

    Attributes:
        has_barrier: Whether all threads pass a barrier in it, however it runs.
    """

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
        values: The values of names, in terms of loops.
        unknown: The names that have an unknown value at each run of the position.
        varying: Variables that may differ from thread to thread.
        conditions: The conditions that hold at the position.
        is_divergent: Whether some threads may not reach the position.
    """

    extents: Mapping[Var, int] = field(default_factory=dict)
    names: Mapping[Var, Hashable] = field(default_factory=dict)
    values: Mapping[Var, Expr] = field(default_factory=dict)
    unknown: frozenset[Var] = frozenset()
    varying: frozenset[Var] = frozenset()
    conditions: tuple[Expr, ...] = ()
    is_divergent: bool = False

    @property
    def common(self) -> dict[Var, int]:
        """The extents of the loops of which all threads run one iteration at the position."""
        return {var: extent for var, extent in self.extents.items() if var not in self.names}

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

    def having(self, condition: Expr) -> _ThreadPosition:
        """Return the facts below a condition."""
        holds = substitute(condition, self.values)
        return replace(self, conditions=(*self.conditions, holds))

    def naming(self, let: Let, *, is_uniform: bool) -> _ThreadPosition:
        """Return the facts below the name of a value."""
        value = substitute(let.value, self.values)
        nodes = list(walk(value))
        is_known = not any(isinstance(node, Load | Call) or node in self.unknown for node in nodes)
        varying = self.varying if is_uniform else self.varying | {let.var}
        if is_known and len(nodes) <= _MAX_NODES:
            return replace(self, values={**self.values, let.var: value}, varying=varying)
        return replace(self, unknown=self.unknown | {let.var}, varying=varying)


def insert_barriers(
    stmt: Stmt,
    private: Container[Buffer],
    overlapping: Mapping[Buffer, Container[Buffer]] = MappingProxyType({}),
) -> Stmt:
    """Insert barriers into the loops over threads of a program.

    Args:
        stmt: The program, in which no loop over an axis lies in another over the same axis.
        private: The buffers that each thread has a copy of.
        overlapping: The other buffers that lie in the same memory as a shared buffer.

    Raises:
        LoweringError: If a barrier is needed at a position that not all threads reach.
    """
    stored = {node.buffer for node in walk_stmts(stmt) if isinstance(node, Store)}

    def visit(node: Stmt, outer: Mapping[Var, int]) -> Stmt:
        if isinstance(node, For) and is_thread(node):
            inserter = _Inserter(private, stored, overlapping, outer)
            return inserter.span(node, _ThreadPosition()).stmt
        if is_barrier(node):
            return NOTHING  # all threads of the earlier loops have reached this point
        if isinstance(node, For):
            outer = {**outer, node.var: extent_or_unknown(node.extent)}
        return map_stmt(node, lambda child: visit(child, outer), lambda expr: expr)

    return visit(stmt, {})


class _Inserter:
    """Inserts barriers into one outermost loop over threads; `outer` are the loops around it."""

    def __init__(
        self,
        private: Container[Buffer],
        stored: set[Buffer],
        overlapping: Mapping[Buffer, Container[Buffer]],
        outer: Mapping[Var, int],
    ) -> None:
        self._private = private
        self._stored = stored
        self._overlapping = overlapping
        self._outer = outer
        # By identity, so the accesses are kept alive.
        self._never_meet: dict[tuple[int, int], tuple[Touch, Touch, bool]] = {}

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
                inner = region.naming(stmt, is_uniform=self._is_uniform(value, region))
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
            for touch in touches_of(
                substitute(stmt, region.values),
                region.extents,
                region.names,
                region.varying | region.unknown,
                region.conditions,
            )
            if touch.buffer in self._stored and touch.buffer not in self._private
        ]
        return _BarrierSpan(stmt, touches, touches, has_barrier=False)

    def _then(
        self, first: _BarrierSpan, second: _BarrierSpan, region: _ThreadPosition
    ) -> _BarrierSpan:
        """Join two spans, with a barrier between them if they need one."""
        if not self._need_barrier(first.tail, second.head, region, region.common):
            head = first.head if first.has_barrier else [*first.head, *second.head]
            tail = second.tail if second.has_barrier else [*first.tail, *second.tail]
            has_barrier = first.has_barrier or second.has_barrier
            return _BarrierSpan(seq(first.stmt, second.stmt), head, tail, has_barrier)
        return _BarrierSpan(
            seq(first.stmt, BARRIER, second.stmt), first.head, second.tail, has_barrier=True
        )

    def _loop(self, loop: For, region: _ThreadPosition) -> _BarrierSpan:
        if not self._is_uniform(loop.extent, region):
            region = replace(region, is_divergent=True)
        body = self.span(loop.body, region.inside(loop))
        extent = extent_or_unknown(loop.extent)
        # A barrier separates serial iterations. The iterations of a loop over threads need none.
        if not is_thread(loop) and extent > 1 and self._iterations_conflict(loop, body, region):
            stmt = _with_body(loop, seq(body.stmt, BARRIER))
            return _BarrierSpan(stmt, body.head, [], has_barrier=True)
        has_barrier = body.has_barrier and isinstance(loop.extent, IntImm) and extent > 0
        return replace(body, stmt=_with_body(loop, body.stmt), has_barrier=has_barrier)

    def _iterations_conflict(self, loop: For, body: _BarrierSpan, region: _ThreadPosition) -> bool:
        """Return whether a barrier is needed between the iterations of a loop."""
        if not body.has_barrier:
            return self._need_barrier(body.tail, body.head, region, region.common)
        # Only the accesses of neighbouring iterations have no barrier between them.
        common = {**region.common, loop.var: extent_or_unknown(loop.extent) - 1}
        following = [_in_next_iteration(touch, loop.var) for touch in body.head]
        return self._need_barrier(body.tail, following, region, common)

    def _branch(self, branch: If, region: _ThreadPosition) -> _BarrierSpan:
        condition = branch.condition
        first = self._plain(Evaluate(condition), region)
        if not self._is_uniform(condition, region):
            region = replace(region, is_divergent=True)
        then = self.span(branch.then, region.having(condition))
        otherwise = _BarrierSpan(NOTHING, [], [], has_barrier=False)
        if branch.otherwise is not None:
            otherwise = self.span(branch.otherwise, region.having(Not(condition)))
        return _BarrierSpan(
            If(condition, then.stmt, None if branch.otherwise is None else otherwise.stmt),
            [*first.head, *then.head, *otherwise.head],
            [*first.tail, *then.tail, *otherwise.tail],
            then.has_barrier and otherwise.has_barrier,
        )

    def _is_uniform(self, expr: Expr, region: _ThreadPosition) -> bool:
        """Return whether an expression surely has one value for all threads."""
        return not any(
            node in region.varying
            if isinstance(node, Var)
            else isinstance(node, Load) and node.buffer in self._stored
            for node in walk(expr)
        )

    def _need_barrier(
        self,
        before: list[Touch],
        after: list[Touch],
        region: _ThreadPosition,
        common: Mapping[Var, int],
    ) -> bool:
        """Return whether different threads may conflict in accesses without a barrier between them.

        For divergent threads, only stores to shared memory that another thread loads count.

        Args:
            before: Accesses before a position.
            after: Accesses after it.
            region: The position.
            common: The extents of the loops that all accesses are in one iteration of.

        Raises:
            LoweringError: If they conflict, and some threads may not reach the position.
        """
        for earlier in before:
            for other in after:
                overlaps = other.buffer in self._overlapping.get(earlier.buffer, ())
                if not overlaps and earlier.buffer != other.buffer:
                    continue
                if not (earlier.is_store or other.is_store):
                    continue
                if region.is_divergent and (
                    earlier.is_store == other.is_store
                    or not earlier.buffer.scope.startswith("shared")
                ):
                    continue
                if not self._may_conflict(earlier, other, common):
                    continue
                if region.is_divergent:
                    raise LoweringError(
                        f"threads share {earlier.buffer.name}, but the condition around may differ "
                        "from thread to thread: there is no place for the barrier that they need"
                    )
                return True
        return False

    def _may_conflict(self, earlier: Touch, other: Touch, common: Mapping[Var, int]) -> bool:
        """Return whether different threads may conflict in accesses to memory of one place.

        Most accesses that never meet do not meet in any iterations of the loops around them. So
        this is tested first, and once for all positions.
        """
        axes, key = _axes(earlier, other), (id(earlier), id(other))
        if earlier.buffer != other.buffer:
            return bool(axes)  # two buffers that overlap
        if key not in self._never_meet:
            never = not may_conflict(earlier, other, axes, self._outer)
            self._never_meet[key] = earlier, other, never
        if self._never_meet[key][2]:
            return False
        exprs = (*earlier.indices, *earlier.conditions, *other.indices, *other.conditions)
        if not any(node in common for expr in exprs for node in walk(expr)):
            return True
        return may_conflict(earlier, other, axes, {**self._outer, **common})


def _with_body(loop: For, body: Stmt) -> For:
    """Return a loop with a new body; a vectorized loop can't hold barriers."""
    if loop.kind == "vectorized" and any(map(is_barrier, walk_stmts(body))):
        return replace(loop, body=body, kind="serial")
    return replace(loop, body=body)


def _axes(*touches: Touch) -> set[Hashable]:
    """Return the axes along which there are several threads."""
    return {
        touch.names[var]
        for touch in touches
        for var, extent in touch.extents.items()
        if var in touch.names and extent > 1
    }


def _in_next_iteration(touch: Touch, var: Var) -> Touch:
    following = {var: BinOp("+", var, IntImm(1, dtype_of(var)))}
    return replace(
        touch,
        indices=tuple(substitute(index, following) for index in touch.indices),
        conditions=tuple(substitute(condition, following) for condition in touch.conditions),
    )
