"""Addresses: row-major offsets as linear forms, split by the loop that each term depends on.

`A[i, k]` inside loops `i` and `k` becomes `base + i*stride` in the loop `i`, plus `k*4` in the
loop `k`, plus a constant: copies of a statement in unrolled loops differ in the constant only,
which becomes part of the load's own address.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from math import gcd

from compiler.backends.cpu.codegen.emitters.lane_numbers import LaneNumbers, Numbers, distances
from compiler.backends.cpu.codegen.emitters.scope import Binding, CodeScope, LaneRange
from compiler.backends.cpu.codegen.text.builder import AddressKey
from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.backends.cpu.codegen.text.types import literal_vector, memory_type
from compiler.ir.arith.affine import Affine, affine, from_terms
from compiler.ir.arith.bounds import bounds
from compiler.ir.arith.simplify import normal, recombine
from compiler.ir.arith.vectors import as_ramp
from compiler.ir.core.dtypes import DType, size_bytes
from compiler.ir.core.frozen import frozen
from compiler.ir.core.layout import num_elements, symbolic_strides
from compiler.ir.core.nodes import BinOp, Buffer, Call, Expr, IntImm, Load, Var, static_int
from compiler.ir.core.visit import substitute, walk


@frozen
class Address:
    """The address of an access: a pointer, and the distance in elements from lane to lane.

    Attributes:
        pointer: The address of the first lane.
        stride: The distance between lanes; 0 is one element for all lanes, None means `offsets`.
        offsets: A vector of element offsets from `pointer`.
        picks: These offsets if they are known.
        lanes: More than 1 if the program itself writes a vector; in a vectorized loop, the loop
            determines the lanes.
        base: What `pointer` is `constant` elements from.
        constant: The part of the offset, in elements, that is known.
        step: The rest of the offset is a multiple of this; 0 if there is no rest.
    """

    pointer: RegisterValue
    stride: int | None
    offsets: RegisterValue | None = None
    lanes: int = 1
    base: RegisterValue | None = field(default=None, compare=False)
    constant: int = field(default=0, compare=False)
    step: int = field(default=1, compare=False)
    picks: Numbers | None = field(default=None, compare=False)

    def remainder(self, divisor: int) -> int | None:
        """Return the offset of the first lane in the buffer modulo a number; None if it varies."""
        return self.constant % divisor if self.step % divisor == 0 else None

    def distances(self, lanes: int) -> Numbers | None:
        """Return the distance of each lane from the first in elements; None if one varies."""
        if self.stride is not None:
            return tuple(lane * self.stride for lane in range(lanes))
        return self.picks

    @property
    def is_uniform(self) -> bool:
        """Whether all lanes access one element."""
        return self.stride == 0 and self.lanes == 1

    @property
    def key(self) -> AddressKey:
        """A tuple that equals another address's if the addresses are equal; fast to hash."""
        offsets = None if self.offsets is None else self.offsets.name
        return self.pointer.name, self.stride, offsets, self.lanes


@frozen
class _LinearOffset:
    """An element offset as a linear form, and its growth from lane to lane.

    Attributes:
        base: The offset of the first lane.
        stride: The growth from lane to lane, of a vector that the program writes itself.
        lanes: The lanes of that vector.
        variables: The variables it depends on; None if it is read from memory.
        is_plain: Whether it is a sum of multiples of variables.
        number: Distinguishes it from the other forms of the function.
    """

    base: Affine
    stride: int
    lanes: int
    variables: tuple[Var, ...] | None
    is_plain: bool
    number: int


