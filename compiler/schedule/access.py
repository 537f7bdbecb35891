"""What a block touches, read off its body: what it declares is never trusted.

Blocks are values, so the facts of one are kept and found again by its identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compiler.ir.bounds import bounds
from compiler.ir.nodes import (
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    If,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.visit import substitute, walk

_CACHE_SIZE = 4096


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store, its indices in terms of the block's iterators and of inner loops."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    inner: Mapping[Var, int]


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a block touches, init included, in program order; and what it uses from outside.

    `init_reads` is the part of `reads` that the init makes. `outside` holds the variables that
    the block uses without binding them: loops that its body names directly.
    """

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    init_reads: tuple[Access, ...]
    outside: frozenset[Var]
    is_leaf: bool

    def read_buffers(self) -> frozenset[Buffer]:
        """Return the buffers that the block loads from."""
        return frozenset(access.buffer for access in self.reads)

    def written_buffers(self) -> frozenset[Buffer]:
        """Return the buffers that the block stores to."""
        return frozenset(access.buffer for access in self.writes)


_cache: dict[int, tuple[Block, Facts]] = {}


def facts_of(block: Block) -> Facts:
    """Return what a block touches."""
    known = _cache.get(id(block))
    # The identity of a dead block may be given again: the entry keeps its block alive.
    if known is not None and known[0] is block:
        return known[1]
    if len(_cache) >= _CACHE_SIZE:
        _cache.clear()
    facts = _collect(block)
    _cache[id(block)] = (block, facts)
    return facts


def _collect(block: Block) -> Facts:
    init_reads: list[Access] = []
    reads: list[Access] = []
    writes: list[Access] = []
    if block.init is not None:
        _statement(block.init, {}, init_reads, writes)
    reads.extend(init_reads)
    _statement(block.body, {}, reads, writes)
    return Facts(
        tuple(reads),
        tuple(writes),
        tuple(init_reads),
        frozenset(_used(block) - _bound_inside(block)),
        all(isinstance(stmt, Store) for stmt in _top_statements(block)),
    )


def _statement(
    stmt: Stmt, inner: Mapping[Var, int], reads: list[Access], writes: list[Access]
) -> None:
    match stmt:
        case Store(buffer, indices, value):
            for expr in (*indices, value):
                reads.extend(_loads(expr, inner))
            writes.append(Access(buffer, indices, inner))
        case Seq(stmts):
            for child in stmts:
                _statement(child, inner, reads, writes)
        case For(var, extent, body):
            interval = bounds(extent, inner)
            known = inner if interval is None else {**inner, var: interval[1]}
            _statement(body, known, reads, writes)
        case If(condition, then, otherwise):
            reads.extend(_loads(condition, inner))
            _statement(then, inner, reads, writes)
            if otherwise is not None:
                _statement(otherwise, inner, reads, writes)
        case BlockRealize(values, predicate, block):
            reads.extend(_loads(predicate, inner))
            bindings = {i.var: v for i, v in zip(block.iter_vars, values, strict=True)}
            whole = block.body if block.init is None else seq(block.init, block.body)
            _statement(substitute(whole, bindings), inner, reads, writes)
        case _:
            raise AssertionError("a block under schedule holds no lowered statement")


def _loads(expr: Expr, inner: Mapping[Var, int]) -> Iterator[Access]:
    return (
        Access(node.buffer, node.indices, inner) for node in walk(expr) if isinstance(node, Load)
    )


def _top_statements(block: Block) -> Iterator[Stmt]:
    for part in (block.init, block.body):
        if part is not None:
            yield from part.stmts if isinstance(part, Seq) else (part,)


def _used(block: Block) -> set[Var]:
    return {node for node in walk(block) if isinstance(node, Var)}


def _bound_inside(block: Block) -> set[Var]:
    bound: set[Var] = set()
    for node in walk(block):
        if isinstance(node, For):
            bound.add(node.var)
        elif isinstance(node, Block):
            bound.update(i.var for i in node.iter_vars)
    return bound
