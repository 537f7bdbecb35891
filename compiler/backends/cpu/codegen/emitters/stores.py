"""Stores, of scalars and of vectors, and of tiles of vectors with gaps between their lanes.

Example, with `x` the lanes 0-7 of a vectorized loop and `C` of float32:

    C[i * 8 + x] = ...   one store of <8 x float>; with a mask, llvm.masked.store
    C[x * 100] = ...     llvm.masked.scatter to 8 addresses

If an unrolled loop `r` of 8 iterations is around and `C[x * 100 + r]` is stored, the gaps of one
store are filled by the others: a tile of 8 x 8. Its rows, one for each `r`, are computed first and
transposed in registers. Then each `x` is one store of its 8 neighbours.
"""

from __future__ import annotations

from compiler.backends.cpu.codegen.emitters.addresses import Address
from compiler.backends.cpu.codegen.emitters.expressions import Expressions
from compiler.backends.cpu.codegen.emitters.scope import CodeScope, LaneRange
from compiler.backends.cpu.codegen.error import CodegenError
from compiler.backends.cpu.codegen.operations.masked_accesses import MemoryVector
from compiler.backends.cpu.codegen.operations.transposes import transpose
from compiler.backends.cpu.codegen.text.frame import CACHE_LINE_BYTES
from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.backends.cpu.codegen.text.types import (
    element_alignment,
    memory_type,
    type_suffix,
    vector,
)
from compiler.ir.core.dtypes import bits, is_narrow_float
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import Buffer, For, Load, Stmt, Store
from compiler.ir.core.visit import walk

# Limits the size of the code, and with it the time that LLVM takes.
MAX_EXPANDED_STORES = 8192
STREAMS = "non_temporal"
"""The annotation of a loop that requests non-temporal stores: its results are not read soon."""
# The shortest vector for which x86 has a non-temporal store (movntps).
_MIN_STREAM_BYTES = 16


