"""Type checks of the arguments of primitives, which run before the primitive."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from compiler.ir.core.nodes import Buffer, Var
from compiler.schedule.trace.handle import ExprRV, LoopRV, TermRV
from compiler.schedule.trace.instruction_kinds import InstructionKind, ParameterKind

_Check: TypeAlias = Callable[[object], bool]
_SHOWN = 80
"""The number of characters of a wrong argument that an error quotes."""


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_buffer(value: object) -> bool:
    return isinstance(value, str | Var | Buffer)


# Handles, notes, index maps and padding values are checked when they are resolved.
_CHECKS: Mapping[ParameterKind, tuple[_Check, str]] = {
    "blocks": (lambda value: value is None or _is_sequence(value), "a list of blocks, or None"),
    "loop_or_blocks": (
        lambda value: isinstance(value, LoopRV) or _is_sequence(value),
        "a loop, or a list of blocks",
    ),
    "factors": (_is_sequence, "a list of integers and None"),
    "ints": (_is_sequence, "a list of integers"),
    "probabilities": (_is_sequence, "a list of numbers"),
    "int": (_is_integer, "an integer"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "str": (lambda value: isinstance(value, str), "a string"),
    "optional_str": (lambda value: value is None or isinstance(value, str), "a string, or None"),
    "buffer": (
        lambda value: _is_buffer(value) or isinstance(value, list | tuple),
        '("read", 0), a name or a buffer',
    ),
}
_BUFFER_INDEX: tuple[_Check, str] = (
    lambda value: _is_buffer(value) or _is_integer(value),
    "the number, the name or the buffer of an access",
)
_CHOSEN: tuple[_Check, str] = (
    lambda value: _is_integer(value) or isinstance(value, ExprRV | TermRV),
    "an integer",
)


def argument_check(method: Callable[..., Any], spec: InstructionKind) -> Callable[..., str | None]:
    """Return a function that returns what is wrong with a primitive's arguments, or None."""
    parameters = [*inspect.signature(method).parameters.values()][1:]
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        names = []  # handles in a row, and the others by name
    checks = {p.name: check for p in spec.parameters if (check := _check_of(p.name, p.kind, spec))}

    def problem(*args: object, **kwargs: object) -> str | None:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if name in checks and not checks[name][0](value):
                return f"{name} is {_shown(value)}: expected {checks[name][1]}"
        return None

    return problem


def _check_of(name: str, kind: ParameterKind, spec: InstructionKind) -> tuple[_Check, str] | None:
    if kind == "int" and name.endswith("buffer_index"):
        return _BUFFER_INDEX
    return _CHOSEN if kind == "int" and spec.decides else _CHECKS.get(kind)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
