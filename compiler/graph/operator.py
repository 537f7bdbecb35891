"""The registry of tensor-level operators: `@graph_operator` declares one.

An operator has three functions of the same signature: positional operands, then attributes as
keywords. They differ in what an operand is:

- `infer`: a `TensorType`; returns the types of the results. Its keywords and their defaults are the
  attributes of the operator. It refuses operands that do not fit.
- `tensors`: a `te.Tensor`; returns the results, so that operators chain into one program.
- `reference`: a NumPy array; returns the results. It shares no code with `tensors`.

Names and meanings are those of Relax, if it has the operator.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from compiler import te
from compiler.graph.attributes import declared_types, is_of_type
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, Attr, Attrs, TensorType
from compiler.ops.error import OperatorError

Kind: TypeAlias = Literal["map", "move", "reduce", "contract", "window", "row", "opaque"]
"""What fusion must know of an operator.

- map: each element of the result follows from the elements at the same (broadcast) position.
- move: elements change their position only: a transpose, a slice, a concatenation, a gather.
- reduce: a reduction over axes.
- contract: a product with a reduction, such as a matrix product.
- window: a reduction over windows, such as a convolution or a pooling.
- row: reductions and maps along the same axes, such as softmax or a normalization.
- opaque: anything else; it is never fused.
"""

Infer: TypeAlias = "Callable[..., TensorType | tuple[TensorType, ...]]"
Tensors: TypeAlias = "Callable[..., te.Tensor | tuple[te.Tensor, ...]]"
Reference: TypeAlias = "Callable[..., Array | tuple[Array, ...]]"


@dataclass(frozen=True)
class GraphOperator:
    """A tensor-level operator; see the module."""

    name: str
    kind: Kind
    infer: Infer
    tensors: Tensors
    reference: Reference

    @cached_property
    def defaults(self) -> Mapping[str, Attr]:
        """Return the attributes that have default values."""
        return {
            name: parameter.default
            for name, parameter in self._attributes.items()
            if parameter.default is not inspect.Parameter.empty
        }

    @cached_property
    def is_variadic(self) -> bool:
        """Return whether the operator takes any number of operands."""
        parameters = inspect.signature(self.infer).parameters.values()
        return any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)

    @cached_property
    def num_operands(self) -> int:
        """Return the largest number of operands of an operator that is not variadic."""
        parameters = inspect.signature(self.infer).parameters.values()
        return sum(each.kind is not inspect.Parameter.KEYWORD_ONLY for each in parameters)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Return the names of the attributes, in order."""
        return tuple(self._attributes)

    def complete(self, attrs: Attrs) -> Attrs:
        """Return attributes with the default values of those that are missing, in order.

        Raises:
            ModelError: If an attribute is unknown, or one without a default value is missing.
        """
        for name in attrs:
            if name not in self._attributes:
                expected = ", ".join(self._attributes) or "none"
                raise ModelError(f"{self.name} has no attribute {name}: expected {expected}")
        given = {**self.defaults, **attrs}
        for name in self._attributes:
            if name not in given:
                raise ModelError(f"{self.name} needs the attribute {name}")
        return MappingProxyType({name: given[name] for name in self._attributes})

    def infer_types(
        self, inputs: Sequence[TensorType | None], attrs: Attrs
    ) -> tuple[TensorType, ...]:
        """Return the types of the results.

        Raises:
            ModelError: If the number, a type or a shape of the operands, or an attribute, is wrong.
        """
        try:
            inspect.signature(self.infer).bind(*inputs, **attrs)
        except TypeError as error:
            raise ModelError(f"{self.name} does not take {len(inputs)} operands: {error}") from None
        for name, value in attrs.items():
            if not is_of_type(value, self._types.get(name, object)):
                declared = self._attributes[name].annotation
                expected = declared if isinstance(declared, str) else declared.__name__
                raise ModelError(f"{self.name}: {name} is {value!r}: expected {expected}")
        try:
            return _several(self.infer(*inputs, **attrs))
        except OperatorError as error:
            raise ModelError(str(error)) from error

    def apply_tensors(
        self, inputs: Sequence[te.Tensor | None], attrs: Attrs
    ) -> tuple[te.Tensor, ...]:
        """Return the results as tensor expressions.

        Raises:
            ModelError: If the operator can't be expressed for these operands.
        """
        try:
            return _several(self.tensors(*inputs, **attrs))
        except OperatorError as error:
            raise ModelError(str(error)) from error

    def apply_reference(self, inputs: Sequence[Array | None], attrs: Attrs) -> tuple[Array, ...]:
        """Return the results by NumPy."""
        return _several(self.reference(*inputs, **attrs))

    @cached_property
    def _types(self) -> Mapping[str, Any]:
        return declared_types(self.infer)

    @cached_property
    def _attributes(self) -> Mapping[str, inspect.Parameter]:
        parameters = inspect.signature(self.infer).parameters
        return {
            name: parameter
            for name, parameter in parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }


GRAPH_OPERATORS: dict[str, GraphOperator] = {}
"""All operators by their names; `compiler.graph.operators` declares them."""


def graph_operator(
    name: str, kind: Kind, *, tensors: Tensors, reference: Reference
) -> Callable[[Infer], Infer]:
    """Declare an operator; the decorated function infers the types of its results.

    Raises:
        ValueError: If the name is taken.
    """

    def declare(infer: Infer) -> Infer:
        if name in GRAPH_OPERATORS:
            raise ValueError(f"graph operator {name} is declared twice")
        GRAPH_OPERATORS[name] = GraphOperator(name, kind, infer, tensors, reference)
        return infer

    return declare


def find_operator(name: str) -> GraphOperator:
    """Return an operator by its name.

    Raises:
        ModelError: If there is none.
    """
    if name not in GRAPH_OPERATORS:
        raise ModelError(f"there is no graph operator {name}")
    return GRAPH_OPERATORS[name]


def _several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
