"""The possible locations of a block: inlined, unchanged, or under a loop of its consumers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from compiler.ir.arith.extents import extent_or_unknown
from compiler.ir.arith.iter_map import variables_of
from compiler.ir.core.nodes import (
    For,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import ScheduleError, refusal
from compiler.schedule.legality.placed_block import PlacedBlock
from compiler.schedule.legality.scope import BlockScope, scope_of_block
from compiler.schedule.primitives.blocks.compute_at import compute_at
from compiler.schedule.primitives.blocks.compute_inline import compute_inline
from compiler.schedule.trace.handle import SpecialLocation

INLINE = -2
ROOT = -1


@dataclass(frozen=True, slots=True)
class Location:
    """A possible location of a block.

    Args:
        number: Its number in a decision: -2 for inlined, -1 for unchanged, else the number of a
            loop around the first consumer.
    """

    number: int
    at: Var | SpecialLocation


def compute_locations(func: PrimFunc, block: str) -> list[Location]:
    """Return the possible locations of a block, by their numbers.

    Among the loops around all consumers, those of one iteration are excluded. So are loops that
    make no sense: loops below one of a reduction, and loops of a reduction without a spatial loop
    below.

    Raises:
        ScheduleError: If the block does not exist, or is the root.
    """
    scope, site = scope_of_block(func, block, refusal("sample_compute_location", func))
    locations = [Location(ROOT, "root")]
    if _is_accepted(partial(compute_inline, func, block)):
        locations.insert(0, Location(INLINE, "inline"))
    for number, loop in _candidates(scope, scope.consumers(site)):
        if _is_accepted(partial(compute_at, func, block, loop.var, preserve_unit_loops=True)):
            locations.append(Location(number, loop.var))
    return locations


def location_for(locations: Sequence[Location], decision: int) -> Location:
    """Return the location with a number, or the one before it; if there is none, the root."""
    position = bisect_right([location.number for location in locations], decision)
    if position:
        return locations[position - 1]
    return next(location for location in locations if location.number == ROOT)


def _is_accepted(primitive: Callable[[], PrimFunc]) -> bool:
    try:
        primitive()
    except ScheduleError:
        return False
    return True


def _candidates(scope: BlockScope, consumers: Sequence[PlacedBlock]) -> Iterator[tuple[int, For]]:
    """Yield the useful loops around all consumers, with their numbers."""
    loops = _common_loops(consumers)
    is_parallel = [_is_parallel(scope, loop) for loop in loops]
    below_reduction = False
    for number, loop in enumerate(loops):
        if extent_or_unknown(loop.extent) == 1:
            continue
        if is_parallel[number]:
            if below_reduction:
                return
        else:
            below_reduction = True
            if not any(is_parallel[number:]):
                return
        yield number, loop


def _common_loops(consumers: Sequence[PlacedBlock]) -> list[For]:
    if not consumers:
        return []
    return [
        loop
        for loop in consumers[0].loops
        if all(consumer.is_under(loop) for consumer in consumers)
    ]


def _is_parallel(scope: BlockScope, loop: For) -> bool:
    """Return whether spatial iterators alone take their values from a loop."""
    return not any(
        iter_var.kind != "spatial" and loop.var in variables_of(value)
        for site in scope.sites
        if site.is_under(loop)
        for iter_var, value in zip(site.block.iter_vars, site.values, strict=True)
    )
