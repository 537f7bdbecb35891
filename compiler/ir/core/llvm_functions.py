"""A function of LLVM that programs may call: its types, required CPU features and reference.

Each is pure, and total: no operand makes the result undefined. A reference computes a function on
plain lists of lanes. An overloaded function takes vectors of any length: all of one type, which it
returns. `llvm_generic` lists the functions of every CPU, `llvm_of_cpus` those of some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from compiler.ir.core.dtypes import DType, bits

Lanes: TypeAlias = list[Any]
VectorType: TypeAlias = tuple[DType, int]
Reference: TypeAlias = Callable[..., Lanes]


@dataclass(frozen=True, slots=True)
class LlvmFunction:
    """A function by LLVM's name, without the type suffix.

    Attributes:
        args: The types of the operands; None, like `result`, for an overloaded function.
        feature: The required CPU features: alternatives between bars, each with all its features.
        kind: The types of an overloaded function: "float", "int" (signed), "uint" or "integer"
            (both).
        is_reduction: Whether it returns a scalar; it takes a scalar as its start if `has_start`.
        has_flag: Whether LLVM's function has one more operand, a constant, that is false: with
            true, the result would be undefined for some operands.
        least_bits: The size of the smallest type of an overloaded function.
        of_dtype: Returns the reference for a type, if it depends on the type.
    """

    name: str
    arity: int
    reference: Reference
    args: tuple[VectorType, ...] | None = None
    result: VectorType | None = None
    feature: str | None = None
    kind: str = "float"
    is_reduction: bool = False
    has_start: bool = False
    has_flag: bool = False
    least_bits: int = 8
    of_dtype: Callable[[DType], Reference] | None = None

    def reference_for(self, dtype: DType) -> Reference:
        """Return what the function computes on operands of a type."""
        return self.reference if self.of_dtype is None else self.of_dtype(dtype)

    def takes(self, dtype: DType) -> bool:
        """Return whether an overloaded function takes a type."""
        if self.kind == "float":
            return dtype in ("float16", "float32", "float64")
        prefixes = ("int", "uint") if self.kind == "integer" else (self.kind,)
        return dtype.startswith(prefixes) and bits(dtype) >= self.least_bits


def each(fn: Callable[..., Any]) -> Reference:
    """Return the function that computes each lane from those of the operands."""
    return lambda *args: [fn(*lanes) for lanes in zip(*args, strict=True)]
