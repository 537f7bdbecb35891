"""Evaluate an expression over a box of iterator values at once, as a NumPy array.

Each iterator is an axis of the array, and the lanes of a vector are one more, the last. Numbers
are float64 or int64 for all types of the program: the oracle must be more exact than the kernels
that are compared with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from compiler.ir.arith.affine import affine
from compiler.ir.core.dtypes import DType, is_float
from compiler.ir.core.expr_types import dtype_of, lanes_of
from compiler.ir.core.intrinsics import INTRINSICS
from compiler.ir.core.lane_calls import SHUFFLE, picked_lanes
from compiler.ir.core.llvm_calls import LLVM_CALL, llvm_function
from compiler.ir.core.llvm_functions import Reference
from compiler.ir.core.nodes import (
    BinOp,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Conditional,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Stmt,
    StringImm,
    Var,
)
from compiler.ir.core.visit import walk

Array: TypeAlias = NDArray[Any]


class OracleError(ValueError):
    """The oracle can't run a program, or not on these inputs."""


_FLOATS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "min": np.minimum,
    "max": np.maximum,
}
_INTEGERS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
}
_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


Wide: TypeAlias = type[np.float64] | type[np.int64] | type[np.uint64] | type[np.bool_]


def wide(dtype: DType) -> Wide:
    """Return the oracle's type for values of `dtype`."""
    if is_float(dtype):
        return np.float64
    if dtype == "bool":
        return np.bool_
    return np.uint64 if dtype == "uint64" else np.int64


def rounded(array: Array, dtype: DType) -> Array:
    """Return the result of a conversion to `dtype`, in the wide type."""
    converted = array.astype(dtype)
    return converted if converted.dtype == wide(dtype) else converted.astype(wide(dtype))


@dataclass(frozen=True, slots=True)
class Box:
    """A range of values for each iterator; the iterators are the axes of arrays, in their order."""

    starts: Mapping[Var, int]
    extents: Mapping[Var, int]

    def joined(self, inner: Box) -> Box:
        """Return the box over these iterators and those of `inner`, which come last."""
        return Box({**self.starts, **inner.starts}, {**self.extents, **inner.extents})

    def parted(self, inner: Collection[Var]) -> tuple[Box, Box]:
        """Return the box over the other iterators, and the one over `inner`."""
        outside, inside = (
            Box(
                {v: n for v, n in self.starts.items() if (v in inner) is is_stepped},
                {v: n for v, n in self.extents.items() if (v in inner) is is_stepped},
            )
            for is_stepped in (False, True)
        )
        return outside, inside

    def cut(self, most: int) -> Iterator[Box]:
        """Yield boxes of at most `most` points that cover this one, in order."""
        sizes: dict[Var, int] = {}
        for var in reversed(list(self.extents)):
            sizes[var] = max(1, min(self.extents[var], most))
            most //= sizes[var]
        starts = (range(0, extent, sizes[var]) for var, extent in self.extents.items())
        for point in itertools.product(*starts):
            first = dict(zip(self.extents, point, strict=True))
            yield Box(
                {v: self.starts[v] + n for v, n in first.items()},
                {v: min(sizes[v], n - first[v]) for v, n in self.extents.items()},
            )

    def axis(self, var: Var) -> int:
        """Return the number of an iterator's axis."""
        return list(self.extents).index(var)

    def slices(self, var: Var, scale: int, offset: int) -> slice:
        """Return the slice of the values `scale * var + offset`; the scale is positive."""
        first = scale * self.starts[var] + offset
        return slice(first, first + scale * (self.extents[var] - 1) + 1, scale)


def has_vectors(node: Expr | Stmt) -> bool:
    """Return whether an expression or a statement has parts with several lanes."""
    return any(isinstance(part, Ramp | Broadcast) for part in walk(node))


LANE = Var("lane")
"""The axis of the lanes of a vector; the last one of a box, if there are vectors."""


