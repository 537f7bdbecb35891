"""Decisions as axes with names that tell what is decided: `i of C, part 2`, `unroll of k of C`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Instruction: TypeAlias = Mapping[str, Any]
_DECISION = re.compile(r'"decision": ?(\[[^\]]*\]|-?\d+)')


@dataclass(frozen=True)
class Axis:
    """One number that a sketch leaves open: of its decision at `place`, the part `part`.

    A choice among `candidates` counts as the value that it chose.
    """

    name: str
    place: int  # among the decisions
    part: int | None = None
    candidates: tuple[float, ...] = ()

    def value(self, decisions: Sequence[Any]) -> float:
        """Return what a trace of the sketch decided."""
        decision = decisions[self.place]
        if self.part is not None:
            return float(decision[self.part])
        return self.candidates[decision] if self.candidates else float(decision)


def axes_of(trace: Mapping[str, Any], loops: Mapping[str, Sequence[str]]) -> list[Axis]:
    """Return the axes of a sketch, from the trace of one of its trials.

    Args:
        loops: The names of the loops around each block of the program.
    """
    instructions: Sequence[Instruction] = trace["instructions"]
    names = _Names(instructions, loops)
    axes: list[Axis] = []
    deciding = [n for n, i in enumerate(instructions) if "decision" in i]
    for place, number in enumerate(deciding):
        axes += _axes(place, number, instructions[number], names)
    return _distinct(axes)


def decisions_in(text: str, num: int) -> list[Any]:
    """Return the decisions of a trace, of which it has `num`, from its text.

    Reading all of its JSON takes twenty times as long.
    """
    found = _DECISION.findall(text)
    if len(found) != num:  # an annotation may have a key of that name
        return [i["decision"] for i in json.loads(text)["instructions"] if "decision" in i]
    return list(map(json.loads, found))


def _axes(place: int, number: int, instruction: Instruction, names: _Names) -> Iterator[Axis]:
    outputs = instruction.get("outputs", ())
    if isinstance(instruction["decision"], list):
        loop = names.of(instruction["arguments"].get("loop"))
        for part in range(len(instruction["decision"])):
            yield Axis(f"{loop}, part {part + 1}", place, part)
        return
    candidates = instruction["arguments"].get("candidates", ())
    name = names.use_of(outputs[0], number) if outputs else str(instruction["name"])
    yield Axis(name, place, None, tuple(map(float, candidates)))


def _distinct(axes: Sequence[Axis]) -> list[Axis]:
    """Number the axes that would have one name."""
    seen: dict[str, int] = {}
    found = []
    for axis in axes:
        seen[axis.name] = count = seen.get(axis.name, 0) + 1
        name = axis.name if count == 1 else f"{axis.name} ({count})"
        found.append(Axis(name, axis.place, axis.part, axis.candidates))
    return found


class _Names:
    """What the variables of a trace stand for, in words."""

    def __init__(
        self, instructions: Sequence[Instruction], loops: Mapping[str, Sequence[str]]
    ) -> None:
        self._instructions = instructions
        self._words: dict[str, str] = {}
        for instruction in instructions:
            self._read(instruction, loops)

    def of(self, variable: Any) -> str:
        """Return what a variable stands for."""
        return self._words.get(str(variable), str(variable))

    def use_of(self, variable: str, number: int) -> str:
        """Say what a decided number is used for: by the first instruction that takes it."""
        for instruction in self._instructions[number + 1 :]:
            arguments = instruction["arguments"]
            if instruction["name"] == "split" and variable in arguments["factors"]:
                part = arguments["factors"].index(variable) + 1
                return f"{self.of(arguments['loop'])}, part {part}"
            if variable in _variables(arguments):
                what = arguments.get("ann_key", instruction["name"])
                where = next((self.of(v) for v in arguments.values() if str(v) in self._words), "")
                return f"{what} of {where}" if where else str(what)
        return variable

    def _read(self, instruction: Instruction, loops: Mapping[str, Sequence[str]]) -> None:
        arguments, outputs = instruction["arguments"], instruction.get("outputs", ())
        match instruction["name"]:
            case "get_sblock" | "get_block":
                self._words[outputs[0]] = str(arguments["name"])
            case "get_loops":
                block = self.of(arguments["block"])
                known = loops.get(block, ())
                is_untouched = len(known) == len(outputs)
                for place, output in enumerate(outputs):
                    name = known[place] if is_untouched else f"loop {place + 1}"
                    self._words[output] = f"{name} of {block}"
            case "split":
                for part, output in enumerate(outputs, 1):
                    self._words[output] = f"{self.of(arguments['loop'])}, part {part}"
            case "cache_read" | "cache_write":
                self._words[outputs[0]] = f"copy for {self.of(arguments['block'])}"
            case _:
                pass


def _variables(value: Any) -> set[str]:
    """Return the names of variables in an instruction's arguments, however deep."""
    match value:
        case str():
            return {value}
        case Mapping():
            return set().union(*map(_variables, value.values()))
        case list() | tuple():
            return set().union(*map(_variables, value))
        case _:
            return set()
