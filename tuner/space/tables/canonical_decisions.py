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
from dataclasses import dataclass

import numpy as np

from compiler.ir.core.nodes import BlockRealize, For, IntImm, Seq, Stmt, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import Handle, LoopRV
from compiler.schedule.trace.instruction import Ref
from compiler.schedule.trace.replay import replay
from compiler.schedule.trace.trace import Trace
from tuner.space.tables.knob import Ints, Knob, TileKnob


@dataclass(frozen=True)
class LoopSlot:
    """A loop of a zone, and the column of the sketch's table with its extent.

    Attributes:
        column: The column with its extent; None if the extent is the remainder of a split.
        knob: The index of the tile knob of this part. None if the loop must not move, because
            another instruction uses its extent, too.
        extent: The extent of the split loop, if the column is None.
        others: The columns of the other parts, if the column is None.
    """

    column: int | None
    knob: int | None = None
    extent: int = 1
    others: tuple[int, ...] = ()

    def extents(self, values: Ints) -> Ints:
        """Return the extents of the loop in the rows of a table."""
        if self.column is not None:
            return values[:, self.column]
        inner = np.prod(values[:, list(self.others)], axis=1)
        remainder: Ints = -(-self.extent // inner)
        return remainder


Zone = tuple[LoopSlot, ...]
"""Loops from the outside in, all of one kind, with nothing between them."""


def find_zones(func: PrimFunc, trace: Trace, knobs: tuple[Knob, ...]) -> tuple[Zone, ...]:
    """Return the zones of a sketch in which some axis has several loops."""
    loops = {node.var: node for node in walk(func.body) if isinstance(node, For)}
    schedule = Schedule(func)
    handles: dict[str, Handle | None] = {}
    extents: dict[str, int] = {}
    for instruction in trace.instructions:
        if instruction.name == "split":
            loop = _loop(schedule, handles[instruction.refs()[0]])
            if loop is not None and loop.var in loops and isinstance(loop.extent, IntImm):
                extents[instruction.outputs[0]] = loop.extent.value
        handles = replay((instruction,), schedule, handles=handles)
    slots: dict[Var, LoopSlot] = {}
    for name, slot in _slots(trace, knobs, extents).items():
        loop = _loop(schedule, handles[name])
        if loop is not None:
            slots[loop.var] = slot
    always_one = {var for var, loop in loops.items() if loop.extent == IntImm(1)}
    chains = _chains(schedule.func.body)
    zones = [zone for chain in chains for zone in _zones(chain, slots, always_one)]
    return tuple(zone for zone in zones if _has_choice(zone))


def _loop(schedule: Schedule, handle: Handle | None) -> For | None:
    """Return the loop of a handle; None if it became part of another loop."""
    assert isinstance(handle, LoopRV), "loops are split into loops"
    try:
        loop = schedule.get(handle)
    except ScheduleError:
        return None
    return loop if isinstance(loop, For) else None


def _slots(trace: Trace, knobs: tuple[Knob, ...], extents: dict[str, int]) -> dict[str, LoopSlot]:
    """Return the loops, by their names in the trace, whose extents are in the sketch's table.

    Args:
        extents: The extents of split loops of the program, by the first part of each.
    """
    columns: dict[str, tuple[int, int]] = {}
    first = 0
    decided = iter(enumerate(knobs))
    for instruction in trace.instructions:
        if instruction.spec.decides:
            number, knob = next(decided)
            width = knob.options.shape[1]
            # If a knob has more columns than outputs, its last columns hold the outputs.
            start = first + width - len(instruction.outputs)
            columns |= {name: (start + n, number) for n, name in enumerate(instruction.outputs)}
            first += width
    uses = Counter(name for i in trace.instructions for name in i.refs() if name in columns)
    slots: dict[str, LoopSlot] = {}
    for instruction in trace.instructions:
        if instruction.name != "split":
            continue
        factors = dict(instruction.arguments)["factors"]
        assert isinstance(factors, tuple), "a list of factors"
        names = [f.name for f in factors if isinstance(f, Ref) and f.name in columns]
        for factor, output in zip(factors, instruction.outputs, strict=True):
            if isinstance(factor, Ref) and factor.name in columns:
                column, number = columns[factor.name]
                is_free = uses[factor.name] == 1 and isinstance(knobs[number], TileKnob)
                slots[output] = LoopSlot(column, number if is_free else None)
            elif factor is None and len(names) == len(factors) - 1:
                extent = extents.get(instruction.outputs[0])
                if extent is not None:
                    others = tuple(columns[name][0] for name in names)
                    slots[output] = LoopSlot(None, None, extent, others)
    return slots


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


def _zones(chain: list[For], slots: dict[Var, LoopSlot], always_one: set[Var]) -> Iterator[Zone]:
    """Cut a run of loops at changes of kind, and at loops that are not parts of tiles."""
    zone: list[LoopSlot] = []
    kind = chain[0].kind
    for loop in chain:
        slot = None if loop.annotations else slots.get(loop.var)
        if loop.var in always_one and not loop.annotations:
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
