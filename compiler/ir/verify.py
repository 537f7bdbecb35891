"""What a legal program is.

Variables and buffers are defined before use, blocks have names of their own and bind all their
iterators, types agree, sizes are within limits, and every access is proved to be in bounds: what
can't be proved is refused, so that no kernel of ours reads or writes what it was not given. Only
indices that come out of buffers may go anywhere: they are checked when the program runs.
"""

from __future__ import annotations

from compiler.ir.bounds import limits_of, reach
from compiler.ir.check_types import TypeProblem, check_types
from compiler.ir.checked_indices import is_loaded
from compiler.ir.dtypes import is_integer, size_bytes
from compiler.ir.facts import Facts
from compiler.ir.limits import (
    MAX_EXTENT,
    size_problem,
)
from compiler.ir.nodes import (
    TRUE,
    Allocate,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    MatchBuffer,
    Seq,
    Stmt,
    Store,
    Var,
    dtype_of,
    lanes_of,
)
from compiler.ir.overflow import OverflowProblem, check_overflow
from compiler.ir.print_expr import show_expr
from compiler.ir.program import PrimFunc
from compiler.ir.specialize import symbolic_vars
from compiler.ir.vectors import ends
from compiler.ir.verify_buffers import Declarations, stored_buffers
from compiler.ir.verify_error import VerifyError
from compiler.ir.verify_proof import Prover
from compiler.ir.verify_views import Layouts
from compiler.ir.visit import children, substitute, walk

__all__ = ["VerifyError", "verify"]


def verify(func: PrimFunc) -> None:
    """Check that a program is legal.

    Raises:
        VerifyError: Naming the first node that is not.
    """
    _Verifier().func(func)


