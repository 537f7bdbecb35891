"""LLVM intrinsics that programs may call by name: `T.call_llvm_pure_intrin("int32x8", ...)`.

`compiler.ir.core.llvm_functions` lists them. LLVM ends the process at a name that it does not know,
so no other name reaches it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compiler.ir.core.llvm_functions import LlvmFunction, VectorType
from compiler.ir.core.llvm_generic import GENERIC_FUNCTIONS
from compiler.ir.core.llvm_of_cpus import FUNCTIONS_OF_CPUS

LLVM_CALL = "call_llvm_pure_intrin"
LLVM_FUNCTIONS: dict[str, LlvmFunction] = {
    function.name: function for function in (*FUNCTIONS_OF_CPUS, *GENERIC_FUNCTIONS)
}


class LlvmCallProblem(ValueError):  # noqa: N818 (callers turn it into an error with a place)
    """A call of an unknown function, or with operands that it does not take."""


_SUFFIX = re.compile(r"\.(v[0-9]+)?[if][0-9]+$")
_OF_INSTRUCTION_SETS = re.compile(
    r"llvm\.(aarch64|amdgcn|arm|bpf|hexagon|loongarch|mips|nvvm|ppc|r600|riscv|s390|spv|ve|wasm"
    r"|x86|xcore)\.[\w.]+",
    re.ASCII,
)


def without_suffix(name: str) -> str:
    """Return the name of a function without the types of its operands."""
    return _SUFFIX.sub("", name)


def is_foreign_instruction(name: str) -> bool:
    """Return whether a name is that of an instruction of some CPU or GPU, and unknown here."""
    is_known = name in LLVM_FUNCTIONS or without_suffix(name) in LLVM_FUNCTIONS
    return not is_known and _OF_INSTRUCTION_SETS.fullmatch(name) is not None


def llvm_function(name: str) -> LlvmFunction:
    """Return a function by its name, with or without the type suffix.

    Raises:
        LlvmCallProblem: If the function is unknown.
    """
    function = LLVM_FUNCTIONS.get(name) or LLVM_FUNCTIONS.get(without_suffix(name))
    if function is None:
        names = ", ".join(sorted(LLVM_FUNCTIONS))
        raise LlvmCallProblem(f"unknown LLVM function {name}: expected one of {names}")
    return function


def llvm_result(name: str, args: Sequence[VectorType]) -> VectorType:
    """Return the type of a call, as the type of an element and a number of lanes.

    Raises:
        LlvmCallProblem: If the function is unknown, or does not take these operands.
    """
    function = llvm_function(name)
    if len(args) != function.arity:
        raise LlvmCallProblem(f"{name} takes {function.arity} operand(s), got {len(args)}")
    if function.args is not None:
        assert function.result is not None
        if tuple(args) != function.args:
            raise LlvmCallProblem(f"{name} takes {_spelled(function.args)}, got {_spelled(args)}")
        return function.result
    vector = args[-1]
    expected = [(vector[0], 1), vector] if function.has_start else [vector] * len(args)
    # LLVM ends the process at a reduction of a scalar.
    is_scalar = function.is_reduction and vector[1] == 1
    if list(args) != expected or not function.takes(vector[0]) or is_scalar:
        raise LlvmCallProblem(f"{name} does not take {_spelled(args)}")
    return (vector[0], 1) if function.is_reduction else vector


def is_offered(function: LlvmFunction, features: str) -> bool:
    """Return whether CPU features, as LLVM's text, include those that a function requires."""
    offered = set(features.split(","))
    return function.feature is None or any(
        offered.issuperset(all_of.split(",")) for all_of in function.feature.split("|")
    )


def spelled(dtype: str, lanes: int) -> str:
    """Return the dialect's name of a vector type, such as `int32x8`."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def _spelled(types: Sequence[VectorType]) -> str:
    return f"({', '.join(spelled(*t) for t in types)})"
