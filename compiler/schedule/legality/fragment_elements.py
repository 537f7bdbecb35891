"""Check that blocks use elements of fragments together that one lane holds.

    for i, j in 16, 64:
        P[i, j] = exp(S[i, j] - M[i])     # sums "S" and "P", and "M", a number of each row
    for i, j in 16, 64:
        M[i] max= S[i, j]                 # lanes exchange what they find
    for i, j in 16, 64:
        P[i, j] = S[j, i]                 # wrong: another lane holds that element

A lane of a warp holds some rows and columns of each tile, the same ones of tiles of sums and of
operands that are made from them. Lowering checks the tiles themselves, once loops and instructions
are fixed.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.ir.arith.iter_map import variables
from compiler.ir.core.nodes import BinOp, Buffer, Load, Store
from compiler.ir.core.scopes import (
    ACCUMULATOR,
    ACCUMULATOR_ROWS,
    MATRIX_A,
    MATRIX_B,
    is_fragment_scope,
)
from compiler.ir.core.visit import walk_stmts
from compiler.schedule.index.access import BlockAccess
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope

_REDUCERS = ("+", "max", "min")


def require_held_together(scope: BlockScope, buffer: Buffer, memory_scope: str) -> None:
    """Refuse if a block would use elements of a fragment with those that other lanes hold.

    Args:
        scope: The blocks.
        buffer: The buffer that becomes a fragment.
        memory_scope: The memory scope that it gets.

    Raises:
        ScheduleError: Naming the block and both fragments.
    """
    if not is_fragment_scope(memory_scope):
        return
    for site in scope.sites:
        if site.touches(buffer):
            problem = _problem(site, buffer, memory_scope)
            if problem is not None:
                raise scope.refuse(f"block {site.name} {problem}", site.realize, "threads")


def _problem(site: PlacedBlock, buffer: Buffer, memory_scope: str) -> str | None:
    """Return what a block does that lanes can't do with their own elements; None if nothing."""

    def within(accesses: Iterable[BlockAccess], *scopes: str) -> list[BlockAccess]:
        changed = {buffer: memory_scope}
        return [a for a in accesses if changed.get(a.buffer, a.buffer.scope) in scopes]

    reads, writes = site.facts.reads, site.facts.writes
    # Instructions alone read operands.
    tiles = [*within(reads, ACCUMULATOR), *within(writes, ACCUMULATOR, MATRIX_A, MATRIX_B)]
    rows = within([*reads, *writes], ACCUMULATOR_ROWS)
    if not tiles:
        return None
    first, *others = tiles
    for other in others:
        if other.indices[-2:] != first.indices[-2:]:
            return (
                f"uses {other.buffer.name} and {first.buffer.name} at different rows or columns, "
                "which different lanes hold"
            )
    for number in rows:
        if first.indices[-2] not in number.indices:
            return (
                f"uses {number.buffer.name} and {first.buffer.name} at different rows, which "
                "different lanes hold"
            )
    for number in within(writes, ACCUMULATOR_ROWS):
        if not _is_reduction(site, number.buffer, first):
            return (
                f"stores each element of a row of {first.buffer.name} in the one number of the row "
                f"that {number.buffer.name} has, and not their sum, minimum or maximum"
            )
    return None


def _is_reduction(site: PlacedBlock, target: Buffer, tile: BlockAccess) -> bool:
    """Return whether a block reduces the rows of a tile."""
    along = {i.var for i in site.block.iter_vars if i.kind == "reduce"}
    updates = [
        isinstance(store.value, BinOp)
        and store.value.op in _REDUCERS
        and Load(target, store.indices) in (store.value.lhs, store.value.rhs)
        for store in walk_stmts(site.block.body)
        if isinstance(store, Store) and store.buffer == target
    ]
    return all(updates) and not along.isdisjoint(variables(tile.indices[-1]))
