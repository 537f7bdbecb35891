"""Traces as JSON. The input may be hostile: every field is checked.

    {"format": 2, "instructions": [
        {"name": "get_sblock", "arguments": {"name": "C"}, "outputs": ["b0"]},
        {"name": "get_loops", "arguments": {"block": "b0"}, "outputs": ["l1", "l2"]},
        {"name": "sample_perfect_tile", "arguments": {"loop": "l1", "n": 2,
         "max_innermost_factor": 16}, "outputs": ["v3", "v4"], "decision": [8, 16]},
        {"name": "split", "arguments": {"loop": "l1", "factors": ["v3", "v4"]}, ...}]}

A handle is written as its name, an expression of handles as {"op": "*", "of": ["v1", 2]}. In an
annotation's value a handle is {"rv": name}, and a mapping is {"dict": {...}}. A map of indices is
the text of a lambda.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from compiler.schedule.error import TraceError
from compiler.schedule.trace.instruction import (
    Argument,
    Decision,
    Instruction,
    NoteDict,
    Ref,
    Scalar,
    Term,
    TermOp,
)
from compiler.schedule.trace.instruction_kinds import (
    INSTRUCTION_KINDS,
    OLD_NAMES,
    HandleKind,
    InstructionKind,
    Parameter,
    ParameterKind,
)
from compiler.schedule.trace.trace_values import (
    MAX_INT,
    MAX_ITEMS,
    as_int,
    as_lambda,
    as_list,
    as_object,
    as_pair,
    as_probability,
    as_scalar,
    as_text,
    is_int,
    shown,
)

FORMAT = 2
OLD_FORMATS = (1,)
# Chosen bounds on traces from outside, far above the traces of sketches.
MAX_INSTRUCTIONS = 10_000
MAX_DEPTH = 16

_OPS: dict[str, TermOp] = {"+": "+", "-": "-", "*": "*", "//": "//", "%": "%"}
_NAME = re.compile(r"[blv](0|[1-9][0-9]{0,8})")
_HANDLES: dict[ParameterKind, tuple[str, str]] = {
    "block": ("b", "the name of a block handle"),
    "blocks": ("b", "the name of a block handle"),
    "loop": ("l", "the name of a loop handle"),
    "loops": ("l", "the name of a loop handle"),
    "block_or_loop": ("bl", "the name of a block or loop handle"),
    "loop_or_blocks": ("l", "the name of a loop handle, or a list of names of block handles"),
}


def write_trace(instructions: tuple[Instruction, ...]) -> dict[str, object]:
    """Return instructions as a JSON object."""
    return {"format": FORMAT, "instructions": [_write(i) for i in instructions]}


def _write(instruction: Instruction) -> dict[str, object]:
    arguments = write_arguments(instruction)
    entry: dict[str, object] = {"name": instruction.name, "arguments": arguments}
    if instruction.outputs:
        entry["outputs"] = list(instruction.outputs)
    if instruction.decision is not None:
        decision = instruction.decision
        entry["decision"] = decision if isinstance(decision, int) else list(decision)
    return entry


def write_arguments(instruction: Instruction) -> dict[str, object]:
    """Return the arguments of an instruction as a JSON object."""
    spec = instruction.spec
    arguments: dict[str, object] = {}
    for name, value in instruction.arguments:
        parameter = spec.parameter(name)
        assert parameter is not None, "instructions have the parameters of their spec"
        arguments[name] = _write_argument(value, parameter.kind)
    return arguments


def _write_argument(value: Argument, kind: ParameterKind) -> object:
    match value:
        case Ref(name):
            return {"rv": name} if kind == "note" else name
        case Term(op, lhs, rhs):
            return {"op": op, "of": [_write_argument(x, kind) for x in (lhs, rhs)]}
        case tuple():
            return [_write_argument(item, kind) for item in value]
        case NoteDict(items):
            return {"dict": {key: _write_argument(item, kind) for key, item in items}}
        case _:
            return value


def read_trace(obj: object) -> tuple[Instruction, ...]:
    """Return the instructions of a JSON object.

    Raises:
        TraceError: If it is not a trace.
    """
    top = as_object(obj, "trace", {"format", "instructions"})
    version = top["format"]
    if version not in (FORMAT, *OLD_FORMATS) or not is_int(version):
        raise TraceError("format", f"expected version 1 to {FORMAT}, got {shown(version)}")
    entries = top["instructions"]
    if not isinstance(entries, list):
        raise TraceError("instructions", f"expected a list, got {shown(entries)}")
    if len(entries) > MAX_INSTRUCTIONS:
        reason = f"{len(entries)} instructions are more than {MAX_INSTRUCTIONS}"
        raise TraceError("instructions", reason)
    defined: set[str] = set()
    return tuple(
        _InstructionReader(f"instructions[{n}]", defined).instruction(entry)
        for n, entry in enumerate(entries)
    )


def check_decision(instruction: Instruction, decision: object, where: str) -> Decision:
    """Return a decision if it has the form that an instruction requires.

    Raises:
        TraceError: If it does not.
    """
    arguments = dict(instruction.arguments)
    if instruction.name == "sample_categorical":
        candidates = arguments["candidates"]
        assert isinstance(candidates, tuple), "the candidates were read"
        if not is_int(decision) or not 0 <= decision < len(candidates):
            reason = f"expected an index of {len(candidates)} candidates, got {shown(decision)}"
            raise TraceError(where, reason)
        return decision
    if instruction.name == "sample_compute_location":
        if not is_int(decision) or not -2 <= decision <= MAX_INT:
            reason = f"expected -2, -1 or the number of a loop, got {shown(decision)}"
            raise TraceError(where, reason)
        return decision
    n = arguments["n"]
    items = decision if isinstance(decision, list | tuple) else ()
    # The outermost factor is -1 if the extent is unknown.
    positive_items = items[1:] if items[:1] in ([-1], (-1,)) else items
    if len(items) != n or not all(is_int(item) and 1 <= item <= MAX_INT for item in positive_items):
        raise TraceError(where, f"expected {n} positive integers, got {shown(decision)}")
    return tuple(items)


def decided_numbers(trace: Mapping[str, Any]) -> list[int]:
    """Return what a trace decided as numbers: each factor of a tile, the value of each choice.

    Args:
        trace: What `write_trace` returned, or `read_trace` accepted.
    """
    numbers: list[int] = []
    for instruction in trace["instructions"]:
        decision = instruction.get("decision")
        if isinstance(decision, list):
            numbers += decision
        elif decision is not None:
            candidates = instruction["arguments"].get("candidates")
            numbers.append(decision if candidates is None else candidates[decision])
    return numbers


class _InstructionReader:
    """Reads one instruction; `defined` are the handles that earlier ones returned."""

    def __init__(self, where: str, defined: set[str]) -> None:
        self._where = where
        self._defined = defined

    def instruction(self, entry: object) -> Instruction:
        fields = as_object(entry, self._where, {"name", "arguments"}, {"outputs", "decision"})
        name = fields["name"]
        spec = INSTRUCTION_KINDS.get(OLD_NAMES.get(name, name)) if isinstance(name, str) else None
        if spec is None:
            raise TraceError(f"{self._where}.name", f"{shown(name)} is not an instruction")
        arguments = self._arguments(spec, fields["arguments"])
        outputs = self._outputs(spec, dict(arguments), fields.get("outputs", []))
        instruction = Instruction(spec.name, arguments, outputs)
        where = f"{self._where}.decision"
        decision = fields.get("decision")
        if spec.decides:
            decided = check_decision(instruction, decision, where)
            return Instruction(spec.name, arguments, outputs, decided)
        if decision is not None:
            raise TraceError(where, f"{spec.name} decides nothing, got {shown(decision)}")
        return instruction

    def _arguments(self, spec: InstructionKind, obj: object) -> tuple[tuple[str, Argument], ...]:
        where = f"{self._where}.arguments"
        fields = as_object(obj, where, spec.required, spec.optional)
        arguments = tuple(
            (p.name, self._argument(p, fields[p.name], f"{where}.{p.name}"))
            for p in spec.parameters
            if p.name in fields
        )
        if spec.name == "sample_categorical":
            candidates, probs = (value for _, value in arguments)
            assert isinstance(candidates, tuple), "the candidates were read as a list"
            assert isinstance(probs, tuple), "the probabilities were read as a list"
            if len(candidates) != len(probs):
                reason = f"{len(probs)} probabilities for {len(candidates)} candidates"
                raise TraceError(f"{where}.probs", reason)
        return arguments

    def _argument(self, parameter: Parameter, value: object, where: str) -> Argument:
        match parameter.kind:
            case "blocks" | "loops" | "factors" | "ints" | "probabilities":
                least = 0 if parameter.kind in ("blocks", "ints") else 1
                items = as_list(value, where, least)
                read = tuple(
                    self._scalar(parameter.kind, item, f"{where}[{n}]")
                    for n, item in enumerate(items)
                )
                _check_items(parameter.kind, read, where)
                return read
            case "note":
                return self._note(value, where, 0)
            case "buffer":
                mode, number = as_pair(value, where)
                if mode not in ("read", "write"):
                    raise TraceError(where, f"expected read or write, got {shown(mode)}")
                return (as_text(mode, where), as_int(number, where))
            case "loop_or_blocks" if isinstance(value, list):
                items = as_list(value, where, 1)
                return tuple(
                    self._scalar("blocks", item, f"{where}[{n}]") for n, item in enumerate(items)
                )
            case kind:
                return self._scalar(kind, value, where)

    def _scalar(self, kind: ParameterKind, value: object, where: str) -> Scalar:  # noqa: C901
        match kind:
            case "block" | "blocks" | "loop" | "loops" | "block_or_loop" | "loop_or_blocks":
                letters, expected = _HANDLES[kind]
                return self._ref(value, letters, where, expected)
            case "factors":
                return None if value is None else self._operand(value, where, 0)
            case "int" | "ints":
                return as_int(value, where)
            case "count":
                return as_int(value, where, 1)
            case "bool":
                if not isinstance(value, bool):
                    raise TraceError(where, f"expected true or false, got {shown(value)}")
                return value
            case "str":
                return as_text(value, where)
            case "optional_str":
                return None if value is None else as_text(value, where)
            case "probabilities":
                return as_probability(value, where)
            case "index_map":
                return as_lambda(value, where)
            case "pad_value":
                is_number = isinstance(value, int | float) and math.isfinite(value)
                return value if value is None or is_number else as_lambda(value, where)  # type: ignore[return-value]
            case "note" | "buffer":
                raise AssertionError("notes and buffers are read whole")

    def _note(self, value: object, where: str, depth: int) -> Argument:
        if depth > MAX_DEPTH:
            raise TraceError(where, f"is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, list):
            items = as_list(value, where, 0)
            return tuple(self._note(v, f"{where}[{n}]", depth + 1) for n, v in enumerate(items))
        if not isinstance(value, dict):
            return as_scalar(value, where)
        if "dict" not in value:
            name = as_object(value, where, {"rv"})["rv"]
            return self._ref(name, "v", f"{where}.rv", "the name of a value handle")
        entries = as_object(value, where, {"dict"})["dict"]
        if not isinstance(entries, dict) or len(entries) > MAX_ITEMS:
            raise TraceError(where, f"expected an object of at most {MAX_ITEMS} entries")
        return NoteDict(
            tuple(
                (as_text(key, where), self._note(item, f"{where}.{shown(key)}", depth + 1))
                for key, item in entries.items()
            )
        )

    def _operand(self, value: object, where: str, depth: int) -> Ref | Term | int:
        """Read an integer, a value, or an expression of values."""
        if is_int(value):
            return as_int(value, where)
        if not isinstance(value, dict):
            return self._ref(value, "v", where, "an integer, null or a value handle")
        if depth > MAX_DEPTH:
            raise TraceError(where, f"is nested deeper than {MAX_DEPTH} levels")
        fields = as_object(value, where, {"op", "of"})
        op = fields["op"]
        if not isinstance(op, str) or op not in _OPS:
            raise TraceError(f"{where}.op", f"{shown(op)} is not an operation")
        sides = enumerate(as_pair(fields["of"], f"{where}.of"))
        lhs, rhs = (self._operand(x, f"{where}.of[{n}]", depth + 1) for n, x in sides)
        return Term(_OPS[op], lhs, rhs)

    def _ref(self, value: object, letters: str, where: str, expected: str) -> Ref:
        if not isinstance(value, str) or not _NAME.fullmatch(value) or value[0] not in letters:
            raise TraceError(where, f"expected {expected}, got {shown(value)}")
        if value not in self._defined:
            raise TraceError(where, f"no instruction before this one gives {value}")
        return Ref(value)

    def _outputs(
        self, spec: InstructionKind, arguments: Mapping[str, Argument], obj: object
    ) -> tuple[str, ...]:
        where = f"{self._where}.outputs"
        names = as_list(obj, where, 0)
        expected = _num_outputs(spec, arguments)
        if expected is not None and len(names) != expected:
            raise TraceError(where, f"{spec.name} gives {expected} handles, got {len(names)}")
        return tuple(
            self._output(name, spec.outputs, f"{where}[{n}]") for n, name in enumerate(names)
        )

    def _output(self, name: object, kind: HandleKind | None, where: str) -> str:
        if name == "_":
            return "_"
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name[0] != kind:
            raise TraceError(where, f"expected a name such as {kind}0, got {shown(name)}")
        if name in self._defined:
            raise TraceError(where, f"{name} is given twice")
        self._defined.add(name)
        return name


def _num_outputs(spec: InstructionKind, arguments: Mapping[str, Argument]) -> int | None:
    if not isinstance(spec.num_outputs, str):
        return spec.num_outputs
    value = arguments[spec.num_outputs]
    if isinstance(value, tuple):
        return len(value)
    assert isinstance(value, int), "a number of outputs is a count"
    return value


def _check_items(kind: ParameterKind, items: tuple[Scalar, ...], where: str) -> None:
    if kind == "probabilities" and not any(isinstance(p, float) and p > 0 for p in items):
        raise TraceError(where, "expected a probability above zero")
