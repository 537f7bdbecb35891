"""Check which reductions the threads of a block may share.

    for k_0 in 4:                           for k_0 in 4:
        for k_1 in 8:               ->          for k_1 in 8:  # threadIdx.x
            C[0] += A[k_0 * 8 + k_1]                C[0] += A[k_0 * 8 + k_1]

Each thread reduces a part, over all enclosing reduction loops, too. Then the parts are combined. So
all threads reduce into the same elements, one at a time: the loop does not select elements.
"""

from __future__ import annotations

from compiler.ir.analysis.reducer import reduction_of
from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import variables_of
from compiler.ir.core.nodes import For
from compiler.schedule.legality.block_kind import is_commutative
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.reduction import single_pass_problem


def thread_reduction_problem(site: PlacedBlock, loop: For) -> str | None:
    """Return why threads of a loop can't share a block's reduction over it; None if they can."""
    block = site.block
    if block.init is None:
        # The init is in another block, so only the reducer of the update is known.
        if is_commutative(block):
            return None
        return f"block {site.name} does not add values by a known commutative reducer"
    reduction = reduction_of(block)
    if isinstance(reduction, str):
        return f"block {site.name} {reduction}: threads can't reduce parts of it"
    depth = next(n for n, other in enumerate(site.loops) if other is loop)
    inner = {other.var for other in site.loops[depth:]}
    problem = single_pass_problem(site, inner, {loop.var})
    if problem is not None:
        return problem
    other = _other_reducing(site, loop)
    if reduction.reducer.is_commutative or other is None:
        return None
    reason = f"block {site.name} picks one of equal values by their order, which threads change"
    reason = f"{reason} in each iteration of loop {other.var.name}: compare the positions"
    return f"{reason} of equal values, too"


def _other_reducing(site: PlacedBlock, loop: For) -> For | None:
    """Return another loop that also reduces, and has several iterations.

    Threads run in step, so all of them run an iteration of a loop inside before any runs the next.
    """
    reducing = {
        var
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True)
        if iter_var.kind == "reduce"
        for var in variables_of(value)
    }
    others = (other for other in site.loops if other is not loop and other.var in reducing)
    return next((other for other in others if extent_or_unknown(other.extent) > 1), None)
