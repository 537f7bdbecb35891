"""Addresses: row-major offsets as linear forms, split by the loop that each term depends on.

`A[i, k]` inside loops `i` and `k` becomes `base + i*stride` in the loop `i`, plus `k*4` in the
loop `k`, plus a constant: copies of a statement in unrolled loops differ in the constant only,
which the machine folds into the load.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import field
from math import gcd
from typing import TypeAlias

from compiler.codegen.instructions import InstructionEmitter, Value
from compiler.ir.affine import Affine
from compiler.ir.bounds import bounds
from compiler.ir.dtypes import size_bytes
from compiler.ir.frozen import frozen
from compiler.ir.nodes import Buffer, Expr, IntImm, Var
from compiler.ir.simplify import normal, recombine
from compiler.ir.vectors import as_ramp
from compiler.ir.visit import substitute, walk
from compiler.passes.layout import strides_of


@frozen
class Lane:
    """A vectorized loop's variable: the integers `offset, ..., offset + width - 1`."""

    offset: int
    width: int


Binding: TypeAlias = Value | Lane | int


@frozen
class Address:
    """Where an access goes: a pointer, and how many elements lie from one lane to the next.

    A `stride` of 0 is one element for all lanes; None means that `offsets` holds a vector of
    element offsets from `pointer` instead. `lanes` is more than 1 where the program itself says
    how many there are; in a vectorized loop, the loop does. From the beginning of the buffer it is
    a multiple of `multiple` bytes, 0 being one of any number.
    """

    pointer: Value
    stride: int | None
    offsets: Value | None = None
    lanes: int = 1
    multiple: int = field(default=1, compare=False)


@frozen
class _Form:
    """An element offset as a linear form, and how it grows from lane to lane."""

    base: Affine
    stride: int
    lanes: int


class AddressEmitter(InstructionEmitter, ABC):
    """Emits the addresses of accesses under the current bindings of variables."""

    def __init__(self) -> None:
        super().__init__()
        self.env: dict[Var, Binding] = {}
        self.extents: dict[Var, int] = {}
        self.storage: dict[Buffer, Value] = {}
        self.places: dict[str, int] = {}  # of pointers: the element, where it is always the same
        self._pointers: dict[object, Value] = {}
        self._forms: dict[tuple[int, Buffer], tuple[_Form | None, object]] = {}

    def address(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Address:
        """Return the address of `buffer[indices]`."""
        size = size_bytes(buffer.dtype)
        form = self._flat(buffer, indices)
        if form is None:
            return self._scattered(buffer, indices)
        const, stride = form.base.const, form.stride
        moving: list[tuple[Value, int]] = []
        for atom, coefficient in form.base.terms:
            bound = self.env[atom] if isinstance(atom, Var) else self._atom(atom)
            if isinstance(bound, int):
                const += coefficient * bound
            elif isinstance(bound, Lane):
                const += coefficient * bound.offset
                stride += coefficient
            elif bound.lanes > 1:
                return self._scattered(buffer, indices)
            else:
                moving.append((bound, coefficient))
        multiple = gcd(const, *(coefficient for _, coefficient in moving)) * size
        pointer = self._moved(self.storage[buffer], moving, size)
        if const:
            text = f"getelementptr inbounds i8, ptr {pointer.name}, i64 {const * size}"
            pointer = Value(self.pure(text, self.depth), self.depth)
        if not moving:
            self.places[pointer.name] = const
        return Address(pointer, stride, lanes=form.lanes, multiple=multiple)

    def _moved(self, pointer: Value, moving: list[tuple[Value, int]], size: int) -> Value:
        """Return a pointer moved by values times elements; copies of a statement ask for the same.

        Where the values are known, a pointer that was made of them is known too.
        """
        key = (pointer.name, size, *[(value.name, coefficient) for value, coefficient in moving])
        known = self._pointers.get(key)
        if known is None:
            known = pointer
            for value, coefficient in sorted(moving, key=lambda term: term[0].level):
                known = self._advance(known, value, coefficient * size)
            self._pointers[key] = known
        return known

    def _advance(self, pointer: Value, value: Value, step_bytes: int) -> Value:
        level = max(pointer.level, value.level)
        offset = value.name
        if step_bytes != 1:
            offset = self.pure(f"mul nsw i64 {value.name}, {step_bytes}", value.level)
        text = f"getelementptr inbounds i8, ptr {pointer.name}, i64 {offset}"
        return Value(self.pure(text, level), level)

    def _flat(self, buffer: Buffer, indices: tuple[Expr, ...]) -> _Form | None:
        """Return the element offset in linear form; kept by the identity of `indices`."""
        key = (id(indices), buffer)
        known = self._forms.get(key)
        if known is None:
            form = self._linear(buffer, indices)
            known = self._forms[key] = (form, indices)  # holding `indices` keeps its id taken
        return known[0]

    def _linear(self, buffer: Buffer, indices: tuple[Expr, ...]) -> _Form | None:
        base, step, lanes = Affine((), 0), 0, 1
        for stride, index in zip(strides_of(buffer), indices, strict=True):
            part = as_ramp(index)
            if part is None:
                return None
            base = base + normal(part.base, self.extents).scaled(stride)
            step += part.stride * stride
            lanes = max(lanes, part.lanes)
        return _Form(recombine(base), step, lanes)

    def _scattered(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Address:
        """Return an address whose lanes lie wherever a vector of offsets says."""
        offsets = Value("0", 0)
        for stride, index in zip(strides_of(buffer), indices, strict=True):
            step = self.binary("mul", "i64", self.integer(index), Value(str(stride), 0))
            offsets = self.binary("add", "i64", offsets, step)
        return Address(self.storage[buffer], None, offsets)

    def _atom(self, atom: Expr) -> Binding:
        """Evaluate a non-linear part of an offset as 64-bit integers, or as a constant."""
        names = [node for node in walk(atom) if isinstance(node, Var)]
        fixed = {v: IntImm(b) for v in names if isinstance(b := self.env[v], int)}
        if len(fixed) < len(set(names)):
            return self.integer(atom)
        interval = bounds(substitute(atom, fixed), {})
        return interval[0] if interval and interval[0] == interval[1] else self.integer(atom)

    @abstractmethod
    def integer(self, expr: Expr) -> Value:
        """Emit an index expression as a 64-bit integer or a vector of them."""

    def is_natural(self, expr: Expr) -> bool:
        """Tell whether an integer expression is surely zero or more."""
        interval = bounds(expr, self.extents)
        return interval is not None and interval[0] >= 0
