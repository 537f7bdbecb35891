"""Run the instructions of a trace on a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from compiler.schedule.error import TraceError, refusal
from compiler.schedule.trace.handle import ExprRV, Handle, TermRV
from compiler.schedule.trace.instruction import Argument, Decision, Instruction, NoteDict, Ref, Term

if TYPE_CHECKING:
    from compiler.schedule.state import State

Outputs: TypeAlias = "Sequence[Handle | None]"
_NOTHING: Mapping[str, Handle | None] = {}


def replay(
    instructions: Sequence[Instruction],
    schedule: State,
    decisions: Sequence[Decision | Sequence[int] | None] | None = None,
    handles: Mapping[str, Handle | None] = _NOTHING,
) -> dict[str, Handle | None]:
    """Apply instructions to a schedule; verify the program after the last one.

    Args:
        decisions: New decisions, one for each sampling instruction; None draws a new one.
        handles: The handles that earlier instructions returned, by name.

    Returns:
        The handles by name, after the last instruction.

    Raises:
        ScheduleError: If an instruction is refused; earlier ones stay applied.
        TraceError: If the number of decisions is wrong.
    """
    sampling = [n for n, i in enumerate(instructions) if i.spec.decides]
    if decisions is not None and len(decisions) != len(sampling):
        reason = f"expected {len(sampling)} decisions, got {len(decisions)}"
        raise TraceError("decisions", reason)
    decided: dict[int, Decision | Sequence[int] | None] = {}
    for number, position in enumerate(sampling):
        decided[position] = (
            instructions[position].decision if decisions is None else decisions[number]
        )

    handle_values = dict(handles)
    with schedule.verified_once(defers_threads=True):
        for position, instruction in enumerate(instructions):
            extra: dict[str, object] = {}
            if position in decided:
                extra["decision"] = decided[position]
            outputs = _call(schedule, instruction, handle_values, extra)
            if len(outputs) != len(instruction.outputs):
                refuse = refusal(instruction.name, schedule.func)
                reason = f"the trace expects {len(instruction.outputs)} handles, the program gives"
                raise refuse(f"{reason} {len(outputs)}", schedule.func, "invalid_argument")
            handle_values.update(zip(instruction.outputs, outputs, strict=True))
    return handle_values


def _call(
    schedule: State,
    instruction: Instruction,
    handles: dict[str, Handle | None],
    extra: dict[str, object],
) -> Outputs:
    positional: list[object] = []
    named: dict[str, object] = dict(extra)
    for name, value in instruction.arguments:
        parameter = instruction.spec.parameter(name)
        assert parameter is not None, "instructions have the parameters of their spec"
        resolved = _resolve(value, handles)
        if parameter.kind == "loops":
            assert isinstance(resolved, list), "loops come in a list"
            positional.extend(resolved)
        else:
            named[name] = tuple(resolved) if parameter.kind == "buffer" else resolved  # type: ignore[arg-type]
    result = getattr(schedule, instruction.name)(*positional, **named)
    if result is None:
        return ()
    return result if isinstance(result, list) else (result,)


def _resolve(value: Argument, handles: dict[str, Handle | None]) -> object:
    if isinstance(value, Ref):
        return handles[value.name]
    match value:
        case Term(op, lhs, rhs):
            return TermRV(op, _operand(lhs, handles), _operand(rhs, handles))
        case NoteDict(items):
            return {key: _resolve(item, handles) for key, item in items}
        case tuple():
            return [_resolve(item, handles) for item in value]
        case _:
            return value


def _operand(value: Ref | Term | int, handles: dict[str, Handle | None]) -> ExprRV | TermRV | int:
    resolved = _resolve(value, handles)
    assert isinstance(resolved, ExprRV | TermRV | int), "terms are made of values"
    return resolved
