"""The registry of operators: `@operator` declares one, and everything else follows from it.

The declaration names the parts of an operator: the function of tensors, the function of extents
that builds a program, the reference and the recognizer. The names of `lw.ops`, the lines of text,
the references and `recognize` read the registry.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from numpy.typing import NDArray

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.keywords import suggests_keywords

if TYPE_CHECKING:
    from compiler.ops.recognizers.facts import ProgramFacts
    from compiler.ops.spec import Spec

Array: TypeAlias = NDArray[Any]
Options: TypeAlias = SimpleNamespace
"""The arguments of an operator by their names, including the defaults."""

Recognizer: TypeAlias = "Callable[[ProgramFacts], Iterable[Spec]]"
"""Takes the facts of a program, and yields arguments with which operators may have built it."""

Program = TypeVar("Program", bound=Callable[..., PrimFunc])


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of the library.

    Attributes:
        name: The name in `lw.ops` and in lines of text.
        program: Takes extents and options, and returns a finished program.
        tensors: Takes the inputs of the program as `te.Tensor`, in their order, and options by
            the names that they have in `program`; returns the output.
        reference: Takes the arguments of `program`, then arrays in float64 or int64; returns
            the result of the operator.
        recognize: Yields operators that may have built a program, perhaps a more general one (a
            `dense` is a `matmul`); None if the operator is not recognized.
    """

    name: str
    program: Callable[..., PrimFunc]
    tensors: Callable[..., te.Tensor]
    reference: Callable[..., Array]
    recognize: Recognizer | None = None

    def __call__(self, *args: Any, **options: Any) -> PrimFunc:
        """Return the program.

        Raises:
            OperatorError: If the operator does not take these arguments.
        """
        return self.program(*args, **options)

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return the arguments of `program`."""
        return inspect.signature(self.program).parameters

    @property
    def summary(self) -> str:
        """Return the first line of the documentation."""
        return (inspect.getdoc(self.program) or "").partition("\n")[0]


OPERATORS: dict[str, Operator] = {}
"""All operators by their names, in the order of their declarations."""


def operator(
    tensors: Callable[..., te.Tensor],
    *,
    reference: Callable[..., Array],
    recognize: Recognizer | None = None,
) -> Callable[[Program], Program]:
    """Declare the decorated function, which builds a program, as an operator of its name.

    Args:
        tensors: The operator on tensors.
        reference: The operator by NumPy.
        recognize: The recognizer that finds the operator in a program.

    Raises:
        ValueError: If the name is taken.
    """

    def declare(program: Program) -> Program:
        name = program.__name__
        if name in OPERATORS:
            raise ValueError(f"operator {name} is declared twice")
        checked = suggests_keywords(program)
        OPERATORS[name] = Operator(name, checked, tensors, reference, recognize)
        return checked  # type: ignore[return-value]

    return declare
