"""Compute indices before a block, and load them: `cache_index`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from compiler.ir.analysis.regions import with_regions
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    FloatImm,
    For,
    IntImm,
    IterVar,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import children, substitute, transform_expr, walk
from compiler.ir.verify.verify import VerifyError, verify_but_for_races
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import scope_of_block
from compiler.schedule.rewrite.cache import (
    CopyLocation,
    insert_copy,
    require_memory_scope,
)
from compiler.schedule.rewrite.copy_block import point_of
from compiler.schedule.tree.tree import (
    find_block,
    fresh_block_name,
    fresh_buffer_name,
    realize_at,
    replace_at,
    with_block,
)


def cache_index(
    func: PrimFunc, block: str, memory_scope: str, threshold: int = 0
) -> tuple[PrimFunc, list[str]]:
    """Compute the indices of a block's loads before it, one table each, and load them.

    Indices are computed once for all values of the iterators that they name, at the start of the
    scope. Where the indices that are loaded are not proved to be in bounds, kernels check them.

    Args:
        memory_scope: The memory of the tables.
        threshold: How often the block computes an index at least; of rarer ones, parts that are as
            frequent.

    Requires:
        The block stores once, and contains no loops or blocks. `memory_scope` is valid. The indices
        name iterators of constant extents, and no loops around the block.

    Rewrites:
                                           for ax0 in range(80):
        for i in range(80):            ->      index[ax0] = ax0 // 4 + 1
            B[i] = A[i // 4 + 1]           for i in range(80):
                                               B[i] = A[index[i]]

    Returns:
        The program, and the names of the blocks that compute indices: none if all are iterators.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("cache_index", func)
    scope, site = scope_of_block(func, block, refuse)
    require_memory_scope(memory_scope, site.realize, refuse)
    names: list[str] = []
    for expr in _indices(site, max(threshold, 1), refuse):
        scope, site = scope_of_block(func, block, refuse)
        name = fresh_block_name(func, f"index_{len(names)}")
        new_table = _new_table(func, name, expr, memory_scope)
        nest, table, load = _table(site, expr, new_table, name, refuse)
        func = insert_copy(scope, CopyLocation((scope.realize,), len(names)), nest, table)
        path = find_block(func, block)
        assert path is not None, "the block stays"
        realize = realize_at(path)
        store = realize.block.body
        assert isinstance(store, Store), "`_indices` takes blocks that store once"
        # The element that is stored stays an expression: concurrent iterations prove by it that
        # they store different ones.
        body = replace(store, value=_replaced(store.value, expr, load))
        new = with_regions(replace(realize.block, body=body))
        func = replace_at(func, path, with_block(realize, new))
        names.append(name)
    try:
        verify_but_for_races(func)
    except VerifyError as error:
        # Outside of the loops around the block, its iterators take all of their values.
        reason = f"an index is illegal for some values of the iterators: {error.message}"
        raise refuse(reason, site.realize, "illegal_result") from None
    return func, names


def _replaced(value: Expr, expr: Expr, load: Load) -> Expr:
    return transform_expr(value, lambda node: load if node == expr else None)


def _indices(site: PlacedBlock, threshold: int, refuse: Refuse) -> list[Expr]:
    """Return the computed indices of a block that occur often enough, the largest first."""
    store = site.block.body
    if not isinstance(store, Store) or not site.facts.is_leaf or site.block.init is not None:
        reason = f"block {site.name} does more than to store once"
        raise refuse(reason, site.realize, "block_kind")
    computed = [
        part
        for node in walk(store.value)
        if isinstance(node, Load)
        for index in node.indices
        for part in _parts(index)
    ]
    numbers = Counter(computed)
    chosen: dict[Expr, None] = {}
    for node in walk(store.value):
        if isinstance(node, Load):
            for index in node.indices:
                chosen.update(dict.fromkeys(_frequent(index, numbers, threshold)))
    return sorted(chosen, key=lambda expr: -sum(1 for _ in walk(expr)))


def _frequent(expr: Expr, numbers: Counter[Expr], threshold: int) -> Iterator[Expr]:
    if not _is_computed(expr):
        return
    if numbers[expr] >= threshold and not any(isinstance(node, Load) for node in walk(expr)):
        yield expr
        return
    for child in children(expr):
        yield from _frequent(child, numbers, threshold)  # type: ignore[arg-type]


def _parts(expr: Expr) -> Iterator[Expr]:
    if _is_computed(expr):
        yield expr
        for child in children(expr):
            yield from _parts(child)  # type: ignore[arg-type]


def _is_computed(expr: Expr) -> bool:
    return not isinstance(expr, Var | IntImm | FloatImm | Load)


def _new_table(func: PrimFunc, name: str, expr: Expr, memory_scope: str) -> Buffer:
    """Return the table of a block, still without a shape."""
    title = fresh_buffer_name(func, f"index_var_{name.rpartition('_')[2]}")
    return Buffer(Var(title, "handle"), (), dtype_of(expr), memory_scope or "global")


def _table(
    site: PlacedBlock, expr: Expr, table: Buffer, name: str, refuse: Refuse
) -> tuple[Stmt, Buffer, Load]:
    """Return the loops that compute an index, the table that they write, and the load of it."""
    divisions = (n for n in walk(expr) if isinstance(n, BinOp) and n.op in ("//", "%"))
    if not all(isinstance(division.rhs, IntImm) for division in divisions):
        reason = f"an index of block {site.name} divides by what may be zero elsewhere"
        raise refuse(reason, site.realize, "not_proved")
    named = dict.fromkeys(node for node in walk(expr) if isinstance(node, Var))
    iterators = {i.var: i for i in site.block.iter_vars}
    for var in named:
        if var not in iterators or not isinstance(iterators[var].extent, IntImm):
            reason = f"an index of block {site.name} names {var.name}, no iterator of known extent"
            raise refuse(reason, site.realize, "structure")
    old = [iterators[var] for var in named]
    new = [IterVar(Var(f"v{n}", i.var.dtype), i.extent, "spatial") for n, i in enumerate(old)]
    table = replace(table, shape=tuple(i.extent for i in old) or (IntImm(1),))
    places = tuple(i.var for i in new) or (IntImm(0),)
    value = substitute(expr, {o.var: n.var for o, n in zip(old, new, strict=True)})
    body = Block(name, tuple(new), (), (point_of(table, places),), Store(table, places, value))
    loops = [Var(f"ax{n}", i.var.dtype) for n, i in enumerate(new)]
    nest: Stmt = BlockRealize(tuple(loops), TRUE, body)
    for loop, iter_var in zip(reversed(loops), reversed(new), strict=True):
        nest = For(loop, iter_var.extent, nest)
    return nest, table, Load(table, tuple(i.var for i in old) or (IntImm(0),))
