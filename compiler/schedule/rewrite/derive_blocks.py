"""Derive blocks, which schedules need, from a program of plain loops.

    for i in range(n):                            for i, k in T.grid(n, m):
        Y[i] = 0                                      with T.sblock("Y_sum"):
        for k in range(m):                  ->            vi, vk = T.axis.remap("SR", [i, k])
            Y[i] = Y[i] + A[i, k]                         with T.init():
        Y[i] = T.max(Y[i], 0)                                 Y_sum[vi] = 0
                                                          Y_sum[vi] = Y_sum[vi] + A[vi, vk]
                                                  for i in range(n):
                                                      with T.sblock("Y"):
                                                          vi = T.axis.spatial(n, i)
                                                          Y[vi] = T.max(Y_sum[vi], 0)

Each statement becomes a block with an iterator for each loop around it. The iterator is spatial if
the loop's iterations write different elements, a reduction if they combine a value with one
element, and opaque otherwise. The start of a sum becomes its init. An element that is overwritten
in place gets a buffer for each value but the last. A small buffer that each iteration reuses gets
room for all iterations. Loops around several statements are distributed over them.

A program stays as it is if that is not proved to preserve its results. The submitted program and
its hash do not change: each schedule derives the same blocks again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from compiler.ir.analysis.dependence import Touch, agree_on, touches_of
from compiler.ir.analysis.regions import with_regions
from compiler.ir.core.nodes import (
    TRUE,
    Allocate,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    IterKind,
    IterVar,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    seq,
    static_int,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_expr, map_stmt, substitute, walk, walk_stmts
from compiler.ir.text.names import unique
from compiler.ir.verify.verify import VerifyError, verify_but_for_races
from compiler.schedule.rewrite.widen_private import widen_private

# A limit, because each statement is compared with each earlier one.
_MOST_NESTS = 64

_COMBINES = ("+", "*", "min", "max")


@dataclass(frozen=True, slots=True)
class _StatementNest:
    """Loops, the outermost first, around a statement without loops, and the start of its sum."""

    loops: tuple[For, ...]
    leaf: Stmt
    init: Store | None = None


def derive_blocks(func: PrimFunc) -> PrimFunc:
    """Return a program with blocks; the program itself if it has some, or can't have any."""
    if any(not _is_plain(stmt) for stmt in walk_stmts(func.root.body)):
        return func
    wide = widen_private(func)
    nests = list(_nests(wide.root.body, ()))
    if not 0 < len(nests) <= _MOST_NESTS or not _may_be_distributed(nests):
        return func
    used_names = {buffer.name for buffer in (*func.buffers, *wide.root.alloc_buffers)}
    nests = _with_inits(nests)
    nests, new_buffers = _with_private_buffers(nests, used_names)
    # An init needs a reduction loop: without one it would run again in every iteration.
    if any(nest.init is not None and "reduce" not in _kinds(nest) for nest in nests):
        return func
    names: set[str] = {"root"}
    blocks = seq(*(_block(nest, names) for nest in nests))
    allocated = (*wide.root.alloc_buffers, *new_buffers)
    root = replace(func.root, body=blocks, alloc_buffers=allocated)
    derived = replace(func, body=replace(func.body, block=root))
    try:
        verify_but_for_races(derived)
    except VerifyError:
        return func
    return derived


def _is_plain(stmt: Stmt) -> bool:
    """Return whether blocks can be derived from a statement."""
    match stmt:
        case For(_, extent, _, kind):
            return isinstance(extent, IntImm) and kind != "thread_binding"
        case BlockRealize() | Allocate():
            return False
        case Let() | If():
            return not any(isinstance(inner, For) for inner in walk_stmts(stmt))
        case Evaluate(value):
            return not isinstance(value, Call)
        case _:
            return True


