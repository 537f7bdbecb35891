"""Floating-point arithmetic, in each rounding mode; approximations are computed in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.instructions.builder import (
    Builder,
    Operation,
    elementwise,
    last_type,
)
from compiler.backends.emulator.instructions.rounding import (
    add_odd,
    fma_float32,
    fma_float64,
    fma_odd,
    round_float,
)
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, PtxType, ptx_type

_PRED = ptx_type("pred")


def flush(value: Array) -> Array:
    """Replace subnormal numbers by zeros of their sign."""
    tiny = np.finfo(np.float32).tiny
    return np.where(np.abs(value) < tiny, np.copysign(np.float32(0), value), value)


def saturate(value: Array) -> Array:
    """Clamp to [0, 1]; NaN becomes 0."""
    return np.where(value > 0, np.minimum(value, value.dtype.type(1)), value.dtype.type(0))


def minimum(a: Array, b: Array) -> Array:
    """Return the smaller number, -0 below +0, and a number before NaN."""
    result = np.fmin(a, b)
    if not np.all(result):
        negative = np.signbit(a) | np.signbit(b)
        result = np.where((a == 0) & (b == 0) & negative, -np.abs(result), result)
    return result


def maximum(a: Array, b: Array) -> Array:
    """Return the larger number, +0 above -0, and a number before NaN."""
    result = np.fmax(a, b)
    if not np.all(result):
        positive = ~(np.signbit(a) & np.signbit(b))
        result = np.where((a == 0) & (b == 0) & positive, np.abs(result), result)
    return result


def arithmetic(
    machine: Machine, instruction: PtxInstruction, operation: Operation, kind: PtxType | None = None
) -> Handler:
    """Return the handler of an operation, with the modifiers of the instruction."""
    kind = kind or last_type(instruction)
    operands, parts = machine.operands, instruction.parts
    target, *sources = instruction.operands
    return elementwise(
        operands.target(target, kind),
        modified(operation, parts, kind),
        *[operands.source(source, kind) for source in sources],
    )


def modified(operation: Operation, parts: tuple[str, ...], kind: PtxType) -> Operation:
    """Apply `.ftz`, `.sat` and `.relu` to an operation."""
    steps: list[Operation] = []
    flushes = "ftz" in parts and kind.dtype == np.float32
    if flushes:
        steps.append(flush)
    if "sat" in parts:
        steps.append(saturate)
    if "relu" in parts:
        steps.append(lambda value: np.maximum(value, value.dtype.type(0)))
    if not steps:
        return operation

    def run(*values: Array) -> Array:
        if flushes:
            values = tuple(flush(value) for value in values)
        result = np.asarray(operation(*values), kind.dtype)
        for step in steps:
            result = step(result)
        return result

    return run


def rounding_mode(parts: tuple[str, ...]) -> str:
    """Return the rounding mode that an instruction names; the nearest even number otherwise."""
    return next((part for part in parts if part in ("rz", "rm", "rp")), "rn")


def _sum(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind, mode = last_type(instruction), rounding_mode(instruction.parts)
    sign = 1 if instruction.opcode == "add" else -1
    if mode == "rn":
        operation: Operation = np.add if sign > 0 else np.subtract
    else:
        _float32_only(instruction, kind)

        def operation(a: Array, b: Array) -> Array:
            return round_float(add_odd(a, sign * b), kind.dtype, mode)

    return arithmetic(machine, instruction, operation)


def _product(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind, mode = last_type(instruction), rounding_mode(instruction.parts)
    if mode == "rn":
        return arithmetic(machine, instruction, np.multiply)
    _float32_only(instruction, kind)

    def operation(a: Array, b: Array) -> Array:
        return round_float(np.multiply(a, b, dtype=np.float64), kind.dtype, mode)

    return arithmetic(machine, instruction, operation)


def _fused(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind, mode = last_type(instruction), rounding_mode(instruction.parts)
    if kind.dtype == np.float64:
        operation: Operation = fma_float64
        if mode != "rn":
            raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    elif kind.dtype == np.float32 and mode == "rn":
        operation = fma_float32
    else:

        def operation(a: Array, b: Array, c: Array) -> Array:
            return round_float(fma_odd(a, b, c), kind.dtype, mode)

    return arithmetic(machine, instruction, operation)


def _quotient(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind, mode = last_type(instruction), rounding_mode(instruction.parts)

    def operation(a: Array, b: Array) -> Array:
        if mode == "rn":
            return np.true_divide(a, b)
        quotient = np.divide(a, b, dtype=np.float64)
        return round_float(quotient, kind.dtype, mode)

    return arithmetic(machine, instruction, operation)


def _extreme(machine: Machine, instruction: PtxInstruction) -> Handler:
    smaller = instruction.opcode == "min"
    kind = last_type(instruction)
    if "NaN" in instruction.parts:
        operation: Operation = np.minimum if smaller else np.maximum
    else:
        operation = minimum if smaller else maximum
    if "xorsign" in instruction.parts:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    return arithmetic(machine, instruction, operation, kind)


def _absolute(machine: Machine, instruction: PtxInstruction) -> Handler:
    return arithmetic(machine, instruction, np.abs)


def _negate(machine: Machine, instruction: PtxInstruction) -> Handler:
    return arithmetic(machine, instruction, np.negative)


def _unary(function: Operation) -> Builder:
    """Return the builder of a function that is computed in float64 and rounded once."""

    def build(machine: Machine, instruction: PtxInstruction) -> Handler:
        kind, mode = last_type(instruction), rounding_mode(instruction.parts)

        def operation(value: Array) -> Array:
            result = function(np.asarray(value, np.float64))
            return result if kind.dtype == np.float64 else round_float(result, kind.dtype, mode)

        return arithmetic(machine, instruction, operation)

    return build


def _copy_sign(machine: Machine, instruction: PtxInstruction) -> Handler:
    # copysign d, a, b takes the sign of a and the magnitude of b.
    return arithmetic(machine, instruction, lambda a, b: np.copysign(b, a))


_TESTS: dict[str, Operation] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda value: ~np.isnan(value),
    "notanumber": np.isnan,
    "normal": lambda v: np.isfinite(v) & (np.abs(v) >= np.finfo(v.dtype).tiny),
    "subnormal": lambda v: (v != 0) & (np.abs(v) < np.finfo(v.dtype).tiny),
}


def _test_property(machine: Machine, instruction: PtxInstruction) -> Handler:
    kind = last_type(instruction)
    target, source = instruction.operands
    return elementwise(
        machine.operands.target(target, _PRED),
        _TESTS[instruction.parts[1]],
        machine.operands.source(source, kind),
    )


def _float32_only(instruction: PtxInstruction, kind: PtxType) -> None:
    if kind.dtype == np.float64:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)


def _reciprocal(value: Any) -> Any:
    return np.true_divide(1.0, value)


FLOAT: dict[str, Builder] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "fma": _fused,
    "mad": _fused,
    "div": _quotient,
    "min": _extreme,
    "max": _extreme,
    "abs": _absolute,
    "neg": _negate,
}
"""Instructions that exist for integers too."""

FLOAT_ONLY: dict[str, Builder] = {
    "fma": _fused,
    "rcp": _unary(_reciprocal),
    "sqrt": _unary(np.sqrt),
    "rsqrt": _unary(lambda value: _reciprocal(np.sqrt(value))),
    "ex2": _unary(np.exp2),
    "lg2": _unary(np.log2),
    "sin": _unary(np.sin),
    "cos": _unary(np.cos),
    "tanh": _unary(np.tanh),
    "copysign": _copy_sign,
    "testp": _test_property,
}
"""Instructions of floating-point types alone."""
