"""Let the threads of a block reduce together: each a part, and then the parts of all.

    for k_0 in 4:                              p = identity              # each thread
        for tx in 64:  # threadIdx.x           for k_0 in 4:
            C[i] += A[i, k_0 * 64 + tx]   ->       p += A[i, k_0 * 64 + tx]
                                               combine p of 64 threads   # combine_threads.py
                                               C[i] = p                  # the first thread

The whole reduction moves into one kernel, even if the host ran its outer loops. The init and the
iterators of a block show how, so the pass runs before blocks disappear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from compiler.ir.analysis.reducer import ReductionForm, reduction_of
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    Block,
    BlockRealize,
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
)
from compiler.ir.core.visit import map_stmt, substitute, walk
from compiler.passes.common.error import LoweringError
from compiler.passes.common.thread_loops import is_thread
from compiler.passes.device.combine_threads import Partial, combine_threads


def reduce_across_threads(body: Stmt) -> Stmt:
    """Rewrite the reductions of a program that threads of a block share.

    Args:
        body: The body of a program, in which no loop over an axis lies in another over that axis.

    Raises:
        LoweringError: If the reducer is unknown, or the loops don't run a whole reduction.
    """
    return _Rewriter().visit(body, ())


@dataclass(slots=True)
class _Rewriter:
    """Visits a program; what a reduction needs around its outermost loop waits in `around`."""

    around: dict[Var, list[_SharedReduction]] = field(default_factory=dict)

    def visit(self, stmt: Stmt, path: tuple[Stmt, ...]) -> Stmt:
        if isinstance(stmt, BlockRealize):
            stmt = _without_single_threads(stmt, path)
            reduction = _shared_reduction(stmt, path)
            if reduction is not None:
                self.around.setdefault(reduction.loops[0].var, []).append(reduction)
                return reduction.update()
        new = map_stmt(stmt, lambda child: self.visit(child, (*path, stmt)), lambda expr: expr)
        if isinstance(new, For):
            is_host = not any(isinstance(node, For) and node.thread for node in path)
            for reduction in self.around.pop(new.var, []):
                new = reduction.whole(new)
                if is_host:
                    unit = IntImm(1, dtype_of(reduction.loops[0].var))
                    new = For(Var("block"), unit, new, "thread_binding", "blockIdx.x")
        return new


def _without_single_threads(realize: BlockRealize, path: Sequence[Stmt]) -> BlockRealize:
    """Return a block without the numbers of threads that are alone on their axis."""
    alone: dict[Var, Expr] = {
        node.var: IntImm(0, dtype_of(node.var))
        for node in path
        if isinstance(node, For)
        and is_thread(node)
        and node.extent == IntImm(1, dtype_of(node.extent))
    }
    return replace(realize, iter_values=tuple(substitute(v, alone) for v in realize.iter_values))


def _shared_reduction(realize: BlockRealize, path: Sequence[Stmt]) -> _SharedReduction | None:
    """Return the reduction of a block over threads; None if a thread alone reduces."""
    block = realize.block
    reduced = {
        node
        for iterator, value in zip(block.iter_vars, realize.iter_values, strict=True)
        if iterator.kind == "reduce"
        for node in walk(value)
        if isinstance(node, Var)
    }
    loops = [node for node in path if isinstance(node, For)]
    threads = tuple(loop for loop in loops if is_thread(loop) and loop.var in reduced)
    if not threads:
        return None
    outermost = next(loop for loop in loops if loop.var in reduced)
    inner = path[next(n for n, node in enumerate(path) if node is outermost) :]
    problem = _problem(realize, inner, reduced)
    if problem is not None:
        raise LoweringError(f"threads reduce together in block {block.name}, {problem}")
    form = reduction_of(block)
    if isinstance(form, str):
        raise LoweringError(f"threads reduce together in block {block.name}, which {form}")
    chain = tuple(node for node in inner if isinstance(node, For))
    around = tuple(loop for loop in loops[: -len(chain)] if is_thread(loop))
    return _SharedReduction(realize, form, around, chain, threads, frozenset(reduced))


def _problem(realize: BlockRealize, inner: Sequence[Stmt], reduced: AbstractSet[Var]) -> str | None:
    """Return why threads can't share a reduction with some statements around it, if so."""
    block = realize.block
    if any(isinstance(node, If | Let) for node in inner):
        return "which stands under a condition or a name inside its reduction loops"
    if block.init is None:
        return "whose init is a block of its own: bind the loop without decompose_reduction"
    for iterator, value in zip(block.iter_vars, realize.iter_values, strict=True):
        selecting = [node for node in walk(value) if isinstance(node, Var) and node in reduced]
        if iterator.kind == "spatial" and selecting:
            return f"but loop {selecting[0].name} selects elements, too: don't fuse such loops"
    results = {region.buffer for region in block.writes}
    for node in walk(inner[0]):
        if isinstance(node, Block) and node is not block:
            for buffer in results.intersection(r.buffer for r in (*node.reads, *node.writes)):
                return f"but block {node.name} uses {buffer.name} inside its reduction loops"
    return None


