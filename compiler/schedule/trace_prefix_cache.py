"""Replay many traces on one program, replaying their common prefixes once.

The candidates of a sketch differ in their decisions only. The instructions before the first
decision, such as layouts and copies for packing, are half of a convolution's trace.
"""

from __future__ import annotations

from typing import TypeAlias

from compiler.bounded_cache import BoundedCache
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule, schedule_for_trace
from compiler.schedule.trace.handle import Handle
from compiler.schedule.trace.instruction import Instruction
from compiler.schedule.trace.replay import replay
from compiler.schedule.trace.trace import Trace

MAX_BEGINNINGS = 16
"""The limit on cached prefixes: more than a program has sketches."""

_Prefix: TypeAlias = tuple[Schedule, dict[str, Handle | None]]


class TracePrefixCache:
    """Schedules of one program, each with the common prefix of some traces applied."""

    def __init__(self) -> None:
        self._func: PrimFunc | None = None
        self._prefixes: BoundedCache[tuple[Instruction, ...], _Prefix]
        self._prefixes = BoundedCache(MAX_BEGINNINGS)

    def apply(self, trace: Trace, func: PrimFunc) -> Schedule:
        """Return what `trace.apply_to(func)` returns.

        Raises:
            ScheduleError: If an instruction is refused on this program.
        """
        if func is not self._func:
            self._func = func
            self._prefixes.clear()
        instructions = trace.instructions
        deciding = (n for n, i in enumerate(instructions) if i.spec.decides)
        count = next(deciding, len(instructions))
        first = instructions[:count]
        prefix = self._prefixes.get(first)
        if prefix is None:
            begun = schedule_for_trace(func)
            prefix = begun, replay(first, begun)
            self._prefixes.put(first, prefix)
        begun, handles = prefix
        schedule = begun.copy()
        replay(instructions[count:], schedule, handles=handles)
        return schedule
