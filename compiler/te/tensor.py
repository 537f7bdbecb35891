"""Tensors and their definitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn, Protocol, TypeAlias

from compiler.ir.core.dtypes import DType, is_integer
from compiler.ir.core.nodes import (
    Annotations,
    Buffer,
    Expr,
    IntImm,
    Load,
    Stmt,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.one_line import describe_buffer
from compiler.te.axis import TensorAxis
from compiler.te.elements import ElementsOnly, WholeElement
from compiler.te.value import ReduceAxis, Value, ValueLike, as_value

Extent: TypeAlias = int | Value

_NOT_ITERABLE = "{} can't be iterated over: index it for its elements, in te.compute"


@dataclass(frozen=True, slots=True, eq=False)
class Reduction(WholeElement):
    """A reduction of values over axes; the whole value of an element.

    Attributes:
        axes: The axes to reduce over.
        values: The values to combine: one, or several at once as for an argmax.
        initial: The initial values.
        accumulators: Variables for the values combined so far.
        combined: The combination of `accumulators` and `values`.
    """

    axes: tuple[ReduceAxis, ...]
    values: tuple[Value, ...]
    initial: tuple[Value, ...]
    accumulators: tuple[Var, ...]
    combined: tuple[Value, ...]


class _Tensors(Protocol):
    """The tensors that an operation computes, and those that it reads."""

    @property
    def outputs(self) -> tuple[Tensor, ...]: ...
    @property
    def inputs(self) -> tuple[Tensor, ...]: ...


class _Operation:
    """TVM's names of what all operations have."""

    __slots__ = ()

    @property
    def axis(self) -> tuple[TensorAxis, ...]:
        """Return the dimensions that a schedule may change; by default none."""
        return ()

    @property
    def reduce_axis(self) -> tuple[ReduceAxis, ...]:
        """Return the axes of the reduction; none if the values are no reduction."""
        return ()

    @property
    def num_outputs(self: _Tensors) -> int:
        """Return the number of tensors that are computed."""
        return len(self.outputs)

    def output(self: _Tensors, index: int) -> Tensor:
        """Return one of the tensors that are computed."""
        return self.outputs[index]

    @property
    def input_tensors(self: _Tensors) -> tuple[Tensor, ...]:
        """Return the tensors that are read, in the order of first use."""
        return self.inputs


@dataclass(frozen=True, slots=True)
class Placeholder(_Operation):
    """The operation of an input, which computes nothing; equal for the same tensor."""

    tensor: Tensor

    @property
    def name(self) -> str:
        """Return the name of the input."""
        return self.tensor.name

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Return the input."""
        return (self.tensor,)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return nothing: an input reads no tensor."""
        return ()


@dataclass(slots=True, eq=False)
class Compute(_Operation):
    """Tensors of one shape: the element at `indices` of each is one of the values."""

    name: str
    indices: tuple[Var, ...]
    extents: tuple[Expr, ...]
    value: Reduction | tuple[Value, ...]
    attrs: Annotations = ()
    outputs: tuple[Tensor, ...] = ()
    axis: tuple[TensorAxis, ...] = field(init=False)

    def __post_init__(self) -> None:
        dimensions = zip(self.indices, self.extents, strict=True)
        self.axis = tuple(TensorAxis(index.name, "spatial", extent) for index, extent in dimensions)

    @property
    def reduce_axis(self) -> tuple[ReduceAxis, ...]:
        """Return the axes of the reduction; none if the values are no reduction."""
        return self.value.axes if isinstance(self.value, Reduction) else ()

    @property
    def values(self) -> tuple[Value, ...]:
        """Return the values of the elements, or the values to reduce."""
        value = self.value
        return (*value.combined, *value.initial) if isinstance(value, Reduction) else value

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return the tensors that are read, in the order of first use."""
        return tuple(dict.fromkeys(t for value in self.values for t in value.tensors))


@dataclass(slots=True, eq=False)
class Scan(_Operation):
    """Tensors that grow along their first dimension: each step is computed from earlier steps.

    Attributes:
        name: The name of the first steps and of the result.
        init: The first steps of each.
        update: A step, in terms of `state`.
        state: Placeholders for the tensors in `update`.
    """

    name: str
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...] = ()
    scan_axis: TensorAxis = field(init=False)

    def __post_init__(self) -> None:
        self.scan_axis = TensorAxis(f"{self.name}_step", "scan")

    @property
    def steps(self) -> tuple[Compute, ...]:
        """Return the definitions of a step: first those that read the state, then the updates."""
        return tuple(_depending(self.update, self.state))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Return the tensors that are read, in the order of first use."""
        inside = {*self.state, *(tensor for step in self.steps for tensor in step.outputs)}
        firsts = (
            (first,) if first.definition is None else first.definition.inputs for first in self.init
        )
        read = [t for tensors in firsts for t in tensors]
        read += [t for step in self.steps for t in step.inputs if t not in inside]
        return tuple(dict.fromkeys(read))


