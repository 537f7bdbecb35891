"""The definition of a legal program, and its check.

Variables and buffers are defined before use, blocks have unique names and bind all their iterators,
types agree, sizes are within limits, and every access is proved to be in bounds. An access that
can't be proved is refused, so that no kernel accesses memory outside of its arrays. Only indices
that are loaded from buffers are exempt: the kernel checks them at run time. Unordered iterations
and threads do not race (`compiler.ir.verify.races.check`).

Of a symbolic program, `verify` checks what does not depend on sizes, so that it can be scheduled
and specialised. `verify_all_sizes` proves the rest for all values in the ranges of its variables.
"""

from __future__ import annotations

from compiler.ir.analysis.checked_indices import is_loaded
from compiler.ir.analysis.constant_params import constant_problem
from compiler.ir.analysis.error_budget import budget_problem
from compiler.ir.analysis.symbols import range_problem, symbol_ranges, symbolic_vars
from compiler.ir.arith.bounds import limits_of, reach
from compiler.ir.arith.facts import Facts
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.foreign import foreign_calls
from compiler.ir.core.function_calls import call_problem, called_function
from compiler.ir.core.limits import (
    MAX_EXTENT,
    size_problem,
)
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    Compare,
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
    While,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, walk
from compiler.ir.text.print_expr import show_expr
from compiler.ir.verify.races.check import check_races
from compiler.ir.verify.verify_accesses import Accesses, runs
from compiler.ir.verify.verify_buffers import stored_buffers
from compiler.ir.verify.verify_error import VerifyError
from compiler.ir.verify.verify_views import Layouts

__all__ = ["VerifyError", "verify", "verify_all_sizes", "verify_but_for_races"]


def verify(func: PrimFunc) -> None:
    """Check that a program is legal.

    Raises:
        VerifyError: Naming the first illegal node.
    """
    verify_but_for_races(func)
    if not symbolic_vars(func):
        check_races(func)


def verify_but_for_races(func: PrimFunc) -> None:
    """Check everything except races, which suffices to keep a kernel in its memory.

    It takes a fifth of the time of `verify`. It is enough if legal primitives made the program from
    a verified one, because they introduce no race.

    Raises:
        VerifyError: Naming the first illegal node.
    """
    _Verifier(func, proves_bounds=not symbolic_vars(func)).program()


def verify_all_sizes(func: PrimFunc, *, has_races: bool = True) -> None:
    """Check that a program is legal for all values in the ranges of its symbolic variables.

    Args:
        has_races: Whether it may race; not if legal primitives made it from a verified program.

    Raises:
        VerifyError: Naming the first illegal node.
    """
    _Verifier(func, proves_bounds=True).program()
    if has_races:
        check_races(func)


