"""Walk and rebuild IR. A rebuild returns the same object if nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import replace
from operator import is_
from typing import Any, TypeAlias, TypeVar, assert_never, overload

from compiler.ir.core.children import CHILDREN, LEAVES, STATEMENTS_IN
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BinOp,
    Block,
    BlockRealize,
    Broadcast,
    Buffer,
    BufferRegion,
    Call,
    Cast,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    IterVar,
    Let,
    Load,
    Logic,
    MatchBuffer,
    Not,
    Ramp,
    Range,
    Select,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    seq,
)

ExprFn: TypeAlias = Callable[[Expr], Expr]
StmtFn: TypeAlias = Callable[[Stmt], Stmt]
_Both = TypeVar("_Both", BinOp, Compare, Logic)
_Choice = TypeVar("_Choice", Select, Conditional)


def walk(node: Expr | Stmt | Block) -> Iterator[Expr | Stmt | Block]:
    """Yield `node` and all nodes below it, parents first, without read and write regions."""
    stack: list[Expr | Stmt | Block] = [node]
    while stack:
        top = stack.pop()
        yield top
        kind = type(top)
        if kind not in LEAVES:
            stack += CHILDREN[kind](top)[::-1]


def walk_stmts(stmt: Stmt) -> Iterator[Stmt]:
    """Yield `stmt` and the statements below it, parents first, without expressions."""
    stack = [stmt]
    while stack:
        top = stack.pop()
        yield top
        stack += STATEMENTS_IN[type(top)](top)[::-1]


def uses(expr: Expr, var: Var) -> bool:
    """Return whether a variable occurs in an expression."""
    # Faster than `var in walk(expr)`, which would compare the variable with the content of nodes.
    return any(node is var for node in walk(expr))


def statements_in(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return the statements directly below a statement, in program order; an init comes first."""
    return STATEMENTS_IN[type(stmt)](stmt)


def children(node: Expr | Stmt | Block) -> tuple[Expr | Stmt | Block, ...]:
    """Return the direct children of a node in program order."""
    return CHILDREN[type(node)](node)


def _map_all(exprs: tuple[Expr, ...], fn: ExprFn) -> tuple[Expr, ...]:
    new = tuple([fn(e) for e in exprs])
    return exprs if all(map(is_, new, exprs)) else new


def map_expr(expr: Expr, fn: ExprFn) -> Expr:
    """Rebuild `expr` with `fn` applied to each direct child."""
    rebuild = _REBUILD.get(type(expr))
    return expr if rebuild is None else rebuild(expr, fn)


def _map_both(expr: _Both, fn: ExprFn) -> _Both:
    op, lhs, rhs = expr.op, expr.lhs, expr.rhs
    a, b = fn(lhs), fn(rhs)
    return expr if a is lhs and b is rhs else type(expr)(op, a, b)


def _map_choice(expr: _Choice, fn: ExprFn) -> _Choice:
    old = (expr.condition, expr.then, expr.otherwise)
    new = _map_all(old, fn)
    return expr if new is old else type(expr)(*new)


def _map_not(expr: Not, fn: ExprFn) -> Not:
    new = fn(expr.value)
    return expr if new is expr.value else Not(new)


def _map_cast(expr: Cast, fn: ExprFn) -> Cast:
    new = fn(expr.value)
    return expr if new is expr.value else Cast(expr.dtype, new)


def _map_broadcast(expr: Broadcast, fn: ExprFn) -> Broadcast:
    new = fn(expr.value)
    return expr if new is expr.value else Broadcast(new, expr.lanes)


def _map_call(expr: Call, fn: ExprFn) -> Call:
    new = _map_all(expr.args, fn)
    return expr if new is expr.args else Call(expr.name, new, expr.dtype)


def _map_load(expr: Load, fn: ExprFn) -> Load:
    new = _map_all(expr.indices, fn)
    return expr if new is expr.indices else Load(expr.buffer, new)


def _map_ramp(expr: Ramp, fn: ExprFn) -> Ramp:
    new = fn(expr.base)
    return expr if new is expr.base else Ramp(new, expr.stride, expr.lanes)


