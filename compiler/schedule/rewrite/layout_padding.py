"""Fill the padding of a new layout with its value, in one of three ways.

assumption    no block writes the buffer: the caller must have filled it; a block declares that
replacement   a block writes the buffer in the order of its old elements: it now runs in the order
              of the new layout, and writes the value into the padding
epilogue      otherwise: after the last write another block writes the value
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    For,
    IterVar,
    Load,
    Logic,
    Not,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, transform, walk, walk_stmts
from compiler.schedule.error import Refuse
from compiler.schedule.index.index_map_inverse import Inverse
from compiler.schedule.index.pad_value import PadValue
from compiler.schedule.legality.block_kind import Unclassified, classify_block
from compiler.schedule.rewrite.copy_block import point_of
from compiler.schedule.rewrite.placement import require_no_vector_around
from compiler.schedule.tree.tree import Path, children, fresh_block_name, realize_at, replace_at


@dataclass(frozen=True)
class Padded:
    """A buffer before and after its layout gets padding, and the value of the padding."""

    old: Buffer
    new: Buffer
    inverse: Inverse
    value: PadValue

    def iterators(self) -> tuple[tuple[Var, ...], tuple[IterVar, ...]]:
        """Return new loops over the new layout, and block iterators bound to them."""
        params = self.inverse.index_map.params
        loops = tuple(Var(param.name, param.dtype) for param in params)
        iter_vars = tuple(
            IterVar(Var(f"v_{param.name}", param.dtype), size, "spatial")
            for param, size in zip(params, self.new.shape, strict=True)
        )
        return loops, iter_vars

    def padding_at(self, places: Sequence[Expr]) -> Expr:
        """Return the condition that an index is in the padding."""
        params = self.inverse.index_map.params
        return substitute(self.inverse.padding, dict(zip(params, places, strict=True)))

    def element_at(self, places: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the old indices of the element at a new index."""
        return self.inverse.index_map.map_indices(places)

    def loops_around(self, loops: Sequence[Var], body: Stmt) -> Stmt:
        """Return loops over all indices of the new layout around a statement."""
        for loop, size in zip(reversed(loops), reversed(self.new.shape), strict=True):
            body = For(loop, size, body)
        return body


def write_padding(func: PrimFunc, scope: Path, padded: Padded, refuse: Refuse) -> PrimFunc:
    """Return the program with the padding of a buffer written, or assumed to be.

    Blocks that write the padding use the new buffer, all others still the old one.

    Args:
        scope: The path to the block before whose body an assumption goes.
    """
    writes = list(_writes((func.body,), padded.old))
    if not writes:
        body = realize_at(scope).block.body
        name = fresh_block_name(func, f"buffer_{padded.old.name}_assumptions")
        return replace_at(func, (*scope, body), seq(_assumption(name, padded), body))
    replaced = False
    for path in writes:
        nest = _WriterNest.of(path, padded)
        # The first of several stores in one nest has replaced them all.
        if nest is not None and any(stmt is nest.top for stmt in walk_stmts(func.body)):
            func = _replace(func, nest.top, nest.in_new_order(padded))
            replaced = True
    if replaced:
        return func
    return _with_epilogue(func, writes[-1], padded, refuse)


def _writes(path: Path, buffer: Buffer) -> Iterator[Path]:
    """Yield the paths to the stores to a buffer, in program order; including those of inits."""
    stmt = path[-1]
    if isinstance(stmt, Store):
        if stmt.buffer == buffer:
            yield path
        return
    if isinstance(stmt, BlockRealize) and stmt.block.init is not None:
        yield from _writes((*path, stmt.block.init), buffer)
    for child in children(stmt):
        yield from _writes((*path, child), buffer)


def _replace(func: PrimFunc, old: Stmt, new: Stmt) -> PrimFunc:
    """Return the program with a statement replaced, also if it is part of an init."""
    body = transform(func.body, on_stmt=lambda stmt: new if stmt is old else None)
    assert isinstance(body, BlockRealize), "the root stays"
    return replace(func, body=body)


def _assumption(name: str, padded: Padded) -> Stmt:
    """Return a block that declares the value that the caller wrote into the padding."""
    loops, iter_vars = padded.iterators()
    at = tuple(i.var for i in iter_vars)
    is_value = Compare("==", Load(padded.new, at), padded.value.at(at))
    condition = Logic("or", Not(padded.padding_at(at)), is_value)
    body = Evaluate(Call("assume", (condition,), "bool"))
    block = Block(name, iter_vars, (point_of(padded.new, at),), (), body)
    return padded.loops_around(loops, BlockRealize(loops, TRUE, block))


