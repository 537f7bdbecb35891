"""The blocks of one scope with their positions, in program order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from compiler.identity_cache import IdentityCache
from compiler.ir.arith.affine import Affine, affine
from compiler.ir.arith.iter_map import Extents
from compiler.ir.arith.simplify import canonical
from compiler.ir.core.nodes import (
    Block,
    BlockRealize,
    Buffer,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    While,
)
from compiler.ir.core.visit import substitute, walk
from compiler.schedule.error import Refuse
from compiler.schedule.index.access import BlockAccess, BlockAccesses, facts_of
from compiler.schedule.legality.block_kind import (
    BlockKind,
    Unclassified,
    classify_block,
    classify_in_scope,
    extents_of_iterators,
)
from compiler.schedule.tree.tree import Path, children, extents_of, realize_at


class _Forms:
    """The linear forms of a block's iterators and accesses under loops of some extents.

    Cached, because most primitives do not change most blocks.
    """

    def __init__(self, realize: BlockRealize, extents: Extents) -> None:
        self.extents = extents
        self.values = tuple(canonical(value, extents) for value in realize.iter_values)
        self.indices: IdentityCache[BlockAccess, tuple[Affine, ...]] = IdentityCache()


# A chosen bound: the programs of a search share most blocks, so the cache serves many programs.
_MAX_BLOCKS = 1024
_forms: IdentityCache[BlockRealize, _Forms] = IdentityCache(_MAX_BLOCKS)


@dataclass(frozen=True, eq=False)
class PlacedBlock:
    """A block with its position: `path` leads from its scope down to it."""

    path: Path

    @property
    def realize(self) -> BlockRealize:
        """Return the realisation of the block."""
        return realize_at(self.path)

    @property
    def block(self) -> Block:
        """Return the block."""
        return self.realize.block

    @property
    def name(self) -> str:
        """Return the name of the block."""
        return self.block.name

    @cached_property
    def facts(self) -> BlockAccesses:
        """Return the accesses of the block."""
        return facts_of(self.block)

    @cached_property
    def kind(self) -> BlockKind | Unclassified:
        """Return the kind of the block's computation, or the reason why it has none.

        It holds within one run of the scope, in which the iterators of the scope are fixed.
        """
        named = self.facts.outside & {loop.var for loop in self.loops}
        if named:
            names = ", ".join(sorted(var.name for var in named))
            return Unclassified(f"block {self.name} uses loop variables from outside: {names}")
        return self.kind_at_any_loops

    @cached_property
    def kind_at_any_loops(self) -> BlockKind | Unclassified:
        """Return the kind of the block's computation, though it may use loop variables directly.

        What it then does for each value of these is for the caller to find out.
        """
        # Loops and names may change their values from one run of the block to the next.
        moving = {stmt.var for stmt in self.path if isinstance(stmt, For | Let)}
        is_fixed = self.facts.outside.isdisjoint(moving)
        return classify_in_scope(self.block) if is_fixed else classify_block(self.block)

    @cached_property
    def loops(self) -> tuple[For, ...]:
        """Return the loops around the block within its scope, the outermost first."""
        return tuple(stmt for stmt in self.path if isinstance(stmt, For))

    @cached_property
    def bindings(self) -> dict[Var, Expr]:
        """Return the value of each iterator."""
        iter_vars = self.block.iter_vars
        return {i.var: v for i, v in zip(iter_vars, self.realize.iter_values, strict=True)}

    @cached_property
    def extents(self) -> Extents:
        """Return the extents of the loops around the block and of the iterators of its scope."""
        return {**scope_extents(realize_at(self.path[:1])), **extents_of(self.loops)}

    @property
    def values(self) -> tuple[Affine, ...]:
        """Return the iterators' values in linear normal form."""
        return self._forms.values

    @cached_property
    def _forms(self) -> _Forms:
        """Return facts about the block under loops of these extents, in any program."""
        forms = _forms.get(self.realize)
        if forms is None or forms.extents != self.extents:
            forms = _forms.put(self.realize, _Forms(self.realize, self.extents))
        return forms

    def is_under(self, stmt: Stmt) -> bool:
        """Return whether the block lies below a statement."""
        return any(node is stmt for node in self.path)

    def loops_inside(self, stmt: Stmt) -> tuple[For, ...]:
        """Return the loops around the block that lie strictly below `stmt`."""
        depth = next(n for n, node in enumerate(self.path) if node is stmt)
        return tuple(node for node in self.path[depth + 1 :] if isinstance(node, For))

    def indices(self, access: BlockAccess) -> tuple[Affine, ...]:
        """Return the indices of an access in terms of loops, in linear normal form."""
        return self._forms.indices.find(access, self._indices)

    def _indices(self, access: BlockAccess) -> tuple[Affine, ...]:
        return tuple(self._index(index, access) for index in access.indices)

    def _index(self, index: Expr, access: BlockAccess) -> Affine:
        if isinstance(index, Var) and index in self._values_of:
            return self._values_of[index]
        extents = {**self.extents, **access.inner} if access.inner else self.extents
        return canonical(substitute(index, self.bindings), extents)

    def indices_as_they_are(self, access: BlockAccess) -> tuple[Affine, ...]:
        """Return the indices of an access in terms of loops, without simplified quotients."""
        return tuple(affine(substitute(index, self.bindings)) for index in access.indices)

    @cached_property
    def _values_of(self) -> dict[Var, Affine]:
        iterators = (iter_var.var for iter_var in self.block.iter_vars)
        return dict(zip(iterators, self.values, strict=True))

    def reads(self, buffer: Buffer) -> bool:
        """Return whether the block loads from a buffer."""
        return any(access.buffer == buffer for access in self.facts.reads)

    def writes(self, buffer: Buffer) -> bool:
        """Return whether the block stores to a buffer."""
        return any(access.buffer == buffer for access in self.facts.writes)

    def touches(self, buffer: Buffer) -> bool:
        """Return whether the block loads from a buffer or stores to it."""
        return self.reads(buffer) or self.writes(buffer)


