"""Traces as Python: calls that do the same to a schedule `sch`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from compiler.schedule.index.lambda_text import is_python
from compiler.schedule.trace.instruction import Argument, Instruction, NoteDict, Ref, Term
from compiler.schedule.trace.instruction_kinds import Parameter

Names = Mapping[str, str]
"""The names of handles in the text."""


def numbered(instructions: Iterable[Instruction]) -> dict[str, str]:
    """Return names for handles that number them in the order of their creation."""
    names: dict[str, str] = {"_": "_"}
    outputs = (output for instruction in instructions for output in instruction.outputs)
    for number, output in enumerate(outputs):
        if output != "_":
            names[output] = f"{output[0]}{number}"
    return names


def python_lines(instructions: Sequence[Instruction], function: str | None = None) -> list[str]:
    """Return a line of Python for each instruction.

    Args:
        function: The function to name if the first instruction looks up blocks in it.
    """
    names = numbered(instructions)
    return [_statement(instruction, names, function) for instruction in instructions]


def _statement(instruction: Instruction, names: Names, function: str | None) -> str:
    call = f"sch.{call_text(instruction, names, function)}"
    if not instruction.outputs:
        return call
    targets = ", ".join(names[output] for output in instruction.outputs)
    # An instruction with a variable number of handles returns a list, even of one.
    is_list = instruction.spec.num_outputs != 1 and len(instruction.outputs) == 1
    return f"{targets}{',' if is_list else ''} = {call}"


def call_text(instruction: Instruction, names: Names, function: str | None = None) -> str:
    """Return the call of a primitive."""
    arguments = dict(instruction.arguments)
    if instruction.name == "get_sblock" and function is not None:
        arguments.setdefault("func_name", function)
    parts: list[str] = []
    for parameter in instruction.spec.parameters:
        if parameter.name in arguments:
            parts.extend(_argument(parameter, arguments[parameter.name], names))
    if instruction.decision is not None:
        parts.append(f"decision={literal(instruction.decision, names)}")
    return f"{instruction.name}({', '.join(parts)})"


def _argument(parameter: Parameter, value: Argument, names: Names) -> Iterable[str]:
    if parameter.kind == "loops":
        assert isinstance(value, tuple), "loops come in a tuple"
        return [literal(item, names) for item in value]
    text = literal(value, names)
    is_lambda = parameter.kind in ("index_map", "pad_value") and isinstance(value, str)
    if is_lambda and is_python(str(value)):
        text = str(value)
    elif parameter.kind == "buffer" and isinstance(value, tuple):
        text = f"({', '.join(literal(item, names) for item in value)})"
    elif parameter.kind == "probabilities" and isinstance(value, tuple):
        text = f"[{', '.join(f'{item:.17g}' for item in value if isinstance(item, float))}]"
    return [text if parameter.is_positional else f"{parameter.name}={text}"]


def literal(value: Argument, names: Names) -> str:
    """Return an argument as Python."""
    match value:
        case Ref(name):
            return names[name]
        case Term(op, lhs, rhs):
            sides = (literal(side, names) for side in (lhs, rhs))
            left, right = (f"({s})" if " " in s else s for s in sides)
            return f"{left} {op} {right}"
        case NoteDict(items):
            pairs = (f"{json.dumps(key)}: {literal(item, names)}" for key, item in items)
            return f"{{{', '.join(pairs)}}}"
        case tuple():
            return f"[{', '.join(literal(item, names) for item in value)}]"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return repr(value)
