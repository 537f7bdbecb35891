"""Factor a reduction into partial results and their reduction: `rfactor`."""

from __future__ import annotations

from compiler.ir.analysis.reducer import reduction_of
from compiler.ir.arith.iter_map import variables
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import For, If, IntImm, Let, Var, seq
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.legality.block_kind import Unclassified
from compiler.schedule.legality.reduction import single_pass_problem
from compiler.schedule.legality.scope import scope_of_block
from compiler.schedule.rewrite.factoring import Factoring, last_nest, partial_buffers, partial_nest
from compiler.schedule.tree.tree import (
    allocate_in,
    block_path,
    child_blocks,
    fresh_block_name,
    loop_at,
    loop_path,
    replace_at,
)


def rfactor(func: PrimFunc, loop: Var, factor_axis: int) -> tuple[PrimFunc, str]:
    """Factor a reduction: reduce for each iteration of a loop separately, then over the loop.

    The partial results go to a new buffer, with an additional dimension for the loop (Suriana,
    Adams and Kamil, "Parallel associative reductions in Halide", CGO 2017).

    Args:
        factor_axis: The position of that dimension; -1 is the last.

    Requires:
        One block is under the loop: a reduction by a commutative reducer, from its identity on.
        (A reducer that is only associative suffices if no reduction loop is around the loop.) The
        loop is serial and binds reduction iterators, but no spatial ones; no loop binds both kinds.
        Below the outermost reduction loop is no other block, and no loop that binds nothing. The
        block is the first below its outermost loop, in which no other block writes its inputs. The
        predicate leaves no partial result without its start. `factor_axis` is an axis of the new
        buffer.

    Rewrites:
        for i, k_0, k_1 in ...:              for i, k_0, k_1 in ...:
            C[i] += A[i, k_0 * f + k_1]  ->      C_rf[i, k_1] += A[i, k_0 * f + k_1]
                                             for i, k_1 in ...:
                                                 C[i] += C_rf[i, k_1]

    Returns:
        The program, and the name of the block that computes the partial results, `C_rf`. The other
        keeps its name.

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("rfactor", func)
    target = loop_at(loop_path(func, loop, refuse))
    factoring = _checked(func, target, refuse)
    axis = factoring.axis(factor_axis)

    name = fresh_block_name(func, f"{factoring.site.name}_rf")
    buffers = partial_buffers(factoring, axis)
    partial = partial_nest(factoring, axis, buffers, name)
    last = last_nest(factoring, axis, buffers)

    first, reducing = factoring.site.loops[0], factoring.inner_loops[0]
    if first is reducing:
        func = replace_at(func, loop_path(func, first.var, refuse), seq(partial, last))
    else:
        func = replace_at(func, loop_path(func, reducing.var, refuse), last)
        path = loop_path(func, first.var, refuse)
        func = replace_at(func, path, seq(partial, path[-1]))
    for buffer in buffers:
        path = block_path(func, factoring.scope.realize.block.name, refuse)
        func = allocate_in(func, path, buffer)
    return func, name


def _checked(func: PrimFunc, target: For, refuse: Refuse) -> Factoring:
    below = list(child_blocks(target))
    if len(below) != 1:
        names = ", ".join(realize.block.name for realize in below) or "none"
        raise refuse(
            f"loop {target.var.name} must hold one block: it holds {names}", target, "structure"
        )
    scope, site = scope_of_block(func, below[0].block.name, refuse)
    if isinstance(site.kind, Unclassified):
        raise refuse(site.kind.reason, site.realize, "block_kind")
    if site.kind != "reduction":
        raise refuse(
            f"block {site.name} is not a reduction with an init", site.realize, "block_kind"
        )
    reduction = reduction_of(site.block)
    if isinstance(reduction, str):
        raise refuse(f"block {site.name} {reduction}", site.realize, "block_kind")
    factoring = Factoring(scope, site, target, reduction)
    _require_factor_loop(factoring)
    _require_order(factoring)
    _require_first(factoring)
    return factoring


def _require_factor_loop(factoring: Factoring) -> None:
    """Refuse unless the loop is serial, and binds reduction iterators only."""
    site, target, refuse = factoring.site, factoring.target, factoring.scope.refuse
    name = target.var.name
    if target.kind != "serial":
        raise refuse(
            f"loop {name} is {target.kind}: only a serial one can be factored", target, "loop_kind"
        )
    for iter_var, value in zip(site.block.iter_vars, site.realize.iter_values, strict=True):
        if iter_var.kind == "spatial" and target.var in variables(value):
            raise refuse(
                f"loop {name} binds {iter_var.var.name}, a spatial iterator", target, "block_kind"
            )
    if target.var not in factoring.reduce_loops:
        raise refuse(
            f"loop {name} binds no reduction iterator of block {site.name}", target, "block_kind"
        )


def _require_order(factoring: Factoring) -> None:
    """Refuse unless each point runs once, from the start on, in an order that does not matter."""
    site, target, refuse = factoring.site, factoring.target, factoring.scope.refuse
    inner = {loop.var for loop in factoring.inner_loops}
    reason = single_pass_problem(site, inner, {loop.var for loop in site.loops})
    if reason is not None:
        raise refuse(reason, site.realize, "not_proved")
    outside = [
        loop
        for loop in site.loops[: site.loops.index(target)]
        if loop.var in factoring.reduce_loops and loop.extent != IntImm(1, dtype_of(loop.extent))
    ]
    if outside and not factoring.reduction.reducer.is_commutative:
        reason = f"block {site.name} picks one of equal values by their order,"
        reason = f"{reason} and loop {outside[0].var.name} is outside loop {target.var.name}:"
        raise refuse(
            f"{reason} compare the positions of equal values, too", site.realize, "dependence"
        )


def _require_first(factoring: Factoring) -> None:
    """Refuse unless the block may run, for all its points, before its loops begin."""
    site, scope = factoring.site, factoring.scope
    for stmt in site.path[1:-1]:
        if isinstance(stmt, If | Let):
            raise scope.refuse(
                f"block {site.name} is under a condition or a named value", stmt, "structure"
            )
    first = factoring.inner_loops[0]
    for other in scope.sites:
        if other is site or not other.is_under(site.loops[0]):
            continue
        if other.is_under(first):
            reason = f"block {other.name} is under loop {first.var.name}, a reduction loop of block"
            raise scope.refuse(f"{reason} {site.name}", other.realize, "structure")
        if scope.position(other) < scope.position(site):
            reason = f"block {other.name} comes before block {site.name} under loop"
            raise scope.refuse(f"{reason} {site.loops[0].var.name}", other.realize, "dependence")
        for buffer in other.facts.written_buffers() & site.facts.read_buffers():
            if not site.writes(buffer):
                reason = f"block {other.name} writes {buffer.name}, which block {site.name} reads"
                raise scope.refuse(f"{reason} in later iterations", other.realize, "dependence")
