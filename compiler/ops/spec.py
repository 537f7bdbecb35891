"""Operators as lines of text.

Grammar: `NAME:ARGUMENT,ARGUMENT,...[:DTYPE]`, for example `matmul:512,512,512:float32`,
`conv2d:1,64,56,56,64,3,1,1` or `conv2d:1,8,32,32,16,3x5,stride=2,activation=relu`. The integers are
the operator's arguments in their order; trailing ones with a default are optional. Several
numbers for one argument are written `3x5`. A name in the place of a number, as in
`matmul:M,512,512`, is a symbolic extent. Options are given by name. The type is float32 by
default. Each operator takes `constant=W`, or `constant=W+bias`: the inputs that never change.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.ir.core.dtypes import DTYPES
from compiler.ir.core.program import PrimFunc
from compiler.ops.error import OperatorError
from compiler.ops.operator import CONSTANT, OPERATORS
from compiler.ops.symbolic import symbolic_program

# A chosen bound: no operator needs more, and an error quotes the text.
_MAX_CHARS = 1000


@dataclass(frozen=True, slots=True)
class Spec:
    """An operator with its arguments."""

    name: str
    args: tuple[Any, ...]
    options: dict[str, Any]

    def build(self) -> PrimFunc:
        """Return the program.

        Raises:
            OperatorError: If the operator does not take these arguments.
        """
        if self.symbols:
            return symbolic_program(self.name, self._program_at, self.symbols)
        return OPERATORS[self.name](*self.args, **self.options)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of its symbolic extents, in their order."""
        return tuple(dict.fromkeys(arg for arg in self.args if isinstance(arg, str)))

    def _program_at(self, sizes: Mapping[str, int]) -> PrimFunc:
        args = (sizes[arg] if isinstance(arg, str) else arg for arg in self.args)
        return OPERATORS[self.name](*args, **self.options)

    def bound(self) -> dict[str, Any]:
        """Return all arguments by name, including the defaults."""
        signature = inspect.signature(OPERATORS[self.name].program)
        bound = signature.bind(*self.args, **self.options)
        bound.apply_defaults()
        return bound.arguments

    def shortened(self) -> Spec:
        """Return the same spec without options that have their default."""
        parameters = OPERATORS[self.name].parameters
        options = {k: v for k, v in self.options.items() if v != parameters[k].default}
        return Spec(self.name, self.args, options)

    def __str__(self) -> str:
        """Return the text that `parse_spec` parses to this spec."""
        options = dict(self.options)
        dtype = options.pop("dtype", None)
        words = [_written(arg) for arg in self.args]
        words += [f"{key}={_written(value)}" for key, value in options.items()]
        return ":".join(filter(None, (self.name, ",".join(words), dtype)))


def from_spec(spec: str) -> PrimFunc:
    """Build an operator from a line of text.

    Raises:
        OperatorError: If the operator does not exist, or does not take these arguments.
    """
    return parse_spec(spec).build()


def parse_spec(spec: str) -> Spec:
    """Parse an operator's name and arguments.

    Raises:
        OperatorError: If the operator does not exist, or does not take these arguments.
    """
    if not isinstance(spec, str):
        raise OperatorError(f"an operator is given as text, such as matmul:64,64,64, not {spec!r}")
    if len(spec) > _MAX_CHARS:
        raise OperatorError(f"an operator of {len(spec)} characters: expected {_MAX_CHARS} at most")
    name, *arguments = spec.strip().split(":")
    check_name(name)
    if len(arguments) > 2:
        raise OperatorError(f"{spec!r}: expected {signature(name)}")
    words = (
        [word.strip() for word in arguments[0].split(",")]
        if arguments and arguments[0].strip()
        else []
    )
    named = [word for word in words if "=" in word]
    numbers = [_number(name, word) for word in words if "=" not in word]
    options = dict(_option(name, word) for word in named)
    _check_arguments(name, len(numbers), options)
    if len(arguments) == 2:
        options["dtype"] = arguments[1].strip()
    return Spec(name, tuple(numbers), options)


# The least similarity for a hint: "foo" and "floor" have 0.75, and "floor" is no help for "foo".
_NEAR = 0.76


