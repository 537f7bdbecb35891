"""Traces: the instructions of a schedule and its decisions, to be kept and replayed.

A trace is plain data and knows no program: what it was recorded on, it can be replayed on.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from compiler.schedule.error import TraceError
from compiler.schedule.instruction import Argument, Decision, Instruction, Ref
from compiler.schedule.replay import replay
from compiler.schedule.trace_json import (
    check_decision,
    read_trace,
    write_trace,
)

if TYPE_CHECKING:
    from compiler.ir.nodes import IRModule, PrimFunc
    from compiler.schedule.schedule import Schedule


@dataclass(frozen=True)
class Trace:
    """What was done to a program, in order."""

    instructions: tuple[Instruction, ...] = ()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions of the sampling instructions, in order."""
        return tuple(i.decision for i in self.instructions if i.decision is not None)

    def with_decisions(self, decisions: Sequence[Decision | Sequence[int]]) -> Trace:
        """Return the trace with other decisions, one for each sampling instruction.

        Raises:
            TraceError: If there are more or fewer of them, or one is not of its instruction's form.
        """
        places = [n for n, i in enumerate(self.instructions) if i.spec.decides]
        if len(places) != len(decisions):
            reason = f"expected {len(places)} decisions, got {len(decisions)}"
            raise TraceError("decisions", reason)
        new = list(self.instructions)
        for number, (place, decision) in enumerate(zip(places, decisions, strict=True)):
            plain = decision if isinstance(decision, int) else tuple(decision)
            check_decision(new[place], plain, f"decisions[{number}]")
            new[place] = replace(new[place], decision=plain)
        return Trace(tuple(new))

    def apply_to(
        self,
        program: PrimFunc | IRModule,
        decisions: Sequence[Decision | Sequence[int] | None] | None = None,
        *,
        seed: int | None = None,
    ) -> Schedule:
        """Return a schedule of a fresh program with the instructions done to it.

        Args:
            decisions: What to decide instead, one for each sampling instruction; None draws anew.
            seed: The seed of the new schedule.

        Raises:
            ScheduleError: If an instruction is refused on this program.
            TraceError: If the decisions are not those of the instructions.
        """
        # A schedule makes traces and a trace makes schedules: one of the imports has to wait.
        from compiler.schedule.schedule import Schedule  # noqa: PLC0415

        schedule = Schedule(program, seed=seed)
        replay(self.instructions, schedule, decisions)
        return schedule

    def simplified(self) -> Trace:
        """Return the trace without instructions that change nothing and give nothing used."""
        used: set[str] = set()
        kept: list[Instruction] = []
        for instruction in reversed(self.instructions):
            if not instruction.spec.is_pure or not used.isdisjoint(instruction.outputs):
                used.update(instruction.refs())
                kept.append(instruction)
        return Trace(tuple(reversed(kept)))

    def to_json(self) -> dict[str, object]:
        """Return the trace as a JSON object; it says the version of its format."""
        return write_trace(self.instructions)

    @classmethod
    def from_json(cls, obj: object) -> Trace:
        """Read a trace from a JSON object. Anything may come in: nothing is taken on trust.

        Raises:
            TraceError: If it is no trace; the error says where and what.
        """
        return cls(read_trace(obj))

    def key(self) -> str:
        """Return the sha256, in hexadecimal, of the trace as canonical JSON."""
        return self._key

    @cached_property
    def _key(self) -> str:
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def python(self) -> str:
        """Return Python that does the same to a schedule `sch`."""
        return "".join(f"{_call(instruction)}\n" for instruction in self.instructions)

    def show(self) -> None:
        """Print Python that does the same to a schedule `sch`."""
        sys.stdout.write(self.python())


def _call(instruction: Instruction) -> str:
    parts: list[str] = []
    for name, value in instruction.arguments:
        parameter = instruction.spec.parameter(name)
        if parameter is not None and parameter.kind == "loops":
            assert isinstance(value, tuple), "loops come in a tuple"
            parts.extend(_literal(item) for item in value)
        else:
            parts.append(f"{name}={_literal(value)}")
    if instruction.decision is not None:
        parts.append(f"decision={_literal(instruction.decision)}")
    call = f"sch.{instruction.name}({', '.join(parts)})"
    spec = instruction.spec
    if not instruction.outputs:
        return call
    targets = ", ".join(instruction.outputs)
    # What gives any number of handles gives a list, even of one.
    is_list = spec.num_outputs != 1 and len(instruction.outputs) == 1
    return f"{targets}{',' if is_list else ''} = {call}"


def _literal(value: Argument) -> str:
    match value:
        case Ref(name):
            return name
        case tuple():
            return f"[{', '.join(_literal(item) for item in value)}]"
        case _:
            return repr(value)