def _with_epilogue(func: PrimFunc, write: Path, padded: Padded, refuse: Refuse) -> PrimFunc:
    """Return the program with a block that fills the padding after a write."""
    loops, iter_vars = padded.iterators()
    at = tuple(i.var for i in iter_vars)
    name = fresh_block_name(func, f"buffer_{padded.old.name}_padding")
    body = Store(padded.new, at, padded.value.at(at))
    block = Block(name, iter_vars, (), (point_of(padded.new, at),), body)
    nest = padded.loops_around(loops, BlockRealize(loops, padded.padding_at(loops), block))

    store = write[-1]
    assert isinstance(store, Store), "the path leads to a store"
    used = {n for i in _bound(store.indices, write) for n in walk(i) if isinstance(n, Var)}
    realizes = [depth for depth, stmt in enumerate(write) if isinstance(stmt, BlockRealize)]
    home = next(
        (n for n in realizes if padded.old in realize_at(write[: n + 1]).block.alloc_buffers), 0
    )
    depth = next(
        (n for n, s in enumerate(write) if n > home and isinstance(s, For) and s.var in used),
        realizes[-1],
    )
    if depth == 0:
        raise refuse(f"{padded.old.name} is written outside of any block", store, "structure")
    require_no_vector_around(write[:depth], refuse)
    return replace_at(func, write[: depth + 1], seq(write[depth], nest))


def _bound(indices: Sequence[Expr], path: Path) -> tuple[Expr, ...]:
    """Return indices in terms of loops, with the iterators of all blocks replaced."""
    bound_indices = tuple(indices)
    for stmt in reversed(path):
        if isinstance(stmt, BlockRealize):
            values = zip(stmt.block.iter_vars, stmt.iter_values, strict=True)
            bindings = {i.var: value for i, value in values}
            bound_indices = tuple(substitute(index, bindings) for index in bound_indices)
    return bound_indices


@dataclass(frozen=True)
class _WriterNest:
    """Loops that write a buffer row by row, with one block in them."""

    top: For
    loops: tuple[For, ...]  # loops over the dimensions
    inner: tuple[For, ...]  # loops below, of reductions
    realize: BlockRealize
    first: int  # the first iterator of the block that is an index

    @classmethod
    def of(cls, path: Path, padded: Padded) -> _WriterNest | None:
        """Return the nest around a store, if it is one."""
        store, rank = path[-1], len(padded.old.shape)
        assert isinstance(store, Store), "the path leads to a store"
        depth = max(n for n, stmt in enumerate(path) if isinstance(stmt, BlockRealize))
        realize = path[depth]
        assert isinstance(realize, BlockRealize), "the path leads through blocks"
        around: list[For] = []
        child: Stmt = realize
        for stmt in reversed(path[:depth]):
            if not isinstance(stmt, For) or stmt.body is not child:
                break
            around.insert(0, stmt)
            child = stmt
        bound = _bound(store.indices, path)
        start = next((n for n, loop in enumerate(around) if rank and loop.var is bound[0]), None)
        if start is None:
            return None
        loops = tuple(around[start : start + rank])
        if len(loops) < rank or not all(
            loop.var is index and loop.extent == size and loop.kind == "serial"
            for loop, index, size in zip(loops, bound, padded.old.shape, strict=True)
        ):
            return None
        first = _first_iterator(realize, store)
        if first is None or not _stores_only(realize.block, store):
            return None
        return cls(loops[0], loops, tuple(around[start + rank :]), realize, first)

    def in_new_order(self, padded: Padded) -> Stmt:
        """Return the nest over the indices of the new layout."""
        loops, iter_vars = padded.iterators()
        at = tuple(i.var for i in iter_vars)
        block = self.realize.block
        end = self.first + len(padded.old.shape)
        old_iterators = (i.var for i in block.iter_vars[self.first : end])
        mapping = dict(zip(old_iterators, padded.element_at(at), strict=True))

        def store(stmt: Stmt) -> Stmt | None:
            if not isinstance(stmt, Store):
                return None
            value = Conditional(padded.padding_at(at), padded.value.at(at), stmt.value)
            return Store(padded.new, at, value)

        renamed = substitute(BlockRealize((), TRUE, block), mapping)
        changed = transform(renamed, on_stmt=store)
        assert isinstance(changed, BlockRealize), "a block stays a block"
        new = replace(
            changed.block,
            iter_vars=(*block.iter_vars[: self.first], *iter_vars, *block.iter_vars[end:]),
        )
        values = self.realize.iter_values
        values = (*values[: self.first], *loops, *values[end:])
        body: Stmt = BlockRealize(values, TRUE, new)
        for loop in reversed(self.inner):
            body = replace(loop, body=body)
        return padded.loops_around(loops, body)


def _first_iterator(realize: BlockRealize, store: Store) -> int | None:
    """Return the first of a block's consecutive iterators that are the indices of a store."""
    block = realize.block
    rank = len(store.indices)
    for first in range(len(block.iter_vars) - rank + 1):
        chosen = block.iter_vars[first : first + rank]
        if tuple(i.var for i in chosen) == store.indices:
            return first if all(i.kind == "spatial" for i in chosen) else None
    return None


def _stores_only(block: Block, store: Store) -> bool:
    """Return whether a block only stores to one element, and may run in any order."""
    if isinstance(classify_block(block), Unclassified):
        return False
    parts = (block.body,) if block.init is None else (block.init, block.body)
    return all(
        isinstance(part, Store) and part.buffer == store.buffer and part.indices == store.indices
        for part in parts
    )
