"""Find the loops to pipeline, and mark their statements as separate parts.

A loop has annotations for this (`software_pipeline_stage`, `software_pipeline_order`), or a block
in it has one (`double_buffer_scope`: the block writes its buffer one iteration ahead). The parts
keep the lowering of blocks from merging the statements. The annotations are TVM's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    AnnotationValue,
    Block,
    BlockRealize,
    Buffer,
    For,
    If,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Var,
)
from compiler.ir.core.visit import map_stmt, walk, walk_stmts
from compiler.passes.common.error import LoweringError
from compiler.passes.common.local_stages import separate_local_stages

STAGE = "software_pipeline_stage"
ORDER = "software_pipeline_order"
ASYNC = "software_pipeline_async_stages"
DOUBLE = "double_buffer_scope"
_OPTIONAL = ("software_pipeline_optional", True)
_PART = ("software_pipeline_part", True)


@dataclass(frozen=True, slots=True)
class PipelinePlan:
    """The stage of each statement of a loop, and its position within an iteration.

    An optional plan is dropped if it would change the result. The statements of `async_stages`
    copy while later statements run, on devices that can.
    """

    stages: tuple[int, ...]
    order: tuple[int, ...]
    is_optional: bool
    async_stages: tuple[int, ...] = ()


def mark_pipelines(stmt: Stmt) -> Stmt:
    """Put the statements of each pipelined loop into parts.

    Raises:
        LoweringError: If an annotation is malformed, or does not fit its loop or block.
    """
    stmt = separate_local_stages(stmt)
    if not any(_asks(node) for node in walk_stmts(stmt)):
        return stmt

    def visit(node: Stmt) -> Stmt:
        new = map_stmt(node, visit, lambda expr: expr)
        if not isinstance(new, For):
            return new
        if new.extent == IntImm(1, dtype_of(new.extent)):
            return _plain(new)  # a single iteration has no next one to prepare
        if any(key in dict(new.annotations) for key in (STAGE, ORDER, ASYNC)):
            parts = _statements(new.body)
            plan_of(new, len(parts))
            return _marked(new)
        ahead = _written_ahead(new)
        if ahead is None:
            return new
        count = len(_statements(new.body))
        stages = tuple(int(number > ahead) for number in range(count))
        plan = ((STAGE, stages), (ORDER, tuple(range(count))), _OPTIONAL)
        return _marked(replace(new, annotations=(*new.annotations, *plan)))

    return visit(stmt)


def _plain(loop: For) -> For:
    remaining = tuple(note for note in loop.annotations if note[0] not in (STAGE, ORDER, ASYNC))
    return replace(loop, annotations=remaining)


def is_pipelined(stmt: Stmt) -> bool:
    """Return whether a statement is a loop to pipeline."""
    return isinstance(stmt, For) and STAGE in dict(stmt.annotations)


def is_part(stmt: Stmt) -> bool:
    """Return whether a statement is one part of a pipelined loop."""
    return isinstance(stmt, For) and _PART in stmt.annotations


def plan_of(loop: For, count: int) -> PipelinePlan:
    """Return the plan of a pipelined loop with `count` statements.

    Raises:
        LoweringError: If its annotations are malformed.
    """
    notes = dict(loop.annotations)
    subject = f"loop {loop.var.name}"
    if loop.kind not in ("serial", "unrolled") or not isinstance(loop.extent, IntImm):
        raise LoweringError(
            f"{subject} is {loop.kind} or of varying extent, and can't be pipelined"
        )
    for key in (STAGE, ORDER):
        if key not in notes:
            raise LoweringError(f"{subject} is pipelined, but {key} is missing")
    stages, order = (_numbers(notes[key], f"{key} of {subject}") for key in (STAGE, ORDER))
    for key, numbers in ((STAGE, stages), (ORDER, order)):
        if len(numbers) != count:
            raise LoweringError(
                f"{subject} has {count} statements, but {key} has {len(numbers)} numbers"
            )
    if len(set(order)) != count:
        raise LoweringError(
            f"{ORDER} of {subject} gives one place to two statements: {list(order)}"
        )
    async_stages = _numbers(notes.get(ASYNC, ()), f"{ASYNC} of {subject}")
    for stage in async_stages:
        if stage not in stages:
            raise LoweringError(f"{ASYNC} of {subject} names stage {stage}, which it has not")
    return PipelinePlan(stages, order, _OPTIONAL in loop.annotations, async_stages)


def _numbers(value: AnnotationValue, subject: str) -> tuple[int, ...]:
    numbers = value if isinstance(value, tuple) else (value,)
    naturals = tuple(
        n for n in numbers if isinstance(n, int) and not isinstance(n, bool) and n >= 0
    )
    if not isinstance(value, tuple) or len(naturals) != len(numbers):
        raise LoweringError(f"{subject} is {value!r}: expected a list of integers from 0 on")
    return naturals


def _asks(stmt: Stmt) -> bool:
    match stmt:
        case For(annotations=annotations) if annotations:
            return any(key in dict(annotations) for key in (STAGE, ORDER, ASYNC))
        case BlockRealize(block=Block(annotations=annotations)) if annotations:
            return DOUBLE in dict(annotations)
        case _:
            return False


def _statements(body: Stmt) -> tuple[Stmt, ...]:
    match body:
        case BlockRealize(block=Block(body=inner, init=None)) if _is_wrapper(body):
            return _statements(inner)
        case If(_, inner, None) | Let(_, _, inner):
            return _statements(inner)
        case Seq(stmts):
            return stmts
        case _:
            return (body,)


def _is_wrapper(realize: BlockRealize) -> bool:
    """Return whether a block only wraps other statements, and computes nothing itself."""
    inner = realize.block.body
    return isinstance(inner, Seq | BlockRealize | If | Let)


def _marked(loop: For) -> For:
    def on_parts(body: Stmt) -> Stmt:
        match body:
            case BlockRealize(block=Block(body=inner, init=None) as block) if _is_wrapper(body):
                return replace(body, block=replace(block, body=on_parts(inner)))
            case If(condition, inner, None):
                return If(condition, on_parts(inner))
            case Let(var, value, inner):
                return Let(var, value, on_parts(inner))
            case Seq(stmts):
                return Seq(tuple(map(_part, stmts)))
            case _:
                return _part(body)

    return replace(loop, body=on_parts(loop.body))


def _part(stmt: Stmt) -> Stmt:
    return For(Var("part"), IntImm(1), stmt, annotations=(_PART,))


def _written_ahead(loop: For) -> int | None:
    """Return the number of the statement whose block writes ahead for a later statement."""
    if loop.kind != "serial" or not isinstance(loop.extent, IntImm):
        return None
    stmts = _statements(loop.body)
    for number, stmt in enumerate(stmts):
        buffers = {b for node in walk_stmts(stmt) for b in _double_buffers(node)}
        later = stmts[number + 1 :]
        if any(isinstance(n, Load) and n.buffer in buffers for s in later for n in walk(s)):
            return number
    return None


def _double_buffers(stmt: Stmt) -> list[Buffer]:
    if not isinstance(stmt, BlockRealize):
        return []
    block = stmt.block
    notes = dict(block.annotations)
    if DOUBLE not in notes:
        return []
    index = notes[DOUBLE]
    if not isinstance(index, int) or not 0 <= index < len(block.writes):
        raise LoweringError(
            f"{DOUBLE} of block {block.name} is {index!r}: expected the number of one of the "
            f"{len(block.writes)} buffers that it writes"
        )
    return [block.writes[index].buffer]
