"""Walk and rebuild IR. A rebuild returns the very same object where nothing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never, overload

from compiler.ir.nodes import (
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
    FloatImm,
    For,
    If,
    IntImm,
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
    StringImm,
    Var,
    seq,
)

ExprFn: TypeAlias = Callable[[Expr], Expr]
StmtFn: TypeAlias = Callable[[Stmt], Stmt]


def walk(node: Expr | Stmt | Block) -> Iterator[Expr | Stmt | Block]:
    """Yield `node` and all below it, parents first; read and write regions are left out."""
    stack: list[Expr | Stmt | Block] = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def walk_stmts(stmt: Stmt) -> Iterator[Stmt]:
    """Yield `stmt` and the statements below it, parents first; expressions are left out."""
    stack = [stmt]
    while stack:
        top = stack.pop()
        yield top
        match top:
            case Seq(stmts):
                stack.extend(reversed(stmts))
            case For(body=body) | Allocate(body=body) | Let(body=body):
                stack.append(body)
            case If(_, then, otherwise):
                stack.extend((then,) if otherwise is None else (otherwise, then))
            case BlockRealize(block=block):
                stack.extend((block.body,) if block.init is None else (block.body, block.init))
            case Store() | Evaluate():
                pass


def children(node: Expr | Stmt | Block) -> tuple[Expr | Stmt | Block, ...]:  # noqa: C901
    """Return the direct children of a node in program order."""
    match node:
        case Var() | IntImm() | FloatImm() | StringImm():
            return ()
        case BinOp(_, lhs, rhs) | Compare(_, lhs, rhs) | Logic(_, lhs, rhs):
            return (lhs, rhs)
        case Not(value) | Cast(_, value) | Broadcast(value, _) | Evaluate(value):
            return (value,)
        case Select(cond, then, otherwise) | Conditional(cond, then, otherwise):
            return (cond, then, otherwise)
        case Call(_, args, _):
            return args
        case Load(_, indices):
            return indices
        case Ramp(base, _, _):
            return (base,)
        case Store(_, indices, value):
            return (*indices, value)
        case Let(_, value, body):
            return (value, body)
        case Seq(stmts):
            return stmts
        case If(cond, then_stmt, else_stmt):
            return (cond, then_stmt) if else_stmt is None else (cond, then_stmt, else_stmt)
        case For(_, extent, body):
            return (extent, body)
        case Block(body=body, init=init):
            return (body,) if init is None else (init, body)
        case BlockRealize(values, predicate, block):
            return (*values, predicate, block)
        case Allocate(_, body):
            return (body,)
        case _:
            assert_never(node)


def _map_all(exprs: tuple[Expr, ...], fn: ExprFn) -> tuple[Expr, ...]:
    new = tuple(fn(e) for e in exprs)
    return exprs if all(a is b for a, b in zip(new, exprs, strict=True)) else new


def map_expr(expr: Expr, fn: ExprFn) -> Expr:  # noqa: C901
    """Rebuild `expr` with `fn` applied to each direct child."""
    match expr:
        case Var() | IntImm() | FloatImm() | StringImm():
            return expr
        case BinOp(op, lhs, rhs):
            a, b = fn(lhs), fn(rhs)
            return expr if a is lhs and b is rhs else BinOp(op, a, b)
        case Compare(cmp, lhs, rhs):
            a, b = fn(lhs), fn(rhs)
            return expr if a is lhs and b is rhs else Compare(cmp, a, b)
        case Logic(logic, lhs, rhs):
            a, b = fn(lhs), fn(rhs)
            return expr if a is lhs and b is rhs else Logic(logic, a, b)
        case Not(value):
            a = fn(value)
            return expr if a is value else Not(a)
        case Cast(dtype, value):
            a = fn(value)
            return expr if a is value else Cast(dtype, a)
        case Broadcast(value, lanes):
            a = fn(value)
            return expr if a is value else Broadcast(a, lanes)
        case Select(cond, then, otherwise):
            three = _map_all((cond, then, otherwise), fn)
            return (
                expr
                if three[0] is cond and three[1] is then and three[2] is otherwise
                else Select(*three)
            )
        case Conditional(cond, then, otherwise):
            three = _map_all((cond, then, otherwise), fn)
            unchanged = three[0] is cond and three[1] is then and three[2] is otherwise
            return expr if unchanged else Conditional(*three)
        case Call(name, args, dtype):
            new_args = _map_all(args, fn)
            return expr if new_args is args else Call(name, new_args, dtype)
        case Load(buffer, indices):
            new_indices = _map_all(indices, fn)
            return expr if new_indices is indices else Load(buffer, new_indices)
        case Ramp(base, stride, lanes):
            a = fn(base)
            return expr if a is base else Ramp(a, stride, lanes)
        case _:
            assert_never(expr)


def operands_of(expr: Expr) -> tuple[Expr, ...]:
    """Return the direct children of an expression."""
    return children(expr)  # type: ignore[return-value] # of an expression they are expressions


def same_operation(a: Expr, b: Expr) -> bool:
    """Tell whether two expressions are the same but for their operands."""

    def bare(expr: Expr) -> Expr:
        return map_expr(expr, lambda _: TRUE)

    return type(a) is type(b) and len(operands_of(a)) == len(operands_of(b)) and bare(a) == bare(b)


def map_stmt(stmt: Stmt, on_stmt: StmtFn, on_expr: ExprFn) -> Stmt:  # noqa: C901 - one case a node
    """Rebuild `stmt` with the functions applied to its direct children.

    A block counts as part of its realisation: its body, init and regions are children too.
    """
    match stmt:
        case Store(buffer, indices, value):
            new_indices, new_value = _map_all(indices, on_expr), on_expr(value)
            if new_indices is indices and new_value is value:
                return stmt
            return Store(buffer, new_indices, new_value)
        case Evaluate(value):
            new_value = on_expr(value)
            return stmt if new_value is value else Evaluate(new_value)
        case Let(var, value, body):
            new_value, new_body = on_expr(value), on_stmt(body)
            if new_value is value and new_body is body:
                return stmt
            return Let(var, new_value, new_body)
        case Seq(stmts):
            new = tuple(on_stmt(s) for s in stmts)
            return stmt if all(a is b for a, b in zip(new, stmts, strict=True)) else seq(*new)
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
        case For(var, extent, body, kind, thread, annotations):
            new_extent, new_body = on_expr(extent), on_stmt(body)
            if new_extent is extent and new_body is body:
                return stmt
            return For(var, new_extent, new_body, kind, thread, annotations)
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
    if (
        reads is block.reads
        and writes is block.writes
        and body is block.body
        and init is block.init
        and matches is block.match_buffers
    ):
        return block
    return Block(
        block.name,
        block.iter_vars,
        reads,
        writes,
        body,
        init,
        block.alloc_buffers,
        block.annotations,
        matches,
    )


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


@overload
def substitute(node: Expr, mapping: Mapping[Var, Expr]) -> Expr: ...
@overload
def substitute(node: Stmt, mapping: Mapping[Var, Expr]) -> Stmt: ...
def substitute(node: Expr | Stmt, mapping: Mapping[Var, Expr]) -> Expr | Stmt:
    """Replace variables by expressions, in regions too. Binders (loops, iterators) stay."""
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
    """Tell a statement from an expression."""
    return isinstance(node, Store | Evaluate | Let | Seq | If | For | BlockRealize | Allocate)


def replace_buffers(node: Stmt, mapping: Mapping[Buffer, Buffer]) -> Stmt:
    """Replace buffers wherever they are loaded, stored, allocated or named in a region or call."""
    storage = {old.data: new.data for old, new in mapping.items()}

    def visit_expr(expr: Expr) -> Expr:
        new = map_expr(expr, visit_expr)
        if isinstance(new, Load) and new.buffer in mapping:
            return Load(mapping[new.buffer], new.indices)
        if isinstance(new, Var):
            return storage.get(new, new)
        return new

    def region(r: BufferRegion) -> BufferRegion:
        return BufferRegion(mapping[r.buffer], r.region) if r.buffer in mapping else r

    def in_block(block: Block) -> Block:
        return replace(
            block,
            reads=tuple(region(r) for r in block.reads),
            writes=tuple(region(r) for r in block.writes),
            alloc_buffers=tuple(mapping.get(b, b) for b in block.alloc_buffers),
            match_buffers=tuple(
                MatchBuffer(mapping.get(m.buffer, m.buffer), region(m.source))
                for m in block.match_buffers
            ),
        )

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit, visit_expr)
        match new:
            case Store(buffer, indices, value) if buffer in mapping:
                return Store(mapping[buffer], indices, value)
            case Allocate(buffer, body) if buffer in mapping:
                return Allocate(mapping[buffer], body)
            case BlockRealize(values, predicate, block):
                return BlockRealize(values, predicate, in_block(block))
            case _:
                return new

    return visit(node)