class ArrayEvaluator:
    """Evaluates expressions over one box.

    Args:
        memory: The buffers, in wide types.
        box: The iterators that are axes.
        names: The values of other variables, as arrays over the first axes of the box.
    """

    def __init__(
        self, memory: Mapping[Buffer, Array], box: Box, names: Mapping[Var, Array] | None = None
    ) -> None:
        self.box = box
        self._memory = memory
        self._names = names or {}
        self._ndim = len(box.extents)

    def value(self, expr: Expr) -> Array:  # noqa: C901 - one case a node
        """Return the values of `expr`; an axis that it does not depend on has length one."""
        match expr:
            case IntImm(literal, dtype):
                return self._constant(literal, dtype)
            case FloatImm(number, dtype):
                return self._constant(number, dtype)
            case Var():
                return self._iterator(expr)
            case BinOp(op, lhs, rhs):
                return _arithmetic(op, self.value(lhs), self.value(rhs), dtype_of(expr))
            case Compare(op, lhs, rhs):
                return _COMPARISONS[op](self.value(lhs), self.value(rhs))
            case Logic("and", lhs, rhs):
                return np.logical_and(self.value(lhs), self.value(rhs))
            case Logic(_, lhs, rhs):
                return np.logical_or(self.value(lhs), self.value(rhs))
            case Not(inner):
                return np.logical_not(self.value(inner))
            case Select(condition, then, otherwise) | Conditional(condition, then, otherwise):
                # The side that is not taken may be out of bounds, which `_gather` allows.
                return np.where(self.value(condition), self.value(then), self.value(otherwise))
            case Cast(dtype, inner):
                return rounded(self.value(inner), dtype)
            case Call():
                return self._call(expr)
            case Load(buffer, indices):
                view = self.element(expr)
                return self._gather(self._memory[buffer], indices) if view is None else view
            case Ramp(base, stride, lanes):
                return self.value(base) + stride * np.arange(lanes)
            case Broadcast(value, _):
                return self.value(value)
            case StringImm():
                raise AssertionError("a string is no value")
            case _:
                assert_never(expr)

    def element(self, load: Load) -> Array | None:
        """Return the value of a load as a `view` of its buffer."""
        return self.view(self._memory[load.buffer], load.indices)

    def view(self, array: Array, indices: tuple[Expr, ...]) -> Array | None:
        """Return the elements at `indices` without copying, if each index is a strided range.

        The result has an axis for each iterator, of length one if the elements do not depend on it,
        and may be written to. None stands for indices that are not a regular grid, or are out of
        bounds.
        """
        key: list[int | slice] = []
        axes: list[int] = []
        for index, length in zip(indices, array.shape, strict=True):
            axis_range = self._axis_range(index)
            if axis_range is None:
                return None
            first, last = (
                (axis_range, axis_range) if isinstance(axis_range, int) else _ends(axis_range[1])
            )
            if not 0 <= first <= last < length:
                return None
            if isinstance(axis_range, int):
                key.append(axis_range)
            else:
                key.append(axis_range[1])
                axes.append(axis_range[0])
        if len(set(axes)) < len(axes):
            return None
        # With the ellipsis, NumPy returns a view even of a single element.
        view = array[(*key, ...)].transpose(np.argsort(axes).tolist())
        lengths = (slice(None) if n in axes else None for n in range(self._ndim))
        return view[(*lengths, ...)]

    def places(self, array: Array, indices: tuple[Expr, ...]) -> tuple[Array, ...]:
        """Return the indices as arrays, clipped to the array."""
        return tuple(
            np.clip(self.value(index), 0, length - 1)
            for index, length in zip(indices, array.shape, strict=True)
        )

    def _axis_range(self, index: Expr) -> int | tuple[int, slice] | None:
        """Return the single value of an index, or its axis and range of values."""
        form = affine(index)
        offset, moving = form.const, None
        for atom, scale in form.terms:
            if not isinstance(atom, Var):
                return None
            if atom not in self.box.extents:
                if self._names[atom].size > 1:
                    return None
                offset += scale * self._names[atom].item()
            elif self.box.extents[atom] == 1:
                offset += scale * self.box.starts[atom]
            elif moving is not None or scale < 1:
                return None
            else:
                moving = (atom, scale)
        if moving is None:
            return offset
        return self.box.axis(moving[0]), self.box.slices(*moving, offset)

    def _gather(self, array: Array, indices: tuple[Expr, ...]) -> Array:
        gathered: Array = array[self.places(array, indices)]
        return gathered if indices else array.reshape((1,) * self._ndim)

    def _constant(self, value: float, dtype: DType) -> Array:
        return np.full((1,) * self._ndim, value, wide(dtype))

    def _iterator(self, var: Var) -> Array:
        named = self._names.get(var)
        if named is not None:
            return named.reshape(named.shape + (1,) * (self._ndim - named.ndim))
        start, extent = self.box.starts[var], self.box.extents[var]
        shape = [extent if v is var else 1 for v in self.box.extents]
        return np.arange(start, start + extent, dtype=np.int64).reshape(shape)

    def _call(self, call: Call) -> Array:
        match call:
            case Call("likely", (value,), _):
                return self.value(value)
            case Call("reinterpret", (value,), dtype):
                vector = self._vector(value)
                return self._squeezed(_reinterpreted(vector, dtype_of(value), dtype))
            case Call(name, (_, *args), _) if name == SHUFFLE:
                parts = [self._vector(a) for a in args]
                outer = np.broadcast_shapes(*(part.shape[:-1] for part in parts))
                whole = [np.broadcast_to(part, (*outer, part.shape[-1])) for part in parts]
                return self._squeezed(np.concatenate(whole, axis=-1)[..., picked_lanes(call)])
            case Call(name, (StringImm(function), *args), dtype) if name == LLVM_CALL:
                vectors = [self._vector(a) for a in args]
                reference = llvm_function(function).reference_for(dtype_of(args[0]))
                return self._squeezed(_llvm(reference, vectors, dtype))
            case Call(name, args, _) if name in INTRINSICS:
                return INTRINSICS[name].reference(*(self.value(a) for a in args))
            case Call(name):
                raise OracleError(f"the oracle does not know what {name} returns")

    def _vector(self, expr: Expr) -> Array:
        """Return a value with all lanes of its vector along the last axis."""
        array = self.value(expr)
        if LANE not in self.box.extents:
            array = array[..., None]
        return np.broadcast_to(array, (*array.shape[:-1], lanes_of(expr)))

    def _squeezed(self, vector: Array) -> Array:
        return vector if LANE in self.box.extents else vector[..., 0]


def _reinterpreted(array: Array, source: DType, to: DType) -> Array:
    source_array = np.ascontiguousarray(array.astype(source))
    return source_array.view(to).astype(wide(to))


def _llvm(reference: Reference, args: list[Array], dtype: DType) -> Array:
    """Call a function of LLVM, one vector at a time."""
    outer = np.broadcast_shapes(*(a.shape[:-1] for a in args))
    vectors = (np.broadcast_to(a, (*outer, a.shape[-1])).reshape(-1, a.shape[-1]) for a in args)
    calls = zip(*(v.tolist() for v in vectors), strict=True)
    rows = [reference(*operands) for operands in calls]
    return rounded(np.asarray(rows).reshape(*outer, -1), dtype)


def _arithmetic(op: str, lhs: Array, rhs: Array, dtype: DType) -> Array:
    if is_float(dtype):
        return _FLOATS[op](lhs, rhs)
    return rounded(_INTEGERS[op](lhs, rhs), dtype)


def _ends(places: slice) -> tuple[int, int]:
    return places.start, places.stop - 1
