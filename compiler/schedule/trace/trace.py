"""Traces: the instructions of a schedule and its decisions, to store and replay.

A trace is plain data without a program. It can be replayed on the program it was recorded on.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from compiler.schedule.error import TraceError
from compiler.schedule.trace.canonical_text import canonical_text, text_around_decisions
from compiler.schedule.trace.instruction import Decision, Instruction
from compiler.schedule.trace.replay import replay
from compiler.schedule.trace.trace_diff import diff
from compiler.schedule.trace.trace_json import check_decision, read_trace, write_trace
from compiler.schedule.trace.trace_text import python_lines
from compiler.schedule.trace.tvm_json import from_tvm, write_tvm

DecisionProvider: TypeAlias = "Callable[[Instruction, Decision | None], Decision | None]"

if TYPE_CHECKING:
    from compiler.ir.core.program import IRModule, PrimFunc
    from compiler.schedule.schedule import Schedule


_MAX_SHARED = 1024
"""Instructions that traces share which differ in decisions only. A search keeps thousands of them
with few different instructions: each takes a third less memory. Chosen.
"""

_new_schedule: list[Callable[[PrimFunc | IRModule, int | None], Schedule]] = []


def provide_schedules(new: Callable[[PrimFunc | IRModule, int | None], Schedule]) -> None:
    """Set how traces make schedules, which are in a higher room and make traces themselves."""
    _new_schedule[:] = [new]


@dataclass(frozen=True, repr=False)
class Trace:
    """The instructions applied to a program, in order. Traces are values: a change makes a new one.

    Args:
        function: The function in which blocks are looked up if an instruction names none. It
            is not part of the trace's identity, which fits all equal programs.
    """

    instructions: tuple[Instruction, ...] = ()
    function: str = field(default="main", compare=False)

    def __repr__(self) -> str:
        done = len(self.instructions)
        return f"<Trace of {done} instruction{'' if done == 1 else 's'}>"

    @property
    def insts(self) -> tuple[Instruction, ...]:
        """Return the instructions, under TVM's name."""
        return self.instructions

    @property
    def decisions(self) -> dict[Instruction, Decision]:
        """Return the decisions of the sampling instructions, in order, by instruction."""
        return {i: i.decision for i in self.instructions if i.decision is not None}

    def decided_numbers(self) -> list[int]:
        """Return the decisions as numbers: each factor of a tile, the value of each choice."""
        numbers: list[int] = []
        for instruction in (self.instructions[position] for position in self._sampling):
            decision = instruction.decision
            if isinstance(decision, tuple):
                numbers += decision
            elif decision is not None:
                candidates = dict(instruction.arguments).get("candidates")
                value = candidates[decision] if isinstance(candidates, tuple) else decision
                assert isinstance(value, int), "candidates are integers"
                numbers.append(value)
        return numbers

    def with_decisions(self, decisions: Iterable[Decision | Sequence[int]]) -> Trace:
        """Return the trace with other decisions, one for each sampling instruction, in order.

        Raises:
            TraceError: If the number of decisions is wrong, or one has not its instruction's form.
        """
        sampling, shared, decided = self._sampling, self._shared, list(decisions)
        if len(sampling) != len(decided):
            reason = f"expected {len(sampling)} decisions, got {len(decided)}"
            raise TraceError("decisions", reason)
        new = list(self.instructions)
        for number, (position, decision) in enumerate(zip(sampling, decided, strict=True)):
            old, plain = new[position], decision if isinstance(decision, int) else tuple(decision)
            check_decision(old, plain, f"decisions[{number}]")
            instruction = shared.get((position, plain))
            if instruction is None:
                instruction = Instruction(old.name, old.arguments, old.outputs, plain)
                if len(shared) < _MAX_SHARED:
                    shared[position, plain] = instruction
            new[position] = instruction
        trace = Trace(tuple(new), self.function)
        # The same instructions up to decisions.
        trace.__dict__.update(
            _sampling=sampling, _around_decisions=self._around_decisions, _shared=shared
        )
        return trace

    def apply_to(
        self,
        program: PrimFunc | IRModule,
        decisions: Sequence[Decision | Sequence[int] | None] | None = None,
        *,
        seed: int | None = None,
    ) -> Schedule:
        """Return a schedule of a fresh program with the instructions applied.

        Args:
            decisions: New decisions, one for each sampling instruction; None draws a new one.
            seed: The seed of the new schedule.

        Raises:
            ScheduleError: If an instruction is refused on this program.
            TraceError: If the decisions do not match the instructions.
        """
        schedule = _new_schedule[0](program, seed)
        replay(self.instructions, schedule, decisions)
        return schedule

    def apply_to_schedule(
        self,
        sch: Schedule,
        remove_postproc: bool = False,
        decision_provider: DecisionProvider | None = None,
    ) -> None:
        """Apply the instructions to a schedule.

        Args:
            remove_postproc: Whether to omit the instructions after `enter_postproc`.
            decision_provider: Returns a decision, given a sampling instruction and its current
                decision; None draws a new one.

        Raises:
            ScheduleError: If an instruction is refused; earlier ones stay applied.
        """
        retained = self._without_postproc(remove_postproc=remove_postproc)
        if decision_provider is None:
            replay(retained, sch)
        else:
            sampling = (i for i in retained if i.spec.decides)
            replay(retained, sch, [decision_provider(i, i.decision) for i in sampling])

    def get_decision(self, inst: Instruction) -> Decision | None:
        """Return the decision of an instruction; None if it takes none."""
        return inst.decision

    def with_decision(
        self, inst: Instruction, decision: Decision | Sequence[int], remove_postproc: bool = False
    ) -> Trace:
        """Return the trace with another decision of one of its sampling instructions.

        Raises:
            TraceError: If the instruction is not one of them, or the decision has not its form.
        """
        if inst not in self.instructions or not inst.spec.decides:
            raise TraceError("decision", f"{inst.name} is not a sampling instruction of the trace")
        plain = decision if isinstance(decision, int) else tuple(decision)
        decided = check_decision(inst, plain, "decision")
        retained = self._without_postproc(remove_postproc=remove_postproc)
        changed = tuple(replace(i, decision=decided) if i == inst else i for i in retained)
        return Trace(changed, self.function)

    def append(self, inst: Instruction, decision: Decision | None = None) -> Trace:
        """Return the trace with one more instruction at its end."""
        new = inst if decision is None else replace(inst, decision=decision)
        return Trace((*self.instructions, new), self.function)

    def pop(self) -> tuple[Trace, Instruction | None]:
        """Return the trace without its last instruction, and that; None for an empty trace."""
        if not self.instructions:
            return self, None
        return Trace(self.instructions[:-1], self.function), self.instructions[-1]

    def simplified(self, remove_postproc: bool = False) -> Trace:
        """Return the trace without instructions that have neither an effect nor a used output.

        Args:
            remove_postproc: Whether to omit the instructions after `enter_postproc`.
        """
        used: set[str] = set()
        needed: list[Instruction] = []
        for instruction in reversed(self._without_postproc(remove_postproc=remove_postproc)):
            if not instruction.spec.is_pure or not used.isdisjoint(instruction.outputs):
                used.update(instruction.refs())
                needed.append(instruction)
        return Trace(tuple(reversed(needed)), self.function)

    def _without_postproc(self, *, remove_postproc: bool) -> tuple[Instruction, ...]:
        names = [instruction.name for instruction in self.instructions]
        if remove_postproc and "enter_postproc" in names:
            return self.instructions[: names.index("enter_postproc")]
        return self.instructions

    def to_json(self) -> dict[str, object]:
        """Return the trace as a JSON object, with the version of its format."""
        return write_trace(self.instructions)

    def to_text(self) -> str:
        """Return the trace as canonical JSON text: without spaces, keys in alphabetical order."""
        decisions = [self.instructions[position].decision for position in self._sampling]
        return canonical_text(self._around_decisions, decisions)

    @cached_property
    def _sampling(self) -> tuple[int, ...]:
        """The positions of the sampling instructions."""
        return tuple(n for n, i in enumerate(self.instructions) if i.spec.decides)

    @cached_property
    def _shared(self) -> dict[tuple[int, Decision], Instruction]:
        """The instructions, by position and decision, of traces that differ in decisions only."""
        return {}

    @cached_property
    def _around_decisions(self) -> list[str]:
        return text_around_decisions(self.instructions)

    @classmethod
    def from_json(cls, obj: object) -> Trace:
        """Parse a trace from a JSON object, which is not trusted.

        Raises:
            TraceError: If it is not a trace; with the position and the problem.
        """
        return cls(read_trace(obj))

    def key(self) -> str:
        """Return the sha256, in hexadecimal, of the trace as canonical JSON."""
        return self._key

    @cached_property
    def _key(self) -> str:
        return hashlib.sha256(self.to_text().encode()).hexdigest()

    def as_json(self, remove_postproc: bool = False) -> list[list[object]]:
        """Return the trace in TVM's JSON format."""
        return write_tvm(self._without_postproc(remove_postproc=remove_postproc), self.function)

    @staticmethod
    def apply_json_to_schedule(json_obj: object, sch: Schedule) -> None:
        """Apply a trace in JSON, of this project or of TVM, to a schedule.

        Raises:
            TraceError: If it is not a trace.
            ScheduleError: If an instruction is refused; earlier ones stay applied.
        """
        json_trace = json_obj if isinstance(json_obj, dict) else from_tvm(json_obj)
        replay(read_trace(json_trace), sch)

    def as_python(self, remove_postproc: bool = False) -> list[str]:
        """Return Python code that does the same to a schedule `sch`, a line an instruction."""
        return python_lines(self._without_postproc(remove_postproc=remove_postproc))

    def python(self) -> str:
        """Return Python code that does the same to a schedule `sch`."""
        return "".join(f"{line}\n" for line in self.as_python())

    def __str__(self) -> str:
        """Return a runnable Python function that does the same to a schedule."""
        lines = python_lines(self.instructions, self.function) or ["pass"]
        imports = ["from loopwright import Schedule"]
        if any("T." in line for line in lines):  # constants of a type, in lambdas
            imports.append("from loopwright.script import T")
        head = [*imports, "", "def apply_trace(sch: Schedule) -> None:"]
        return "\n".join([*head, *(f"    {line}" for line in lines)])

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print Python code that does the same to a schedule `sch`.

        Args:
            style: Ignored; it and `black_format` exist for compatibility with TVM.
        """
        del style, black_format
        sys.stdout.write(self.python())

    def diff(self, other: Trace) -> str:
        """Return the differences to another trace: `-` is here only, `+` there only."""
        return diff(self.instructions, other.instructions)

    def show_diff(self, other: Trace) -> None:
        """Print the differences to another trace."""
        sys.stdout.write(self.diff(other))
