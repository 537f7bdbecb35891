"""Transform the iterators of a block: `transform_block_layout`."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Expr,
    For,
    IntImm,
    IterKind,
    IterVar,
    Load,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_region, map_stmt, substitute, transform_expr, walk
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.index.index_map import (
    IndexMap,
    IndexMapError,
    IndexMapLike,
    as_index_map,
    show,
)
from compiler.schedule.index.index_map_inverse import inverse_of
from compiler.schedule.index.layout_shape import map_extents
from compiler.schedule.index.row_major import numbered
from compiler.schedule.legality.block_kind import Unclassified, is_commutative
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import scope_of_block
from compiler.schedule.tree.tree import replace_at


def transform_block_layout(func: PrimFunc, block: str, index_map: IndexMapLike) -> PrimFunc:
    """Change the iterators of a block to functions of the old ones, in new serial loops.

    Args:
        index_map: The new iterators in terms of the old ones.

    Requires:
        The block is alone in its loops, one for each of its iterators and of the same extent, and
        always runs. The order of its runs may change: it computes different elements for different
        spatial iterators, and a reduction may run in any order, or keeps its order. The map takes
        as many indices as the block has iterators, and is bijective. No new iterator combines
        spatial and reduction iterators.

    Rewrites:
        for i, j in T.grid(n, m):            for ax0 in range(n * m):
            B[i, j] = f(A[i, j])     ->          B[ax0 // m, ax0 % m] = f(A[ax0 // m, ax0 % m])

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("transform_block_layout", func)
    scope, site = scope_of_block(func, block, refuse)
    loops = _own_loops(site, refuse)
    extents = [i.extent for i in site.block.iter_vars]
    try:
        dtype = dtype_of(site.block.iter_vars[0].var) if extents else "int32"
        block_map = as_index_map(index_map, len(extents), dtype, symbolic_vars(func))
        inverse = inverse_of(block_map, extents)
    except IndexMapError as error:
        raise refuse(str(error), site.realize, "invalid_argument") from None
    if inverse.has_padding:
        where = show(inverse.index_map.params, inverse.padding)
        reason = f"the map {block_map} is not bijective: no iterator of block {block} goes where"
        raise refuse(f"{reason} {where}", site.realize, "invalid_argument")
    _require_any_order(site, block_map, refuse)
    new = _new_iterators(site, block_map, map_extents(block_map, extents), refuse)
    mapping = dict(
        zip(
            (i.var for i in site.block.iter_vars),
            inverse.index_map.map_indices(
                [_value_of(i, r) for i, r in zip(new, block_map.results, strict=True)]
            ),
            strict=True,
        )
    )
    body = _in_terms_of(site.block, block_map, mapping, new)
    variables = [Var(f"ax{n}", i.var.dtype) for n, i in enumerate(new)]
    nest: Stmt = BlockRealize(tuple(variables), TRUE, body)
    for var, iter_var in zip(reversed(variables), reversed(new), strict=True):
        nest = For(var, iter_var.extent, nest)
    top = loops[0] if loops else site.realize
    depth = next(n for n, stmt in enumerate(site.path) if stmt is top)
    return replace_at(func, (*scope.path[:-1], *site.path[: depth + 1]), nest)


def _value_of(iter_var: IterVar, result: Expr) -> Expr:
    """Return the value of a new iterator: zero if it is the only value of a part of an old one."""
    is_unit = isinstance(iter_var.extent, IntImm) and iter_var.extent.value == 1
    is_part = not isinstance(result, Var)
    return IntImm(0, dtype_of(iter_var.var)) if is_unit and is_part else iter_var.var


def _own_loops(site: PlacedBlock, refuse: Refuse) -> tuple[For, ...]:
    """Return the loops around a block, which must run it once for each point of its iterators."""
    inner: Stmt = site.realize
    for loop in reversed(site.loops):
        if loop.body is not inner:
            raise refuse(
                f"block {site.name} is not alone in loop {loop.var.name}", loop, "structure"
            )
        inner = loop
    values, sizes = site.realize.iter_values, {loop.var: loop.extent for loop in site.loops}
    bound = {v: i.extent for v, i in zip(values, site.block.iter_vars, strict=True)}
    is_plain = len(bound) == len(values) and bound == sizes
    if not is_plain or site.realize.predicate != TRUE:
        reason = f"block {site.name} does not run once for each iteration of its loops"
        raise refuse(
            f"{reason}, each bound to an iterator of its extent", site.realize, "not_proved"
        )
    return site.loops


def _require_any_order(site: PlacedBlock, index_map: IndexMap, refuse: Refuse) -> None:
    """Refuse if the order in which a block runs matters and may change."""
    kind = site.kind
    if isinstance(kind, Unclassified):
        raise refuse(kind.reason, site.realize, "block_kind")
    if (
        kind in ("reduction", "update")
        and not is_commutative(site.block)
        and not _keeps_reduction_order(site, index_map)
    ):
        reason = f"the reduction of block {site.name} is not known to be commutative"
        raise refuse(reason, site.realize, "block_kind")


def _keeps_reduction_order(site: PlacedBlock, index_map: IndexMap) -> bool:
    """Return whether the points of a reduction keep their order."""
    pairs = zip(site.block.iter_vars, index_map.params, site.realize.iter_values, strict=True)
    reduce = [(param, value) for i, param, value in pairs if i.kind != "spatial"]
    loops = [loop.var for loop in site.loops if any(loop.var is value for _, value in reduce)]
    params = {param for param, _ in reduce}
    new_reduce_indices = [r for r in index_map.results if any(node in params for node in walk(r))]
    return loops == [value for _, value in reduce] and new_reduce_indices == [
        param for param, _ in reduce
    ]


def _new_iterators(
    site: PlacedBlock, index_map: IndexMap, sizes: tuple[Expr, ...], refuse: Refuse
) -> tuple[IterVar, ...]:
    kinds: dict[Var, IterKind] = {
        param: i.kind for param, i in zip(index_map.params, site.block.iter_vars, strict=True)
    }
    new: list[IterVar] = []
    for number, (result, size) in enumerate(zip(index_map.results, sizes, strict=True)):
        used = {kinds[n] for n in walk(result) if isinstance(n, Var) and n in kinds}
        is_unit = isinstance(size, IntImm) and size.value == 1
        if not is_unit and len(used) > 1:
            reason = f"the new iterator {show(index_map.params, result)} of block {site.name}"
            raise refuse(
                f"{reason} is made of iterators of different kinds", site.realize, "block_kind"
            )
        kind: IterKind = "spatial" if is_unit else used.pop()
        new.append(IterVar(Var(f"v{number}", dtype_of(result)), size, kind))
    return tuple(new)


def _in_terms_of(
    block: Block, index_map: IndexMap, mapping: dict[Var, Expr], new: tuple[IterVar, ...]
) -> Block:
    """Return a block over new iterators, with simplified indices."""
    sizes = {i.var: extent_or_unknown(i.extent) for i in new}
    old_sizes = {i.var: i.extent for i in block.iter_vars}
    old = index_map.map_indices([i.var for i in block.iter_vars])
    numbers = {tuple(numbered(r, old_sizes) or ()): i.var for r, i in zip(old, new, strict=True)}

    def place(expr: Expr) -> Expr:
        parts = numbered(expr, old_sizes)
        if parts is not None and tuple(parts) in numbers:
            return numbers[tuple(parts)]
        return simplify(substitute(expr, mapping), sizes)

    def load(expr: Expr) -> Expr | None:
        if isinstance(expr, Load):
            return Load(expr.buffer, tuple(place(index) for index in expr.indices))
        return None

    def visit(stmt: Stmt) -> Stmt:
        changed = map_stmt(stmt, visit, lambda e: transform_expr(e, load))
        if isinstance(changed, Store):
            return Store(changed.buffer, tuple(map(place, changed.indices)), changed.value)
        return changed

    placed = replace(
        block,
        iter_vars=new,
        reads=tuple(map_region(r, place) for r in block.reads),
        writes=tuple(map_region(r, place) for r in block.writes),
        body=visit(block.body),
        init=None if block.init is None else visit(block.init),
    )
    renamed = substitute(BlockRealize((), TRUE, placed), mapping)
    assert isinstance(renamed, BlockRealize), "substitution keeps the kind of a statement"
    return renamed.block