class _Verifier:
    def __init__(self) -> None:
        self._buffers = Declarations(is_static=True)
        # Of a symbolic program bounds are proved when it is specialised, not before.
        self._is_static = True
        # The blocks around the place, with the buffers that each finds; the root is left out.
        self._blocks: list[tuple[Block, dict[Var, Buffer]]] = []
        self._concurrent: dict[Var, str] = {}  # loops whose iterations run side by side
        self._layouts = Layouts()
        self._body: Stmt = Evaluate(IntImm(0))
        self._loaded: set[Var] = set()  # names of values that come out of buffers
        self._stored: set[Buffer] | None = None  # found when a condition asks for it
        self._read: dict[Buffer, object] = {}
        self._written: set[Buffer] = set()
        self._prover = Prover(is_static=True)

    def func(self, func: PrimFunc) -> None:
        problem = size_problem(func.body)
        if problem is not None:
            raise VerifyError(f"function {func.name} is too large: {problem}", func)
        self._body = func.body
        symbols = symbolic_vars(func)
        self._is_static = not symbols
        self._prover = Prover(is_static=self._is_static)
        self._buffers = Declarations(is_static=self._is_static)
        for buffer in func.buffers:
            self._buffers.declare(buffer)
        if func.body.iter_values or func.root.iter_vars or func.root.init is not None:
            raise VerifyError("the root block has iterators or an initialisation", func.body)
        self._block_body(func.root, Facts().with_unknown(*symbols))
        if not any(buffer in self._written for buffer in func.buffers):
            raise VerifyError(f"function {func.name} writes none of its parameters", func)
        for buffer, node in self._read.items():
            is_stored = buffer in self._written or self._buffers.is_view(buffer)
            if not is_stored and buffer not in func.buffers:
                raise VerifyError(f"buffer {buffer.name} is read but never written", node)

    # Statements

    def _stmt(self, stmt: Stmt, facts: Facts) -> None:  # noqa: C901 - one case a node
        match stmt:
            case Store(buffer, indices, value):
                self._expr(value, facts)
                self._types(stmt)
                self._access(stmt, buffer, indices, facts)
                self._written.update(self._buffers.all_names(buffer))
            case Evaluate(value):
                self._expr(value, facts)
            case Let(var, value, body):
                self._expr(value, facts)
                self._types(stmt)
                self._stmt(body, self._having_value(var, value, stmt, facts))
            case Seq(stmts):
                for s in stmts:
                    self._stmt(s, facts)
            case If(condition, then, otherwise):
                self._expr(condition, facts)
                self._types(stmt)
                pure = self._is_constant(condition)
                self._stmt(then, facts.assuming(condition, pure=pure))
                if otherwise is not None:
                    self._stmt(otherwise, facts.assuming(condition, holds=False, pure=pure))
            case For():
                self._loop(stmt, facts)
            case BlockRealize():
                self._realize(stmt, facts)
            case Allocate(buffer, body):
                with self._buffers.scope():
                    self._buffers.declare(buffer)
                    self._stmt(body, facts)

    def _is_constant(self, expr: Expr) -> bool:
        """Tell whether an expression reads only what the program never stores to."""
        loads = [node for node in walk(expr) if isinstance(node, Load)]
        if not loads:
            return True
        if self._stored is None:
            self._stored = stored_buffers(self._body)
        return not any(load.buffer in self._stored for load in loads)

    def _loop(self, loop: For, facts: Facts) -> None:
        what = f"loop {loop.var.name}"
        extent = self._varying_extent(loop.extent, what, loop, facts)
        self._define(loop.var, loop, facts)
        if (loop.kind == "thread_binding") != (loop.thread is not None):
            raise VerifyError(f"loop {loop.var.name} is {loop.kind} on thread {loop.thread}", loop)
        if loop.kind in ("parallel", "vectorized"):
            self._concurrent[loop.var] = loop.kind
        self._stmt(loop.body, _having(facts, loop.var, extent, loop.extent))

    def _having_value(self, var: Var, value: Expr, node: Let, facts: Facts) -> Facts:
        """Return the facts with a variable that stands for a value."""
        if facts.knows(var):
            raise VerifyError(f"variable {var.name} is defined twice", node)
        if is_loaded(value, self._loaded):
            self._loaded.add(var)
        if not is_integer(dtype_of(value)):
            return facts.with_unknown(var)
        interval = facts.bounds(value)
        if interval is None:
            interval = reach(value, facts.ranges)
            # A value that may be anything is none that arithmetic is checked for.
            if set(interval) & set(limits_of(dtype_of(value))):
                interval = None
        facts = facts.with_unknown(var) if interval is None else facts.with_range(var, interval)
        return facts.assuming(Compare("==", var, value), pure=self._is_constant(value))

    def _realize(self, realize: BlockRealize, facts: Facts) -> None:
        block = realize.block
        if len(realize.iter_values) != len(block.iter_vars):
            raise VerifyError(
                f"block {block.name} has {len(block.iter_vars)} iterators "
                f"bound to {len(realize.iter_values)} values",
                realize,
            )
        self._expr(realize.predicate, facts)
        self._types(realize)
        inside = facts
        reached = facts.assuming(realize.predicate, pure=self._is_constant(realize.predicate))
        for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True):
            what = f"iterator {iter_var.var.name} of block {block.name}"
            extent = self._varying_extent(iter_var.extent, what, realize, inside)
            self._define(iter_var.var, realize, inside)
            self._expr(value, facts)
            if extent is not None and not self._prover.is_in_domain(
                iter_var, value, extent, reached
            ):
                raise VerifyError(
                    f"{what} runs from 0 to {extent - 1}, but its value {show_expr(value)} "
                    f"{_runs(reached, value)}",
                    realize,
                )
            if iter_var.kind != "spatial":
                self._check_order(what, value, realize)
            inside = _having(inside, iter_var.var, extent, iter_var.extent)
            # The loops may reach a part of the domain only.
            inside = inside.within_range(iter_var.var, reached.bounds(value))
        # What the predicate says of a loop holds for the iterator that is just that loop.
        iterators = {v: i.var for i, v in zip(block.iter_vars, realize.iter_values, strict=True)}
        loops: dict[Var, Expr] = {v: i for v, i in iterators.items() if isinstance(v, Var)}
        inside = inside.assuming(substitute(realize.predicate, loops))
        if self._blocks or realize.predicate != TRUE:
            # Accesses may be relative to the iterators of the block around this one, and the
            # predicate may speak of loops that make an iterator together.
            for iterator, value in zip(block.iter_vars, realize.iter_values, strict=True):
                if not isinstance(value, Var | IntImm):
                    inside = inside.assuming(Compare("==", iterator.var, value))
        self._blocks.append((block, self._buffers.visible()))
        self._block_body(block, inside)
        self._blocks.pop()

    def _check_order(self, what: str, value: Expr, realize: BlockRealize) -> None:
        for node in walk(value):
            if isinstance(node, Var) and node in self._concurrent:
                kind = self._concurrent[node]
                raise VerifyError(
                    f"{what} is not spatial, but takes its value from the {kind} loop {node.name}",
                    realize,
                )

    def _block_body(self, block: Block, facts: Facts) -> None:
        with self._buffers.scope():
            for buffer in block.alloc_buffers:
                self._buffers.declare(buffer)
            for region in (*block.reads, *block.writes):
                self._region(region, block, facts)
            for match in block.match_buffers:
                facts = self._match(match, block, facts)
            if block.init is not None:
                self._stmt(block.init, facts)
            self._stmt(block.body, facts)

    def _region(self, region: BufferRegion, block: Block, facts: Facts) -> None:
        buffer = region.buffer
        self._buffers.use(buffer, region)
        if len(region.region) != len(buffer.shape):
            raise VerifyError(
                f"block {block.name} names a region of {len(region.region)} dimension(s) of "
                f"{buffer.name}, which has {len(buffer.shape)}",
                region,
            )
        for r in region.region:
            self._expr(r.minimum, facts)
            self._expr(r.extent, facts)

    def _match(self, match: MatchBuffer, block: Block, facts: Facts) -> Facts:
        """Check a view; return the facts with the variables that it binds."""
        buffer, source = match.buffer, match.source
        self._region(source, block, facts)
        if (buffer.dtype, buffer.scope) != (source.buffer.dtype, source.buffer.scope):
            raise VerifyError(
                f"{buffer.name} is {buffer.dtype} in {buffer.scope} memory, but matches "
                f"{source.buffer.name}, which is {source.buffer.dtype} in {source.buffer.scope}",
                buffer,
            )
        self._buffers.declare(buffer, views=source.buffer)
        bound = (*buffer.strides, *(() if buffer.elem_offset is None else (buffer.elem_offset,)))
        facts = facts.with_unknown(*(var for var in bound if isinstance(var, Var)))
        if not self._is_static or facts.is_contradiction:
            return facts
        return self._layouts.match(match, facts)

    # Expressions

    def _expr(self, expr: Expr, facts: Facts) -> None:
        """Check a whole expression."""
        self._part(expr, facts)
        if facts.is_contradiction or not self._is_static:
            return
        try:
            check_overflow(expr, facts.ranges)
        except OverflowProblem as problem:
            low, high = problem.interval
            raise VerifyError(
                f"{show_expr(problem.part)} runs from {low} to {high}, "
                f"which does not fit into {dtype_of(problem.part)}",
                problem.part,
            ) from None

    def _part(self, expr: Expr, facts: Facts) -> None:
        """Check an expression from its leaves up."""
        if isinstance(expr, Conditional):
            self._part(expr.condition, facts)
            self._part(expr.then, facts.assuming(expr.condition, pure=True))
            self._part(expr.otherwise, facts.assuming(expr.condition, holds=False, pure=True))
            self._types(expr)
            return
        for child in children(expr):
            self._part(child, facts)  # type: ignore[arg-type]
        if isinstance(expr, Var) and not (facts.knows(expr) or self._buffers.holds(expr)):
            raise VerifyError(f"variable {expr.name} is not defined here", expr)
        self._types(expr)
        if isinstance(expr, Load):
            for buffer in self._buffers.all_names(expr.buffer):
                self._read.setdefault(buffer, expr)
            self._access(expr, expr.buffer, expr.indices, facts)
        if isinstance(expr, BinOp):
            self._check_operand(expr)

    def _check_operand(self, expr: BinOp) -> None:
        """Refuse what can't be meant: a division by zero, a shift by too much."""
        if not isinstance(expr.rhs, IntImm):
            return
        by = expr.rhs.value
        if expr.op in ("//", "%") and by == 0:
            raise VerifyError(f"{show_expr(expr)} divides by zero", expr)
        most = 8 * size_bytes(dtype_of(expr)) - 1
        if expr.op in ("<<", ">>") and not 0 <= by <= most:
            raise VerifyError(f"{show_expr(expr)} shifts by {by} bits: expected 0 to {most}", expr)

    def _types(self, node: Expr | Stmt) -> None:
        try:
            check_types(node)
        except TypeProblem as problem:
            raise VerifyError(str(problem), node) from None

    # Accesses

    def _access(
        self, node: Load | Store, buffer: Buffer, indices: tuple[Expr, ...], facts: Facts
    ) -> None:
        self._buffers.use(buffer, node)
        if len(indices) != len(buffer.shape):
            raise VerifyError(
                f"{buffer.name} has {len(buffer.shape)} dimension(s), got {len(indices)} index(es)",
                node,
            )
        if isinstance(node, Store):
            for index in indices:
                self._expr(index, facts)
        for index, extent in zip(indices, buffer.shape, strict=True):
            if not isinstance(extent, IntImm):
                continue  # a symbolic program: its bounds are proved when it is specialised
            for end in ends(index) or (index,):
                is_proved = self._prover.within(facts, end, 0, extent.value - 1)
                if not (is_proved or self._is_checked_when_run(node, index)):
                    access = show_expr(Load(buffer, indices))
                    raise VerifyError(
                        f"can't prove that {access} is in bounds: {show_expr(end)} "
                        f"{_runs(facts, end)}, the dimension from 0 to {extent.value - 1}",
                        node,
                    )
        if self._blocks:
            self._check_declared(node, buffer, indices, facts)

    def _is_checked_when_run(self, node: Load | Store, index: Expr) -> bool:
        """Tell whether an index is one that code checks, since it comes out of a buffer."""
        if isinstance(node, Store) and lanes_of(index) > 1:
            return False
        return is_loaded(index, self._loaded)

    def _check_declared(
        self, node: Load | Store, buffer: Buffer, indices: tuple[Expr, ...], facts: Facts
    ) -> None:
        """Refuse an access that the block around it does not name among its regions.

        Schedules move blocks by their regions, so a region that lies breaks the program.
        """
        block, found = self._blocks[-1]
        if buffer.data not in found or facts.is_contradiction or not self._is_static:
            return
        # A block that initialises what it writes need not name it as read.
        reads = (*block.reads, *block.writes) if block.init is not None else block.reads
        regions = block.writes if isinstance(node, Store) else reads
        if not any(r.buffer == buffer and self._prover.covers(r, indices, facts) for r in regions):
            verb, call = ("writes", "T.writes") if isinstance(node, Store) else ("reads", "T.reads")
            raise VerifyError(
                f"block {block.name} {verb} {show_expr(Load(buffer, indices))}, "
                f"which its {call} does not name",
                node,
            )

    def _define(self, var: Var, node: object, facts: Facts) -> None:
        if facts.knows(var):
            raise VerifyError(f"variable {var.name} is defined twice", node)
        if var.dtype == "handle" or not is_integer(var.dtype):
            raise VerifyError(f"variable {var.name} has type {var.dtype}", node)

    def _varying_extent(self, extent: Expr, what: str, node: object, facts: Facts) -> int | None:
        """Check the extent of a loop or iterator, which may vary; return the most that it is."""
        if isinstance(extent, IntImm) or not self._is_static:
            return self._buffers.extent(extent, what, node)
        self._expr(extent, facts)
        _, most = facts.bounds(extent) or reach(extent, facts.ranges)
        if not is_integer(dtype_of(extent)) or most > MAX_EXTENT:
            raise VerifyError(f"an extent of {what} has no known bound: {show_expr(extent)}", node)
        return max(most, 1)


def _having(facts: Facts, var: Var, most: int | None, extent: Expr) -> Facts:
    if most is None:
        return facts.with_unknown(var)
    facts = facts.having(var, most)
    return facts if isinstance(extent, IntImm) else facts.assuming(Compare("<", var, extent))


def _runs(facts: Facts, expr: Expr) -> str:
    bounds = facts.bounds(expr)
    return "has no known bounds" if bounds is None else f"runs from {bounds[0]} to {bounds[1]}"