@dataclass(slots=True, eq=False)
class Extern(_Operation):
    """Tensors that a piece of program writes.

    Attributes:
        name: The name of the tensors and of their block.
        inputs: The tensors that the piece reads.
        body: The piece, on the buffers of inputs and outputs.
        attrs: Annotations of the block.
        outputs: The tensors.
        has_blocks: Whether the piece is made of blocks, and so needs no block around it.
    """

    name: str
    inputs: tuple[Tensor, ...]
    body: Stmt | PrimFunc
    attrs: Annotations = ()
    outputs: tuple[Tensor, ...] = ()
    has_blocks: bool = False


Definition: TypeAlias = Compute | Scan | Extern
Operation: TypeAlias = Definition | Placeholder


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tensor(ElementsOnly):
    """A tensor; an input has no definition. Its shape may have symbolic extents."""

    buffer: Buffer
    definition: Definition | None = None

    def __repr__(self) -> str:
        return f"<Tensor {describe_buffer(self.buffer)}>"

    @property
    def name(self) -> str:
        """Return the name, which is also that of the buffer."""
        return self.buffer.name

    @property
    def op(self) -> Operation:
        """Return the operation that computes the tensor, which schedules are made of."""
        return Placeholder(self) if self.definition is None else self.definition

    @property
    def dtype(self) -> DType:
        """Return the type of an element."""
        return self.buffer.dtype

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.buffer.shape)

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Return the extents."""
        return tuple(e.value if isinstance(e, IntImm) else Value(e) for e in self.buffer.shape)

    def __getitem__(self, indices: ValueLike | tuple[ValueLike, ...]) -> Value:
        """Return the element at an index, or a slice that takes the remaining indices.

        Raises:
            IndexError: If there are more indices than dimensions.
            TypeError: If an index is not an integer.
        """
        return _element(self, (), indices)

    def __call__(self, *indices: ValueLike) -> Value:
        """Return the element at an index; the same as subscripting.

        Raises:
            IndexError: If there are more indices than dimensions.
            TypeError: If an index is not an integer.
        """
        return _element(self, (), indices)

    def __iter__(self) -> NoReturn:
        # Without this, Python would iterate by `__getitem__` without an end.
        raise TypeError(_NOT_ITERABLE.format(self.name))


class TensorSlice(Value):
    """A tensor with some of its indices given: `A[i]`, which takes the others as `A[i][j]`."""

    __slots__ = ("_places", "_tensor")

    def __init__(self, tensor: Tensor, places: tuple[Value, ...]) -> None:
        # A slice has no expression, so `Value.__init__` is not called.
        self._tensor = tensor
        self._places = places

    @property
    def expr(self) -> Expr:  # type: ignore[override]
        """Raise an error: a slice is not an element."""
        raise IndexError(_wrong_count(self._tensor, len(self._places)))

    def __getitem__(self, indices: ValueLike | tuple[ValueLike, ...]) -> Value:
        """Return the element at an index, or a slice with more indices.

        Raises:
            IndexError: If there are more indices than dimensions.
            TypeError: If an index is not an integer.
        """
        return _element(self._tensor, self._places, indices)

    def __iter__(self) -> NoReturn:
        raise TypeError(_NOT_ITERABLE.format(self._tensor.name))


def _element(
    tensor: Tensor, first: tuple[Value, ...], indices: ValueLike | tuple[ValueLike, ...]
) -> Value:
    trailing = indices if isinstance(indices, tuple) else (indices,)
    positions = (*first, *(as_value(index) for index in trailing))
    for position in positions:
        if not is_integer(position.dtype):
            raise TypeError(f"an index of {tensor.name} has type {position.dtype}: expected int32")
    if len(positions) > tensor.ndim:
        raise IndexError(
            f"{tensor.name} has {tensor.ndim} dimension(s), got {len(positions)} index(es)"
        )
    if len(positions) < tensor.ndim:
        return TensorSlice(tensor, positions)
    element = Load(tensor.buffer, tuple(position.expr for position in positions))
    return Value(element, *positions, tensors=(tensor,))


def _wrong_count(tensor: Tensor, count: int) -> str:
    return f"{tensor.name} has {tensor.ndim} dimension(s), got {count} index(es)"


def _depending(tensors: tuple[Tensor, ...], state: tuple[Tensor, ...]) -> list[Compute]:
    """Return the definitions that lead from `state` to `tensors`, each after its inputs."""
    depends: dict[Tensor, bool] = dict.fromkeys(state, True)
    order: dict[int, Compute] = {}

    def visit(tensor: Tensor) -> bool:
        if tensor not in depends:
            definition = tensor.definition
            depends[tensor] = False
            if definition is not None:
                # Visit all inputs, without a short circuit: each gets its position in the order.
                input_depends = [visit(t) for t in definition.inputs]
                depends[tensor] = any(input_depends)
            if depends[tensor] and isinstance(definition, Compute):
                order.setdefault(id(definition), definition)
        return depends[tensor]

    for tensor in tensors:
        visit(tensor)
        if isinstance(tensor.definition, Compute):
            order.setdefault(id(tensor.definition), tensor.definition)
    return list(order.values())
