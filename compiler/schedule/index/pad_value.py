"""The value of the padding of a layout: a number, or a function of the indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compiler.ir.core.dtypes import DType, is_float, wrapped
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Expr, FloatImm, IntImm, Var
from compiler.ir.core.visit import substitute
from compiler.schedule.index.index_map import IndexMap, IndexMapError, parameters_of, show
from compiler.schedule.index.lambda_text import LambdaError, read_lambda
from compiler.te.value import Value, as_value, const

PadValueLike: TypeAlias = int | float | IntImm | FloatImm | str | IndexMap | Callable[..., object]
"""A number, or a function of the indices of the new layout; the text of a lambda is one too."""


@dataclass(frozen=True)
class PadValue:
    """The value `value` at the indices `params`."""

    params: tuple[Var, ...]
    value: Expr

    def at(self, indices: Sequence[Expr]) -> Expr:
        """Return the value at given indices."""
        return substitute(self.value, dict(zip(self.params, indices, strict=True)))

    def __str__(self) -> str:
        names = ", ".join(param.name for param in self.params)
        space = " " if names else ""
        return f"lambda{space}{names}: ({show(self.params, self.value)},)"


def as_pad_value(given: PadValueLike, ndim: int, dtype: DType, index_dtype: DType) -> PadValue:
    """Return the padding value that an argument describes.

    Args:
        given: The argument of the caller.
        ndim: The number of dimensions of the new layout.
        dtype: The type of its elements.
        index_dtype: The type of its indices.

    Raises:
        IndexMapError: If it is not a value of that type, or takes another number of indices.
    """
    params = tuple(Var(f"indices_{n}", index_dtype) for n in range(ndim))
    value: Expr
    match given:
        case IntImm() | FloatImm():
            value = given
        case bool() | int() | float():
            value = _constant(given, dtype)
        case IndexMap():
            given = given.with_dtype(index_dtype)
            if len(given.results) != 1:
                raise IndexMapError(f"the pad value {given} is not one value")
            params, value = given.params, given.results[0]
        case str():
            params, value = _read(given, ndim, index_dtype)
        case _ if callable(given):
            params = tuple(Var(name, index_dtype) for name in parameters_of(given, ndim))
            value = _single(given(*map(Value, params)))
        case _:
            raise IndexMapError(f"expected a number or a function of places, got {given!r}")
    if len(params) != ndim:
        raise IndexMapError(f"the pad value takes {len(params)} indices, the layout has {ndim}")
    if dtype_of(value) != dtype:
        raise IndexMapError(f"the pad value is {dtype_of(value)}, the elements are {dtype}")
    return PadValue(params, value)


def _constant(number: float, dtype: DType) -> Expr:
    if is_float(dtype):
        if isinstance(number, int):
            raise IndexMapError(f"the pad value is an integer, the elements are {dtype}")
        return const(number, dtype).expr
    if isinstance(number, float):
        raise IndexMapError(f"the pad value is a float, the elements are {dtype}")
    if wrapped(number, dtype) != number:
        raise IndexMapError(f"the pad value {number} is no {dtype}")
    return const(number, dtype).expr


def _read(text: str, ndim: int, index_dtype: DType) -> tuple[tuple[Var, ...], Expr]:
    try:
        names, function = read_lambda(text, ndim)
        params = tuple(Var(name, index_dtype) for name in names)
        return params, _single(function([Value(p) for p in params]))
    except (LambdaError, TypeError) as error:
        raise IndexMapError(f"the pad value is not understood: {error}") from None


def _single(returned: object) -> Expr:
    if isinstance(returned, list | tuple) and len(returned) == 1:
        returned = returned[0]
    if isinstance(returned, IntImm | FloatImm):
        return returned
    if not isinstance(returned, Value | int | float):
        raise IndexMapError(f"the pad value is {returned!r}: expected one value")
    value = as_value(returned)
    if value.tensors:
        raise IndexMapError("the pad value reads a tensor: expected a function of the place")
    return value.expr
