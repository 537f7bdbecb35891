"""Declare inputs and symbolic extents, and define tensors element by element."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast, overload

from compiler.executor.named_type import named_type
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import DType, is_integer
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import AnnotationValue, Buffer, Expr, IntImm, Var
from compiler.ir.verify.verify_buffers import require_extent
from compiler.keywords import suggests_keywords
from compiler.te.tensor import Compute, Extent, Reduction, Tensor
from compiler.te.value import ReduceAxis, Value, ValueLike, Variable, as_value, require_dtype

ElementFunction: TypeAlias = Callable[..., ValueLike | Reduction]
"""Takes the indices of an element and returns its value."""


def var(name: str = "tindex", dtype: DType = "int32") -> Variable:
    """Declare a symbolic integer, such as an extent that `PrimFunc.specialize` fixes later.

    Raises:
        TypeError: If the type is not an integer type.
    """
    require_dtype(dtype)
    if not is_integer(dtype):
        raise TypeError(f"a symbolic variable of type {dtype!r}: expected an integer type")
    return Variable(Var(_name(name), dtype))


def size_var(name: str = "size", dtype: DType = "int32") -> Variable:
    """Declare a symbolic extent; the same as `var`, since every extent is positive.

    Raises:
        TypeError: If the type is not an integer type.
    """
    return var(name, dtype)


@suggests_keywords
def placeholder(
    shape: Sequence[Extent] | Extent, dtype: DType = "float32", name: str = "placeholder"
) -> Tensor:
    """Declare an input.

    Raises:
        TypeError: If an extent is not an integer, or the type does not exist.
        VerifyError: If an extent is zero, negative or too large.
    """
    extents = shape_of(shape)
    _require_extents(extents, name)
    require_dtype(dtype)
    return Tensor(Buffer(Var(_name(name), "handle"), extents, dtype))


@suggests_keywords
def reduce_axis(dom: tuple[Extent, Extent], name: str = "rv") -> ReduceAxis:
    """Declare an axis to reduce over.

    Args:
        dom: The first value, and the end, which is excluded.
        name: The name of the axis in the program.

    Raises:
        TypeError: If there are not two ends, or they are not integers.
        ValueError: If the axis is empty.
    """
    argument: object = dom
    if not isinstance(argument, Sequence) or len(argument) != 2:
        raise TypeError(f"expected the two ends of an axis, such as (0, 8), got {argument!r}")
    start, stop = shape_of(dom)
    extent = simplify((Value(stop) - Value(start)).expr)
    if isinstance(extent, IntImm) and extent.value < 1:
        raise ValueError(f"reduction axis {name} is empty: from {dom[0]} to {dom[1]}")
    return ReduceAxis(Var(_name(name), dtype_of(extent)), start, extent)


@overload
def compute(
    shape: Sequence[Extent] | Extent,
    fcompute: ElementFunction,
    name: str = ...,
    tag: str = ...,
    attrs: Mapping[str, AnnotationValue] | None = ...,
    varargs_names: Sequence[str] | None = ...,
) -> Tensor: ...
@overload
def compute(
    shape: Sequence[Extent] | Extent,
    fcompute: Callable[..., Sequence[ValueLike]],
    name: str = ...,
    tag: str = ...,
    attrs: Mapping[str, AnnotationValue] | None = ...,
    varargs_names: Sequence[str] | None = ...,
) -> tuple[Tensor, ...]: ...
@suggests_keywords
def compute(  # noqa: PLR0917 - TVM's arguments
    shape: Sequence[Extent] | Extent,
    fcompute: Callable[..., ValueLike | Reduction | Sequence[ValueLike]],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, AnnotationValue] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Define a tensor, or several of one shape, by the value of each element.

    Args:
        shape: The extents of the tensor.
        fcompute: Takes one index a dimension. The loops of the program get the names of its
            parameters (`i0, i1, ...` for `lambda *i: ...`). Returns a value, a reduction made by
            `te.sum` and the like, or several values.
        name: The name of the tensor and its block; several tensors are called `name_v0, ...`.
        tag: Not used.
        attrs: Annotations of the block.
        varargs_names: Names of the indices, if `fcompute` takes them as `*i`.

    Returns:
        A tensor, or as many as `fcompute` returns values.

    Raises:
        TypeError: If `fcompute` takes another number of indices or returns something else.
        VerifyError: If an extent is zero, negative or too large.
    """
    extents = shape_of(shape)
    _require_extents(extents, name)
    names = list(varargs_names or _index_names(fcompute, len(extents), name))
    if len(names) != len(extents):
        raise TypeError(f"{name} has {len(extents)} dimension(s), got {len(names)} names")
    indices = tuple(Var(n, dtype_of(e)) for n, e in zip(names, extents, strict=True))
    result = fcompute(*(Value(index) for index in indices))
    value: Reduction | tuple[Value, ...]
    if isinstance(result, Reduction):
        value, dtypes = result, [v.dtype for v in result.values]
    else:
        several = result if isinstance(result, tuple | list) else (result,)
        value = tuple(_element(element, name) for element in several)
        dtypes = [v.dtype for v in value]
    if not dtypes:
        raise TypeError(f"the element of {name} is not a value: expected a tensor expression")
    definition = Compute(_name(name), indices, extents, value, tuple((attrs or {}).items()))
    definition.outputs = outputs_of(definition, [(extents, dtype) for dtype in dtypes])
    return definition.outputs if len(dtypes) > 1 else definition.outputs[0]


def outputs_of(
    definition: Any,
    kinds: Sequence[tuple[tuple[Expr, ...], DType]],
) -> tuple[Tensor, ...]:
    """Return the tensors of a definition, given their shape and types."""
    base = definition.name
    names = [base] if len(kinds) == 1 else [f"{base}_v{number}" for number in range(len(kinds))]
    return tuple(
        Tensor(Buffer(Var(name, "handle"), shape, dtype), definition)
        for name, (shape, dtype) in zip(names, kinds, strict=True)
    )


def shape_of(shape: Sequence[Extent] | Extent) -> tuple[Expr, ...]:
    """Return extents as expressions.

    Raises:
        TypeError: If an extent is not an integer.
    """
    several = [shape] if isinstance(shape, Value) or hasattr(shape, "__index__") else shape
    try:
        return tuple(_extent(n) for n in cast("Sequence[Extent]", several))
    except (AttributeError, TypeError):
        raise TypeError(f"expected a shape of integers, got {shape!r}") from None


def _require_extents(extents: Sequence[Expr], name: str) -> None:
    """Refuse extents that no program may have; symbolic ones are known later."""
    for extent in extents:
        if isinstance(extent, IntImm):
            require_extent(extent.value, name, extent)


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"expected a name, got {name!r}")
    return name


def _extent(extent: Extent) -> Expr:
    if not isinstance(extent, Value):
        return IntImm(extent.__index__())
    if not is_integer(extent.dtype):
        raise TypeError
    return simplify(extent.expr)


def _element(result: object, name: str) -> Value:
    if isinstance(result, Reduction):
        result.refuse()
    if not isinstance(result, Value | Var | int | float):
        raise TypeError(
            f"the element of {name} is {named_type(result)}: expected a tensor expression"
        )
    return as_value(result)


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
