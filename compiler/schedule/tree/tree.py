"""Find a node of a program, and rebuild only the path that leads to it.

A loop is identified by its variable, a block by its name; both are unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from compiler.identity_cache import IdentityCache
from compiler.ir.analysis.regions import EXPLICIT_REGIONS
from compiler.ir.analysis.resolve_views import resolve_views
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.core.children import STATEMENTS_IN
from compiler.ir.core.nodes import (
    Allocate,
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
    Not,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk, walk_stmts
from compiler.ir.text.names import unique
from compiler.schedule.error import Refuse

Path: TypeAlias = tuple[Stmt, ...]
"""Statements from the root realisation down, each the parent of the next."""


def children(stmt: Stmt) -> tuple[Stmt, ...]:
    """Return the statements directly below a statement; of a block, the body but not the init."""
    if type(stmt) is BlockRealize:
        return (stmt.block.body,)
    return STATEMENTS_IN[type(stmt)](stmt)


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """Yield a statement and all those below it, in program order."""
    waiting = [stmt]
    while waiting:
        node = waiting.pop()
        while isinstance(node, For):
            yield node
            node = node.body
        yield node
        waiting.extend(reversed(children(node)))


def blocks(func: PrimFunc) -> Iterator[BlockRealize]:
    """Yield every block of a program in program order, the root first."""
    return (stmt for stmt in statements(func.body) if isinstance(stmt, BlockRealize))


def child_blocks(stmt: Stmt) -> Iterator[BlockRealize]:
    """Yield the blocks directly below a statement, in program order."""
    for child in children(stmt):
        if isinstance(child, BlockRealize):
            yield child
        else:
            yield from child_blocks(child)


class StatementPaths:
    """Where the loops and blocks of a program are; found in one walk, and kept with it."""

    def __init__(self, root: Stmt) -> None:
        self.has_threads = False
        self.has_parallel = False
        self.is_plain = True  # no views, and nothing but int32 indices and literal extents
        self.declares_regions = False  # by annotations of blocks
        self._loops: dict[Var, int] = {}
        self._blocks: dict[str, int] = {}
        self._stmts: list[Stmt] = []
        self._parents: list[int] = []
        waiting: list[tuple[Stmt, int]] = [(root, -1)]
        while waiting:
            stmt, parent = waiting.pop()
            while isinstance(stmt, For):
                number = len(self._stmts)
                self._stmts.append(stmt)
                self._parents.append(parent)
                self._loops.setdefault(stmt.var, number)
                self.has_threads = self.has_threads or stmt.thread is not None
                self.has_parallel = self.has_parallel or stmt.kind == "parallel"
                self.is_plain = self.is_plain and _is_plain(stmt.var, stmt.extent)
                stmt, parent = stmt.body, number
            number = len(self._stmts)
            self._stmts.append(stmt)
            self._parents.append(parent)
            if isinstance(stmt, BlockRealize):
                self._blocks.setdefault(stmt.block.name, number)
                self.is_plain = self.is_plain and _plain_indices.find(stmt, _has_plain_indices)
                keys = {key for key, _ in stmt.block.annotations}
                self.declares_regions |= not keys.isdisjoint(EXPLICIT_REGIONS.values())
            waiting += [(child, number) for child in reversed(children(stmt))]

    def loop(self, var: Var) -> Path | None:
        """Return the path to the loop of a variable."""
        return self._path(self._loops.get(var))

    def block(self, name: str) -> Path | None:
        """Return the path to the block of a name."""
        return self._path(self._blocks.get(name))

    def _path(self, number: int | None) -> Path | None:
        if number is None:
            return None
        path: list[Stmt] = []
        while number >= 0:
            path.append(self._stmts[number])
            number = self._parents[number]
        return tuple(reversed(path))


def _is_plain(var: Var, extent: Expr) -> bool:
    return isinstance(extent, IntImm) and var.dtype == extent.dtype == "int32"


# Most blocks of a program stay the same in a step. A few candidates have no more blocks.
_MAX_REALIZES = 1024
_plain_indices: IdentityCache[BlockRealize, bool] = IdentityCache(_MAX_REALIZES)


def _has_plain_indices(realize: BlockRealize) -> bool:
    block = realize.block
    return (
        not block.match_buffers
        and all(_is_plain(i.var, i.extent) for i in block.iter_vars)
        and not _loads(realize.predicate)
        and not any(map(_loads, realize.iter_values))
    )


def _loads(expr: Expr) -> bool:
    """Return whether an expression reads memory."""
    if isinstance(expr, Var | IntImm):
        return False
    return any(isinstance(node, Load) for node in walk(expr))


# A chosen bound: a primitive looks at few programs, those before and after each of its steps.
_MAX_PROGRAMS = 16
_statement_paths: IdentityCache[PrimFunc, StatementPaths] = IdentityCache(_MAX_PROGRAMS)


def statement_paths(func: PrimFunc) -> StatementPaths:
    """Return where the loops and blocks of a program are; primitives ask many times."""
    return _statement_paths.find(func, lambda program: StatementPaths(program.body))


def find_loop(func: PrimFunc, var: Var) -> Path | None:
    """Return the path to the loop of a variable."""
    return statement_paths(func).loop(var)


def find_block(func: PrimFunc, name: str) -> Path | None:
    """Return the path to the block of a name."""
    return statement_paths(func).block(name)


def loop_path(func: PrimFunc, var: Var, refuse: Refuse) -> Path:
    """Return the path to a loop, or refuse."""
    path = find_loop(func, var)
    if path is None:
        raise refuse(f"loop {var.name} is not in the program", func, "not_found")
    return path


def block_path(func: PrimFunc, name: str, refuse: Refuse) -> Path:
    """Return the path to a block, or refuse."""
    path = find_block(func, name)
    if path is None:
        block_names = ", ".join(realize.block.name for realize in blocks(func))
        raise refuse(
            f'there is no block "{name}"; the blocks are: {block_names}', func, "not_found"
        )
    return path


def loop_at(path: Path) -> For:
    """Return the loop that a path leads to."""
    loop = path[-1]
    assert isinstance(loop, For), "the path leads to a loop"
    return loop


def realize_at(path: Path) -> BlockRealize:
    """Return the block that a path leads to."""
    realize = path[-1]
    assert isinstance(realize, BlockRealize), "the path leads to a block"
    return realize


def scope_path(path: Path) -> Path:
    """Return the path to the block around the end of `path`."""
    for depth in range(len(path) - 1, 0, -1):
        if isinstance(path[depth - 1], BlockRealize):
            return path[:depth]
    raise AssertionError("every statement but the root lies in a block")


def loops_on(path: Path) -> tuple[For, ...]:
    """Return the loops of a path, the outermost first."""
    return tuple(stmt for stmt in path if isinstance(stmt, For))


def extents_of(loops: Iterable[For]) -> dict[Var, int]:
    """Return the extents of loops; `UNKNOWN` for those that are not literals."""
    return {loop.var: extent_or_unknown(loop.extent) for loop in loops}


def loops_below(stmt: Stmt) -> Iterator[For]:
    """Yield the loops at and below a statement, in program order."""
    return (below for below in statements(stmt) if isinstance(below, For))


def block_with_body(block: Block, body: Stmt) -> Block:
    """Return a block with another body."""
    return Block(
        block.name,
        block.iter_vars,
        block.reads,
        block.writes,
        body,
        block.init,
        block.alloc_buffers,
        block.annotations,
        block.match_buffers,
    )


def replace_at(func: PrimFunc, path: Path, new: Stmt | None) -> PrimFunc:
    """Return the program with the end of `path` replaced, or removed for None.

    Loops and conditions that become empty are removed, too.
    """
    for depth in range(len(path) - 1, 0, -1):
        new = _with_child(path[depth - 1], path[depth], new)
    assert isinstance(new, BlockRealize), "the root stays"
    return PrimFunc(func.name, func.params, new, func.attrs)


def _with_child(parent: Stmt, old: Stmt, new: Stmt | None) -> Stmt | None:
    if new is None:
        return _without_child(parent, old)
    match parent:
        case For():
            return For(
                parent.var, parent.extent, new, parent.kind, parent.thread, parent.annotations
            )
        case Seq():
            return seq(*[new if stmt is old else stmt for stmt in parent.stmts])
        case BlockRealize(values, predicate, block):
            return BlockRealize(values, predicate, block_with_body(block, new))
        case If(condition, then, otherwise):
            return If(condition, new, otherwise) if then is old else If(condition, then, new)
        case While(condition, _):
            return While(condition, new)
        case Allocate(buffer, _):
            return Allocate(buffer, new)
        case Let(var, value, _):
            return Let(var, value, new)
        case Store() | Evaluate():
            raise AssertionError("a store has no statements below it")


def _without_child(parent: Stmt, old: Stmt) -> Stmt | None:
    match parent:
        case Seq(stmts):
            return seq(*(stmt for stmt in stmts if stmt is not old))
        case If(condition, then, otherwise) if otherwise is not None:
            return If(condition, then) if old is otherwise else If(Not(condition), otherwise)
        case BlockRealize():
            raise AssertionError("a block keeps a body")
        case _:
            return None


def allocate_in(func: PrimFunc, scope: Path, buffer: Buffer) -> PrimFunc:
    """Return the program with a buffer allocated in the block that `scope` leads to."""
    realize = realize_at(scope)
    block = replace(realize.block, alloc_buffers=(*realize.block.alloc_buffers, buffer))
    return replace_at(func, scope, with_block(realize, block))


def drop_buffer(func: PrimFunc, scope: str, buffer: Buffer) -> PrimFunc:
    """Return the program with a buffer no longer allocated in the block called `scope`."""
    path = find_block(func, scope)
    assert path is not None, "the scope is in the program"
    realize = realize_at(path)
    remaining = tuple(allocated for allocated in realize.block.alloc_buffers if allocated != buffer)
    return replace_at(
        func, path, with_block(realize, replace(realize.block, alloc_buffers=remaining))
    )


def with_block(realize: BlockRealize, block: Block) -> BlockRealize:
    """Return the realisation of another block at the same position."""
    return BlockRealize(realize.iter_values, realize.predicate, block)


def without_views(func: PrimFunc, name: str, refuse: Refuse) -> PrimFunc:
    """Return the program with a block that accesses the buffers behind its views.

    Its body may then move into another block without such views.
    """
    path = block_path(func, name, refuse)
    realize = realize_at(path)
    views = realize.block.match_buffers
    if not views:
        return func
    for match in views:
        if not all(isinstance(extent, IntImm) for extent in match.source.buffer.shape):
            source = match.source.buffer.name
            reason = f"block {name} has a view of {source}, whose shape is symbolic"
            raise refuse(reason, realize, "structure")
    return replace_at(func, path, resolve_views(realize))


def insert_in(body: Stmt, position: int, new: Stmt) -> Stmt:
    """Return a body with a statement before the one at `position`."""
    stmts = list(body.stmts if isinstance(body, Seq) else (body,))
    stmts.insert(position, new)
    return seq(*stmts)


def fresh_block_name(func: PrimFunc, base: str) -> str:
    """Return `base`, or the first of `base_1`, `base_2`, ... that names no block."""
    # Blocks in an init count, too: they may move out of it.
    realizes = (stmt for stmt in walk_stmts(func.body) if isinstance(stmt, BlockRealize))
    return unique(base, {realize.block.name for realize in realizes})


def fresh_buffer_name(func: PrimFunc, base: str) -> str:
    """Return `base`, or the first of `base_1`, `base_2`, ... that names no buffer."""
    used_names = {buffer.name for buffer in func.params}
    for realize in blocks(func):
        used_names.update(buffer.name for buffer in realize.block.alloc_buffers)
    return unique(base, used_names)
