"""The number of instructions that a multiply-add costs, including loads and loops.

A dot product of narrow numbers counts as a multiply-add, with its instructions.

A core issues far more of them in a cycle than multiply-adds, so it does not matter if a thread has
a core to itself. If another thread runs on the same core (virtual machines do not report it), each
gets half of the issue slots: on Zen 3 about 2.5 in a cycle. There, one kernel ran at 100 and at 88
GFLOP/s with 1.7 instructions a multiply-add, at 100 and at 70 with 2.3.
"""

from __future__ import annotations

from tuner.space.tables.nest import NUM_LEVELS, Floats, NestTables
from tuner.space.tables.register_tile import RegisterTile

LOOP_SLOTS = 5.0
"""Instructions of an iteration of the innermost loop besides its body: addresses, count and jump.
An estimate.
"""
PANEL_SLOTS = 2.0
"""Instructions for a vector of a panel that is read again; more rows of a tile share it. An
estimate.
"""


def issue_slots(tables: NestTables, tile: RegisterTile) -> Floats:
    """Return the instructions a vector multiply-add; work on padding counts as waste."""
    slots: Floats = _slots_of(tables, tile) * tables.trips[NUM_LEVELS] / tables.nest.facts.points
    return slots


def _slots_of(tables: NestTables, tile: RegisterTile) -> Floats:
    unrolled = tile.unrolled_steps
    loads = tile.loads
    if tables.nest.packed:
        # Each row of tiles reads a panel's vectors again, from the second-level cache.
        loads = loads + (PANEL_SLOTS - 1) * tile.vectors
    body = (tile.arithmetic + loads) * unrolled + LOOP_SLOTS
    slots: Floats = body / (tile.accumulators * unrolled * tile.efficiency)
    return slots
