"""Labels of decisions: what a knob decides, such as `i of C` or `lanes of k of C`.

They are derived from the instructions of a sketch's trace. The label of a tile names the loop that
it splits. The label of a choice names the first instruction that uses it. So traces of earlier
versions have labels, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compiler.ir.core.nodes import BlockRealize, For, Stmt
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import statements_in
from compiler.schedule.error import TraceError
from compiler.schedule.trace.instruction import Argument, Instruction, Ref
from compiler.schedule.trace.trace import Trace
from compiler.schedule.trace.trace_json import decided_numbers
from compiler.script.error import ScriptError
from compiler.script.parser import parse

_ANNOTATIONS = {
    "buffer_bits": "bits an element",
    "non_temporal": "non-temporal stores",
    "reduce_in_lanes": "lanes",
    "software_pipeline_stage": "steps copied ahead",
}
"""Words for annotations; annotations of user-defined rules keep their keys."""
_PARTS = {("reduce_in_lanes", 1): "unrolled steps"}
"""Words for the numbers of annotations with several, by their positions."""


def knob_labels(trace: Trace, func: PrimFunc | None) -> tuple[str, ...]:
    """Return a label for each decision of a trace.

    Args:
        func: The program that the trace is of; without it, loops have numbers for names.
    """
    names = _names(trace.instructions, {} if func is None else _loops_around_blocks(func))
    return tuple(
        _label(instruction, trace.instructions[number + 1 :], names)
        for number, instruction in enumerate(trace.instructions)
        if instruction.spec.decides
    )


def axis_labels(trace: Trace, func: PrimFunc | None) -> tuple[str, ...]:
    """Return a label for each of the trace's `decided_numbers`; no two are equal.

    Args:
        func: The program that the trace is of; without it, loops have numbers for names.
    """
    labels: list[str] = []
    for label, decision in zip(knob_labels(trace, func), trace.decisions.values(), strict=True):
        if isinstance(decision, tuple):
            labels += (_part(label, index) for index in range(len(decision)))
        else:
            labels.append(label)
    return _distinct(labels)


def stored_labels(trace: Mapping[str, Any], script: str) -> list[str]:
    """Return the labels of a sketch from a stored trial's trace and its workload's script.

    If this version cannot read a trace of an earlier one, labels are numbers.
    """
    try:
        func = parse(script)
    except ScriptError:
        func = None
    try:
        return list(axis_labels(Trace.from_json(trace), func))
    except TraceError:
        return [f"decision {index}" for index, _ in enumerate(decided_numbers(trace), 1)]


def _label(instruction: Instruction, later: Sequence[Instruction], names: Mapping[str, str]) -> str:
    if isinstance(instruction.decision, tuple):
        return _name(dict(instruction.arguments)["loop"], names)
    return _use(instruction.outputs[0], later, names)


def _use(variable: str, later: Sequence[Instruction], names: Mapping[str, str]) -> str:
    """Return the purpose of a number: that of the first instruction that uses it."""
    user = next((argument for argument in later if variable in argument.refs()), None)
    if user is None:
        return variable
    arguments = dict(user.arguments)
    factors = arguments.get("factors")
    if user.name == "split" and isinstance(factors, tuple) and Ref(variable) in factors:
        return _part(_name(arguments["loop"], names), factors.index(Ref(variable)))
    key = str(arguments.get("ann_key", user.name))
    purpose = _ANNOTATIONS.get(key, key)
    value = arguments.get("ann_val")
    if isinstance(value, tuple) and Ref(variable) in value:
        purpose = _PARTS.get((key, value.index(Ref(variable))), purpose)
    of_what = next(
        (names[a.name] for a in arguments.values() if isinstance(a, Ref) and a.name in names), None
    )
    return purpose if of_what is None else f"{purpose} of {of_what}"


def _names(
    instructions: Sequence[Instruction], loops: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the labels of blocks and loops by handle."""
    names: dict[str, str] = {}
    for instruction in instructions:
        arguments, outputs = dict(instruction.arguments), instruction.outputs
        match instruction.name:
            case "get_sblock":
                names[outputs[0]] = str(arguments["name"])
            case "get_loops":
                block = _name(arguments["block"], names)
                original = loops.get(block, ())
                # A transformed block has other loops than in the program.
                is_original = len(original) == len(outputs)
                for index, output in enumerate(outputs):
                    loop = original[index] if is_original else f"loop {index + 1}"
                    names[output] = f"{loop} of {block}"
            case "split":
                loop = _name(arguments["loop"], names)
                names |= {output: _part(loop, index) for index, output in enumerate(outputs)}
            case "fuse":
                loops_fused = [_name(loop, names) for loop in map(Ref, instruction.refs())]
                first = loops_fused[0].partition(" of ")[0]
                names[outputs[0]] = f"{first} to {loops_fused[-1]}"
            case "cache_read" | "cache_write":
                names[outputs[0]] = f"copy for {_name(arguments['block'], names)}"
            case _:
                pass
    return names


def _name(handle: Argument, names: Mapping[str, str]) -> str:
    assert isinstance(handle, Ref), "blocks and loops are given by handles"
    return names.get(handle.name, handle.name)


def _part(loop: str, index: int) -> str:
    return f"{loop}, part {index + 1}"


def _distinct(labels: Sequence[str]) -> tuple[str, ...]:
    """Number the labels that repeat an earlier one."""
    counts: dict[str, int] = {}
    distinct = []
    for label in labels:
        counts[label] = count = counts.get(label, 0) + 1
        distinct.append(label if count == 1 else f"{label} ({count})")
    return tuple(distinct)


def _loops_around_blocks(func: PrimFunc) -> dict[str, tuple[str, ...]]:
    """Return the names of the loops around each block, the outermost first."""
    loops: dict[str, tuple[str, ...]] = {}

    def walk(stmt: Stmt, around: tuple[str, ...]) -> None:
        if isinstance(stmt, For):
            around = (*around, stmt.var.name)
        if isinstance(stmt, BlockRealize):
            loops[stmt.block.name] = around
            around = ()
        for inner in statements_in(stmt):
            walk(inner, around)

    walk(func.root.body, ())
    return loops