@dataclass(slots=True)
class _SharedReduction:
    """A reduction that threads share.

    Attributes:
        realize: The block.
        form: Its reducer.
        around: The loops over threads around the reduction.
        loops: The loops from the outermost one that reduces down to the block.
        threads: Those loops over threads that reduce.
        reduced: The variables of all loops that reduce.
    """

    realize: BlockRealize
    form: ReductionForm
    around: tuple[For, ...]
    loops: tuple[For, ...]
    threads: tuple[For, ...]
    reduced: frozenset[Var]
    partials: tuple[Buffer, ...] = field(init=False)

    def __post_init__(self) -> None:
        shape = tuple(loop.extent for loop in self.elements)
        self.partials = tuple(
            Buffer(
                Var(f"{target.buffer.name}_partial", "handle"), shape, target.buffer.dtype, "local"
            )
            for target in self.form.targets
        )

    @property
    def block(self) -> Block:
        return self.realize.block

    @property
    def spatial(self) -> list[For]:
        """Return the loops that select an element, inside of reducing ones."""
        return [loop for loop in self.loops if loop.var not in self.reduced]

    @property
    def elements(self) -> list[For]:
        """Return the loops over the elements that a thread has partial results of."""
        return [loop for loop in self.spatial if not is_thread(loop)]

    def update(self) -> Stmt:
        """Return the statement that takes the place of the block: a step of a partial result."""
        values = dict(
            zip((i.var for i in self.block.iter_vars), self.realize.iter_values, strict=True)
        )
        part = Partial(self.partials, tuple(loop.var for loop in self.elements), self.form.reducer)
        step = part.combined_with(tuple(substitute(v, values) for v in self.form.values))
        return step if self.realize.predicate == TRUE else If(self.realize.predicate, step)

    def whole(self, nest: Stmt) -> Stmt:
        """Return the reduction, given the nest of its loops with the block replaced."""
        starts = self._for_each_element(
            lambda indices, _: seq(
                *(
                    Store(partial, indices, start)
                    for partial, start in zip(self.partials, self.form.identity, strict=True)
                )
            )
        )
        ends = self._for_each_element(self._end)
        stmt = seq(starts, nest, ends)
        for buffer in self.partials:
            stmt = Allocate(buffer, stmt)
        return stmt

    def _end(self, indices: tuple[Expr, ...], renamed: Mapping[Var, Expr]) -> Stmt:
        """Return the combination of the partial results of an element, and the store of it."""
        inside = [loop for loop in self.spatial if is_thread(loop)]
        inside = [replace(loop, var=_renamed(loop.var, renamed)) for loop in inside]
        part = Partial(self.partials, indices, self.form.reducer)
        combination = combine_threads(part, self.threads, [*self.around, *inside])
        first: dict[Var, Expr] = {var: IntImm(0, dtype_of(var)) for var in self.reduced}
        start = {**renamed, **first}
        values = {
            iterator.var: substitute(value, start)
            for iterator, value in zip(self.block.iter_vars, self.realize.iter_values, strict=True)
        }
        stores: Stmt = seq(
            *(
                Store(
                    target.buffer,
                    tuple(simplify(substitute(index, values)) for index in target.indices),
                    Load(partial, indices),
                )
                for target, partial in zip(self.form.targets, self.partials, strict=True)
            )
        )
        # An element exists if its reduction begins.
        condition = simplify(substitute(self.realize.predicate, start))
        return seq(combination, stores if condition == TRUE else If(condition, stores))

    def _for_each_element(
        self, body: Callable[[tuple[Expr, ...], Mapping[Var, Expr]], Stmt]
    ) -> Stmt:
        """Run a statement for each element, in new loops like those that select elements."""
        renamed: dict[Var, Expr] = {
            loop.var: Var(loop.var.name, loop.var.dtype) for loop in self.spatial
        }
        stmt = body(tuple(renamed[loop.var] for loop in self.elements), renamed)
        for loop in reversed(self.spatial):
            kind = loop.kind if is_thread(loop) or loop.kind == "unrolled" else "serial"
            stmt = For(_renamed(loop.var, renamed), loop.extent, stmt, kind, loop.thread)
        return stmt


def _renamed(var: Var, renamed: Mapping[Var, Expr]) -> Var:
    new = renamed[var]
    assert isinstance(new, Var), "loops are renamed to loops"
    return new
