"""Traces in the JSON of TVM: lists of `[kind, inputs, attributes, outputs]`, and of decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence

from compiler.schedule.error import TraceError
from compiler.schedule.trace.instruction import Argument, Instruction, NoteDict, Ref, Term
from compiler.schedule.trace.instruction_kinds import KINDS_OF_TVM, InstructionKind, Parameter
from compiler.schedule.trace.trace_text import literal, numbered

_FLAT = ("loops", "factors")
_MODES = ("read", "write")
_DEFAULTS: dict[str, object] = {
    "preserve_unit_iters": True,
    "preserve_unit_loops": False,
    "disable_predication": False,
    "assume_injective_transform": False,
    "index": -1,
    "consumer_blocks": [],
}


def write_tvm(instructions: Sequence[Instruction], function: str) -> list[list[object]]:
    """Return instructions in TVM's format."""
    names = numbered(instructions)
    decisions: list[object] = []
    entries: list[object] = []
    for number, instruction in enumerate(instructions):
        arguments = dict(instruction.arguments)
        if instruction.name == "get_sblock":
            arguments.setdefault("func_name", function)
        inputs: list[object] = []
        attributes: list[object] = []
        for parameter in instruction.spec.parameters:
            value = arguments.get(parameter.name)
            written = (
                _DEFAULTS.get(parameter.name)
                if parameter.name not in arguments
                else _write(value, parameter, names)
            )
            if parameter.kind == "buffer" and isinstance(value, tuple):
                attributes.extend((value[1], _MODES.index(value[0])))
            elif parameter.kind in _FLAT and isinstance(written, list):
                inputs.extend("None" if item is None else item for item in written)
            else:
                (attributes if parameter.is_attribute else inputs).append(written)
        outputs = [names[output] for output in instruction.outputs]
        entries.append([instruction.spec.kind, inputs, attributes, outputs])
        if instruction.decision is not None:
            chosen = instruction.decision
            decisions.append([number, chosen if isinstance(chosen, int) else list(chosen)])
    return [entries, decisions]


def _write(value: Argument, parameter: Parameter, names: dict[str, str]) -> object:
    match value:
        case Ref() | Term():
            return literal(value, names)
        case NoteDict(items):
            return {key: _write(item, parameter, names) for key, item in items}
        case tuple():
            return [_write(item, parameter, names) for item in value]
        # Among inputs, strings are quoted and handles are not.
        case str() if not parameter.is_attribute:
            return json.dumps(value)
        case _:
            return value


def from_tvm(obj: object) -> dict[str, object]:
    """Return this project's JSON for TVM's; its contents are checked when it is read.

    Raises:
        TraceError: If it does not have TVM's form.
    """
    if not isinstance(obj, list) or len(obj) != 2 or not all(isinstance(x, list) for x in obj):
        raise TraceError("trace", "expected a list of instructions and a list of decisions")
    entries, decisions = obj
    instructions = [_entry(entry, f"[0][{n}]") for n, entry in enumerate(entries)]
    for n, decision in enumerate(decisions):
        if not (
            isinstance(decision, list)
            and len(decision) == 2
            and decision[0] in range(len(instructions))
        ):
            raise TraceError(f"[1][{n}]", "expected the number of an instruction and its decision")
        instructions[decision[0]]["decision"] = decision[1]
    return {"format": 2, "instructions": instructions}


def _entry(entry: object, where: str) -> dict[str, object]:
    shape = isinstance(entry, list) and len(entry) == 4
    if not isinstance(entry, list) or not shape or not all(isinstance(x, list) for x in entry[1:]):
        raise TraceError(where, "expected a kind, and lists of inputs, attributes and outputs")
    kind, inputs, attributes, outputs = entry
    spec = KINDS_OF_TVM.get(kind) if isinstance(kind, str) else None
    if spec is None:
        raise TraceError(where, f"{kind!r} is not an instruction")
    arguments = _arguments(spec, list(inputs), list(attributes), where)
    return {"name": spec.name, "arguments": arguments, "outputs": outputs}


def _arguments(
    spec: InstructionKind, inputs: list[object], attributes: list[object], where: str
) -> dict[str, object]:
    arguments: dict[str, object] = {}
    for parameter in spec.parameters:
        remaining = attributes if parameter.is_attribute else inputs
        if parameter.kind in _FLAT:
            arguments[parameter.name] = [None if item == "None" else item for item in remaining]
            remaining.clear()
        elif len(remaining) < (2 if parameter.kind == "buffer" else 1):
            raise TraceError(where, f"lacks {parameter.name}")
        elif parameter.kind == "buffer":
            number, mode = remaining.pop(0), remaining.pop(0)
            arguments[parameter.name] = [_MODES[mode] if mode in (0, 1) else mode, number]
        else:
            value = _read(remaining.pop(0), parameter, where)
            if not (parameter.is_optional and value in ([], None)):
                arguments[parameter.name] = value
    return arguments


def _read(value: object, parameter: Parameter, where: str) -> object:
    if parameter.kind == "bool" and value in (0, 1):
        return bool(value)
    if parameter.kind == "note":
        return _read_note(value, where)
    if parameter.kind == "index_map" and isinstance(value, str) and value.startswith('"'):
        return _unquoted(value, where)
    return value


def _read_note(value: object, where: str) -> object:
    """Read the value of an annotation: a quoted string is a string, any other one a handle."""
    if isinstance(value, list):
        return [_read_note(item, where) for item in value]
    if isinstance(value, dict):
        return {"dict": {key: _read_note(item, where) for key, item in value.items()}}
    if isinstance(value, str):
        return _unquoted(value, where) if value.startswith('"') else {"rv": value}
    return value


def _unquoted(text: str, where: str) -> object:
    """Return the contents of a quoted string.

    TVM puts quotes around a string, and escapes none in it.
    """
    try:
        return json.loads(text)
    except ValueError:
        if len(text) > 1 and text.endswith('"'):
            return text[1:-1]
        raise TraceError(where, f"{text!r} is not a quoted string") from None
