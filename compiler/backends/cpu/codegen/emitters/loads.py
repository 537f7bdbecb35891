"""Loads: a scalar, neighbours, elements a stride apart, or any elements; with or without a mask.

Example, with `x` the lanes 0-7 of a vectorized loop and `A` of float32:

    A[i]                 one load of a float; it is repeated where it meets a vector
    A[i * 8 + x]         one load of <8 x float>; with a mask, llvm.masked.load
    A[x * 3]             three loads of vectors, and shuffles (`operations.strided_loads`)
    A[7 - x]             one load of <8 x float>, and a shuffle
    A[x * 100], A[B[x]]  llvm.masked.gather of 8 addresses

A mask matters only if lanes may be beyond the end of `A`: no statement takes the values of lanes
that are off. So panels with room for whole tiles are read without masks. `A[i]` is read only if a
lane is on; the first element of `A` is read otherwise.

A load is emitted once for each address, number of lanes and mask, until a store may change it.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.backends.cpu.codegen.emitters.addresses import Address, Addresses
from compiler.backends.cpu.codegen.emitters.scope import CodeScope
from compiler.backends.cpu.codegen.operations.conversions import Conversions
from compiler.backends.cpu.codegen.operations.masked_accesses import MaskedAccesses, MemoryVector
from compiler.backends.cpu.codegen.operations.strided_loads import (
    are_near,
    is_strided,
    picked_load,
    strided_load,
)
from compiler.backends.cpu.codegen.text.instructions import (
    GroupPart,
    Instructions,
    LoadedElement,
    RegisterValue,
)
from compiler.backends.cpu.codegen.text.types import (
    element_alignment,
    memory_type,
    splat,
    type_suffix,
    vector,
)
from compiler.ir.arith.inside import are_inside
from compiler.ir.core.dtypes import DType, is_integer, is_narrow_float, size_bytes
from compiler.ir.core.nodes import Buffer, Expr

_MAX_NARROW = 2
"""The bytes of an element of a dot product, at most."""


class Loads:
    """Emits loads; elements that the same level loaded or stored before are not loaded again."""

    def __init__(
        self,
        instructions: Instructions,
        scope: CodeScope,
        addresses: Addresses,
        conversions: Conversions,
        masked_accesses: MaskedAccesses,
    ) -> None:
        self._instructions = instructions
        self._builder = instructions.builder
        self._scope = scope
        self._addresses = addresses
        self._conversions = conversions
        self._masked_accesses = masked_accesses

    def load(self, buffer: Buffer, indices: tuple[Expr, ...]) -> RegisterValue:
        """Emit the load of a buffer's element, or of those of all lanes."""
        addresses, levels = self._addresses, self._builder.levels
        address = addresses.address(buffer, indices)
        lanes = addresses.num_lanes(address)
        is_masked = lanes > 1 and not addresses.is_register(buffer, address)
        mask = self._scope.mask if is_masked else None
        if mask is not None:
            is_inside = self._is_inside(buffer, indices)
            if address.is_uniform:
                address = address if is_inside else self._valid(buffer, address, mask)
                lanes, mask = 1, None
            elif is_inside:
                mask = None
        loads = levels[-1].loads.setdefault(buffer.data, {})
        key = (address.key, lanes, mask, buffer.dtype)
        name = loads.get(key)
        if name is None:
            name = self._load_part(buffer, address, lanes, mask)
            loads[key] = name = name or self._load_lanes(buffer.dtype, address, lanes, mask)
            if lanes == 1 and address.base is not None and size_bytes(buffer.dtype) <= _MAX_NARROW:
                offset = address.constant * size_bytes(buffer.dtype)
                self._instructions.elements[name] = LoadedElement(
                    buffer.data, key, address.pointer, address.base.name, offset
                )
        value = RegisterValue(name, len(levels) - 1, lanes)
        if buffer.dtype == "bool":
            return self._instructions.icmp("ne", "i8", value, RegisterValue("0", 0))
        if is_narrow_float(buffer.dtype):
            return self._conversions.from_bits(value, buffer.dtype)
        return value

    def _is_inside(self, buffer: Buffer, indices: tuple[Expr, ...]) -> bool:
        """Return whether all lanes are elements of the buffer, whatever the mask."""
        return are_inside(indices, buffer, self._scope.extents)

    def _valid(self, buffer: Buffer, address: Address, mask: RegisterValue) -> Address:
        """Return an address that may be read: the given one if any lane is on."""
        kind = vector("i1", mask.lanes)
        is_on = mask
        if mask.lanes > 1:
            name = f"llvm.vector.reduce.or.v{mask.lanes}i1"
            is_on = self._instructions.call("i1", name, [(kind, mask)], 1)
        first = self._scope.storage[buffer]
        level = max(is_on.level, first.level, address.pointer.level)
        text = f"select i1 {is_on.name}, ptr {address.pointer.name}, ptr {first.name}"
        return replace(address, pointer=self._instructions.emit_once(text, level))

    def _load_part(
        self, buffer: Buffer, address: Address, lanes: int, mask: RegisterValue | None
    ) -> str | None:
        """Load lanes a stride apart together with the neighbours between them.

        Returns:
            The vector; None unless the lanes are narrow integers or bfloat16 in groups of 16 or 32
            bits, all of which a dot product may take.
        """
        count = address.stride or 1
        if lanes == 1 or count == 1 or mask is not None:
            return None
        has_dots = is_integer(buffer.dtype) or buffer.dtype == "bfloat16"
        if not has_dots or count * size_bytes(buffer.dtype) not in (2, 4):
            return None
        group = self._addresses.group(buffer, address)
        if group is None:
            return None
        at, position = group
        loads = self._builder.levels[-1].loads.setdefault(buffer.data, {})
        key = (at.key, lanes * count, None, buffer.dtype)
        if key not in loads:
            loads[key] = self._load_lanes(buffer.dtype, at, lanes * count, None)
        groups = RegisterValue(loads[key], self._builder.depth, lanes * count)
        kind = vector(memory_type(buffer.dtype), lanes * count)
        picks = ", ".join(f"i32 {position + lane * count}" for lane in range(lanes))
        name = self._builder.emit(
            f"shufflevector {kind} {groups.name}, {kind} poison, <{lanes} x i32> <{picks}>"
        )
        self._instructions.parts[name] = GroupPart(groups, position, count)
        return name

    def _load_lanes(
        self, dtype: DType, address: Address, lanes: int, mask: RegisterValue | None
    ) -> str:
        scalar = memory_type(dtype)
        kind = vector(scalar, lanes)
        align = element_alignment(dtype)
        pointer = address.pointer.name
        emit, externals = self._builder.emit, self._instructions.externals
        if lanes == 1 or (address.stride == 1 and mask is None):
            return emit(f"load {kind}, ptr {pointer}, align {align}")
        lane_mask = None if mask is None else self._instructions.broadcast(mask, "i1", lanes).name
        test = f"<{lanes} x i1> {lane_mask or splat('i1', 'true', lanes)}"
        suffix = type_suffix(scalar, lanes)
        if address.stride == 1:
            assert lane_mask is not None, "a load without a mask is above"
            part = MemoryVector(scalar, lanes, align)
            return self._masked_accesses.load(part, pointer, lane_mask)
        if address.stride is not None and is_strided(address.stride, lanes):
            return strided_load(
                self._instructions,
                self._masked_accesses,
                pointer,
                scalar,
                lanes=lanes,
                stride=address.stride,
                align=align,
                mask=lane_mask,
            )
        distances = address.distances(lanes)
        if mask is None and distances is not None and are_near(distances):
            return picked_load(self._instructions, pointer, scalar, distances, align)
        pointers = self._addresses.pointers(dtype, address, lanes)
        name = f"@llvm.masked.gather.{suffix}.v{lanes}p0"
        externals.add(f"declare {kind} {name}(<{lanes} x ptr>, <{lanes} x i1>, {kind})")
        operand = f"<{lanes} x ptr> align {align} {pointers}"
        return emit(f"call {kind} {name}({operand}, {test}, {kind} zeroinitializer)")
