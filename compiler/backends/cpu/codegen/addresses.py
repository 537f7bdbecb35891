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

from compiler.backends.cpu.codegen.emitter import Place
from compiler.backends.cpu.codegen.instructions import InstructionEmitter, Value
from compiler.ir.arith.affine import Affine
from compiler.ir.arith.bounds import bounds
from compiler.ir.arith.simplify import normal, recombine
from compiler.ir.arith.vectors import as_ramp
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.frozen import frozen
from compiler.ir.core.layout import strides_of
from compiler.ir.core.nodes import Buffer, Call, Expr, IntImm, Load, Var
from compiler.ir.core.visit import substitute, walk


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

    @property
    def key(self) -> Place:
        """What tells an address from another, quickly."""
        offsets = None if self.offsets is None else self.offsets.name
        return self.pointer.name, self.stride, offsets, self.lanes


@frozen
class _Form:
    """An element offset as a linear form, and how it grows from lane to lane.

    It depends on `names`, or is read from memory where they are None; `number` tells it from other
    forms of the function.
    """

    base: Affine
    stride: int
    lanes: int
    names: tuple[Var, ...] | None
    number: int


class AddressEmitter(InstructionEmitter, ABC):
    """Emits the addresses of accesses under the current bindings of variables."""

    def __init__(self) -> None:
        super().__init__()
        self.env: dict[Var, Binding] = {}
        self.extents: dict[Var, int] = {}
        self.storage: dict[Buffer, Value] = {}
        self.places: dict[str, int] = {}  # of pointers: the element, where it is always the same
        self._pointers: dict[object, tuple[Value, int]] = {}
        self._forms: dict[tuple[int, int], tuple[_Form | None, object]] = {}
        self._num_forms = 0

    def address(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Address:
        """Return the address of `buffer[indices]`."""
        form = self._flat(buffer, indices)
        if form is None:
            return self._scattered(buffer, indices)
        if form.names is None:
            return self._address(buffer, form) or self._scattered(buffer, indices)
        # Copies of a statement in unrolled loops ask for the same again and again.
        key = (
            form.number,
            self.storage[buffer].name,
            *[
                b if isinstance(b, int) else b.name if isinstance(b, Value) else (b.offset, b.width)
                for b in map(self.env.__getitem__, form.names)
            ],
        )
        addresses = self.levels[-1].addresses
        known = addresses.get(key)
        if known is None:
            known = self._address(buffer, form) or self._scattered(buffer, indices)
            addresses[key] = known
        return known

    def _address(self, buffer: Buffer, form: _Form) -> Address | None:
        """Return the address of what is linear under these bindings, too; None if it is not."""
        const, stride = form.base.const, form.stride
        moving: list[tuple[Value, int]] = []
        env = self.env
        for atom, coefficient in form.base.terms:
            bound = env[atom] if isinstance(atom, Var) else self._atom(atom)
            if isinstance(bound, int):
                const += coefficient * bound
            elif isinstance(bound, Lane):
                const += coefficient * bound.offset
                stride += coefficient
            elif bound.lanes > 1:
                return None
            else:
                moving.append((bound, coefficient))
        size = size_bytes(buffer.dtype)
        origin = self.storage[buffer]
        pointer, step = self._moved(origin, moving, size) if moving else (origin, 0)
        if const:
            text = f"getelementptr inbounds i8, ptr {pointer.name}, i64 {const * size}"
            depth = len(self.levels) - 1
            pointer = Value(self.pure(text, depth), depth)
        if not moving:
            self.places[pointer.name] = const
        return Address(pointer, stride, None, form.lanes, gcd(const, step) * size)

    def _moved(
        self, pointer: Value, moving: list[tuple[Value, int]], size: int
    ) -> tuple[Value, int]:
        """Return a pointer moved by values times elements; copies of a statement ask for the same.

        Where the values are known, a pointer that was made of them is known too. With it comes
        the number of elements of which it moves by a multiple.
        """
        key = (pointer.name, size, *[(value.name, coefficient) for value, coefficient in moving])
        known = self._pointers.get(key)
        if known is None:
            for value, coefficient in sorted(moving, key=lambda term: term[0].level):
                pointer = self._advance(pointer, value, coefficient * size)
            known = self._pointers[key] = pointer, gcd(*(coefficient for _, coefficient in moving))
        return known

    def _advance(self, pointer: Value, value: Value, step_bytes: int) -> Value:
        level = max(pointer.level, value.level)
        offset = value.name
        if step_bytes != 1:
            offset = self.pure(f"mul nsw i64 {value.name}, {step_bytes}", value.level)
        text = f"getelementptr inbounds i8, ptr {pointer.name}, i64 {offset}"
        return Value(self.pure(text, level), level)

    def _flat(self, buffer: Buffer, indices: tuple[Expr, ...]) -> _Form | None:
        """Return the element offset in linear form; kept by the identity of both."""
        key = (id(indices), id(buffer))
        known = self._forms.get(key)
        if known is None:
            form = self._linear(buffer, indices)
            # Holding both keeps their ids taken.
            known = self._forms[key] = (form, (buffer, indices))
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
        form = recombine(base)
        nodes = [node for atom, _ in form.terms for node in walk(atom)]
        is_read = any(isinstance(node, Load | Call) for node in nodes)
        names = tuple(dict.fromkeys(node for node in nodes if isinstance(node, Var)))
        self._num_forms += 1
        return _Form(form, step, lanes, None if is_read else names, self._num_forms)

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
