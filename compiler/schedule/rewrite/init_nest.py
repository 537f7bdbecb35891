"""The init of a reduction as separate loops and a separate block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.analysis.regions import access_regions
from compiler.ir.arith.guards import conjuncts
from compiler.ir.arith.iter_map import Extents, variables
from compiler.ir.arith.simplify import prove
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Annotations,
    Block,
    BlockRealize,
    BufferRegion,
    Expr,
    For,
    IntImm,
    Stmt,
    Var,
)
from compiler.ir.core.visit import map_region, substitute, walk
from compiler.schedule.error import Refuse
from compiler.schedule.legality.guard import conjunction


def init_nest(
    realize: BlockRealize,
    loops: Sequence[For],
    name: str,
    extents: Extents,
    refuse: Refuse,
    *,
    iter_suffix: str = "",
    loop_suffix: str = "",
    only_used: bool = False,
    annotations: Annotations = (),
) -> Stmt:
    """Return loops and a block that initialise all elements of a reduction under some loops.

    Args:
        realize: The reduction.
        loops: The loops that contain all of it, the outermost first; those that its spatial
            iterators need are repeated.
        name: The name of the block.
        extents: The extents of all loops around the reduction.
        iter_suffix: The suffix of the names of new iterators.
        loop_suffix: The suffix of the names of new loops.
        only_used: Whether the block has only the iterators that the init uses.
        annotations: The annotations of the block.

    Raises:
        ScheduleError: If the predicate may leave out the start of the reduction.
    """
    assert realize.block.init is not None, "the block is a reduction"
    start: dict[Var, Expr] = {
        i.var: IntImm(0, dtype_of(i.var)) for i in realize.block.iter_vars if i.kind != "spatial"
    }
    return element_nest(
        realize,
        loops,
        name,
        extents,
        refuse,
        statement=substitute(realize.block.init, start),
        iter_suffix=iter_suffix,
        loop_suffix=loop_suffix,
        only_used=only_used,
        annotations=annotations,
    )


def element_nest(
    realize: BlockRealize,
    loops: Sequence[For],
    name: str,
    extents: Extents,
    refuse: Refuse,
    *,
    statement: Stmt,
    iter_suffix: str = "",
    loop_suffix: str = "",
    only_used: bool = False,
    annotations: Annotations = (),
) -> Stmt:
    """Return loops and a block that run a statement for each element of a reduction.

    Args:
        statement: The statement, by the reduction's spatial iterators; for the others, see
            `init_nest`.

    Raises:
        ScheduleError: If the predicate may leave out the start of the reduction.
    """
    old = realize.block
    named = {node for node in walk(statement) if isinstance(node, Var)}
    spatial = [
        (i, value)
        for i, value in zip(old.iter_vars, realize.iter_values, strict=True)
        if i.kind == "spatial" and (i.var in named or not only_used)
    ]
    iterators: dict[Var, Expr] = {
        i.var: Var(f"{i.var.name}{iter_suffix}", i.var.dtype) for i, _ in spatial
    }
    used = {var for _, value in spatial for var in variables(value)}
    predicate = _start_predicate(realize, {loop.var for loop in loops} - used, extents, refuse)
    body = substitute(statement, iterators)
    block = Block(
        name,
        tuple(replace(i, var=_renamed(i.var, iterators)) for i, _ in spatial),
        access_regions(body)[0],
        tuple(map_region(region, lambda e: substitute(e, iterators)) for region in old.writes),
        body,
        annotations=annotations,
    )
    init_loops = [loop for loop in loops if loop.var in used]
    outer: dict[Var, Expr] = {
        loop.var: Var(f"{loop.var.name}{loop_suffix}", loop.var.dtype) for loop in init_loops
    }
    nest: Stmt = BlockRealize(
        tuple(substitute(value, outer) for _, value in spatial),
        substitute(predicate, outer),
        block,
    )
    for loop in reversed(init_loops):
        nest = replace(loop, var=_renamed(loop.var, outer), body=nest)
    return nest


def _renamed(var: Var, names: dict[Var, Expr]) -> Var:
    new = names[var]
    assert isinstance(new, Var), "variables are renamed to variables"
    return new


def _start_predicate(
    realize: BlockRealize, dropped: set[Var], extents: Extents, refuse: Refuse
) -> Expr:
    """Return the part of the predicate that an init needs; the rest is true at its start."""
    remaining: list[Expr] = []
    start: dict[Var, Expr] = {var: IntImm(0, dtype_of(var)) for var in dropped}
    for condition in conjuncts(realize.predicate):
        if not variables(condition) & dropped:
            remaining.append(condition)
        elif not prove(substitute(condition, start), extents):
            name = realize.block.name
            reason = f"the predicate of block {name} may leave out the start of its reduction"
            raise refuse(reason, realize, "not_proved")
    return conjunction(tuple(remaining))


def reads_without_init(block: Block) -> tuple[BufferRegion, ...]:
    """Return the reads of a block without its init, which include its writes."""
    read = {region.buffer for region in block.reads}
    return (*(region for region in block.writes if region.buffer not in read), *block.reads)
