"""Nodes that call a function: a program, or a function of a library.

Together with operators they are the three abstractions of a tensor function: what is computed,
by which loops, or by which library.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler import te
from compiler.executor.error import ArtifactError, LibraryCallError
from compiler.executor.functions.call_plan import (
    ArrayArg,
    CallStep,
    checked_function,
    run_function,
)
from compiler.executor.functions.registry import PACKED
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.operator import graph_operator
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.oracle.oracle import interpret

CALL_TIR = "call_tir"
CALL_LIBRARY = "call_dps_packed"


def _program_tensors(*operands: te.Tensor, func: PrimFunc) -> tuple[te.Tensor, ...]:
    results = te.extern_primfunc(operands, func)
    return tuple(results) if isinstance(results, list) else (results,)


def _program_reference(*operands: Array, func: PrimFunc) -> tuple[Array, ...]:
    count = len(operands)
    names = [buffer.name for buffer in func.buffers]
    arrays = {
        buffer.name: array.astype(buffer.dtype)
        for buffer, array in zip(func.buffers, operands, strict=False)
    }
    results = interpret(func, arrays)
    return tuple(results[name] for name in names[count:])


@graph_operator(CALL_TIR, "opaque", tensors=_program_tensors, reference=_program_reference)
def call_tir(*operands: TensorType, func: PrimFunc) -> tuple[TensorType, ...]:
    """Infer the results of a program: its parameters after the operands."""
    if len(func.buffers) != len(func.params):
        raise ModelError(f"{func.name} has parameters that are not buffers")
    if len(operands) >= len(func.buffers):
        raise ModelError(
            f"{func.name} has {len(func.buffers)} parameters, {len(operands)} of them operands:"
            " expected results after them"
        )
    types = [_type_of(func, buffer) for buffer in func.buffers]
    for operand, buffer, expected in zip(operands, func.buffers, types, strict=False):
        if operand != expected:
            raise ModelError(f"{func.name} takes {expected} as {buffer.name}, not {operand}")
    return tuple(types[len(operands) :])


def _library_tensors(*_: te.Tensor, func: str, results: tuple[TensorType, ...]) -> Any:
    del results
    raise ModelError(f"the library function {func} can't be compiled: it runs in the reference")


def _library_reference(
    *operands: Array, func: str, results: tuple[TensorType, ...]
) -> tuple[Array, ...]:
    arrays = tuple(np.empty(result.static_shape, result.dtype) for result in results)
    inputs = (ArrayArg(0, (), (), is_written=False) for _ in operands)
    outputs = (ArrayArg(0, (), (), is_written=True) for _ in arrays)
    step = CallStep(PACKED, func, (*inputs, *outputs))
    try:
        run_function(checked_function("the graph", PACKED, func), step, (*operands, *arrays), func)
    except (ArtifactError, LibraryCallError) as error:
        raise ModelError(str(error)) from error
    return arrays


@graph_operator(CALL_LIBRARY, "opaque", tensors=_library_tensors, reference=_library_reference)
def call_library(
    *_: TensorType, func: str, results: tuple[TensorType, ...]
) -> tuple[TensorType, ...]:
    """Return the results that the call declares; a library does not say what it returns."""
    if not func or not results:
        raise ModelError("a call of a library needs a name and the types of its results")
    return results


def _type_of(func: PrimFunc, buffer: Buffer) -> TensorType:
    try:
        return TensorType(static_shape(buffer), buffer.dtype)
    except ValueError:
        raise ModelError(f"{func.name} has a symbolic extent in {buffer.name}") from None
