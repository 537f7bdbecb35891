"""Conversions between types, in each rounding mode."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.backends.emulator.instructions.builder import Builder, Operation, elementwise
from compiler.backends.emulator.instructions.floats import flush, rounding_mode, saturate
from compiler.backends.emulator.instructions.rounding import round_float
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import Array, PtxType, ptx_type, types_of, unsigned

_F32 = ptx_type("f32")
_TO_INTEGER = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
# tf32 has 10 bits of mantissa, 13 fewer than float32.
_TF32_HALF, _TF32_MASK = np.uint32(1 << 12), np.uint32(0xFFFFE000)


def _convert(machine: Machine, instruction: PtxInstruction) -> Handler:
    to, source = types_of(instruction.parts)[:2]
    operands = machine.operands
    target, *texts = instruction.operands
    if to.name == "tf32":
        return elementwise(operands.target(target, _F32), to_tf32, operands.source(texts[0], _F32))
    operation = _operation(instruction.parts, to, source)
    if len(texts) == 2:  # Two floats become one register; the first one is the high half.
        halves = [operands.source(text, source) for text in texts]
        return elementwise(
            operands.target(target, to),
            lambda high, low: operation(np.stack(np.broadcast_arrays(low, high), axis=-1)),
            *halves,
        )
    return elementwise(operands.target(target, to), operation, operands.source(texts[0], source))


def _operation(parts: tuple[str, ...], to: PtxType, source: PtxType) -> Operation:
    if to.is_float and source.is_float:
        operation = _between_floats(parts, to, source)
    elif source.is_float:
        operation = _to_integer(parts, to)
    elif to.is_float:
        mode = rounding_mode(parts)

        def operation(value: Array) -> Array:
            if mode == "rn" and to.dtype.itemsize >= 4:
                return np.asarray(value).astype(to.dtype)
            return round_float(np.asarray(value, np.float64), to.dtype, mode)

    else:
        operation = _between_integers(parts, to)
    if "ftz" not in parts:
        return operation
    return _flushing(operation, to, source)


def _flushing(operation: Operation, to: PtxType, source: PtxType) -> Operation:
    def run(value: Array) -> Array:
        if source.dtype == np.float32:
            value = flush(value)
        result = operation(value)
        return flush(result) if to.dtype == np.float32 else result

    return run


def _between_floats(parts: tuple[str, ...], to: PtxType, source: PtxType) -> Operation:
    mode = rounding_mode(parts)
    integer = next((_TO_INTEGER[part] for part in parts if part in _TO_INTEGER), None)
    largest = float(_largest(to)) if "satfinite" in parts else None

    def operation(value: Array) -> Array:
        result = np.asarray(value)
        if integer is not None:
            result = integer(result)
        if largest is not None:
            result = np.where(np.isnan(result), result, np.clip(result, -largest, largest))
        if to.dtype != result.dtype:
            result = (
                result.astype(to.dtype)
                if to.dtype.itemsize > source.dtype.itemsize
                else round_float(result.astype(np.float64), to.dtype, mode)
            )
        if "relu" in parts:
            result = np.maximum(result, to.dtype.type(0))
        return saturate(result) if "sat" in parts else result

    return operation


def _largest(kind: PtxType) -> Any:
    # The largest finite number has the largest exponent; NumPy has no finfo of 8-bit floats.
    bits = {"e4m3": 0x7E, "e5m2": 0x7B, "f16": 0x7BFF, "bf16": 0x7F7F}[kind.name]
    return np.array([bits], unsigned(kind.dtype.itemsize)).view(kind.dtype)[0]


def _to_integer(parts: tuple[str, ...], to: PtxType) -> Operation:
    function = next((_TO_INTEGER[part] for part in parts if part in _TO_INTEGER), np.trunc)
    limits = np.iinfo(to.dtype)

    def operation(value: Array) -> Array:
        rounded = function(np.asarray(value, np.float64))
        # The largest 64-bit integers are no float64: compare before the conversion.
        inside = np.where((rounded >= limits.min) & (rounded < float(limits.max) + 1), rounded, 0.0)
        result = inside.astype(to.dtype)
        result = np.where(rounded >= float(limits.max) + 1, to.dtype.type(limits.max), result)
        return np.where(rounded < limits.min, to.dtype.type(limits.min), result)

    return operation


def _between_integers(parts: tuple[str, ...], to: PtxType) -> Operation:
    if "sat" not in parts:
        return lambda value: np.asarray(value).astype(to.dtype)
    limits = np.iinfo(to.dtype)
    return lambda value: np.clip(np.asarray(value), limits.min, limits.max).astype(to.dtype)


def to_tf32(value: Array) -> Array:
    """Round float32 to 10 bits of mantissa, ties away from zero."""
    bits = np.asarray(value, np.float32).view(np.uint32)
    rounded = ((bits + _TF32_HALF) & _TF32_MASK).view(np.float32)
    return np.where(np.isfinite(value), rounded, value)


CONVERSIONS: dict[str, Builder] = {"cvt": _convert}
