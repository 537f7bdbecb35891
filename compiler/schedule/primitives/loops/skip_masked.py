"""Skip the iterations of a loop that a mask excludes: `skip_masked`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import variables
from compiler.ir.arith.simplify import canonical
from compiler.ir.core.dtypes import is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Buffer,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Select,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute, walk, walk_stmts
from compiler.schedule.error import refusal
from compiler.schedule.legality.idle_iterations import changed_buffers
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.tree.tree import loop_at, loop_path, loops_on, replace_at, scope_path


def skip_masked(func: PrimFunc, loop: Var) -> PrimFunc:
    """Skip the iterations of a loop in which a mask excludes all elements.

    A causal attention computes no blocks of keys that are later than all of its queries.

    Args:
        loop: The loop.

    Requires:
        The loop is serial, and no loop over threads of a block is around it. A block under it
        selects by a comparison `<=` or `<` of two sums of loops, or of numbers that the loops
        outside select from parameters, and the iteration changes nothing if that is false for all
        elements: buffers that are read later keep their values. Numbers are
        finite, and those that a row has from other iterations are above the least one of float32.

    Rewrites:
        for t in range(n):                             for t in range(n):
            for i, j:                                      if t * b <= last i:
                S[i, j] = x if t * b + j <= i      ->          for i, j: ...
                          else least
            ...

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("skip_masked", func)
    path = loop_path(func, loop, refuse)
    target = loop_at(path)
    if target.kind != "serial":
        raise refuse(f"loop {loop.name} is {target.kind}, not serial", target, "loop_kind")
    threads = [each for each in loops_on(path) if str(each.thread).startswith("threadIdx")]
    if threads:
        reason = f"threads of loop {threads[0].var.name} would skip different iterations"
        raise refuse(reason, target, "threads")
    if any(isinstance(node, Let | Evaluate) for node in walk_stmts(target.body)):
        raise refuse(f"loop {loop.name} has statements with effects", target, "structure")
    scope = BlockScope(func, scope_path(path), refuse)
    sites = [site for site in scope.sites if site.is_under(target)]
    written = {buffer for site in sites for buffer in site.facts.written_buffers()}
    inputs = [buffer for buffer in func.buffers if buffer not in written]
    for site, mask in _masks(sites):
        least = _least_difference(site, mask, target, inputs)
        if least is None:
            continue
        changed = changed_buffers(scope, sites, site, mask)
        if changed:
            reason = f"an iteration of loop {loop.name} without elements may change"
            names = ", ".join(buffer.name for buffer in changed)
            raise refuse(f"{reason} {names}", target, "not_proved")
        condition = Compare("<=", least.to_expr(), IntImm(0, least.dtype))
        return replace_at(func, path, replace(target, body=If(condition, target.body)))
    reason = f"no block under loop {loop.name} selects by a comparison <= or < of sums of loops"
    raise refuse(reason, target, "block_kind")


def _masks(sites: Sequence[PlacedBlock]) -> Iterator[tuple[PlacedBlock, Compare]]:
    """Yield the comparisons by which blocks select values."""
    for site in sites:
        for node in walk(site.block.body):
            if isinstance(node, Select | Conditional):
                condition = node.condition
                if isinstance(condition, Compare) and condition.op in ("<=", "<"):
                    yield site, condition


def _least_difference(
    site: PlacedBlock, mask: Compare, loop: For, params: Collection[Buffer]
) -> Affine | None:
    """Return a number, by the loops outside, that is above 0 if an iteration has no element.

    It is the least difference of the two sides that the mask compares. None if these are no sums of
    integer loops and of numbers that they select from parameters.
    """
    inside = {each.var: extent_or_unknown(each.extent) for each in site.loops_inside(loop)}
    first = {
        each.var: IntImm(0, dtype_of(each.extent))
        for each in site.loops_inside(loop)
        if inside[each.var] == 1
    }
    if not is_integer(dtype_of(mask.lhs)):
        return None
    difference: Expr = BinOp("-", mask.lhs, mask.rhs)
    form = canonical(substitute(substitute(difference, site.bindings), first), site.extents)
    terms, total = [], form.const + (1 if mask.op == "<" else 0)
    for atom, factor in form.terms:
        if isinstance(atom, Var) and atom in inside:
            total += min(factor * (inside[atom] - 1), 0)
        elif inside.keys() & variables(atom):
            return None
        else:
            terms.append((atom, factor))
    around = {each.var for each in site.loops}
    if not all(variables(atom) <= around for atom, _ in terms):
        return None
    loads = {node.buffer for atom, _ in terms for node in walk(atom) if isinstance(node, Load)}
    if not loads <= set(params):
        return None
    return Affine(tuple(terms), total, form.dtype)
