"""Run the statements of a loop in stages: early stages work ahead for later iterations.

    for k in 8:                         S = alloc((2, ...))
        S = alloc(...)                  S[0] = f(0)
        S[...] = f(k)  # stage 0   ->   for k in 7:
        C += g(S)      # stage 1            S[(k + 1) % 2] = f(k + 1)
                                            C += g(S[k % 2])
                                        C += g(S[1])

A statement of stage `s` runs `s` steps after its iteration begins. A buffer that one stage writes
and a later stage reads has one version for each iteration in flight. TVM has this as
InjectSoftwarePipeline.

On a device the first and the last steps are not written apart: stages are guarded, so that the code
stays small. NVRTC takes about 1 ms for each element of an unrolled copy. Copies of asynchronous
stages run while the thread goes on. A step waits for those that it needs, then for all threads,
before it issues new ones into the version that was read last:

    for k in 10:
        async_wait_group(1); barrier
        if k < 8: S[k % 3] = f(k)      # asynchronous
        async_commit_group()
        if k >= 2: C += g(S[(k - 2) % 3])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from compiler.ir.analysis.dependence import Touch, agree_on, touches_of
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    Buffer,
    Compare,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Var,
)
from compiler.ir.core.visit import map_accesses, map_stmt, substitute, walk
from compiler.passes.common.asynchronous import (
    COMMIT,
    asynchronous,
    await_groups,
    is_asynchronous,
)
from compiler.passes.common.error import LoweringError
from compiler.passes.common.mark_pipelines import PipelinePlan, is_part, is_pipelined, plan_of
from compiler.passes.common.realize_blocks import in_order
from compiler.passes.common.thread_loops import BARRIER

_ITERATION = "iteration"


@dataclass(slots=True)
class _Parts:
    """The statements of a loop, the buffers of one iteration, and the statements around them."""

    stmts: list[Stmt] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    around: list[If | Let] = field(default_factory=list)


def pipeline_loops(stmt: Stmt, *, is_device: bool = False) -> Stmt:
    """Rewrite the loops whose statements are marked as parts.

    Args:
        stmt: The program.
        is_device: Whether stages are guarded instead of peeled, and may be asynchronous.

    Raises:
        LoweringError: If the stages of a loop would change what it computes.
    """

    def visit(node: Stmt) -> Stmt:
        new = map_stmt(node, visit, lambda expr: expr)
        if not is_pipelined(new):
            return new
        assert isinstance(new, For)
        parts = _split_body(new.body)
        plan = plan_of(new, len(parts.stmts))
        try:
            _check(new, parts, plan)
        except LoweringError:
            if plan.is_optional:
                return new
            raise
        return _Pipeline(new, parts, plan, is_device=is_device).whole()

    return visit(stmt)


def _split_body(body: Stmt) -> _Parts:
    parts = _Parts()
    while not (is_part(body) or isinstance(body, Seq)):
        match body:
            case Allocate(buffer, inner):
                parts.buffers.append(buffer)
            case If(_, inner, None) | Let(_, _, inner):
                parts.around.append(replace(body))
            case _:
                raise LoweringError(
                    "threads add up to one element in a whole iteration of a pipelined loop"
                )
        body = inner
    parts.stmts = list(body.stmts) if isinstance(body, Seq) else [body]
    return parts


def _check(loop: For, parts: _Parts, plan: PipelinePlan) -> None:
    """Refuse a plan that swaps two accesses to one element, one of them a store.

    Raises:
        LoweringError: With the loop, the two statements and the buffer.
    """
    extents = {loop.var: extent_or_unknown(loop.extent)}
    names = {loop.var: _ITERATION}
    varying = {wrapper.var for wrapper in parts.around if isinstance(wrapper, Let)}
    touches = [touches_of(stmt, extents, names, varying) for stmt in parts.stmts]
    stored = {t.buffer for part in touches for t in part if t.is_store}
    for wrapper in parts.around:
        head = wrapper.condition if isinstance(wrapper, If) else wrapper.value
        if any(isinstance(node, Load) and node.buffer in stored for node in walk(head)):
            raise LoweringError(f"loop {loop.var.name} changes what its own conditions read")
    for first, before in enumerate(touches):
        for second, after in enumerate(touches):
            for earlier in before:
                for other in after:
                    if earlier.buffer != other.buffer or not (earlier.is_store or other.is_store):
                        continue
                    is_private = earlier.buffer in parts.buffers
                    if _is_turned(plan, first, second, earlier, other, is_private=is_private):
                        raise LoweringError(
                            f"the stages of loop {loop.var.name} would run statement {second} "
                            f"before statement {first}, though both use {earlier.buffer.name}"
                        )


def _is_turned(
    plan: PipelinePlan, first: int, second: int, earlier: Touch, later: Touch, *, is_private: bool
) -> bool:
    """Return whether the plan may run `later` before `earlier`, which it follows in the program."""
    ahead = plan.stages[first] - plan.stages[second]
    is_later = plan.order[first] > plan.order[second]
    if first < second and (ahead > 0 or (ahead == 0 and is_later)):
        return True
    # Each iteration has its own version of this memory.
    if is_private or agree_on((earlier, later), [_ITERATION]):
        return False
    return ahead > 1 or (ahead == 1 and is_later)


@dataclass(frozen=True, slots=True)
class _AsyncCopies:
    """The asynchronous statements of a loop.

    Attributes:
        parts: Their numbers.
        ahead: The steps from a copy to its first use.
    """

    parts: frozenset[int]
    ahead: int

    def synchronized(self, stmts: list[Stmt]) -> list[Stmt]:
        """Return the statements of a step with the calls that end and await groups of copies.

        All copies of a step are one group. A step needs the group of `ahead` steps before it.
        """
        end = max((n + 1 for n, stmt in enumerate(stmts) if is_asynchronous(stmt)), default=0)
        # The barrier shows the copies of all threads, and that all have read the last version.
        return [await_groups(self.ahead - 1), BARRIER, *stmts[:end], COMMIT, *stmts[end:]]


def _asynchronous_copies(plan: PipelinePlan, touches: list[list[Touch]]) -> _AsyncCopies | None:
    """Return the statements that copy asynchronously; None if no stage lets them run ahead."""
    numbers = [n for n, stage in enumerate(plan.stages) if stage in plan.async_stages]
    uses: list[int] = []
    for number in numbers:
        stored = {touch.buffer for touch in touches[number] if touch.is_store}
        uses += [
            plan.stages[other] - plan.stages[number]
            for other, accesses in enumerate(touches)
            if other not in numbers and any(touch.buffer in stored for touch in accesses)
        ]
    if not uses or min(uses) < 1:
        return None
    return _AsyncCopies(frozenset(numbers), min(uses))


class _Pipeline:
    """Writes one pipelined loop."""

    def __init__(self, loop: For, parts: _Parts, plan: PipelinePlan, *, is_device: bool) -> None:
        self._loop = loop
        self._parts = parts
        self._plan = plan
        self._extent = extent_or_unknown(loop.extent)
        self._last = max(plan.stages)
        touches = [touches_of(stmt, {}, {}) for stmt in parts.stmts]
        used = [{touch.buffer for touch in part} for part in touches]
        self._versions = {b: self._version(b, used) for b in parts.buffers}
        self._is_guarded = is_device
        self._copies = _asynchronous_copies(plan, touches) if is_device else None

    def whole(self) -> Stmt:
        stmt = self._loop_of(self._extent + self._last, 0) if self._is_guarded else self._peeled()
        for new, _ in self._versions.values():
            stmt = Allocate(new, stmt)
        return stmt

    def _peeled(self) -> Stmt:
        """Return the first steps, a loop of those that run all stages, and the last steps."""
        extent, last = self._extent, self._last
        before = [self._step(IntImm(step), step) for step in range(min(last, extent + last))]
        middle = [self._loop_of(extent - last, last)] if extent > last else []
        after = [self._step(IntImm(step), step) for step in range(max(extent, last), extent + last)]
        return in_order([*before, *middle, *after])

    def _loop_of(self, steps: int, first: int) -> Stmt:
        """Return a loop of steps from some step on."""
        var = Var(self._loop.var.name, self._loop.var.dtype)
        body = self._step(BinOp("+", var, IntImm(first, dtype_of(var))) if first else var, None)
        annotations = tuple(a for a in self._loop.annotations if "pipeline" not in a[0])
        extent = IntImm(steps)
        return replace(self._loop, var=var, extent=extent, body=body, annotations=annotations)

    def _version(self, buffer: Buffer, used: list[set[Buffer]]) -> tuple[Buffer, int]:
        """Return a buffer with room for all iterations in flight that use it."""
        stages = [
            stage
            for stage, buffers in zip(self._plan.stages, used, strict=True)
            if buffer in buffers
        ]
        count = max(stages, default=0) - min(stages, default=0) + 1
        if count == 1:
            return buffer, 1
        data = Var(buffer.name, "handle")
        return replace(buffer, data=data, shape=(IntImm(count), *buffer.shape)), count

    def _step(self, step: Expr, number: int | None) -> Stmt:
        """Return one step: each statement, run for the iteration that has reached its stage."""
        stmts: list[tuple[int, Stmt]] = []
        copies = self._copies
        for index, (position, stage, body) in enumerate(
            zip(self._plan.order, self._plan.stages, self._parts.stmts, strict=True)
        ):
            if number is not None and not 0 <= number - stage < self._extent:
                continue
            iteration = simplify(BinOp("-", step, IntImm(stage, dtype_of(step))))
            stmt = self._at(body, iteration)
            if self._is_guarded:
                stmt = self._guarded(stmt, step, stage)
            if copies is not None and index in copies.parts:
                stmt = asynchronous(stmt)
            stmts.append((position, stmt))
        ordered = [stmt for _, stmt in sorted(stmts, key=lambda pair: pair[0])]
        return in_order(ordered if copies is None else copies.synchronized(ordered))

    def _guarded(self, stmt: Stmt, step: Expr, stage: int) -> Stmt:
        """Return a statement that runs only in the steps of its iterations."""
        if stage < self._last:
            stmt = If(Compare("<", step, IntImm(self._extent + stage, dtype_of(step))), stmt)
        if stage > 0:
            stmt = If(Compare(">=", step, IntImm(stage, dtype_of(step))), stmt)
        return stmt

    def _at(self, part: Stmt, iteration: Expr) -> Stmt:
        stmt = part.body if isinstance(part, For) and is_part(part) else part
        for wrapper in reversed(self._parts.around):
            if isinstance(wrapper, If):
                stmt = If(wrapper.condition, stmt)
            else:
                name = Var(wrapper.var.name, wrapper.var.dtype)
                stmt = Let(name, wrapper.value, substitute(stmt, {wrapper.var: name}))
        return self._moved(substitute(stmt, {self._loop.var: iteration}), iteration)

    def _moved(self, stmt: Stmt, iteration: Expr) -> Stmt:
        """Redirect a statement to the versions of the buffers that belong to its iteration."""
        wide: Mapping[Buffer, tuple[Buffer, int]] = {
            old: (new, count) for old, (new, count) in self._versions.items() if count > 1
        }
        if not wide:
            return stmt

        def moved(buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
            new, count = wide[buffer]
            version = BinOp("%", iteration, IntImm(count, dtype_of(iteration)))
            return new, (simplify(version), *indices)

        return map_accesses(stmt, wide, moved)
