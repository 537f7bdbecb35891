"""The registry of operators: `@operator` declares one, and everything else follows from it.

The declaration names the parts of an operator: the function of tensors, the function of extents
that builds a program, the reference and the recognizer. The names of `lw.ops`, the lines of text,
the references and `recognize` read the registry.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    ParamSpec,
    Protocol,
    TypeAlias,
    cast,
    overload,
)

from numpy.typing import NDArray

from compiler import te
from compiler.ir.analysis.constant_params import with_constants
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.inputs import param_roles
from compiler.keywords import suggests_keywords
from compiler.ops.error import OperatorError

if TYPE_CHECKING:
    from compiler.ops.recognizers.facts import ProgramFacts
    from compiler.ops.spec import Spec

Array: TypeAlias = NDArray[Any]
Result: TypeAlias = Array | tuple[Array, ...]
"""The output of an operator, or several."""

Tensors: TypeAlias = te.Tensor | tuple[te.Tensor, ...]
"""The output of an operator on tensors, or several."""

Options: TypeAlias = SimpleNamespace
"""The arguments of an operator by their names, including the defaults."""

Recognizer: TypeAlias = "Callable[[ProgramFacts], Iterable[Spec]]"
"""Takes the facts of a program, and yields arguments with which operators may have built it."""

P = ParamSpec("P")

CONSTANT = "constant"
"""The option of each operator that names its constant inputs, joined by `+`."""


class ProgramMaker(Protocol[P]):
    """A function of extents and options that builds a program.

    Besides its own arguments it takes `constant`: the names of inputs that never change, such as
    the weights, as in `constant="W"` or `constant="W+bias"`. See `constant_params`.
    """

    __name__: str

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> PrimFunc: ...
    @overload
    def __call__(self, *args: Any, constant: str | None, **options: Any) -> PrimFunc: ...


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of the library.

    Attributes:
        name: The name in `lw.ops` and in lines of text.
        program: Takes extents and options, and returns a finished program.
        tensors: Takes the inputs of the program as `te.Tensor`, in their order, and options by
            the names that they have in `program`; returns the output, or a tuple of them.
        reference: Takes the arguments of `program`, then arrays in float64 or int64; returns
            the result of the operator, or a tuple of them.
        recognize: Yields operators that may have built a program, perhaps a more general one (a
            `dense` is a `matmul`); None if the operator is not recognized.
    """

    name: str
    program: Callable[..., PrimFunc]
    tensors: Callable[..., Tensors]
    reference: Callable[..., Result]
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
    tensors: Callable[..., Tensors],
    *,
    reference: Callable[..., Result],
    recognize: Recognizer | None = None,
) -> Callable[[Callable[P, PrimFunc]], ProgramMaker[P]]:
    """Declare the decorated function, which builds a program, as an operator of its name.

    Args:
        tensors: The operator on tensors.
        reference: The operator by NumPy.
        recognize: The recognizer that finds the operator in a program.

    Raises:
        ValueError: If the name is taken.
    """

    def declare(program: Callable[P, PrimFunc]) -> ProgramMaker[P]:
        name = program.__name__
        if name in OPERATORS:
            raise ValueError(f"operator {name} is declared twice")
        maker = suggests_keywords(_taking_constants(program))
        OPERATORS[name] = Operator(name, maker, tensors, reference, recognize)
        return cast(ProgramMaker[P], maker)

    return declare


def _taking_constants(program: Callable[..., PrimFunc]) -> Callable[..., PrimFunc]:
    """Return a function of a program's arguments and of `constant`."""

    @wraps(program)
    def made(*args: Any, constant: str | None = None, **options: Any) -> PrimFunc:
        func = program(*args, **options)
        if constant is None:
            return func
        outputs = param_roles(func).outputs
        inputs = [buffer.name for buffer in func.buffers if buffer.name not in outputs]
        names = str(constant).split("+")
        for name in names:
            if name not in inputs:
                expected = ", ".join(inputs)
                raise OperatorError(
                    f"{func.name}: constant is {constant!r}: expected inputs joined by +,"
                    f" of {expected}"
                )
        return with_constants(func, names)

    signature = inspect.signature(program)
    option = inspect.Parameter(
        CONSTANT, inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None"
    )
    made.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), option]
    )
    return made