def scope_extents(scope: BlockRealize) -> Extents:
    """Return the extents of the iterators of a block."""
    return extents_of_iterators(scope.block)


def sites(scope: BlockRealize, refuse: Refuse) -> list[PlacedBlock]:
    """Return the blocks directly below a scope, in program order.

    Raises:
        ScheduleError: If the scope accesses a buffer outside of any block, which no block
            declares.
    """
    return [PlacedBlock(path) for path in _paths(scope, refuse)]


def _paths(scope: BlockRealize, refuse: Refuse) -> Iterator[Path]:
    waiting: list[tuple[Path, Stmt]] = [((scope,), child) for child in reversed(children(scope))]
    while waiting:
        around, stmt = waiting.pop()
        path = (*around, stmt)
        if isinstance(stmt, BlockRealize):
            yield path
        else:
            if not (isinstance(stmt, For) and isinstance(stmt.extent, IntImm)):
                _require_in_blocks(stmt, refuse)
            waiting += [(path, child) for child in reversed(children(stmt))]


def _require_in_blocks(stmt: Stmt, refuse: Refuse) -> None:
    """Refuse a statement outside of any block that accesses a buffer itself."""
    exprs: tuple[Expr, ...] = ()
    match stmt:
        case Store():
            raise refuse(
                "this store is outside of any block: its dependences are unknown", stmt, "structure"
            )
        case Evaluate() | Let():
            exprs = (stmt.value,)
        case If() | While():
            exprs = (stmt.condition,)
        case For():
            exprs = (stmt.extent,)
        case _:
            pass
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, Load) or (isinstance(node, Var) and node.dtype == "handle"):
                raise refuse("this accesses a buffer outside of any block", stmt, "dependence")


def conditions(site: PlacedBlock) -> tuple[If, ...]:
    """Return the conditions around a block within its scope."""
    return tuple(stmt for stmt in site.path if isinstance(stmt, If))
