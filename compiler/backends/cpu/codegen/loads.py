"""Loads: a scalar, neighbours, every so many elements, or from anywhere; under a mask or not."""

from __future__ import annotations

from abc import ABC

from compiler.backends.cpu.codegen.addresses import Address, AddressEmitter, Lane
from compiler.backends.cpu.codegen.instructions import Value
from compiler.backends.cpu.codegen.strided_loads import is_strided, strided_load
from compiler.backends.cpu.codegen.types import (
    element_alignment,
    is_narrow,
    memory_type,
    splat,
    type_suffix,
    vector,
)
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Buffer, Expr


class LoadEmitter(AddressEmitter, ABC):
    """Emits loads; one that stands in a register, or was loaded around here, is not repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.registers: set[Buffer] = set()

    def load(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Value:
        """Emit the element of a buffer at some indices, or those of all lanes."""
        address = self.address(buffer, indices)
        lanes = self.access_lanes(address)
        mask = self.mask if lanes > 1 and not self.is_register(buffer, address) else None
        loads = self.levels[-1].loads.setdefault(buffer.data, {})
        key = (address.key, lanes, mask, buffer.dtype)
        known = loads.get(key)
        if known is None:
            known = loads[key] = self._load_lanes(buffer.dtype, address, lanes, mask)
        value = Value(known, len(self.levels) - 1, lanes)
        if buffer.dtype == "bool":
            return self.binary("icmp ne", "i8", value, Value("0", 0))
        return self.from_bits(value, buffer.dtype) if is_narrow(buffer.dtype) else value

    def is_register(self, buffer: Buffer, address: Address) -> bool:
        """Tell whether an access takes a register: all of its lanes are there, whatever the mask.

        Intrinsics, such as masked loads, would keep the buffer in memory.
        """
        return address.stride == 1 and buffer in self.registers

    def access_lanes(self, address: Address) -> int:
        """Return how many elements an access touches at once."""
        if address.offsets is not None:
            return address.offsets.lanes
        if address.lanes > 1:
            return address.lanes
        if self.mask is not None:
            return max(self.mask.lanes, self.lanes())
        return 1 if address.stride == 0 else self.lanes()

    def lanes(self) -> int:
        """Return how many lanes the enclosing vectorized loop has; 1 outside of one."""
        most = 1
        for bound in self.env.values():
            if type(bound) is Lane and bound.width > most:
                most = bound.width
        return most

    def _load_lanes(self, dtype: DType, address: Address, lanes: int, mask: Value | None) -> str:
        scalar = memory_type(dtype)
        kind = vector(scalar, lanes)
        align = element_alignment(dtype)
        if lanes == 1 or (address.stride == 1 and mask is None):
            return self.emit(f"load {kind}, ptr {address.pointer.name}, align {align}")
        zero = "zeroinitializer"
        if mask is not None:
            test = f"<{lanes} x i1> {self.widen(mask, 'i1', lanes).name}"
        else:
            test = f"<{lanes} x i1> {splat('i1', 'true', lanes)}"
        suffix = type_suffix(scalar, lanes)
        if address.stride == 1:
            name = f"@llvm.masked.load.{suffix}.p0"
            self.externals.add(f"declare {kind} {name}(ptr, <{lanes} x i1>, {kind})")
            pointer = f"ptr align {align} {address.pointer.name}"
            return self.emit(f"call {kind} {name}({pointer}, {test}, {kind} {zero})")
        if address.stride is not None and is_strided(address.stride, lanes):
            return strided_load(
                self,
                address.pointer.name,
                scalar,
                lanes=lanes,
                stride=address.stride,
                align=align,
                mask=None if mask is None else self.widen(mask, "i1", lanes).name,
            )
        pointers = self.pointers(dtype, address, lanes)
        name = f"@llvm.masked.gather.{suffix}.v{lanes}p0"
        self.externals.add(f"declare {kind} {name}(<{lanes} x ptr>, <{lanes} x i1>, {kind})")
        operand = f"<{lanes} x ptr> align {align} {pointers}"
        return self.emit(f"call {kind} {name}({operand}, {test}, {kind} {zero})")

    def pointers(self, dtype: DType, address: Address, lanes: int) -> str:
        """Return a vector of pointers, one a lane, for an access that is not contiguous."""
        if address.offsets is not None:
            offsets = self.widen(address.offsets, "i64", lanes).name
        else:
            steps = (f"i64 {lane * (address.stride or 0)}" for lane in range(lanes))
            offsets = f"<{', '.join(steps)}>"
        base = f"{memory_type(dtype)}, ptr {address.pointer.name}"
        return self.emit(f"getelementptr {base}, <{lanes} x i64> {offsets}")