def _nests(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[_StatementNest]:
    """Yield each statement without loops, with the loops around it."""
    match stmt:
        case Seq(stmts):
            for child in stmts:
                yield from _nests(child, loops)
        case For():
            yield from _nests(stmt.body, (*loops, stmt))
        case _:
            yield _StatementNest(loops, stmt)


def _may_be_distributed(nests: Sequence[_StatementNest]) -> bool:
    """Return whether several statements in loops may get separate loops.

    They may if two statements access a common element, and one writes it, in the same iteration
    only.
    """
    for number, first in enumerate(nests):
        for other in nests[:number]:
            shared = [a for a, b in zip(first.loops, other.loops, strict=False) if a is b]
            for depth, loop in enumerate(shared):
                if static_int(loop.extent) > 1 and not _meet_in_one_iteration(first, other, depth):
                    return False
    return True


def _meet_in_one_iteration(first: _StatementNest, second: _StatementNest, depth: int) -> bool:
    var = first.loops[depth].var
    touched = [_touches(nest, depth) for nest in (first, second)]
    return all(
        a.buffer != b.buffer or not (a.is_store or b.is_store) or agree_on((a, b), [var])
        for a in touched[0]
        for b in touched[1]
    )


def _touches(nest: _StatementNest, depth: int) -> list[Touch]:
    """Return the accesses of a statement, if the loops from a depth on move."""
    moving = {loop.var: static_int(loop.extent) for loop in nest.loops[depth:]}
    return touches_of(nest.leaf, moving, {var: var for var in moving})


# Sums


def _term(store: Store) -> Expr | None:
    """Return the term that a statement combines with its element; None for other statements."""
    match store.value:
        case BinOp(op, lhs, rhs) if op in _COMBINES:
            target = Load(store.buffer, store.indices)
            for element, term in ((lhs, rhs), (rhs, lhs)):
                if element == target and not _reads(term, store.buffer):
                    return term
    return None


def _reads(expr: Expr, buffer: Buffer) -> bool:
    return any(isinstance(node, Load) and node.buffer == buffer for node in walk(expr))


def _reduced(nest: _StatementNest) -> tuple[For, ...]:
    """Return the loops over which a statement combines into one element."""
    if not isinstance(nest.leaf, Store) or _term(nest.leaf) is None:
        return ()
    used = {node for index in nest.leaf.indices for node in walk(index)}
    return tuple(loop for loop in nest.loops if loop.var not in used)


def _with_inits(nests: Sequence[_StatementNest]) -> list[_StatementNest]:
    """Join a statement that begins a sum with the next one, which adds to it."""
    joined: list[_StatementNest] = []
    for nest in nests:
        before = joined[-1] if joined else None
        init = None if before is None else _init_of(before, nest)
        if init is not None:
            joined[-1] = replace(nest, init=init)
        else:
            joined.append(nest)
    return joined


def _init_of(before: _StatementNest, nest: _StatementNest) -> Store | None:
    """Return the start of a nest's sums, in terms of its loops, if the previous nest is it."""
    reduced = _reduced(nest)
    first, update = before.leaf, nest.leaf
    if not (reduced and isinstance(first, Store) and isinstance(update, Store)):
        return None
    spatial = tuple(loop for loop in nest.loops if loop not in reduced)
    if [loop.extent for loop in before.loops] != [loop.extent for loop in spatial]:
        return None
    pairs = zip(before.loops, spatial, strict=True)
    loop_mapping: dict[Var, Expr] = {old.var: new.var for old, new in pairs}
    moved = substitute(first, loop_mapping)
    assert isinstance(moved, Store)
    fits = (moved.buffer, moved.indices) == (update.buffer, update.indices)
    return moved if fits and not _reads(moved.value, moved.buffer) else None


# Values of one element


def _with_private_buffers(
    nests: Sequence[_StatementNest], used_names: set[str]
) -> tuple[list[_StatementNest], tuple[Buffer, ...]]:
    """Give separate buffers to all but the last value of elements that are overwritten in place."""
    new_buffers: list[Buffer] = []
    result = list(nests)
    for number in range(1, len(result)):
        before, nest = result[number - 1], result[number]
        if not _is_overwritten(result, number):
            continue
        assert isinstance(nest.leaf, Store)
        old = nest.leaf.buffer
        ending = "sum" if before.init is not None else "before"
        name = unique(f"{old.name}_{ending}", used_names)
        used_names.add(name)
        new = replace(old, data=Var(name, "handle"))
        new_buffers.append(new)
        result[number - 1] = _redirected(before, old, new, stores=True)
        result[number] = _redirected(nest, old, new, stores=False)
    return result, tuple(new_buffers)


def _is_overwritten(nests: Sequence[_StatementNest], number: int) -> bool:
    """Return whether a statement replaces each element that the previous one computed.

    Nothing else may have accessed the buffer before.
    """
    before, nest = nests[number - 1], nests[number]
    first, second = before.leaf, nest.leaf
    if not (isinstance(first, Store) and isinstance(second, Store)):
        return False
    if first.buffer != second.buffer or (_term(second) is not None and _reduced(nest)):
        return False
    if before.init is None and _reads(first.value, first.buffer):
        return False
    pairs = zip(_spatial(before), _spatial(nest), strict=False)
    same: dict[Var, Expr] = {first_loop.var: second_loop.var for first_loop, second_loop in pairs}
    extents = [[loop.extent for loop in _spatial(sibling)] for sibling in (before, nest)]
    if extents[0] != extents[1] or len(_spatial(nest)) != len(nest.loops):
        return False
    if tuple(substitute(index, same) for index in first.indices) != second.indices:
        return False
    loads = [n for n in walk(second.value) if isinstance(n, Load) and n.buffer == second.buffer]
    if not loads or any(load.indices != second.indices for load in loads):
        return False
    return not any(
        isinstance(node, Load | Store) and node.buffer == first.buffer
        for earlier in nests[: number - 1]
        for node in walk(earlier.leaf)
    )


def _spatial(nest: _StatementNest) -> tuple[For, ...]:
    reduced = _reduced(nest)
    return tuple(loop for loop in nest.loops if loop not in reduced)


def _redirected(nest: _StatementNest, old: Buffer, new: Buffer, *, stores: bool) -> _StatementNest:
    """Redirect the loads of a nest to another buffer, and its stores, too, if requested."""

    def on_expr(expr: Expr) -> Expr:
        moved = map_expr(expr, on_expr)
        return (
            Load(new, moved.indices) if isinstance(moved, Load) and moved.buffer == old else moved
        )

    def on_stmt(stmt: Stmt) -> Stmt:
        moved = map_stmt(stmt, on_stmt, on_expr)
        if stores and isinstance(moved, Store) and moved.buffer == old:
            return replace(moved, buffer=new)
        return moved

    init = None if nest.init is None else on_stmt(nest.init)
    assert init is None or isinstance(init, Store)
    return _StatementNest(nest.loops, on_stmt(nest.leaf), init)


# Blocks


def _block(nest: _StatementNest, names: set[str]) -> Stmt:
    """Return a nest with its statement in a block, in new loops."""
    stores = [stmt for stmt in walk_stmts(nest.leaf) if isinstance(stmt, Store)]
    name = unique(stores[0].buffer.name if stores else "block", names)
    names.add(name)
    loops = [replace(loop, var=Var(loop.var.name, loop.var.dtype)) for loop in nest.loops]
    kinds = _kinds(nest)
    iter_vars = [
        IterVar(Var(f"v_{loop.var.name}", loop.var.dtype), loop.extent, kind)
        for loop, kind in zip(nest.loops, kinds, strict=True)
    ]
    iter_mapping: dict[Var, Expr] = {
        loop.var: iter_var.var for loop, iter_var in zip(nest.loops, iter_vars, strict=True)
    }
    body = substitute(nest.leaf, iter_mapping)
    init = None if nest.init is None else substitute(nest.init, iter_mapping)
    block = with_regions(Block(name, tuple(iter_vars), (), (), body, init))
    stmt: Stmt = BlockRealize(tuple(loop.var for loop in loops), TRUE, block)
    for loop in reversed(loops):
        stmt = replace(loop, body=stmt)
    return stmt


def _kinds(nest: _StatementNest) -> list[IterKind]:
    """Return the kind of iterator for each loop around a statement."""
    stores = [stmt for stmt in walk_stmts(nest.leaf) if isinstance(stmt, Store)]
    opaque: list[IterKind] = ["opaque"] * len(nest.loops)
    if len(stores) != 1:
        return opaque
    (store,) = stores
    touches = [touch for touch in _touches(nest, 0) if touch.buffer == store.buffer]
    elsewhere = any(touch.indices != store.indices for touch in touches)
    reduced = _reduced(nest)
    spatial = [n.var for n in nest.loops if n not in reduced and static_int(n.extent) > 1]
    is_own = isinstance(nest.leaf, Store) or not _reads_any(nest.leaf, store.buffer)
    if elsewhere or not is_own or not all(agree_on([t], spatial) for t in touches):
        return opaque
    return ["reduce" if loop in reduced else "spatial" for loop in nest.loops]


def _reads_any(stmt: Stmt, buffer: Buffer) -> bool:
    return any(isinstance(node, Load) and node.buffer == buffer for node in walk(stmt))
