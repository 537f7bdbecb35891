"""Moves, comparisons and selections."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.instructions.builder import (
    Builder,
    Operation,
    elementwise,
    last_type,
    uniform,
)
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.memory import (
    GLOBAL_WINDOW,
    LOCAL_WINDOW,
    PARAMETER_WINDOW,
    SHARED_WINDOW,
    WINDOW_BITS,
)
from compiler.backends.emulator.operands import parse_vector
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, Lanes, ptx_type, types_of, unsigned

_PRED = ptx_type("pred")

_COMPARE: dict[str, Operation] = {
    "eq": np.equal,
    "ne": lambda a, b: (a < b) | (a > b),
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    # Unsigned forms; and the forms that hold if an operand is NaN.
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
    "equ": lambda a, b: ~((a < b) | (a > b)),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~(a >= b),
    "leu": lambda a, b: ~(a > b),
    "gtu": lambda a, b: ~(a <= b),
    "geu": lambda a, b: ~(a < b),
    "num": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "nan": lambda a, b: np.isnan(a) | np.isnan(b),
}
_COMBINE: dict[str, Operation] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _compare(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`setp.lt.and.f32 p|q, a, b, c`: p = (a < b) and c, q = not (a < b) and c."""
    kind, parts = last_type(instruction), instruction.parts
    targets, left, right, *third = instruction.operands
    operands = machine.operands
    operation = _COMPARE[parts[1]]
    if parts[1] == "ne" and not kind.is_float:
        operation = np.not_equal
    first, *second = [operands.target(text, _PRED) for text in targets.split("|")]
    a, b = operands.source(left, kind), operands.source(right, kind)
    combine = next((_COMBINE[part] for part in parts[2:-1] if part in _COMBINE), None)
    if combine is None and not second:
        return elementwise(first, operation, a, b)
    negated = bool(third) and third[0].startswith("!")
    other = operands.source(third[0].lstrip("!"), _PRED) if third else None

    def run(lanes: Lanes) -> None:
        holds = operation(a(lanes), b(lanes))
        fails = ~holds
        if combine is not None and other is not None:
            condition = ~other(lanes) if negated else other(lanes)
            holds, fails = combine(holds, condition), combine(fails, condition)
        first(lanes, holds)
        for target in second:
            target(lanes, fails)

    return run


def _set(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`set.lt.u32.f32 d, a, b`: all bits or 1.0 if it holds, 0 otherwise."""
    to, kind = types_of(instruction.parts)
    if any(part in _COMBINE for part in instruction.parts):
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    compare = _COMPARE[instruction.parts[1]]
    if to.is_float:
        yes: Any = to.dtype.type(1)
    else:
        yes = np.array([-1], np.int64).astype(to.dtype)[0]
    operands = machine.operands
    target, left, right = instruction.operands
    return elementwise(
        operands.target(target, to),
        lambda a, b: np.where(compare(a, b), yes, to.dtype.type(0)),
        operands.source(left, kind),
        operands.source(right, kind),
    )


def _select(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind, operands = last_type(instruction), machine.operands
    target, yes, no, condition = instruction.operands
    return elementwise(
        operands.target(target, kind),
        lambda a, b, p: np.where(p, a, b),
        operands.source(yes, kind),
        operands.source(no, kind),
        operands.source(condition, _PRED),
    )


def _select_by_sign(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`slct.f32.s32 d, a, b, c`: a if c is not negative."""
    kind, sign = types_of(instruction.parts)
    operands = machine.operands
    target, yes, no, condition = instruction.operands
    return elementwise(
        operands.target(target, kind),
        lambda a, b, c: np.where(c >= 0, a, b),
        operands.source(yes, kind),
        operands.source(no, kind),
        operands.source(condition, sign),
    )


def _move(machine: Machine, instruction: PtxInstruction) -> Handler:
    target, source = instruction.operands
    if source.startswith("{"):
        return _pack(machine, instruction)
    if target.startswith("{"):
        return _unpack(machine, instruction)
    kind, operands = last_type(instruction), machine.operands
    write, read = operands.target(target, kind), operands.source(source, kind)

    def run(lanes: Lanes) -> None:
        write(lanes, read(lanes))

    return run


def _pack(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`mov.b32 d, {low, high}`."""
    whole = last_type(instruction)
    names = parse_vector(instruction.operands[1])
    part = ptx_type(f"b{8 * whole.num_bytes // len(names)}")
    operands = machine.operands
    dtype = unsigned(whole.num_bytes)
    sources = [operands.source(name, part) for name in names]
    bits = 8 * part.num_bytes

    def operation(*values: Array) -> Array:
        result: Any = dtype.type(0)
        for number, value in enumerate(values):
            result = result | (np.asarray(value).astype(dtype) << dtype.type(number * bits))
        return np.asarray(result)

    target = operands.target(instruction.operands[0], ptx_type(f"b{8 * whole.num_bytes}"))
    return elementwise(target, operation, *sources)


def _unpack(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`mov.b32 {low, high}, a`."""
    whole = last_type(instruction)
    names = parse_vector(instruction.operands[0])
    part = ptx_type(f"b{8 * whole.num_bytes // len(names)}")
    operands = machine.operands
    targets = [operands.target(name, part) for name in names]
    source = operands.source(instruction.operands[1], ptx_type(f"b{8 * whole.num_bytes}"))
    bits = 8 * part.num_bytes

    def run(lanes: Lanes) -> None:
        value = np.asarray(source(lanes))
        for number, target in enumerate(targets):
            shifted = value >> value.dtype.type(number * bits)
            target(lanes, shifted.astype(part.dtype))

    return run


_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "shared::cta": SHARED_WINDOW}


def _convert_address(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`cvta.shared` makes a generic address, `cvta.to.shared` one in the space.

    Global addresses and those of parameters are generic ones.
    """
    space = next((part for part in instruction.parts if part in _WINDOWS), None)
    if space is None:
        return _move(machine, instruction)
    window = np.uint64(_WINDOWS[space])
    if "to" in instruction.parts:
        return uniform(machine, instruction, lambda value: value - window)
    return uniform(machine, instruction, lambda value: value + window)


def _is_space(machine: Machine, instruction: PtxInstruction) -> Handler:
    """`isspacep.shared p, address`."""
    space = instruction.parts[1]
    windows = {**_WINDOWS, "global": GLOBAL_WINDOW, "param": PARAMETER_WINDOW}
    expected = np.uint64(windows[space] >> WINDOW_BITS)
    target, address = instruction.operands
    return elementwise(
        machine.operands.target(target, _PRED),
        lambda value: value >> np.uint64(WINDOW_BITS) == expected,
        machine.operands.source(address, ptx_type("u64")),
    )


def _predicate_logic(machine: Machine, instruction: PtxInstruction) -> Handler:
    return uniform(machine, instruction, _COMBINE[instruction.opcode])


def _predicate_not(machine: Machine, instruction: PtxInstruction) -> Handler:
    return uniform(machine, instruction, np.logical_not)


PREDICATE: dict[str, Builder] = {
    "and": _predicate_logic,
    "or": _predicate_logic,
    "xor": _predicate_logic,
    "not": _predicate_not,
    "mov": _move,
}
"""Instructions on predicates."""

SELECTION: dict[str, Builder] = {
    "setp": _compare,
    "set": _set,
    "selp": _select,
    "slct": _select_by_sign,
    "mov": _move,
    "cvta": _convert_address,
    "isspacep": _is_space,
}
