"""The differences of two traces, in terms of blocks and loops instead of numbered handles."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from compiler.schedule.trace.instruction import Instruction, Ref, refs_in
from compiler.schedule.trace.trace_text import call_text

# Longer descriptions are cut: the beginning of a handle's description shows its source.
_MAX_NAME = 60


def diff(old: Sequence[Instruction], new: Sequence[Instruction]) -> str:
    """Return a readable difference: `-` marks lines of the old trace only, `+` of the new one."""
    lines = difflib.ndiff(_lines(old), _lines(new))
    return "".join(f"{line.rstrip()}\n" for line in lines if not line.startswith("?"))


def _lines(instructions: Sequence[Instruction]) -> list[str]:
    names: dict[str, str] = {"_": "_"}
    lines: list[str] = []
    for instruction in instructions:
        for number, output in enumerate(instruction.outputs):
            if output != "_":
                names[output] = _description(instruction, number, names)[:_MAX_NAME]
        # Queries are omitted: the uses of their outputs show them.
        if not instruction.spec.is_pure or instruction.spec.decides:
            lines.append(call_text(instruction, names))
    return lines


def _description(instruction: Instruction, number: int, names: dict[str, str]) -> str:
    """Return a handle by its source."""
    arguments = dict(instruction.arguments)
    sources = [names[name] for _, value in instruction.arguments for name in refs_in(value)]
    source = sources[0] if sources else ""
    match instruction.name:
        case "get_sblock":
            return str(arguments["name"])
        case "get_loops":
            return f"{source}.loops[{number}]"
        case "split" | "loop_partition":
            return f"{source}_{number}"
        case "fuse" | "merge":
            return f"{'*'.join(sources)}"
        case _ if instruction.spec.decides:
            call = call_text(replace(instruction, decision=None), names)
            return f"{call}[{number}]"
        case name:
            many = instruction.spec.num_outputs != 1
            return f"{name}({source}{_index(instruction)}){f'[{number}]' if many else ''}"


def _index(instruction: Instruction) -> str:
    """Return what distinguishes a call from others of its kind on the same source."""
    values = (value for _, value in instruction.arguments if not isinstance(value, Ref | tuple))
    return "".join(f", {value}" for value in list(values)[:2])
