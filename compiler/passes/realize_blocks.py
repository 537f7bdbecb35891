"""Replace blocks by what they do: bind the iterators, guard by predicates, test for `init`.

The information that only blocks carry and later passes need is which loops carry a reduction into
a buffer: the buffer must outlive them. It is returned beside the statement.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.ir.nodes import (
    TRUE,
    Allocate,
    BlockRealize,
    Buffer,
    Compare,
    Expr,
    If,
    IntImm,
    Logic,
    PrimFunc,
    Stmt,
    Var,
    dtype_of,
    seq,
)
from compiler.ir.simplify import simplify
from compiler.ir.visit import map_stmt, substitute, walk


@dataclass(slots=True)
class Realized:
    """A program without blocks, and for each buffer the loops that carry a value of it."""

    stmt: Stmt
    carried: dict[Buffer, set[Var]] = field(default_factory=dict)


def realize_blocks(func: PrimFunc) -> Realized:
    """Rewrite a scheduled program into loops, conditions, stores and allocations."""
    carried: dict[Buffer, set[Var]] = {}

    def visit(stmt: Stmt) -> Stmt:
        if isinstance(stmt, BlockRealize):
            return visit(_realize(stmt, carried))
        return map_stmt(stmt, visit, lambda expr: expr)

    return Realized(visit(func.body), carried)


def _realize(realize: BlockRealize, carried: dict[Buffer, set[Var]]) -> Stmt:
    block = realize.block
    first: Expr = TRUE
    for iterator, value in zip(block.iter_vars, realize.iter_values, strict=True):
        if iterator.kind == "spatial":
            continue
        loops = {node for node in walk(value) if isinstance(node, Var)}
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
    if realize.predicate != TRUE:
        body = If(realize.predicate, body)
    for buffer in reversed(block.alloc_buffers):
        body = Allocate(buffer, body)
    return body
