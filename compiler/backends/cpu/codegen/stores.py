"""Stores, of scalars and of vectors, and of tiles of vectors whose lanes lie apart."""

from __future__ import annotations

from compiler.backends.cpu.codegen.addresses import Address, Lane
from compiler.backends.cpu.codegen.error import CodegenError
from compiler.backends.cpu.codegen.expressions import ExpressionEmitter
from compiler.backends.cpu.codegen.instructions import Value
from compiler.backends.cpu.codegen.transposes import transpose
from compiler.backends.cpu.codegen.types import (
    element_alignment,
    is_narrow,
    memory_type,
    scalar_type,
    type_suffix,
    vector,
)
from compiler.ir.core.dtypes import bits
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Buffer, For, Load, Stmt, Store
from compiler.ir.core.visit import walk

MAX_EXPANDED_STORES = 8192
STREAMS = "non_temporal"
"""The annotation of a loop that asks for stores past the caches: nobody reads them soon."""
_LINE_BYTES = 64
_STREAM_BYTES = 16
"""What is shorter is stored as ever."""


class StoreEmitter(ExpressionEmitter):
    """Emits stores under the current bindings and mask."""

    def __init__(self) -> None:
        super().__init__()
        self._stores = 0
        self.streams: set[Buffer] = set()

    def store(self, stmt: Store) -> None:
        """Emit a store."""
        self._count()
        buffer = stmt.buffer
        value = self.value(stmt.value)
        address = self.address(buffer, stmt.indices)
        lanes = self.access_lanes(address)
        self._forget(buffer, address, lanes)
        if lanes == 1 and value.lanes > 1:
            raise CodegenError(f"a vector is stored to one element of {buffer.name}")
        stored = value
        if buffer.dtype == "bool":
            stored = self.cast("zext", "i1", "i8", value)
        elif is_narrow(buffer.dtype):
            stored = self.to_bits(value, buffer.dtype)
        stored = self.widen(stored, memory_type(buffer.dtype), lanes)
        self._store_lanes(buffer, address, self._merged(buffer, address, stored))
        if self.mask is None and stored.name.startswith("%") and buffer.dtype != "bool":
            # What was stored is what the next load of the same place finds.
            assert dtype_of(stmt.value) == buffer.dtype, f"{buffer.name} holds {buffer.dtype}"
            loads = self.current.loads.setdefault(buffer.data, {})
            loads[address.key, lanes, None, buffer.dtype] = stored.name

    def _forget(self, buffer: Buffer, address: Address, lanes: int) -> None:
        """Drop what is known of the elements that a store overwrites; of a register, no others."""
        place = self.places.get(address.pointer.name)
        if place is None or not self.is_register(buffer, address):
            self.forget_loads(buffer)
            return
        for level in self.levels:
            loads = level.loads.get(buffer.data)
            if not loads:
                continue
            for key in list(loads):
                (pointer, stride, *_), width = key[0], key[1]
                known = self.places.get(pointer) if stride == 1 else None
                if known is None or (known < place + lanes and place < known + width):
                    del loads[key]

    def _merged(self, buffer: Buffer, address: Address, value: Value) -> Value:
        """Return a value with what a register holds in the lanes that a mask leaves out."""
        if self.mask is None or value.lanes == 1 or not self.is_register(buffer, address):
            return value
        scalar, align = memory_type(buffer.dtype), element_alignment(buffer.dtype)
        kind = vector(scalar, value.lanes)
        old = self.emit(f"load {kind}, ptr {address.pointer.name}, align {align}")
        kept = Value(old, self.depth, value.lanes)
        return self.select(scalar, self.widen(self.mask, "i1", value.lanes), value, kept)

    def _count(self) -> None:
        self._stores += 1
        if self._stores > MAX_EXPANDED_STORES:
            raise CodegenError(
                f"the program expands to more than {MAX_EXPANDED_STORES} stores: unroll less"
            )

    def _store_lanes(self, buffer: Buffer, address: Address, value: Value) -> None:
        scalar = memory_type(buffer.dtype)
        lanes, align = value.lanes, element_alignment(buffer.dtype)
        kind = vector(scalar, lanes)
        mask = self.mask if lanes > 1 and not self.is_register(buffer, address) else None
        if lanes == 1 or (address.stride == 1 and mask is None):
            text = f"store {kind} {value.name}, ptr {address.pointer.name}"
            size = lanes * bits(buffer.dtype) // 8
            is_long = lanes > 1 and size % _STREAM_BYTES == 0
            if buffer in self.streams and is_long and address.multiple % size == 0:
                self.do(f"{text}, align {size}, !nontemporal !0")
            else:
                self.do(f"{text}, align {align}")
            return
        test = "splat (i1 true)" if mask is None else self.widen(mask, "i1", lanes).name
        suffix, bools = type_suffix(scalar, lanes), f"<{lanes} x i1>"
        if address.stride == 1:
            name = f"@llvm.masked.store.{suffix}.p0"
            self.externals.add(f"declare void {name}({kind}, ptr, {bools})")
            pointer = f"ptr align {align} {address.pointer.name}"
            self.do(f"call void {name}({kind} {value.name}, {pointer}, {bools} {test})")
            return
        pointers = self.pointers(buffer.dtype, address, lanes)
        name = f"@llvm.masked.scatter.{suffix}.v{lanes}p0"
        self.externals.add(f"declare void {name}({kind}, <{lanes} x ptr>, {bools})")
        operand = f"<{lanes} x ptr> align {align} {pointers}"
        self.do(f"call void {name}({kind} {value.name}, {operand}, {bools} {test})")

    # --- streams ------------------------------------------------------------------------------

    def streamable(self, stmt: Stmt) -> dict[Buffer, Value]:
        """Return the parameters that a statement writes and does not read, and where they begin."""
        nodes = list(walk(stmt))
        loaded = {node.buffer.data for node in nodes if isinstance(node, Load)}
        stored = {node.buffer for node in nodes if isinstance(node, Store)}
        return {
            buffer: self.storage[buffer]
            for buffer in stored
            if buffer.data not in loaded
            and buffer in self.storage
            and self.storage[buffer].name.startswith("%arg")
        }

    def end_streams(self) -> None:
        """Wait for what was stored past the caches: it is in no order with other stores."""
        if self.streams:
            self.do("fence seq_cst")
            self.streams = set()

    def is_aligned(self, pointer: Value) -> Value:
        """Tell, when the program runs, whether a pointer is at the beginning of a cache line."""
        address = Value(self.pure(f"ptrtoint ptr {pointer.name} to i64", pointer.level), 0)
        beyond = self.binary("and", "i64", address, Value(str(_LINE_BYTES - 1), 0))
        return self.icmp("eq", "i64", beyond, Value("0", 0))

    # --- tiles --------------------------------------------------------------------------------

    def is_transposed(self, rows: For, columns: For, store: Store) -> bool:
        """Tell whether a store's lanes along `columns` lie apart, and `rows` fill the gaps.

        The extents of both loops are known by now. What is stored must not be loaded there: all of
        it is computed before any is written.
        """
        buffer = store.buffer
        if self.mask is not None or self.lanes() > 1 or buffer.dtype == "bool":
            return False
        if is_narrow(buffer.dtype):
            return False
        if any(isinstance(n, Load) and n.buffer.data is buffer.data for n in walk(store.value)):
            return False
        down, along = (self.stride_along(store, loop) for loop in (rows, columns))
        return down == 1 and along not in (None, 0, 1)

    def stride_along(self, store: Store, loop: For) -> int | None:
        """Return how far a store moves with a loop, None if that is not always the same."""
        form = self._flat(store.buffer, store.indices)
        if form is None:
            return None
        coefficient = 0
        for atom, scale in form.base.terms:
            if atom is loop.var:
                coefficient = scale
            elif loop.var in set(walk(atom)):
                return None
        return coefficient

    def store_tile(self, rows: For, columns: For, store: Store, tile: tuple[Lane, Lane]) -> None:
        """Emit a tile of a store that `is_transposed`: rows are computed, columns written."""
        buffer, (down, along) = store.buffer, tile
        if 1 in (down.width, along.width):
            self.env[columns.var] = along if along.width > 1 else along.offset
            for row in range(down.width):
                self.env[rows.var] = down.offset + row
                self.store(store)
            del self.env[columns.var], self.env[rows.var]
            return
        self._count()
        scalar = scalar_type(buffer.dtype)
        self.env[columns.var] = along
        values = []
        for row in range(down.width):
            self.env[rows.var] = down.offset + row
            values.append(self.widen(self.value(store.value), scalar, along.width).name)
        self.forget_loads(buffer)
        self.env[rows.var] = down
        found = transpose(self, values, scalar, along.width, bits(buffer.dtype))
        for column, name in enumerate(found):
            self.env[columns.var] = along.offset + column
            address = self.address(buffer, store.indices)
            self._store_lanes(buffer, address, Value(name, self.depth, down.width))
        del self.env[columns.var], self.env[rows.var]
