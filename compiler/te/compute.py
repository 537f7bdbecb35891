"""Define tensors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

from compiler.ir.dtypes import DTYPES, DType
from compiler.ir.nodes import AnnotationValue, Var, make_buffer
from compiler.te.value import (
    Definition,
    ReduceAxis,
    Reduction,
    Tensor,
    Value,
    ValueLike,
    as_value,
)


def placeholder(
    shape: Sequence[int], dtype: DType = "float32", name: str = "placeholder"
) -> Tensor:
    """Declare an input.

    Raises:
        TypeError: If an extent is no integer or there is no such type.
    """
    extents = _shape(shape)
    if dtype not in DTYPES:
        raise TypeError(f"unknown type {dtype!r}: expected one of {', '.join(sorted(DTYPES))}")
    return Tensor(make_buffer(name, extents, dtype), extents)


def reduce_axis(dom: tuple[int, int], name: str = "rv") -> ReduceAxis:
    """Declare an axis to reduce over.

    Args:
        dom: The first value, and the one after the last.
        name: What the axis is called in the program.

    Raises:
        TypeError: If the ends are no integers.
        ValueError: If the axis is empty.
    """
    start, stop = _shape(dom)
    if stop <= start:
        raise ValueError(f"reduction axis {name} is empty: from {start} to {stop}")
    return ReduceAxis(Var(name), start, stop - start)


def compute(
    shape: Sequence[int],
    fcompute: Callable[..., Value | Reduction | float],
    name: str = "compute",
    attrs: Mapping[str, AnnotationValue] | None = None,
) -> Tensor:
    """Define a tensor by what its element at each place is.

    Args:
        shape: The extents of the tensor.
        fcompute: Takes one index a dimension, under names that the program's loops get
            (`i0, i1, ...` for `lambda *i: ...`), and returns a value, or a reduction made
            by `te.sum`, `te.prod`, `te.max` or `te.min`.
        name: What the tensor and its block are called.
        attrs: Annotations of the block.

    Raises:
        TypeError: If `fcompute` takes another number of indices or returns something else.
    """
    extents = _shape(shape)
    indices = tuple(Var(index) for index in _index_names(fcompute, len(extents), name))
    result = fcompute(*(Value(index) for index in indices))
    value: Value | Reduction = result if isinstance(result, Reduction) else _element(result, name)
    dtype = (value.value if isinstance(value, Reduction) else value).dtype
    definition = Definition(indices, value, tuple((attrs or {}).items()))
    return Tensor(make_buffer(name, extents, dtype), extents, definition)


def _element(result: ValueLike, name: str) -> Value:
    if not isinstance(result, Value | int | float):
        raise TypeError(
            f"the element of {name} is a {type(result).__name__}: expected a tensor expression"
        )
    return as_value(result)


def _shape(shape: Sequence[int]) -> tuple[int, ...]:
    try:
        return tuple(n.__index__() for n in shape)
    except (AttributeError, TypeError):
        raise TypeError(f"expected a shape of integers, got {shape!r}") from None


def _index_names(fcompute: Callable[..., object], ndim: int, name: str) -> list[str]:
    parameters = list(inspect.signature(fcompute).parameters.values())
    names = [
        p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty
    ]
    variadic = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    if variadic:
        names += [f"{variadic[0]}{number}" for number in range(ndim - len(names))]
    if len(names) != ndim:
        raise TypeError(
            f"the function that computes {name} takes {len(names)} index(es), "
            f"but its shape has {ndim} dimension(s)"
        )
    return names