def check_name(name: str) -> None:
    """Refuse an unknown operator.

    Raises:
        OperatorError: With the names that are near.
    """
    if name not in OPERATORS:
        near = difflib.get_close_matches(name, sorted(OPERATORS), n=3, cutoff=_NEAR)
        if near:
            hint = f"did you mean {' or '.join(near)}? It is written {signature(near[0])}"
            raise OperatorError(f"unknown operator {name!r}: {hint}")
        raise OperatorError(
            f"unknown operator {name!r}: expected one such as {signature('matmul')}, or the text "
            f"of a script; known operators: {', '.join(sorted(OPERATORS))}"
        )


def signature(name: str) -> str:
    """Return the syntax of the operator, for example `matmul:m,n,k[:dtype]`."""
    words = []
    for parameter in _numbers(name):
        if parameter.kind is parameter.VAR_POSITIONAL:
            words.append("d0[,d1,...]")
        elif parameter.default is parameter.empty:
            words.append(parameter.name)
        else:
            words.append(f"{parameter.name}={parameter.default}")
    named = (p.name for p in _parameters(name) if p.kind is p.KEYWORD_ONLY)
    options = [option for option in named if option != CONSTANT]  # each operator has it
    more = f" (options: {', '.join(options)})" if options else ""
    return f"{name}:{','.join(words)}[:dtype]{more}"


def _number(name: str, word: str) -> int | tuple[int, ...] | str:
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", word) and word not in DTYPES:
        return word
    if not re.fullmatch(r"[+-]?[0-9]{1,18}(x[0-9]{1,18})*", word):
        raise OperatorError(f"{name}: {word!r} is not an integer: expected {signature(name)}")
    numbers = tuple(int(part) for part in word.split("x"))
    return numbers if len(numbers) > 1 else numbers[0]


def _option(name: str, word: str) -> tuple[str, Any]:
    key, text = (part.strip() for part in word.split("=", maxsplit=1))
    named = [p.name for p in _parameters(name) if p.kind is not p.VAR_POSITIONAL]
    if key not in named:
        near = difflib.get_close_matches(key, named, n=1)
        hint = f": did you mean {near[0]}?" if near else ""
        raise OperatorError(f"{name} has no option {key!r}{hint} expected {signature(name)}")
    return key, _value(name, key, text)


def _value(name: str, key: str, text: str) -> Any:
    if text.lower() in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text.lower()]
    if re.fullmatch(r"[+-]?[0-9]{1,18}(x[+-]?[0-9]{1,18})*", text):
        numbers = tuple(int(part) for part in text.split("x"))
        return numbers if len(numbers) > 1 else numbers[0]
    if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", text):
        return float(text)
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(\+[A-Za-z_][A-Za-z0-9_]*)*", text):
        return text
    raise OperatorError(f"{name}: {key}={text!r} is neither a number nor a word")


def _written(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "x".join(map(str, value))
    return str(value)


def _check_arguments(name: str, count: int, options: dict[str, Any]) -> None:
    parameters = _numbers(name)
    needed = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    fewest = sum(p.default is p.empty and p.name not in options for p in needed)
    most = len(needed)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        fewest, most = fewest + 1, most + 8
    if not fewest <= count <= most:
        expected = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise OperatorError(
            f"{name} takes {expected} numbers, got {count}: expected {signature(name)}"
        )
    twice = [p.name for p in needed[:count] if p.name in options]
    if twice:
        raise OperatorError(f"{name}: {twice[0]} is given twice")
    named = [p for p in _parameters(name) if p.kind is p.KEYWORD_ONLY]
    missing = [p.name for p in named if p.default is p.empty and p.name not in options]
    if missing:
        raise OperatorError(f"{name} needs {missing[0]}=..., by name: expected {signature(name)}")


def _numbers(name: str) -> list[inspect.Parameter]:
    return [p for p in _parameters(name) if p.kind is not p.KEYWORD_ONLY]


def _parameters(name: str) -> list[inspect.Parameter]:
    return [p for p in OPERATORS[name].parameters.values() if p.name != "dtype"]