class Addresses:
    """Emits the addresses of accesses under the current bindings of variables.

    Args:
        instructions: The instructions of the function.
        scope: The surroundings of the access.
        emit_index: Emits an index expression as a 64-bit integer, or a vector of them.
    """

    def __init__(
        self,
        instructions: Instructions,
        scope: CodeScope,
        emit_index: Callable[[Expr], RegisterValue],
    ) -> None:
        self._instructions = instructions
        self._builder = instructions.builder
        self._scope = scope
        self._emit_index = emit_index
        # By the name of a pointer: the element of its buffer, for those that no variable moves.
        self._elements: dict[str, int] = {}
        self._moved_pointers: dict[object, tuple[RegisterValue, int]] = {}
        self._offsets: dict[
            tuple[int, int], tuple[_LinearOffset | None, tuple[Expr, ...], Buffer]
        ] = {}
        self._num_offsets = 0
        self._lane_numbers = LaneNumbers()

    def address(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Address:
        """Return the address of `buffer[indices]`."""
        offset = self._linear_offset(buffer, indices)
        if offset is None:
            return self._scattered(buffer, indices)
        if offset.variables is None or offset.is_plain:
            return self._linear(buffer, offset) or self._scattered(buffer, indices)
        # Copies of a statement in unrolled loops evaluate quotients again and again.
        scope = self._scope
        key = (
            offset.number,
            scope.storage[buffer].name,
            *[
                b
                if isinstance(b, int)
                else b.name
                if isinstance(b, RegisterValue)
                else (b.offset, b.width)
                for b in map(scope.env.__getitem__, offset.variables)
            ],
        )
        addresses = self._builder.levels[-1].addresses
        address = addresses.get(key)
        if address is None:
            address = self._linear(buffer, offset) or self._scattered(buffer, indices)
            addresses[key] = address
        return address

    def _linear(self, buffer: Buffer, offset: _LinearOffset) -> Address | None:
        """Return the address of an offset; None if it is not linear under these bindings."""
        constant, step_of_lanes = offset.base.const, offset.stride
        moving: list[tuple[RegisterValue, int]] = []
        by_lane: list[tuple[int, Numbers]] = []
        env = self._scope.env
        for term, scale in offset.base.terms:
            atom, coefficient = self._without_constants(term, scale)
            binding = env[atom] if isinstance(atom, Var) else self._atom(atom)
            if isinstance(binding, int):
                constant += coefficient * binding
            elif isinstance(binding, LaneRange):
                constant += coefficient * binding.offset
                step_of_lanes += coefficient
            elif isinstance(binding, tuple):
                by_lane.append((coefficient, binding))
            elif binding.lanes > 1:
                return None
            else:
                moving.append((binding, coefficient))
        if by_lane and offset.lanes > 1:
            return None
        first, stride, picks = distances(step_of_lanes, by_lane)
        constant += first
        size = size_bytes(buffer.dtype)
        origin = self._scope.storage[buffer]
        base, step = self._moved(origin, moving, size) if moving else (origin, 0)
        key = (base.name, size, constant, stride, offset.lanes, picks)
        addresses = self._builder.levels[-1].addresses
        address: Address | None = addresses.get(key)
        if address is None:
            pointer = self._at_constant(base, constant * size)
            if not moving:
                self._elements[pointer.name] = constant
            offsets = None if picks is None else _literal_offsets(picks)
            address = Address(pointer, stride, offsets, offset.lanes, base, constant, step, picks)
            addresses[key] = address
        return address

    def _at_constant(self, base: RegisterValue, offset_bytes: int) -> RegisterValue:
        if not offset_bytes:
            return base
        text = f"getelementptr inbounds i8, ptr {base.name}, i64 {offset_bytes}"
        return self._instructions.emit_once(text, len(self._builder.levels) - 1)

    def group(self, buffer: Buffer, address: Address) -> tuple[Address, int] | None:
        """Return the address of the groups that lanes lie in, and their position in each group.

        Lanes a stride of `n` apart lie in `n` neighbours each: a load of all neighbours has the
        lanes of `n` such loads. None if the groups may not all be inside of the buffer.
        """
        stride, base = address.stride, address.base
        if stride is None or stride < 2 or base is None or buffer.strides:
            return None
        total = affine(num_elements(buffer.shape))
        if any(number % stride for number in (total.const, *(c for _, c in total.terms))):
            return None
        position = address.remainder(stride)
        if position is None:
            return None
        constant = address.constant - position
        pointer = self._at_constant(base, constant * size_bytes(buffer.dtype))
        return Address(pointer, 1, None, address.lanes, base, constant, address.step), position

    def _moved(
        self, pointer: RegisterValue, moving: list[tuple[RegisterValue, int]], size: int
    ) -> tuple[RegisterValue, int]:
        """Return a pointer moved by a sum of values times elements, and the steps' common divisor.

        The cache serves copies of a statement. A pointer made of values that are available is
        available, too, so one dictionary serves all levels.
        """
        key = (pointer.name, size, *[(value.name, coefficient) for value, coefficient in moving])
        moved = self._moved_pointers.get(key)
        if moved is None:
            for value, coefficient in sorted(moving, key=lambda term: term[0].level):
                pointer = self._advanced(pointer, value, coefficient * size)
            divisor = gcd(*(coefficient for _, coefficient in moving))
            moved = self._moved_pointers[key] = pointer, divisor
        return moved

    def _advanced(
        self, pointer: RegisterValue, value: RegisterValue, step_bytes: int
    ) -> RegisterValue:
        level = max(pointer.level, value.level)
        offset = value.name
        if step_bytes != 1:
            text = f"mul nsw i64 {value.name}, {step_bytes}"
            offset = self._builder.emit_once(text, value.level)
        text = f"getelementptr inbounds i8, ptr {pointer.name}, i64 {offset}"
        return self._instructions.emit_once(text, level)

    def _linear_offset(self, buffer: Buffer, indices: tuple[Expr, ...]) -> _LinearOffset | None:
        """Return the element offset in linear form, from a cache by the identity of both."""
        key = (id(indices), id(buffer))
        cached = self._offsets.get(key)
        if cached is None:
            # The cache keeps both alive, because Python reuses the identity of a dead object.
            cached = self._offsets[key] = (self._analyzed(buffer, indices), indices, buffer)
        return cached[0]

    def _analyzed(self, buffer: Buffer, indices: tuple[Expr, ...]) -> _LinearOffset | None:
        base, step, lanes = Affine((), 0), 0, 1
        for stride, index in zip(symbolic_strides(buffer), indices, strict=True):
            ramp = as_ramp(index)
            if ramp is None or (ramp.stride and not isinstance(stride, IntImm)):
                return None
            base = base + _product(normal(ramp.base, self._scope.extents), affine(stride))
            step += ramp.stride * stride.value if isinstance(stride, IntImm) else 0
            lanes = max(lanes, ramp.lanes)
        joined = recombine(base)
        if joined is not base:
            # A quotient of the whole value may be simple: with `v` below 56, `(a * 56 + v) // 56`.
            base = normal(joined.to_expr(), self._scope.extents)
        nodes = [node for atom, _ in base.terms for node in walk(atom)]
        is_read = any(isinstance(node, Load | Call) for node in nodes)
        variables = tuple(dict.fromkeys(node for node in nodes if isinstance(node, Var)))
        is_plain = all(isinstance(atom, Var) for atom, _ in base.terms)
        self._num_offsets += 1
        return _LinearOffset(
            base, step, lanes, None if is_read else variables, is_plain, self._num_offsets
        )

    def forget_offsets(self) -> None:
        """Forget linear forms, which were simplified by extents that have changed."""
        self._offsets.clear()

    def _scattered(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Address:
        """Return an address with a vector of offsets, one a lane."""
        binary = self._instructions.binary
        offsets = RegisterValue("0", 0)
        for stride, index in zip(symbolic_strides(buffer), indices, strict=True):
            step = binary("mul", "i64", self._emit_index(index), self._emit_index(stride))
            offsets = binary("add", "i64", offsets, step)
        return Address(self._scope.storage[buffer], None, offsets)

    def _without_constants(self, atom: Expr, scale: int) -> tuple[Expr, int]:
        """Return a term without the factors that are constants of unrolled loops."""
        while isinstance(atom, BinOp) and atom.op == "*" and isinstance(atom.lhs, Var):
            binding = self._scope.env[atom.lhs]
            if not isinstance(binding, int):
                break
            atom, scale = atom.rhs, scale * binding
        return atom, scale

    def _atom(self, atom: Expr) -> Binding | Numbers:
        """Evaluate a non-linear part of an offset as 64-bit integers, or as constants.

        Returns:
            One constant, one for each lane, or what is not known before the program runs.
        """
        env = self._scope.env
        variables = {node for node in walk(atom) if isinstance(node, Var)}
        constants = {v: IntImm(b) for v in variables if isinstance(b := env[v], int)}
        unknown = variables - constants.keys()
        if len(unknown) == 1 and isinstance(lanes := env[var := unknown.pop()], LaneRange):
            numbers = self._lane_numbers.evaluate(atom, var, lanes, constants)
            return self._emit_index(atom) if numbers is None else numbers
        if len(constants) < len(variables):
            return self._emit_index(atom)
        interval = bounds(substitute(atom, constants), {})
        is_constant = interval is not None and interval[0] == interval[1]
        return interval[0] if interval and is_constant else self._emit_index(atom)

    # --- facts about addresses ------------------------------------------------------------------

    def is_register(self, buffer: Buffer, address: Address) -> bool:
        """Return whether an access goes to registers, in all lanes and whatever the mask.

        Intrinsics, such as masked loads, would keep the buffer in memory. The first lane is an
        element: there is room behind the last one, and none before the first.
        """
        if address.stride != 1 or buffer not in self._scope.registers:
            return False
        first = self.element(address.pointer.name)
        return first is None or 0 <= first < static_int(num_elements(buffer.shape))

    def num_lanes(self, address: Address) -> int:
        """Return the number of elements that an access touches at once."""
        if address.offsets is not None:
            return address.offsets.lanes
        if address.lanes > 1:
            return address.lanes
        mask = self._scope.mask
        if mask is not None:
            return max(mask.lanes, self._scope.num_lanes())
        return 1 if address.stride == 0 else self._scope.num_lanes()

    def element(self, pointer_name: str) -> int | None:
        """Return the element that a pointer always points to; None if a variable moves it."""
        return self._elements.get(pointer_name)

    def stride_along(self, buffer: Buffer, indices: tuple[Expr, ...], var: Var) -> int | None:
        """Return how many elements an access moves with a variable; None if that varies."""
        offset = self._linear_offset(buffer, indices)
        if offset is None:
            return None
        stride = 0
        for atom, coefficient in offset.base.terms:
            if atom is var:
                stride = coefficient
            elif var in set(walk(atom)):
                return None
        return stride

    def pointers(self, dtype: DType, address: Address, lanes: int) -> str:
        """Return a vector of pointers, one a lane, for an access that is not contiguous."""
        if address.offsets is not None:
            offsets = self._instructions.broadcast(address.offsets, "i64", lanes).name
        else:
            offsets = literal_vector("i64", address.distances(lanes) or ())
        base = f"{memory_type(dtype)}, ptr {address.pointer.name}"
        return self._builder.emit(f"getelementptr {base}, <{lanes} x i64> {offsets}")


def _literal_offsets(picks: Numbers) -> RegisterValue:
    return RegisterValue(literal_vector("i64", picks), 0, len(picks))


def _product(index: Affine, stride: Affine) -> Affine:
    """Return an index times a stride, which is a number or depends on symbolic extents."""
    if not stride.terms:
        return index.scaled(stride.const)
    one: Expr = IntImm(1, index.dtype)
    return from_terms(
        (
            (size if atom is one else atom if size is one else BinOp("*", atom, size), a * b)
            for atom, a in (*index.terms, (one, index.const))
            for size, b in (*stride.terms, (one, stride.const))
            if not (atom is one and size is one)
        ),
        index.const * stride.const,
        index.dtype,
    )