_REBUILD: dict[type, Callable[[Any, ExprFn], Expr]] = {
    BinOp: _map_both,
    Compare: _map_both,
    Logic: _map_both,
    Not: _map_not,
    Select: _map_choice,
    Conditional: _map_choice,
    Cast: _map_cast,
    Call: _map_call,
    Load: _map_load,
    Ramp: _map_ramp,
    Broadcast: _map_broadcast,
}


def operands_of(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct children of an expression."""
    return children(expr)  # type: ignore[return-value] # of an expression they are expressions


def same_operation(a: Expr, b: Expr) -> bool:
    """Return whether two expressions differ in their operands only."""

    def bare(expr: Expr) -> Expr:
        return map_expr(expr, lambda _: TRUE)

    return type(a) is type(b) and len(operands_of(a)) == len(operands_of(b)) and bare(a) == bare(b)


def map_stmt(stmt: Stmt, on_stmt: StmtFn, on_expr: ExprFn) -> Stmt:  # noqa: C901 - one case a node
    """Rebuild `stmt` with the functions applied to its direct children.

    A block counts as part of its realisation: its body, init, regions and the extents of its
    iterators are children too.
    """
    match stmt:
        case For():
            extent, body = on_expr(stmt.extent), on_stmt(stmt.body)
            if extent is stmt.extent and body is stmt.body:
                return stmt
            return For(stmt.var, extent, body, stmt.kind, stmt.thread, stmt.annotations)
        case Store():
            indices, value = _map_all(stmt.indices, on_expr), on_expr(stmt.value)
            if indices is stmt.indices and value is stmt.value:
                return stmt
            return Store(stmt.buffer, indices, value)
        case Evaluate(value):
            new_value = on_expr(value)
            return stmt if new_value is value else Evaluate(new_value)
        case Let():
            value, body = on_expr(stmt.value), on_stmt(stmt.body)
            if value is stmt.value and body is stmt.body:
                return stmt
            return Let(stmt.var, value, body)
        case Seq():
            new = tuple([on_stmt(s) for s in stmt.stmts])
            return stmt if all(map(is_, new, stmt.stmts)) else seq(*new)
        case If(cond, then, otherwise):
            parts = (
                on_expr(cond),
                on_stmt(then),
                None if otherwise is None else on_stmt(otherwise),
            )
            return (
                stmt
                if parts[0] is cond and parts[1] is then and parts[2] is otherwise
                else If(*parts)
            )
        case While(condition, body):
            new_condition, body = on_expr(condition), on_stmt(body)
            is_same = new_condition is condition and body is stmt.body
            return stmt if is_same else While(new_condition, body)
        case BlockRealize(values, predicate, block):
            new_values, new_predicate = _map_all(values, on_expr), on_expr(predicate)
            new_block = _map_block(block, on_stmt, on_expr)
            if new_values is values and new_predicate is predicate and new_block is block:
                return stmt
            return BlockRealize(new_values, new_predicate, new_block)
        case Allocate(buffer, body):
            new_body = on_stmt(body)
            return stmt if new_body is body else Allocate(buffer, new_body)
        case _:
            assert_never(stmt)


def _map_block(block: Block, on_stmt: StmtFn, on_expr: ExprFn) -> Block:
    reads, writes = _map_regions(block.reads, on_expr), _map_regions(block.writes, on_expr)
    body = on_stmt(block.body)
    init = None if block.init is None else on_stmt(block.init)
    matches = _map_matches(block.match_buffers, on_expr)
    iter_vars = _map_extents(block.iter_vars, on_expr)
    if (
        iter_vars is block.iter_vars
        and reads is block.reads
        and writes is block.writes
        and body is block.body
        and init is block.init
        and matches is block.match_buffers
    ):
        return block
    return Block(
        block.name,
        iter_vars,
        reads,
        writes,
        body,
        init,
        block.alloc_buffers,
        block.annotations,
        matches,
    )


def _map_extents(iter_vars: tuple[IterVar, ...], fn: ExprFn) -> tuple[IterVar, ...]:
    """Rebuild the extents of iterators that depend on outer loops."""
    if all(isinstance(i.extent, IntImm) for i in iter_vars):
        return iter_vars
    new = tuple(
        i if (extent := fn(i.extent)) is i.extent else replace(i, extent=extent) for i in iter_vars
    )
    return iter_vars if all(map(is_, new, iter_vars)) else new


def _map_matches(matches: tuple[MatchBuffer, ...], fn: ExprFn) -> tuple[MatchBuffer, ...]:
    new = tuple(MatchBuffer(m.buffer, map_region(m.source, fn)) for m in matches)
    unchanged = all(a.source is b.source for a, b in zip(new, matches, strict=True))
    return matches if unchanged else new


def _map_regions(regions: tuple[BufferRegion, ...], fn: ExprFn) -> tuple[BufferRegion, ...]:
    new = tuple(map_region(r, fn) for r in regions)
    return regions if all(a is b for a, b in zip(new, regions, strict=True)) else new


def map_region(region: BufferRegion, fn: ExprFn) -> BufferRegion:
    """Rebuild a region with `fn` applied to each minimum and extent."""
    ranges: list[Range] = []
    changed = False
    for r in region.region:
        minimum, extent = fn(r.minimum), fn(r.extent)
        changed = changed or minimum is not r.minimum or extent is not r.extent
        ranges.append(Range(minimum, extent))
    return BufferRegion(region.buffer, tuple(ranges)) if changed else region


def transform_expr(expr: Expr, fn: Callable[[Expr], Expr | None]) -> Expr:
    """Rebuild `expr` from the leaves up; `fn` returns a replacement, or None to keep a node."""

    def visit(node: Expr) -> Expr:
        new = map_expr(node, visit)
        replacement = fn(new)
        return new if replacement is None else replacement

    return visit(expr)


def transform(
    stmt: Stmt,
    on_expr: Callable[[Expr], Expr | None] | None = None,
    on_stmt: Callable[[Stmt], Stmt | None] | None = None,
) -> Stmt:
    """Rebuild `stmt` from the leaves up; each function returns a replacement, or None to keep."""

    def visit_expr(node: Expr) -> Expr:
        return node if on_expr is None else transform_expr(node, on_expr)

    def visit(node: Stmt) -> Stmt:
        new = map_stmt(node, visit, visit_expr)
        replacement = None if on_stmt is None else on_stmt(new)
        return new if replacement is None else replacement

    return visit(stmt)


def map_accesses(
    stmt: Stmt,
    buffers: Container[Buffer],
    moved: Callable[[Buffer, tuple[Expr, ...]], tuple[Buffer, tuple[Expr, ...]]],
) -> Stmt:
    """Replace the buffer and the indices of each load and store of some buffers.

    Regions and allocations stay as they are.

    Args:
        moved: Returns the new buffer and indices of an access, given the old ones.
    """

    def on_expr(expr: Expr) -> Expr | None:
        if isinstance(expr, Load) and expr.buffer in buffers:
            return Load(*moved(expr.buffer, expr.indices))
        return None

    def on_stmt(node: Stmt) -> Stmt | None:
        if isinstance(node, Store) and node.buffer in buffers:
            return Store(*moved(node.buffer, node.indices), node.value)
        return None

    return transform(stmt, on_expr, on_stmt)


@overload
def substitute(node: Expr, mapping: Mapping[Var, Expr]) -> Expr: ...
@overload
def substitute(node: Stmt, mapping: Mapping[Var, Expr]) -> Stmt: ...
def substitute(node: Expr | Stmt, mapping: Mapping[Var, Expr]) -> Expr | Stmt:
    """Replace variables by expressions, including regions and the extents of iterators.

    Binders (the variables of loops and iterators) stay.
    """
    if not mapping:
        return node

    def visit_expr(expr: Expr) -> Expr:
        if isinstance(expr, Var):
            return mapping.get(expr, expr)
        return map_expr(expr, visit_expr)

    def visit(stmt: Stmt) -> Stmt:
        return map_stmt(stmt, visit, visit_expr)

    return visit(node) if is_stmt(node) else visit_expr(node)  # type: ignore[arg-type]


def is_stmt(node: Expr | Stmt | Block) -> bool:
    """Return whether a node is a statement, not an expression."""
    return type(node) in STATEMENTS_IN
