"""The operator library: programs by name and shape, with the names of the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.ops import programs as programs
from compiler.ops import tensors as tensors
from compiler.ops.error import OperatorError as OperatorError
from compiler.ops.operator import OPERATORS as OPERATORS
from compiler.ops.reference import reference as reference
from compiler.ops.spec import from_spec as from_spec

if TYPE_CHECKING:
    from compiler.ops.programs import *  # noqa: F403

_MAKERS = ("OPERATORS", "OperatorError", "from_spec", "reference", "tensors")
__all__ = tuple(sorted([*OPERATORS, *_MAKERS]))

if not TYPE_CHECKING:  # hidden from type checkers, which would accept any name

    def __getattr__(name: str) -> Any:
        """Return the function that builds the program of an operator."""
        if name not in OPERATORS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return OPERATORS[name].program


def __dir__() -> list[str]:
    """Return the operators, and the functions that build them from text."""
    return sorted([*OPERATORS, *_MAKERS])