class _Verifier(Accesses):
    def __init__(self, func: PrimFunc, *, proves_bounds: bool) -> None:
        self._func = func
        super().__init__(symbolic_vars(func), proves_bounds=proves_bounds)
        self._concurrent: dict[Var, str] = {}  # loops whose iterations have no order
        self._layouts = Layouts()
        self._stored: set[Buffer] | None = None  # computed when a condition requires it
        self._written: set[Buffer] = set()

    def program(self) -> None:
        func = self._func
        problem = size_problem(func.body)
        if problem is not None:
            raise VerifyError(f"function {func.name} is too large: {problem}", func, "limit")
        problem = range_problem(func)
        if problem is not None:
            raise VerifyError(f"function {func.name}: {problem}", func, "symbolic")
        facts = self._sizes()
        for buffer in func.buffers:
            self.buffers.declare(buffer)
            self._check_extents(buffer, facts)
        if func.body.iter_values or func.root.iter_vars or func.root.init is not None:
            raise VerifyError(
                "the root block has iterators or an initialisation", func.body, "structure"
            )
        self._block_body(func.root, facts)
        problem = constant_problem(func, self._written) or budget_problem(func)
        if problem is not None:
            raise VerifyError(f"function {func.name}: {problem}", func, "structure")
        for buffer, node in self.read.items():
            is_stored = buffer in self._written or self.buffers.is_view(buffer)
            if not is_stored and buffer not in func.buffers:
                raise VerifyError(
                    f"buffer {buffer.name} is read but never written", node, "structure"
                )

    def _sizes(self) -> Facts:
        """Return the facts about the symbolic variables."""
        facts = Facts({})
        ranges = symbol_ranges(self._func) if self.proves_bounds else {}
        for var in self.symbols:
            interval = ranges.get(var)
            facts = facts.with_range(var, interval) if interval else facts.with_unknown(var)
        return facts

    def _check_extents(self, buffer: Buffer, facts: Facts) -> None:
        """Require that the extents of a buffer are at least 1, and can be computed."""
        for extent in buffer.shape:
            if isinstance(extent, IntImm) or not self.proves_bounds:
                continue
            self.expr(extent, facts)
            if not facts.at_least(extent, IntImm(1, dtype_of(extent))):
                raise VerifyError(
                    f"an extent of buffer {buffer.name}, {show_expr(extent)}, "
                    f"{runs(facts, extent)}: expected 1 or more",
                    buffer,
                    "symbolic",
                )

    # Statements

    def _stmt(self, stmt: Stmt, facts: Facts) -> None:  # noqa: C901 - one case a node
        match stmt:
            case Store(buffer, indices, value):
                self.expr(value, facts)
                self.types(stmt)
                self.access(stmt, buffer, indices, facts)
                self._written.update(self.buffers.all_names(buffer))
            case Evaluate(value):
                if called_function(stmt) is not None:
                    raise VerifyError(str(call_problem(self._func)), stmt, "call")
                self.expr(value, facts)
                self._pass_on(stmt)
            case Let(var, value, body):
                self.expr(value, facts)
                self.types(stmt)
                self._stmt(body, self._having_value(var, value, stmt, facts))
            case Seq(stmts):
                for s in stmts:
                    self._stmt(s, facts)
            case If(condition, then, otherwise):
                self.expr(condition, facts)
                self.types(stmt)
                pure = self._is_constant(condition)
                self._stmt(then, facts.assuming(condition, pure=pure))
                if otherwise is not None:
                    self._stmt(otherwise, facts.assuming(condition, holds=False, pure=pure))
            case While(condition, body):
                self.expr(condition, facts)
                self.types(stmt)
                self._stmt(body, facts.assuming(condition, pure=self._is_constant(condition)))
            case For():
                self._loop(stmt, facts)
            case BlockRealize():
                self._realize(stmt, facts)
            case Allocate(buffer, body):
                with self.buffers.scope():
                    self.buffers.declare(buffer)
                    self._check_extents(buffer, facts)
                    self._stmt(body, facts)

    def _pass_on(self, stmt: Evaluate) -> None:
        """Check that the block around a foreign call declares all buffers that the call gets."""
        for call in foreign_calls(stmt):
            for data in (arg for arg in call.args if isinstance(arg, Var)):
                if data.dtype != "handle":
                    continue
                buffers = {*self.buffers.all_names(self.buffers.of(data))}
                if not self.blocks:
                    self._written.update(buffers)
                    continue
                block, _ = self.blocks[-1]
                if any(region.buffer in buffers for region in block.writes):
                    self._written.update(buffers)
                elif not any(region.buffer in buffers for region in block.reads):
                    raise VerifyError(
                        f"block {block.name} passes {data.name} to T.{call.name}: name what the "
                        "call accesses of it in T.reads and T.writes",
                        stmt,
                        "region",
                    )

    def _is_constant(self, expr: Expr) -> bool:
        """Return whether an expression reads only elements that the program never stores."""
        loads = [node for node in walk(expr) if isinstance(node, Load)]
        if not loads:
            return True
        if self._stored is None:
            self._stored = stored_buffers(self._func.body)
        return not any(load.buffer in self._stored for load in loads)

    def _loop(self, loop: For, facts: Facts) -> None:
        subject = f"loop {loop.var.name}"
        extent = self._varying_extent(loop.extent, subject, loop, facts)
        self._define(loop.var, loop, facts)
        if (loop.kind == "thread_binding") != (loop.thread is not None):
            raise VerifyError(
                f"loop {loop.var.name} is {loop.kind} on thread {loop.thread}", loop, "structure"
            )
        if loop.kind in ("parallel", "vectorized"):
            self._concurrent[loop.var] = loop.kind
        self._stmt(loop.body, _having(facts, loop.var, extent, loop.extent))

    def _having_value(self, var: Var, value: Expr, node: Let, facts: Facts) -> Facts:
        """Return the facts with a variable bound to a value."""
        if facts.knows(var):
            raise VerifyError(f"variable {var.name} is defined twice", node, "duplicate")
        if is_loaded(value, self.loaded):
            self.loaded.add(var)
        if not is_integer(dtype_of(value)):
            return facts.with_unknown(var)
        interval = facts.bounds(value)
        if interval is None:
            interval = reach(value, facts.ranges)
            # Arithmetic on an undefined value is not checked.
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
                "structure",
            )
        self.expr(realize.predicate, facts)
        self.types(realize)
        inside = facts
        reached = facts.assuming(realize.predicate, pure=self._is_constant(realize.predicate))
        for iter_var, value in zip(block.iter_vars, realize.iter_values, strict=True):
            subject = f"iterator {iter_var.var.name} of block {block.name}"
            extent = self._varying_extent(iter_var.extent, subject, realize, inside)
            self._define(iter_var.var, realize, inside)
            self.expr(value, reached)  # a value is computed only if the predicate holds
            if extent is not None and not self.prover.is_below(reached, value, iter_var.extent):
                raise VerifyError(
                    f"{subject} runs from 0 to {extent - 1}, but its value {show_expr(value)} "
                    f"{runs(reached, value)}",
                    realize,
                    "bounds",
                )
            if iter_var.kind != "spatial":
                self._check_order(subject, value, realize)
            inside = _having(inside, iter_var.var, extent, iter_var.extent)
            # The loops may reach only a part of the domain.
            inside = inside.within_range(iter_var.var, reached.bounds(value))
        # A fact of the predicate about a loop is one about an iterator that equals the loop.
        iterators = {v: i.var for i, v in zip(block.iter_vars, realize.iter_values, strict=True)}
        loops: dict[Var, Expr] = {v: i for v, i in iterators.items() if isinstance(v, Var)}
        inside = inside.assuming(substitute(realize.predicate, loops))
        if self.blocks or realize.predicate != TRUE:
            # Accesses may be relative to the iterators of the enclosing block, and the predicate
            # may restrict loops that together make up an iterator.
            for iterator, value in zip(block.iter_vars, realize.iter_values, strict=True):
                if not isinstance(value, Var | IntImm):
                    inside = inside.assuming(Compare("==", iterator.var, value))
        self.blocks.append((block, self.buffers.visible()))
        self._block_body(block, inside)
        self.blocks.pop()

    def _check_order(self, subject: str, value: Expr, realize: BlockRealize) -> None:
        for node in walk(value):
            if isinstance(node, Var) and node in self._concurrent:
                kind = self._concurrent[node]
                source = f"the {kind} loop {node.name}"
                message = f"{subject} is not spatial, but takes its value from {source}"
                raise VerifyError(message, realize, "structure")

    def _block_body(self, block: Block, facts: Facts) -> None:
        with self.buffers.scope():
            for buffer in block.alloc_buffers:
                self.buffers.declare(buffer)
                self._check_extents(buffer, facts)
            for region in (*block.reads, *block.writes):
                self._region(region, block, facts)
            for match in block.match_buffers:
                facts = self._match(match, block, facts)
            if block.init is not None:
                self._stmt(block.init, facts)
            self._stmt(block.body, facts)

    def _region(self, region: BufferRegion, block: Block, facts: Facts) -> None:
        buffer = region.buffer
        self.buffers.use(buffer, region)
        if len(region.region) != len(buffer.shape):
            raise VerifyError(
                f"block {block.name} names a region of {len(region.region)} dimension(s) of "
                f"{buffer.name}, which has {len(buffer.shape)}",
                region,
                "rank",
            )
        for r in region.region:
            self.expr(r.minimum, facts)
            self.expr(r.extent, facts)

    def _match(self, match: MatchBuffer, block: Block, facts: Facts) -> Facts:
        """Check a view; return the facts with the variables that it binds."""
        buffer, source = match.buffer, match.source
        self._region(source, block, facts)
        if (buffer.dtype, buffer.scope) != (source.buffer.dtype, source.buffer.scope):
            raise VerifyError(
                f"{buffer.name} is {buffer.dtype} in {buffer.scope} memory, but matches "
                f"{source.buffer.name}, which is {source.buffer.dtype} in {source.buffer.scope}",
                buffer,
                "view",
            )
        self.buffers.declare(buffer, views=source.buffer)
        bound = (*buffer.strides, *(() if buffer.elem_offset is None else (buffer.elem_offset,)))
        facts = facts.with_unknown(*(var for var in bound if isinstance(var, Var)))
        if not self.proves_bounds or facts.is_contradiction:
            return facts
        return self._layouts.match(match, facts)

    def _define(self, var: Var, node: object, facts: Facts) -> None:
        if facts.knows(var):
            raise VerifyError(f"variable {var.name} is defined twice", node, "duplicate")
        if var.dtype == "handle" or not is_integer(var.dtype):
            raise VerifyError(f"variable {var.name} has type {var.dtype}", node, "type")

    def _varying_extent(self, extent: Expr, subject: str, node: object, facts: Facts) -> int | None:
        """Check the extent of a loop or iterator, which may vary; return its maximum."""
        if isinstance(extent, IntImm):
            return self.buffers.extent(extent, subject, node)
        if not self.proves_bounds:
            return None
        self.expr(extent, facts)
        _, most = facts.bounds(extent) or reach(extent, facts.ranges)
        if not is_integer(dtype_of(extent)) or most > MAX_EXTENT:
            raise VerifyError(
                f"an extent of {subject} has no known bound: {show_expr(extent)}",
                node,
                "symbolic",
            )
        return max(most, 1)


def _having(facts: Facts, var: Var, most: int | None, extent: Expr) -> Facts:
    if most is None:
        return facts.with_unknown(var)
    facts = facts.having(var, most)
    return facts if isinstance(extent, IntImm) else facts.assuming(Compare("<", var, extent))
