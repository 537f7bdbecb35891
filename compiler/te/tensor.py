"""Tensors, and how they are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, TypeAlias

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
from compiler.te.elements import ElementsOnly
from compiler.te.value import ReduceAxis, Value, ValueLike, as_value

Extent: TypeAlias = int | Value

_NOT_ITERABLE = "{} can't be iterated over: its elements are what an index gives, in te.compute"


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """The combination of values over all places of some axes; the whole value of an element.

    Attributes:
        axes: What it runs over.
        values: What is combined: one value, or several at once as for an argmax.
        initial: What the combination starts from.
        accumulators: Variables that stand for what has been combined so far.
        combined: The combination of `accumulators` and `values`.
    """

    axes: tuple[ReduceAxis, ...]
    values: tuple[Value, ...]
    initial: tuple[Value, ...]
    accumulators: tuple[Var, ...]
    combined: tuple[Value, ...]


@dataclass(slots=True, eq=False)
class Compute:
    """Tensors of one shape: the element at `indices` of each is one of the values."""

    name: str
    indices: tuple[Var, ...]
    extents: tuple[Expr, ...]
    value: Reduction | tuple[Value, ...]
    attrs: Annotations = ()
    outputs: tuple[Tensor, ...] = ()

    @property
    def values(self) -> tuple[Value, ...]:
        """What the elements are, or what is combined to them."""
        value = self.value
        return (*value.combined, *value.initial) if isinstance(value, Reduction) else value

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that are read, in the order of first use."""
        return tuple(dict.fromkeys(t for value in self.values for t in value.tensors))


@dataclass(slots=True, eq=False)
class Scan:
    """Tensors that grow along their first dimension: each step is computed from those before.

    Attributes:
        name: What the first steps and the whole are called.
        init: The first steps of each.
        update: A step, in terms of `state`.
        state: Stands for the tensors themselves in `update`.
    """

    name: str
    init: tuple[Tensor, ...]
    update: tuple[Tensor, ...]
    state: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...] = ()

    @property
    def steps(self) -> tuple[Compute, ...]:
        """What is computed in each step, in order: what depends on the state, the updates last."""
        return tuple(_depending(self.update, self.state))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that are read, in the order of first use."""
        inside = {*self.state, *(tensor for step in self.steps for tensor in step.outputs)}
        firsts = (
            (first,) if first.definition is None else first.definition.inputs for first in self.init
        )
        read = [t for tensors in firsts for t in tensors]
        read += [t for step in self.steps for t in step.inputs if t not in inside]
        return tuple(dict.fromkeys(read))


@dataclass(slots=True, eq=False)
class Extern:
    """Tensors that a piece of program writes.

    Attributes:
        name: The name of the tensors and of their block.
        inputs: The tensors that the piece reads.
        body: The piece, on the buffers of inputs and outputs.
        attrs: Annotations of the block.
        outputs: The tensors.
        has_blocks: Whether the piece is made of blocks, so that it gets none around it.
    """

    name: str
    inputs: tuple[Tensor, ...]
    body: Stmt | PrimFunc
    attrs: Annotations = ()
    outputs: tuple[Tensor, ...] = ()
    has_blocks: bool = False


Definition: TypeAlias = Compute | Scan | Extern


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tensor(ElementsOnly):
    """A tensor; an input has no definition. Its shape may have symbolic extents."""

    buffer: Buffer
    definition: Definition | None = None

    def __repr__(self) -> str:
        return f"<Tensor {describe_buffer(self.buffer)}>"

    @property
    def name(self) -> str:
        """The name, which its buffer gets."""
        return self.buffer.name

    @property
    def dtype(self) -> DType:
        """The type of an element."""
        return self.buffer.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.buffer.shape)

    @property
    def shape(self) -> tuple[Extent, ...]:
        """The extents."""
        return tuple(e.value if isinstance(e, IntImm) else Value(e) for e in self.buffer.shape)

    def __getitem__(self, indices: ValueLike | tuple[ValueLike, ...]) -> Value:
        """Return the element at a place, or a slice that takes the other indices.

        Raises:
            IndexError: If there are more indices than dimensions.
            TypeError: If an index is no integer.
        """
        return _element(self, (), indices)

    def __call__(self, *indices: ValueLike) -> Value:
        """Return the element at a place; the same as subscripting.

        Raises:
            IndexError: If there are more indices than dimensions.
            TypeError: If an index is no integer.
        """
        return _element(self, (), indices)

    def __iter__(self) -> NoReturn:
        # Without this, Python would count indices up for ever.
        raise TypeError(_NOT_ITERABLE.format(self.name))


class TensorSlice(Value):
    """A tensor with some of its first indices: `A[i]`, which takes the others as `A[i][j]`."""

    __slots__ = ("_places", "_tensor")

    def __init__(self, tensor: Tensor, places: tuple[Value, ...]) -> None:
        # It has no expression, so that of a value is not set.
        self._tensor = tensor
        self._places = places

    @property
    def expr(self) -> Expr:  # type: ignore[override]
        """Refuse to be taken for an element."""
        raise IndexError(_wrong_count(self._tensor, len(self._places)))

    def __getitem__(self, indices: ValueLike | tuple[ValueLike, ...]) -> Value:
        """Return the element at a place, or a slice with more indices.

        Raises:
            IndexError: If there are more indices than dimensions.
            TypeError: If an index is no integer.
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
    """Return what computes `tensors` from `state`, each after what it reads."""
    depends: dict[Tensor, bool] = dict.fromkeys(state, True)
    order: dict[int, Compute] = {}

    def visit(tensor: Tensor) -> bool:
        if tensor not in depends:
            definition = tensor.definition
            depends[tensor] = False
            if definition is not None:
                # All inputs are visited: each may have its own place in the order.
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
