"""Blocks that are alone in their loops and write a whole buffer, so that both can be replaced."""

from __future__ import annotations

from compiler.ir.arith.simplify import equal
from compiler.ir.core.nodes import TRUE, For, Seq, Var
from compiler.schedule.legality.coverage import writes_whole
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope
from compiler.schedule.tree.tree import Path, child_blocks


def require_whole_nest(scope: BlockScope, site: PlacedBlock) -> Path:
    """Return the path to a block's outermost loop, or to the block, if only loops enclose it.

    Raises:
        ScheduleError: If its loops contain something else, or it may leave elements unwritten.
    """
    depth = next(n for n, stmt in enumerate(site.path) if n and not isinstance(stmt, Seq))
    top = site.path[depth]
    others = [realize.block.name for realize in child_blocks(top)]
    if isinstance(top, For) and len(others) > 1:
        names = ", ".join(others)
        raise scope.refuse(
            f"block {site.name} shares its loops with others: {names}", top, "structure"
        )
    for stmt in site.path[depth:-1]:
        if not isinstance(stmt, For):
            raise scope.refuse(
                f"something other than loops encloses block {site.name}", stmt, "structure"
            )
    for buffer in site.facts.written_buffers():
        if not _runs_all(site) and not writes_whole(site, buffer):
            reason = f"block {site.name} is not proved to write all of {buffer.name}"
            raise scope.refuse(reason, site.realize, "not_proved")
    return site.path[: depth + 1]


def _runs_all(site: PlacedBlock) -> bool:
    """Return whether each iterator is a loop over its whole range."""
    extents = {loop.var: loop.extent for loop in site.loops}
    values = site.realize.iter_values
    return (
        site.realize.predicate == TRUE
        and len({v for v in values if isinstance(v, Var)}) == len(values)
        and all(
            isinstance(v, Var) and v in extents and equal(extents[v], i.extent)
            for i, v in zip(site.block.iter_vars, values, strict=True)
        )
    )
