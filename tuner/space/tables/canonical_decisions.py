"""Canonical decisions: one row of choices for all rows that produce the same program.

A loop of one iteration has no effect. If two parts of an axis are directly nested loops of one
kind, it does not matter which of them has one iteration:

    for i0 in range(1):          for i0 in range(4):
        for i1 in range(4):  is      for i1 in range(1):

Such a run of loops is a zone. Its loops are slots, each with a column of the sketch's table. The
zones of a sketch are found once, in its program; a batch of decisions is then made canonical by
shifts in the table. In the canonical row each loop is in the innermost possible slot. A loop of one
iteration inside of a sum would hide the sum from passes that keep sums in registers.

Worked example: an axis of extent 8 is tiled into three parts, whose loops are nested directly, so
the zone has the slots (column 0, column 1, column 2) of one knob.

    row of the table      extents above 1        canonical row
    (4, 1, 2)             4, 2                   (1, 4, 2)
    (4, 2, 1)             4, 2                   (1, 4, 2)
    (1, 4, 2)             4, 2                   (1, 4, 2), the row itself
    (8, 1, 1)             8                      (1, 1, 8)
    (2, 2, 2)             2, 2, 2                (2, 2, 2)

`_shift` visits the slots from the inside out. It moves each loop of more than one iteration into
the innermost free slot of its knob. `TileKnob.choices` then finds the options of the shifted rows.
A row without one, because the innermost part has a limit, keeps its own choices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from compiler.ir.core.nodes import BlockRealize, For, Seq, Stmt
from tuner.space.tables.knob import Ints, Knob, TileKnob
from tuner.space.tables.loop_slots import LoopSlot, SketchProgram

Zone = tuple[LoopSlot, ...]
"""Loops from the outside in, all of one kind, with nothing between them."""


def find_zones(program: SketchProgram) -> tuple[Zone, ...]:
    """Return the zones of a sketch in which some axis has several loops."""
    chains = _chains(program.func.body)
    zones = [zone for chain in chains for zone in _zones(chain, program)]
    return tuple(zone for zone in zones if _has_choice(zone))


def _chains(stmt: Stmt) -> Iterator[list[For]]:
    """Yield the runs of loops that directly contain each other."""
    match stmt:
        case For():
            chain = [stmt]
            while isinstance(chain[-1].body, For):
                chain.append(chain[-1].body)
            yield chain
            yield from _chains(chain[-1].body)
        case Seq(stmts):
            for child in stmts:
                yield from _chains(child)
        case BlockRealize(_, _, block):
            yield from _chains(block.body)
        case _:
            pass


def _zones(chain: list[For], program: SketchProgram) -> Iterator[Zone]:
    """Cut a run of loops at changes of kind, and at loops that are not parts of tiles."""
    zone: list[LoopSlot] = []
    kind = chain[0].kind
    for loop in chain:
        slot = None if loop.annotations else program.slots.get(loop.var)
        if loop.var in program.always_one and not loop.annotations:
            continue
        if slot is None or loop.kind != kind:
            yield tuple(zone)
            zone = []
        if slot is not None:
            zone.append(slot)
        kind = loop.kind
    yield tuple(zone)


def _has_choice(zone: Zone) -> bool:
    counts = Counter(slot.knob for slot in zone if slot.knob is not None)
    return any(count > 1 for count in counts.values())


def canonical(
    zones: tuple[Zone, ...], knobs: tuple[Knob, ...], choices: Ints, values: Ints
) -> Ints:
    """Return, for each row of choices, the canonical row of its program.

    Its loops are in the innermost possible slots. A row whose canonical form is not in the tables
    stays unchanged: a knob with very many options holds a sample, and parts have limits.

    Args:
        values: The result of `Sketch.values` for the choices.
    """
    values = values.copy()
    for zone in zones:
        _shift(zone, values)
    canonical_choices = choices.copy()
    is_option = np.ones(len(choices), np.bool_)
    first = 0
    for index, knob in enumerate(knobs):
        width = knob.options.shape[1]
        if isinstance(knob, TileKnob) and any(s.knob == index for zone in zones for s in zone):
            canonical_choices[:, index] = knob.choices(values[:, first : first + width])
            is_option &= canonical_choices[:, index] >= 0
        first += width
    return np.where(is_option[:, None], canonical_choices, choices)


def _shift(zone: Zone, values: Ints) -> None:
    """Move each loop of a zone to the innermost possible slot; change `values`.

    A slot takes only loops over its axis, in their order.
    """
    slots = zone[::-1]
    old = np.stack([slot.extents(values) for slot in slots], axis=1)
    new = np.ones_like(old)
    free = np.zeros(len(values), np.int64)
    rows = np.arange(len(values))
    for position, slot in enumerate(slots):
        places = [
            p
            for p, other in enumerate(slots)
            if p == position or (slot.knob is not None and other.knob == slot.knob)
        ]
        turns = old[:, position] > 1
        # The innermost of these slots that no loop has taken so far.
        target_position = np.array(places)[np.searchsorted(places, free).clip(max=len(places) - 1)]
        new[rows[turns], target_position[turns]] = old[turns, position]
        free = np.where(turns, target_position + 1, free)
    for position, slot in enumerate(slots):
        if slot.knob is not None and slot.column is not None:
            values[:, slot.column] = new[:, position]
