"""Data types that operators take."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.graph.error import ModelError
from compiler.graph.nodes import TensorType
from compiler.ir.core.dtypes import DType, is_float, is_integer

Accepts: TypeAlias = Literal["any", "number", "float", "integer", "bool"]
"""The operands that an operator takes; a number is an integer or a float."""


def check_accepts(name: str, accepts: Accepts, *operands: TensorType) -> None:
    """Refuse operands of types that an operator does not take.

    Raises:
        ModelError: Naming the type.
    """
    for operand in operands:
        if not _is_accepted(operand.dtype, accepts):
            raise ModelError(f"{name} of {operand.dtype}: expected the type {accepts}")


def check_same_dtype(name: str, *operands: TensorType) -> None:
    """Refuse operands of several types.

    Raises:
        ModelError: Naming the types.
    """
    dtypes = list(dict.fromkeys(operand.dtype for operand in operands))
    if len(dtypes) > 1:
        raise ModelError(f"{name} of {' and '.join(dtypes)}: expected operands of one type")


def check_choice(name: str, attribute: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a word that is none of the choices of an attribute.

    Raises:
        ModelError: Naming the choices.
    """
    if value not in choices:
        raise ModelError(f"{name}: {attribute} is {value!r}: expected {', '.join(choices)}")


def _is_accepted(dtype: DType, accepts: Accepts) -> bool:
    match accepts:
        case "any":
            return True
        case "number":
            return dtype != "bool"
        case "float":
            return is_float(dtype)
        case "integer":
            return is_integer(dtype)
        case "bool":
            return dtype == "bool"
