"""Calls of the C library's functions, for which LLVM has no intrinsic."""

from __future__ import annotations

from compiler.backends.cpu.codegen.operations.conversions import Conversions
from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.backends.cpu.codegen.text.types import vector
from compiler.ir.core.dtypes import DType


def library_call(
    instructions: Instructions,
    conversions: Conversions,
    name: str,
    dtype: DType,
    args: tuple[RegisterValue, ...],
) -> RegisterValue:
    """Call a function of the C library on doubles, one lane after another.

    Args:
        instructions: The instructions of the function.
        conversions: Its conversions.
        name: The function's name in the C library.
        dtype: The type of the arguments and of the result.
        args: The arguments.
    """
    lanes = max(a.lanes for a in args)
    doubles = [
        instructions.broadcast(conversions.convert(a, dtype, "float64"), "double", lanes)
        for a in args
    ]
    if lanes == 1:
        result = instructions.call("double", name, [("double", a) for a in doubles], 1)
        return conversions.convert(result, "float64", dtype)
    level = max(a.level for a in doubles)
    kind = vector("double", lanes)
    result = RegisterValue("poison", level, lanes)
    for lane in range(lanes):
        scalars = [
            (
                "double",
                instructions.emit_once(f"extractelement {kind} {a.name}, i64 {lane}", level),
            )
            for a in doubles
        ]
        scalar_result = instructions.call("double", name, scalars, 1).name
        text = f"insertelement {kind} {result.name}, double {scalar_result}, i64 {lane}"
        result = instructions.emit_once(text, level, lanes)
    return conversions.convert(result, "float64", dtype)
