"""Replace blocks by plain statements: bind iterators, guard by predicates, test for `init`.

Later passes need one fact that only blocks carry: which loops carry a reduction into a buffer. The
buffer must outlive these loops. The fact is returned beside the statement. A name whose value
depends on loops alone is replaced by that value, so that indices show how they move.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BlockRealize,
    Buffer,
    Call,
    Cast,
    Compare,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.visit import map_stmt, substitute, walk, walk_stmts
from compiler.passes.common.thread_loops import is_barrier, is_thread, one_by_one

NOTHING = Evaluate(IntImm(0))
# A name for a longer value stays: inlining names that are made of names would explode.
_MAX_INLINED = 24


@dataclass(slots=True)
class Realized:
    """A program without blocks, and for each buffer the loops that carry a value of it."""

    stmt: Stmt
    carried: dict[Buffer, set[Var]] = field(default_factory=dict)


def realize_blocks(body: Stmt) -> Realized:
    """Rewrite the body of a scheduled program into loops, conditions, stores and allocations."""
    carried: dict[Buffer, set[Var]] = {}
    threads = {n.var for n in walk_stmts(body) if isinstance(n, For) and is_thread(n)}

    def visit(stmt: Stmt) -> Stmt:
        match stmt:
            case BlockRealize():
                return visit(_realize(stmt, carried, threads))
            case Let(var, value, body) if _is_inlined(value):
                return visit(substitute(body, {var: value}))
            case Seq(stmts):
                return in_order(visit(child) for child in stmts)
            case Evaluate() if not is_barrier(stmt):
                return NOTHING
            case Store(_, _, Call("undef") | Cast(_, Call("undef"))):
                return NOTHING
            case _:
                return map_stmt(stmt, visit, lambda expr: expr)

    return Realized(visit(body), carried)


def in_order(stmts: Iterable[Stmt]) -> Stmt:
    """Join statements into a sequence, without the empty ones."""
    remaining = [stmt for stmt in stmts if stmt != NOTHING]
    return seq(*remaining) if remaining else NOTHING


def _is_inlined(value: Expr) -> bool:
    """Return whether a name has a short value: a little integer arithmetic on loop variables."""
    nodes = list(islice(walk(value), _MAX_INLINED + 1))
    return (
        len(nodes) <= _MAX_INLINED
        and is_integer(dtype_of(value))
        and not any(isinstance(node, Load | Call) for node in nodes)
    )


def _realize(realize: BlockRealize, carried: dict[Buffer, set[Var]], threads: set[Var]) -> Stmt:
    block = realize.block
    first: Expr = TRUE
    is_reduced_by_threads = False
    for iterator, value in zip(block.iter_vars, realize.iter_values, strict=True):
        if iterator.kind == "spatial":
            continue
        loops = {node for node in walk(value) if isinstance(node, Var)}
        is_reduced_by_threads = is_reduced_by_threads or not loops.isdisjoint(threads)
        for region in block.writes:
            carried.setdefault(region.buffer, set()).update(loops)
        if iterator.kind == "reduce":
            at_start = simplify(Compare("==", value, IntImm(0, dtype_of(value))))
            first = at_start if first == TRUE else Logic("and", first, at_start)

    body = block.body
    if block.init is not None:
        init = block.init if first == TRUE else If(first, block.init)
        body = seq(init, body)
    values = {i.var: v for i, v in zip(block.iter_vars, realize.iter_values, strict=True)}
    body = substitute(body, values)
    if is_reduced_by_threads:
        body = one_by_one(body)
    if realize.predicate != TRUE:
        body = If(realize.predicate, body)
    for buffer in reversed(block.alloc_buffers):
        body = Allocate(buffer, body)
    return body