class Stores:
    """Emits stores under the bindings and the mask of a scope.

    Args:
        instructions: The instructions of the function.
        scope: The surroundings of the stores.
        expressions: Emits what is stored.

    Attributes:
        streams: The buffers whose whole vectors are stored past the caches.
    """

    def __init__(
        self, instructions: Instructions, scope: CodeScope, expressions: Expressions
    ) -> None:
        self._instructions = instructions
        self._builder = instructions.builder
        self._scope = scope
        self._expressions = expressions
        self._addresses = expressions.addresses
        self._num_stores = 0
        self.streams: set[Buffer] = set()

    def store(self, stmt: Store) -> None:
        """Emit a store.

        Raises:
            CodegenError: If a vector goes to one element, or the program has too many stores.
        """
        self._count()
        buffer, addresses = stmt.buffer, self._addresses
        value = self._expressions.value(stmt.value)
        address = addresses.address(buffer, stmt.indices)
        lanes = addresses.num_lanes(address)
        self._forget_loads(buffer, address, lanes)
        if lanes == 1 and value.lanes > 1:
            raise CodegenError(f"a vector is stored to one element of {buffer.name}")
        if buffer.dtype == "bool":
            value = self._instructions.cast("zext", "i1", "i8", value)
        elif is_narrow_float(buffer.dtype):
            value = self._expressions.conversions.to_bits(value, buffer.dtype)
        value = self._instructions.broadcast(value, memory_type(buffer.dtype), lanes)
        self._store_lanes(buffer, address, self._merged(buffer, address, value))
        if self._scope.mask is None and value.name.startswith("%") and buffer.dtype != "bool":
            # The next load from this address takes the stored value from its register.
            assert dtype_of(stmt.value) == buffer.dtype, f"{buffer.name} holds {buffer.dtype}"
            loads = self._builder.innermost.loads.setdefault(buffer.data, {})
            loads[address.key, lanes, None, buffer.dtype] = value.name

    def _forget_loads(self, buffer: Buffer, address: Address, lanes: int) -> None:
        """Forget the loaded elements that a store overwrites; of registers, no other ones."""
        first = self._addresses.element(address.pointer.name)
        if first is None or not self._addresses.is_register(buffer, address):
            self._builder.forget_loads(buffer)
            return
        for level in self._builder.levels:
            loads = level.loads.get(buffer.data)
            if not loads:
                continue
            for key in list(loads):
                (pointer, stride, *_), width = key[0], key[1]
                loaded = self._addresses.element(pointer) if stride == 1 else None
                if loaded is None or (loaded < first + lanes and first < loaded + width):
                    del loads[key]

    def _merged(self, buffer: Buffer, address: Address, value: RegisterValue) -> RegisterValue:
        """Return a value with the old contents of a register in the lanes that are masked out."""
        mask = self._scope.mask
        is_register = self._addresses.is_register(buffer, address)
        if mask is None or value.lanes == 1 or not is_register:
            return value
        scalar, align = memory_type(buffer.dtype), element_alignment(buffer.dtype)
        kind = vector(scalar, value.lanes)
        name = self._builder.emit(f"load {kind}, ptr {address.pointer.name}, align {align}")
        old = RegisterValue(name, self._builder.depth, value.lanes)
        lane_mask = self._instructions.broadcast(mask, "i1", value.lanes)
        return self._instructions.select(scalar, lane_mask, value, old)

    def _count(self) -> None:
        self._num_stores += 1
        if self._num_stores > MAX_EXPANDED_STORES:
            raise CodegenError(
                f"the program expands to more than {MAX_EXPANDED_STORES} stores: unroll less"
            )

    def _store_lanes(self, buffer: Buffer, address: Address, value: RegisterValue) -> None:
        scalar = memory_type(buffer.dtype)
        lanes, align = value.lanes, element_alignment(buffer.dtype)
        kind = vector(scalar, lanes)
        is_masked = lanes > 1 and not self._addresses.is_register(buffer, address)
        mask = self._scope.mask if is_masked else None
        if lanes == 1 or (address.stride == 1 and mask is None):
            text = f"store {kind} {value.name}, ptr {address.pointer.name}"
            size = lanes * bits(buffer.dtype) // 8
            is_long = lanes > 1 and size % _MIN_STREAM_BYTES == 0
            if buffer in self.streams and is_long and address.remainder(lanes) == 0:
                self._builder.emit_void(f"{text}, align {size}, !nontemporal !0")
            else:
                self._builder.emit_void(f"{text}, align {align}")
            return
        test = "splat (i1 true)"
        if mask is not None:
            test = self._instructions.broadcast(mask, "i1", lanes).name
        pointer = address.pointer.name
        if address.stride == 1:
            part = MemoryVector(scalar, lanes, align)
            self._expressions.masked_accesses.store(part, value.name, pointer, test)
            return
        suffix, bools = type_suffix(scalar, lanes), f"<{lanes} x i1>"
        pointers = self._addresses.pointers(buffer.dtype, address, lanes)
        name = f"@llvm.masked.scatter.{suffix}.v{lanes}p0"
        self._instructions.externals.add(f"declare void {name}({kind}, <{lanes} x ptr>, {bools})")
        operand = f"<{lanes} x ptr> align {align} {pointers}"
        self._builder.emit_void(f"call void {name}({kind} {value.name}, {operand}, {bools} {test})")

    # --- non-temporal stores ----------------------------------------------------------------------

    def streamable(self, stmt: Stmt) -> dict[Buffer, RegisterValue]:
        """Return the addresses of the parameters that a statement writes and does not read."""
        nodes = list(walk(stmt))
        storage = self._scope.storage
        loaded = {node.buffer.data for node in nodes if isinstance(node, Load)}
        stored = {node.buffer for node in nodes if isinstance(node, Store)}
        return {
            buffer: storage[buffer]
            for buffer in stored
            if buffer.data not in loaded
            and buffer in storage
            and storage[buffer].name.startswith("%arg")
        }

    def end_streams(self) -> None:
        """Wait for the non-temporal stores, which are not ordered with other stores."""
        if self.streams:
            self._builder.emit_void("fence seq_cst")
            self.streams = set()

    def is_aligned(self, pointer: RegisterValue) -> RegisterValue:
        """Emit a test whether a pointer is at the beginning of a cache line."""
        text = f"ptrtoint ptr {pointer.name} to i64"
        address = RegisterValue(self._builder.emit_once(text, pointer.level), 0)
        last_byte = RegisterValue(str(CACHE_LINE_BYTES - 1), 0)
        remainder = self._instructions.binary("and", "i64", address, last_byte)
        return self._instructions.icmp("eq", "i64", remainder, RegisterValue("0", 0))

    # --- tiles ------------------------------------------------------------------------------------

    def is_transposed(self, rows: For, columns: For, store: Store) -> bool:
        """Return whether a store's lanes along `columns` have gaps, and `rows` fill the gaps.

        The extents of both loops are constants. The stored buffer must not be loaded: the whole
        tile is computed before any of it is written.
        """
        buffer = store.buffer
        if self._scope.mask is not None or self._scope.num_lanes() > 1:
            return False
        if buffer.dtype == "bool":
            return False
        if any(isinstance(n, Load) and n.buffer.data is buffer.data for n in walk(store.value)):
            return False
        down, along = (self.stride_along(store, loop) for loop in (rows, columns))
        return down == 1 and along not in (None, 0, 1)

    def stride_along(self, store: Store, loop: For) -> int | None:
        """Return the number of elements that a store moves with a loop; None if that varies."""
        return self._addresses.stride_along(store.buffer, store.indices, loop.var)

    def store_tile(
        self, rows: For, columns: For, store: Store, tile: tuple[LaneRange, LaneRange]
    ) -> None:
        """Emit a tile of a store that `is_transposed`: compute its rows, write its columns.

        Args:
            rows: The unrolled loop.
            columns: The vectorized loop in it.
            store: Its body.
            tile: The iterations of both loops.
        """
        buffer, (down, along) = store.buffer, tile
        env = self._scope.env
        if 1 in (down.width, along.width):
            env[columns.var] = along if along.width > 1 else along.offset
            for row in range(down.width):
                env[rows.var] = down.offset + row
                self.store(store)
            del env[columns.var], env[rows.var]
            return
        self._count()
        scalar = memory_type(buffer.dtype)
        env[columns.var] = along
        computed_rows = []
        for row in range(down.width):
            env[rows.var] = down.offset + row
            value = self._expressions.value(store.value)
            if is_narrow_float(buffer.dtype):
                value = self._expressions.conversions.to_bits(value, buffer.dtype)
            computed_rows.append(self._instructions.broadcast(value, scalar, along.width).name)
        self._builder.forget_loads(buffer)
        for part in _parts(down):
            env[rows.var] = part
            first = part.offset - down.offset
            part_rows = computed_rows[first : first + part.width]
            names = transpose(self._builder, part_rows, scalar, along.width, bits(buffer.dtype))
            for column, name in enumerate(names):
                env[columns.var] = along.offset + column
                address = self._addresses.address(buffer, store.indices)
                value = RegisterValue(name, self._builder.depth, part.width)
                self._store_lanes(buffer, address, value)
        del env[columns.var], env[rows.var]


def _parts(rows: LaneRange) -> list[LaneRange]:
    """Divide rows into two powers of two, which overlap, unless they are one.

    LLVM stores 7 bytes as 4, 2 and 1, with shuffles of single bytes for each.
    """
    width = 1 << rows.width.bit_length() - 1
    if width == rows.width:
        return [rows]
    return [LaneRange(offset, width) for offset in (rows.offset, rows.offset + rows.width - width)]
