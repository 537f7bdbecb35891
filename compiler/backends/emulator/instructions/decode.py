"""Decode: from an instruction to the function that runs it."""

from __future__ import annotations

from compiler.backends.emulator.errors import UnsupportedInstructionError
from compiler.backends.emulator.instructions.async_copy import ASYNC_COPY
from compiler.backends.emulator.instructions.bits import BITS
from compiler.backends.emulator.instructions.builder import Builder
from compiler.backends.emulator.instructions.conversions import CONVERSIONS
from compiler.backends.emulator.instructions.floats import FLOAT, FLOAT_ONLY
from compiler.backends.emulator.instructions.integers import DOT_PRODUCTS, INTEGER
from compiler.backends.emulator.instructions.mbarrier import MBARRIER
from compiler.backends.emulator.instructions.memory_access import MEMORY, no_operation
from compiler.backends.emulator.instructions.selection import PREDICATE, SELECTION
from compiler.backends.emulator.instructions.tensor_cores import TENSOR_CORES
from compiler.backends.emulator.instructions.warp import WARP, WARP_STATE
from compiler.backends.emulator.instructions.warpgroup import WARPGROUP
from compiler.backends.emulator.machine import Handler, Machine
from compiler.backends.emulator.program import PtxInstruction
from compiler.backends.emulator.types import types_of

_ANY_TYPE: dict[str, Builder] = {
    **FLOAT_ONLY,
    **BITS,
    **DOT_PRODUCTS,
    **SELECTION,
    **CONVERSIONS,
    **MEMORY,
    **WARP,
    **WARP_STATE,
    **TENSOR_CORES,
    **ASYNC_COPY,
    **MBARRIER,
    **WARPGROUP,
    "setmaxnreg": no_operation,
}


def decode(machine: Machine, instruction: PtxInstruction) -> Handler:
    """Return the function that runs an instruction for the active lanes.

    Raises:
        UnsupportedInstructionError: If the emulator does not implement it.
    """
    builder = _builder(instruction)
    if builder is None:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line)
    try:
        return builder(machine, instruction)
    except (KeyError, ValueError, IndexError) as error:
        raise UnsupportedInstructionError(instruction.text, instruction.ptx_line) from error


def _builder(instruction: PtxInstruction) -> Builder | None:
    name = instruction.opcode
    kinds = types_of(instruction.parts)
    if kinds and kinds[-1].name == "pred" and name in PREDICATE:
        return PREDICATE[name]
    if name in INTEGER:
        is_float = bool(kinds) and kinds[-1].is_float
        return FLOAT.get(name) if is_float else INTEGER[name]
    return _ANY_TYPE.get(name)
