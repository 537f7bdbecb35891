"""Statements: loops of every kind, conditions, stores, allocations.

Loops are rotated: they test at their end, since they run at least once. The other kinds become
serial loops, vectors and copies of the body. Example, with vectors of 8 floats:

    for i in parallel(64):              a function of its own, launched on threads
        for j in range(100):            a loop
            for r in unrolled(4):       4 copies of the body, `r` bound to 0, 1, 2, 3
                for c in vectorized(19):    `c` bound to the lanes 0-7, 8-15, 16-17 and to 18
                    C[r, c] = ...           16 stores a turn of `j`: 2 of 8 lanes, 1 of 2, 1 of 1
                                            for each `r`

A vectorized loop of more than `MAX_EXPANDED_CHUNKS` vectors is a loop itself, of steps of
`CHUNKS_A_STEP` vectors (`vectorization.strips`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias, assert_never

from compiler.backends.cpu.codegen.emitters.expressions import Expressions
from compiler.backends.cpu.codegen.emitters.group_copies import KEY as GROUP_COPY
from compiler.backends.cpu.codegen.emitters.group_copies import GroupCopies
from compiler.backends.cpu.codegen.emitters.loops import Counter, rotated_loop
from compiler.backends.cpu.codegen.emitters.matrix_tiles import KEY as TILES
from compiler.backends.cpu.codegen.emitters.matrix_tiles import MatrixTiles
from compiler.backends.cpu.codegen.emitters.scope import Binding, CodeScope, LaneRange
from compiler.backends.cpu.codegen.emitters.stores import MAX_EXPANDED_STORES, STREAMS, Stores
from compiler.backends.cpu.codegen.emitters.vectorization import Vectorization, chunks, strips
from compiler.backends.cpu.codegen.text.frame import CACHE_LINE_BYTES, Frame, whole_lines
from compiler.backends.cpu.codegen.text.instructions import Instructions, RegisterValue
from compiler.backends.cpu.codegen.text.types import memory_type
from compiler.ir.arith.bounds import bounds, reach
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.dtypes import bits, is_float, is_integer, size_bytes
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.layout import num_elements
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Buffer,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    While,
    static_int,
)
from compiler.passes.common.accesses import is_symbolic
from compiler.passes.cpu.padded_buffers import may_read_padding
from compiler.target.cpu import CpuTarget

Action: TypeAlias = Callable[[], None]

# The stack of a thread may be small (musl gives 128 KiB), and a kernel has few such buffers.
MAX_STACK_BYTES = 16 << 10
# Buffers of registers take no memory once SROA has split them: the limit stops absurd ones only.
MAX_REGISTER_BYTES = 64 << 10
# The maximum number of vectors to write without a loop.
MAX_EXPANDED_CHUNKS = 8
# The vectors of a step of a long loop: its counter and branch become a small part of each step.
CHUNKS_A_STEP = 4
# The maximum number of transposed tiles to write without a loop: each is long already.
MAX_EXPANDED_TILES = 2


class Statements:
    """Emits the statements of one function.

    Args:
        instructions: The instructions of the function.
        scope: The surroundings of the statements.
        expressions: Emits their expressions.
        stores: Emits their stores.
        frame: The memory of the function.
        target: The CPU.
        launch: Runs a parallel loop on threads, given its extent; returns False if it does not.
    """

    def __init__(
        self,
        instructions: Instructions,
        scope: CodeScope,
        expressions: Expressions,
        stores: Stores,
        frame: Frame,
        *,
        target: CpuTarget,
        launch: Callable[[For, int | RegisterValue], bool],
    ) -> None:
        self._instructions = instructions
        self._builder = instructions.builder
        self._scope = scope
        self._expressions = expressions
        self._stores = stores
        self._frame = frame
        self._vector_bits = target.vector_bits
        self._vectorization = Vectorization(self._vector_bits, scope.registers)
        self._tiles = MatrixTiles(instructions, scope, expressions, frame, target)
        self._group_copies = GroupCopies(instructions, scope, expressions)
        self._launch = launch

    def run(self, stmt: Stmt) -> None:  # noqa: C901 - one case a node
        """Emit a statement at the end of the current level."""
        match stmt:
            case Store():
                self._stores.store(stmt)
            case Seq(stmts):
                for child, following in zip(stmts, (*stmts[1:], None), strict=True):
                    if following is None or not self._tiles.begins_with_zeros(child, following):
                        self.run(child)
            case If():
                self._if(stmt)
            case While():
                self._while(stmt)
            case For():
                self._for(stmt)
            case Allocate(buffer, body):
                self._allocate(buffer, body)
            case Evaluate():
                pass  # no expression of a lowered program has an effect
            case Let():
                self._let(stmt)
            case BlockRealize():
                raise AssertionError("blocks are realized before code generation")
            case _:
                assert_never(stmt)

    def _let(self, stmt: Let) -> None:
        dtype = dtype_of(stmt.value)
        value = self._expressions.value(stmt.value)
        scope = self._scope
        if is_integer(dtype):
            value = self._expressions.conversions.convert(value, dtype, "int64")
            interval = bounds(stmt.value, scope.extents)
            if interval is not None and interval[0] >= 0:
                scope.extents[stmt.var] = interval[1] + 1
        scope.env[stmt.var] = value
        self.run(stmt.body)
        del scope.env[stmt.var]

    # --- loops --------------------------------------------------------------------------------

    def _for(self, loop: For) -> None:
        extent = simplify(loop.extent, self._scope.extents)
        if not isinstance(extent, IntImm):
            return self._dynamic(loop, extent)
        if extent.value <= 0:
            return None
        self._set_extent(loop.var, extent.value)
        if self._as_annotated(loop, extent.value):
            return None
        if extent.value == 1:
            return self._run_body(loop, 0)
        match loop.kind:
            case "unrolled" if self._transposed(loop, extent.value):
                return None
            case "unrolled" if extent.value <= MAX_EXPANDED_STORES:
                for index in range(extent.value):
                    self._run_body(loop, index)
                return None
            case "vectorized" if self._is_vectorizable(loop):
                return self._vectorized(loop, extent.value)
            case "parallel" if self._scope.num_lanes() == 1:
                return self._parallel(loop, extent.value)
            case _:
                return self._serial(loop, extent.value)

    def _as_annotated(self, loop: For, extent: int) -> bool:
        """Emit a loop as an annotation requests; return whether there is one that it can follow."""
        if self._tiles.surround(loop, lambda: self._for(loop)):
            return True
        annotations = dict(loop.annotations)
        if STREAMS in annotations and not self._stores.streams:
            self._streamed(loop)
            return True
        if GROUP_COPY in annotations:
            return self._group_copies.emit(loop, extent, self.run_range)
        run_loop = partial(self.run_range, loop, "0", str(extent))
        return TILES in annotations and self._tiles.emit(loop, run_loop)

    def _streamed(self, loop: For) -> None:
        """Run a loop with non-temporal stores if all its results begin at cache lines."""
        plain = replace(loop, annotations=())
        is_asked = dict(loop.annotations)[STREAMS] and self._scope.num_lanes() == 1
        streams = self._stores.streamable(loop) if is_asked else {}
        if not streams:
            self.run(plain)
            return
        test = RegisterValue("true", 0)
        for pointer in streams.values():
            test = self._instructions.binary("and", "i1", test, self._stores.is_aligned(pointer))

        def run_streams() -> None:
            self._stores.streams = set(streams)
            self.run(plain)
            self._stores.end_streams()

        self._guarded(test, run_streams)
        self._guarded(self._instructions.invert(test), lambda: self.run(plain))

    def _set_extent(self, var: Var, extent: int) -> None:
        if self._scope.extents.get(var, extent) != extent:
            self._expressions.addresses.forget_offsets()  # simplified by the extents
        self._scope.extents[var] = extent

    def _run_body(self, loop: For, binding: Binding) -> None:
        env = self._scope.env
        env[loop.var] = binding
        self.run(loop.body)
        del env[loop.var]

    def _parallel(self, loop: For, extent: int) -> None:
        if not self._launch(loop, extent):
            self._serial(loop, extent)

    def _serial(self, loop: For, extent: int) -> None:
        self.run_range(loop, "0", str(extent))

    def run_range(self, loop: For, begin: str, end: str, run: Action | None = None) -> None:
        """Emit a loop over the integers `begin`, ..., `end` - 1, of which there is at least one.

        Args:
            loop: The loop.
            begin: The first integer.
            end: The end.
            run: Emits the body, by default that of the loop.
        """
        builder = self._builder
        label, after = builder.fresh_name("loop"), builder.fresh_name("after")
        index, following = f"%{builder.fresh_name('i')}", f"%{builder.fresh_name('next')}"
        builder.open(label)
        env = self._scope.env
        env[loop.var] = RegisterValue(index, builder.depth)
        if run is None:
            self.run(loop.body)
        else:
            run()
        del env[loop.var]
        body, outer = builder.close(), builder.innermost
        counter = Counter(index, following, begin, end)
        labels = (outer.label, label, body.label, after)
        outer.lines += rotated_loop(counter, labels, body.lines)
        outer.label = after

    def _dynamic(self, loop: For, extent: Expr) -> None:
        """Emit a loop whose extent varies with outer loops, and may be zero or less."""
        least, most = bounds(extent, self._scope.extents) or reach(extent, self._scope.extents)
        self._scope.extents[loop.var] = most
        count = self._expressions.integer(extent)

        def run() -> None:
            is_launched = loop.kind == "parallel" and self._scope.num_lanes() == 1
            if not is_launched or not self._launch(loop, count):
                self.run_range(loop, "0", count.name)

        if least >= 1 and is_symbolic(extent):
            run()
            return
        # A guard of the body may leave the extent negative.
        is_entered = self._instructions.icmp("sgt", "i64", count, RegisterValue("0", 0))
        self._guarded(is_entered, run)

    def _while(self, loop: While) -> None:
        """Emit a loop that tests its condition before each iteration."""
        builder = self._builder
        head, label, after = map(builder.fresh_name, ("head", "while", "after"))
        builder.open(head)
        test = self._expressions.value(loop.condition)
        builder.open(label)
        self.run(loop.body)
        body, at_head = builder.close(), builder.close()
        outer = builder.innermost
        outer.lines += [
            f"  br label %{head}",
            f"{head}:",
            *at_head.lines,
            f"  br i1 {test.name}, label %{label}, label %{after}",
            f"{label}:",
            *body.lines,
            f"  br label %{head}",
            f"{after}:",
        ]
        outer.label = after

    def _is_vectorizable(self, loop: For) -> bool:
        return self._scope.num_lanes() == 1 and self._vectorization.num_lanes(loop) > 1

    def _vectorized(self, loop: For, extent: int) -> None:
        """Run a loop as vectors of the CPU's width, the rest as shorter ones."""
        if self._is_scattered_copy(loop):
            self._serial(loop, extent)
            return
        lanes = self._vectorization.num_lanes(loop)
        if extent // lanes > MAX_EXPANDED_CHUNKS:
            for part in strips(loop, extent, lanes * CHUNKS_A_STEP):
                self._for(part)
            return
        if self._vectorization.has_polynomials(loop):
            lanes *= CHUNKS_A_STEP
        for chunk in chunks(extent, lanes):
            self._run_body(loop, chunk.offset if chunk.width == 1 else chunk)

    def _transposed(self, loop: For, extent: int) -> bool:
        """Run an unrolled loop around a vectorized one in tiles, if their stores are transposed.

        Returns:
            Whether it did.
        """
        inner = loop.body
        if not isinstance(inner, For) or inner.kind != "vectorized":
            return False
        length = simplify(inner.extent, self._scope.extents)
        store = inner.body
        if not isinstance(store, Store) or not isinstance(length, IntImm) or length.value < 2:
            return False
        self._set_extent(inner.var, length.value)
        lanes = self._vectorization.num_lanes(inner)
        if lanes == 1 or not self._stores.is_transposed(loop, inner, store):
            return False
        if length.value // lanes > MAX_EXPANDED_TILES:
            for part in strips(inner, length.value, lanes, around=loop):
                self._for(part)
            return True
        for along in chunks(length.value, lanes):
            for first in range(0, extent, along.width):
                down = LaneRange(first, min(along.width, extent - first))
                self._stores.store_tile(loop, inner, store, (down, along))
        return True

    def _is_scattered_copy(self, loop: For) -> bool:
        """Return whether a loop copies to addresses with gaps between them.

        Copying its elements one by one is as fast as a scatter, and shorter. Such a loop is the
        rest at the border of transposed tiles.
        """
        body = loop.body
        while isinstance(body, If) and body.otherwise is None:
            body = body.then
        if not isinstance(body, Store) or not isinstance(body.value, Load):
            return False
        return self._stores.stride_along(body, loop) not in (None, 0, 1)

    # --- conditions and allocations -----------------------------------------------------------

    def _if(self, stmt: If) -> None:
        condition = simplify(stmt.condition, self._scope.extents)
        if isinstance(condition, IntImm):
            branch = stmt.then if condition.value else stmt.otherwise
            if branch is not None:
                self.run(branch)
            return
        test = self._expressions.value(condition)
        guarded = self._guarded if test.lanes == 1 else self._expressions.under_mask
        guarded(test, lambda: self.run(stmt.then))
        otherwise = stmt.otherwise
        if otherwise is not None:
            guarded(self._instructions.invert(test), lambda: self.run(otherwise))

    def _guarded(self, test: RegisterValue, run: Action) -> None:
        """Emit code behind a branch."""
        builder = self._builder
        then_label, end_label = builder.fresh_name("then"), builder.fresh_name("end")
        builder.open(then_label)
        run()
        body, outer = builder.close(), builder.innermost
        outer.lines += [
            f"  br i1 {test.name}, label %{then_label}, label %{end_label}",
            f"{then_label}:",
            *body.lines,
            f"  br label %{end_label}",
            f"{end_label}:",
        ]
        outer.label = end_label

    def _allocate(self, buffer: Buffer, body: Stmt) -> None:
        """Put a buffer on the stack if it is small, else into the workspace."""
        scope, length = self._scope, num_elements(buffer.shape)
        size = whole_lines(BinOp("*", length, IntImm(size_bytes(buffer.dtype))))
        limit = MAX_REGISTER_BYTES if buffer in scope.registers else MAX_STACK_BYTES
        if isinstance(size, IntImm) and size.value <= limit:
            count = static_int(length)
            # A masked vector of a register may reach beyond the last element.
            count += self._vector_bits // bits(buffer.dtype)
            element = memory_type(buffer.dtype)
            is_padded = (
                buffer not in scope.registers
                and is_float(buffer.dtype)
                and may_read_padding(buffer, body)
            )
            zeroed_bytes = count * size_bytes(buffer.dtype) if is_padded else 0
            name = self._frame.allocate_on_stack(
                count, element, CACHE_LINE_BYTES, "local", zeroed_bytes=zeroed_bytes
            )
            scope.storage[buffer] = RegisterValue(name, 0)
            self.run(body)
            return
        with self._frame.workspace(size) as address:
            scope.storage[buffer] = address
            self.run(body)
