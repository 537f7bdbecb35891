"""The canonical JSON text of a trace: without spaces, keys in alphabetical order.

Traces of one sketch differ in decisions alone, so all other text is written once for a sketch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from compiler.schedule.trace.instruction import Decision, Instruction
from compiler.schedule.trace.trace_json import FORMAT, write_arguments


def text_around_decisions(instructions: Sequence[Instruction]) -> list[str]:
    """Return the text of a trace without decisions, in parts: a decision lies between two."""
    texts = [f'{{"format":{FORMAT},"instructions":[']
    for number, instruction in enumerate(instructions):
        arguments = _canonical(write_arguments(instruction))
        texts[-1] += f'{"," if number else ""}{{"arguments":{arguments}'
        if instruction.spec.decides:
            texts.append("")
        after: dict[str, object] = {"name": instruction.name}
        if instruction.outputs:
            after["outputs"] = list(instruction.outputs)
        texts[-1] += f",{_canonical(after)[1:]}"
    texts[-1] += "]}"
    return texts


def canonical_text(around: Sequence[str], decisions: Sequence[Decision | None]) -> str:
    """Return the text of a trace: what `write_trace` returns, with sorted keys.

    Args:
        around: What `text_around_decisions` returned.
        decisions: The decision of each sampling instruction.
    """
    decided = (
        f"{_decision_text(decision)}{after}"
        for decision, after in zip(decisions, around[1:], strict=True)
    )
    return "".join((around[0], *decided))


def _decision_text(decision: Decision | None) -> str:
    if decision is None:
        return ""
    if isinstance(decision, int):
        return f',"decision":{decision}'
    return f',"decision":[{",".join(map(str, decision))}]'


def _canonical(obj: object) -> str:
    return json.dumps(obj, sort_keys=True, separators=(",", ":"))
