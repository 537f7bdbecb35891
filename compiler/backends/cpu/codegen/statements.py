"""Statements: loops of every kind, conditions, stores, allocations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias, assert_never

from compiler.backends.cpu.codegen.addresses import Lane
from compiler.backends.cpu.codegen.instructions import Value
from compiler.backends.cpu.codegen.loops import Counter, rotated_loop
from compiler.backends.cpu.codegen.math_functions import POLYNOMIALS
from compiler.backends.cpu.codegen.stores import MAX_EXPANDED_STORES, STREAMS, StoreEmitter
from compiler.backends.cpu.codegen.types import memory_type
from compiler.ir.arith.bounds import bounds, reach
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import bits, is_integer, size_bytes
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Broadcast,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Ramp,
    Seq,
    Stmt,
    Store,
    Var,
    static_shape,
)
from compiler.ir.core.visit import substitute, walk

Action: TypeAlias = Callable[[], None]

CACHE_LINE_BYTES = 64
MAX_STACK_BYTES = 16 << 10
MAX_REGISTER_BYTES = 64 << 10
MAX_EXPANDED_CHUNKS = 8
CHUNKS_A_STEP = 4
MAX_EXPANDED_TILES = 2


@dataclass(slots=True)
class Workspace:
    """Memory that a function asks its caller for: how much in use, and the most that ever was."""

    used_bytes: int = 0
    peak_bytes: int = 0


class StatementEmitter(StoreEmitter):
    """Emits the statements of one function."""

    def __init__(self, vector_bits: int) -> None:
        super().__init__()
        self.vector_bits = vector_bits
        self.workspace = Workspace()
        self.allocas: list[str] = []
        self._lanes_of: dict[int, int] = {}
        self._chains_of: dict[int, bool] = {}
        self._kept: list[For] = []  # so that their ids stay their own

    def run(self, stmt: Stmt) -> None:
        """Emit a statement at the end of the current level."""
        match stmt:
            case Store():
                self.store(stmt)
            case Seq(stmts):
                for each in stmts:
                    self.run(each)
            case If():
                self._if(stmt)
            case For():
                self._for(stmt)
            case Allocate(buffer, body):
                self._allocate(buffer, body)
            case Evaluate():
                pass  # nothing that is left here has an effect
            case Let():
                self._let(stmt)
            case BlockRealize():
                raise AssertionError("blocks are realized before code generation")
            case _:
                assert_never(stmt)

    def _let(self, stmt: Let) -> None:
        dtype = dtype_of(stmt.value)
        value = self.value(stmt.value)
        if is_integer(dtype):
            value = self.convert(value, dtype, "int64")
            interval = bounds(stmt.value, self.extents)
            if interval is not None and interval[0] >= 0:
                self.extents[stmt.var] = interval[1] + 1
        self.env[stmt.var] = value
        self.run(stmt.body)
        del self.env[stmt.var]

    # --- loops --------------------------------------------------------------------------------

    def _for(self, loop: For) -> None:
        extent = simplify(loop.extent, self.extents)
        if not isinstance(extent, IntImm):
            return self._dynamic(loop, extent)
        if extent.value <= 0:
            return None
        self._know(loop.var, extent.value)
        if STREAMS in dict(loop.annotations) and not self.streams:
            return self._streamed(loop)
        if extent.value == 1:
            return self._bound(loop, 0)
        match loop.kind:
            case "unrolled" if self._transposed(loop, extent.value):
                return None
            case "unrolled" if extent.value <= MAX_EXPANDED_STORES:
                for index in range(extent.value):
                    self._bound(loop, index)
                return None
            case "vectorized" if self.lanes() == 1 and self._vector_lanes(loop) > 1:
                return self._vectorized(loop, extent.value)
            case "parallel" if self.lanes() == 1:
                return self.parallel(loop, extent.value)
            case _:
                return self._serial(loop, extent.value)

    def _streamed(self, loop: For) -> None:
        """Run a loop whose vectors are stored past the caches, where all begin at cache lines."""
        plain = replace(loop, annotations=())
        wanted = dict(loop.annotations)[STREAMS]
        streams = self.streamable(loop) if wanted and self.lanes() == 1 else {}
        if not streams:
            self.run(plain)
            return
        test = Value("true", 0)
        for pointer in streams.values():
            test = self.binary("and", "i1", test, self.is_aligned(pointer))

        def run_streams() -> None:
            self.streams = set(streams)
            self.run(plain)
            self.end_streams()

        self._guarded(test, run_streams)
        self._guarded(self.binary("xor", "i1", test, Value("true", 0)), lambda: self.run(plain))

    def _know(self, var: Var, extent: int) -> None:
        if self.extents.get(var, extent) != extent:
            self._forms.clear()  # they are simplified by the extents
        self.extents[var] = extent

    def _bound(self, loop: For, binding: Lane | Value | int) -> None:
        self.env[loop.var] = binding
        self.run(loop.body)
        del self.env[loop.var]

    def _serial(self, loop: For, extent: int) -> None:
        """Emit a loop that tests at its end, since it runs at least once."""
        self.rotated(loop, "0", str(extent))

    def rotated(self, loop: For, begin: str, end: str) -> None:
        """Run a loop's body for `begin`, ..., `end` - 1; there is at least one of them."""
        label, after = self.name("loop"), self.name("after")
        index, following = f"%{self.name('i')}", f"%{self.name('next')}"
        self.open(label)
        self._bound(loop, Value(index, self.depth))
        body = self.close()
        counter = Counter(index, following, begin, end)
        labels = (self.current.label, label, body.label, after)
        self.current.lines += rotated_loop(counter, labels, body.lines)
        self.current.label = after

    def _dynamic(self, loop: For, extent: Expr) -> None:
        """Emit a loop whose extent varies with outer loops, and may be zero."""
        _, most = bounds(extent, self.extents) or reach(extent, self.extents)
        self.extents[loop.var] = most
        count = self.integer(extent)
        enters = self.icmp("sgt", "i64", count, Value("0", 0))
        self._guarded(enters, lambda: self.rotated(loop, "0", count.name))

    def _vectorized(self, loop: For, extent: int) -> None:
        """Run a loop as vectors of the machine's width, the rest as shorter ones."""
        if self._is_scattered_copy(loop):
            self._serial(loop, extent)
            return
        lanes = self._vector_lanes(loop)
        if extent // lanes > MAX_EXPANDED_CHUNKS:
            for part in _strips(loop, extent, lanes * CHUNKS_A_STEP):
                self._for(part)
            return
        if self._has_chains(loop):
            lanes *= CHUNKS_A_STEP
        for lane in _chunks(extent, lanes):
            self._bound(loop, lane.offset if lane.width == 1 else lane)

    def _has_chains(self, loop: For) -> bool:
        """Tell whether a loop computes polynomials, each a chain of operations that wait.

        Several vectors that are one to LLVM become chains side by side, operation by operation: up
        to a quarter faster than one chain after another, of which few fit the CPU's window.
        """
        known = self._chains_of.get(id(loop))
        if known is None:
            known = self._chains_of[id(loop)] = self._computes_polynomials(loop)
            self._kept.append(loop)
        return known

    def _computes_polynomials(self, loop: For) -> bool:
        nodes = list(walk(loop.body))
        touched = {node.buffer for node in nodes if isinstance(node, Load | Store)}
        calls = [node for node in nodes if isinstance(node, Call) and node.name in POLYNOMIALS]
        return not touched & self.registers and any(
            call.dtype == "float32" and loop.var in set(walk(call)) for call in calls
        )

    def _transposed(self, loop: For, extent: int) -> bool:
        """Run an unrolled loop around a vectorized one in tiles, if what they store lies across."""
        inner = loop.body
        if not isinstance(inner, For) or inner.kind != "vectorized":
            return False
        length = simplify(inner.extent, self.extents)
        store = inner.body
        if not isinstance(store, Store) or not isinstance(length, IntImm) or length.value < 2:
            return False
        self._know(inner.var, length.value)
        lanes = self._vector_lanes(inner)
        if lanes == 1 or not self.is_transposed(loop, inner, store):
            return False
        if length.value // lanes > MAX_EXPANDED_TILES:
            for part in _strips(inner, length.value, lanes, around=loop):
                self._for(part)
            return True
        for along in _chunks(length.value, lanes):
            for first in range(0, extent, along.width):
                down = Lane(first, min(along.width, extent - first))
                self.store_tile(loop, inner, store, (down, along))
        return True

    def _is_scattered_copy(self, loop: For) -> bool:
        """Tell whether a loop copies to places that lie apart: one by one is as fast, and shorter.

        Such a loop is what is left at the border of a tile that is transposed.
        """
        body = loop.body
        while isinstance(body, If) and body.otherwise is None:
            body = body.then
        if not isinstance(body, Store) or not isinstance(body.value, Load):
            return False
        return self.stride_along(body, loop) not in (None, 0, 1)

    def _vector_lanes(self, loop: For) -> int:
        """Return how many lanes run at once: the widest elements stored fill a register.

        1 if lanes can't run at once: some store does not go to a place of its own in each.
        """
        known = self._lanes_of.get(id(loop))
        if known is None:
            stores = [node for node in walk(loop.body) if isinstance(node, Store)]
            known = 1
            if stores and self._is_lanewise(loop, stores):
                known = max(1, self.vector_bits // max(bits(s.buffer.dtype) for s in stores))
            self._lanes_of[id(loop)] = known
            self._kept.append(loop)
        return known

    def _is_lanewise(self, loop: For, stores: list[Store]) -> bool:
        for node in walk(loop.body):
            if isinstance(node, Allocate | Ramp | Broadcast):
                return False
            if isinstance(node, For) and node.kind == "parallel":
                return False
            if isinstance(node, For) and loop.var in set(walk(node.extent)):
                return False
        return all(any(loop.var in set(walk(i)) for i in store.indices) for store in stores)

    def parallel(self, loop: For, extent: int) -> None:
        """Run a loop on the threads of the pool; here, in a function that has none."""
        self._serial(loop, extent)

    # --- the rest -----------------------------------------------------------------------------

    def _if(self, stmt: If) -> None:
        condition = simplify(stmt.condition, self.extents)
        if isinstance(condition, IntImm):
            chosen = stmt.then if condition.value else stmt.otherwise
            if chosen is not None:
                self.run(chosen)
            return
        test = self.value(condition)
        if test.lanes > 1:
            self._masked_run(test, stmt.then)
            if stmt.otherwise is not None:
                inverse = self.binary("xor", "i1", test, Value("true", 0))
                self._masked_run(inverse, stmt.otherwise)
            return
        self._guarded(test, lambda: self.run(stmt.then))
        if stmt.otherwise is not None:
            otherwise = stmt.otherwise
            inverse = self.binary("xor", "i1", test, Value("true", 0))
            self._guarded(inverse, lambda: self.run(otherwise))

    def _masked_run(self, test: Value, stmt: Stmt) -> None:
        saved = self.mask
        self.mask = test if saved is None else self.binary("and", "i1", saved, test)
        self.run(stmt)
        self.mask = saved

    def _guarded(self, test: Value, run: Action) -> None:
        then_label, end_label = self.name("then"), self.name("end")
        self.open(then_label)
        run()
        body = self.close()
        self.current.lines += [
            f"  br i1 {test.name}, label %{then_label}, label %{end_label}",
            f"{then_label}:",
            *body.lines,
            f"  br label %{end_label}",
            f"{end_label}:",
        ]
        self.current.label = end_label

    def _allocate(self, buffer: Buffer, body: Stmt) -> None:
        size = prod(static_shape(buffer)) * size_bytes(buffer.dtype)
        rounded = -(-size // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
        limit = MAX_REGISTER_BYTES if buffer in self.registers else MAX_STACK_BYTES
        if rounded <= limit:
            name = f"%{self.name('local')}"
            element = memory_type(buffer.dtype)
            # Lanes that a mask leaves out of a register may lie behind the last element.
            count = prod(static_shape(buffer)) + self.vector_bits // bits(buffer.dtype)
            self.allocas.append(
                f"  {name} = alloca [{count} x {element}], align {CACHE_LINE_BYTES}"
            )
            self.storage[buffer] = Value(name, 0)
            self.run(body)
            return
        space = self.workspace
        text = f"getelementptr inbounds i8, ptr %workspace, i64 {space.used_bytes}"
        self.storage[buffer] = Value(self.pure(text, 0), 0)
        space.used_bytes += rounded
        space.peak_bytes = max(space.peak_bytes, space.used_bytes)
        self.run(body)
        space.used_bytes -= rounded


def _chunks(extent: int, lanes: int) -> Iterator[Lane]:
    """Cut a range into vectors, and what is left into shorter ones, halving."""
    offset = 0
    while offset < extent:
        while lanes > extent - offset:
            lanes //= 2
        yield Lane(offset, lanes)
        offset += lanes


def _strips(loop: For, extent: int, lanes: int, around: For | None = None) -> Iterator[For]:
    """Cut a vectorized loop into one of `lanes` iterations a step, and one of what is left over.

    Args:
        around: The unrolled loop around it, which goes into the step, too.
    """
    outer, inner = Var(f"{loop.var.name}_o"), Var(f"{loop.var.name}_i")
    whole = extent // lanes
    index = BinOp("+", BinOp("*", outer, IntImm(lanes)), inner)
    yield For(outer, IntImm(whole), _strip(loop, inner, (lanes, index), around))
    rest = extent - whole * lanes
    if rest:
        yield _strip(loop, inner, (rest, BinOp("+", inner, IntImm(whole * lanes))), around)


def _strip(loop: For, var: Var, part: tuple[int, BinOp], around: For | None) -> For:
    extent, index = part
    vectors = For(var, IntImm(extent), substitute(loop.body, {loop.var: index}), "vectorized")
    return vectors if around is None else replace(around, body=vectors)
