"""Lower the fragments of warps: to registers of each lane, and instructions of all lanes.

A nest over the elements of a fragment becomes a loop over the elements that a lane holds
(elements.py), and one that reduces its rows ends with exchanges between lanes (row_reduction.py). A
nest with the note of an instruction becomes that instruction. A copy from shared memory becomes
`ldmatrix` if the rows are contiguous; one from sums stays in registers (load_operands.py). The
calls take the addresses of their loads:

    mma.m16n8k16.bf16.f32(acc[0], a[0], b[0])
    ldmatrix.x4(a[0], A_shared[lane % 16, Ramp(lane // 16 * 8, 1, 8)])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Call,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Load,
    Stmt,
    Store,
    Var,
    static_int,
)
from compiler.ir.core.scopes import MATRIX_A, MATRIX_B, is_fragment_scope
from compiler.ir.core.visit import map_stmt, substitute
from compiler.passes.common.error import LoweringError
from compiler.passes.device.fragments.elements import ElementNests
from compiler.passes.device.fragments.layout import (
    FragmentLayout,
    allocates_fragments,
    is_wgmma,
    layouts_of,
    product_of,
    touches_fragments,
    wgmma_of,
)
from compiler.passes.device.fragments.load_operands import load_operand
from compiler.passes.device.fragments.operand_ring import CONSUMERS, STAGES, OperandRing
from compiler.passes.device.fragments.tile_nest import TileNest, perfect_nest
from compiler.passes.device.fragments.warpgroup_product import Surroundings, warpgroup_product
from compiler.target.tensor_cores import DEVICE_INSTRUCTION


def lower_fragments(stmt: Stmt) -> Stmt:
    """Lower the fragments of all kernels of a program, whose loops over axes are outermost.

    Raises:
        LoweringError: If a nest over a fragment is not one over whole tiles.
    """
    if isinstance(stmt, For) and stmt.thread is not None:
        if not allocates_fragments(stmt):
            return stmt
        lowering = _Lowering(layouts_of(stmt), {})
        lowered = lowering.stmt(stmt)
        return lowered if lowering.ring is None else lowering.ring.kernel(lowered)
    return map_stmt(stmt, lower_fragments, lambda expr: expr)


@dataclass
class _Lowering:
    """Lowers the fragments of one kernel."""

    layouts: Mapping[Buffer, FragmentLayout]
    ranges: dict[Var, int]
    lane: Var | None = None
    warps: For | None = None
    ring: OperandRing | None = None

    def stmt(self, stmt: Stmt) -> Stmt:
        match stmt:
            case For(var, _, body):
                loops, inner = perfect_nest(stmt)
                if stmt.thread is None and _is_guarded_store(inner) and touches_fragments(inner):
                    return self._nest(loops, inner)
                if stmt.thread == "threadIdx.x":
                    self.lane = var
                if stmt.thread == CONSUMERS:
                    self.warps = stmt
                if isinstance(stmt.extent, IntImm):
                    self.ranges[var] = static_int(stmt.extent)
                return map_stmt(stmt, self.stmt, lambda expr: expr)
            case Allocate(buffer, body) if is_fragment_scope(buffer.scope):
                below = self.stmt(body)
                layout = self.layouts.get(buffer)
                return below if layout is None else Allocate(layout.registers, below)
            case Store() if touches_fragments(stmt):
                return self._nest([], stmt)
            case _:
                return map_stmt(stmt, self.stmt, lambda expr: expr)

    def _nest(self, loops: list[For], body: Stmt) -> Stmt:
        """Lower a nest whose body is one store, perhaps under conditions."""
        assert self.lane is not None, "kernels with fragments have lanes"
        for loop in loops:
            self.ranges[loop.var] = static_int(loop.extent, "the extent of a loop over a fragment")
        if loops and is_wgmma(loops[0]):
            return self._warpgroup_product(loops, body)
        store = _store_of(body)
        instruction = next(
            (dict(loop.annotations).get(DEVICE_INSTRUCTION) for loop in loops if loop.annotations),
            None,
        )
        if instruction is not None:
            return self._product(instruction, loops, store)
        if store.buffer.scope in (MATRIX_A, MATRIX_B):
            return load_operand(self.layouts, loops, body, self.lane, self.ranges)
        return ElementNests(self.layouts, self.lane, self.ranges).lower(loops, body, store)

    # --- products -------------------------------------------------------------------------------

    def _product(self, instruction_name: object, loops: list[For], store: Store) -> Stmt:
        product = product_of(instruction_name, store)
        m, n, k = product.instruction.shape
        nest = TileNest(list(loops))
        rows, columns = (self._form(index) for index in store.indices[-2:])
        nest.axis("m", rows, m)
        nest.axis("n", columns, n)
        a = self.layouts[product.a.buffer]
        a_rows, a_columns = (self._form(index) for index in product.a.indices[-2:])
        is_transposed = a.map != product.instruction.a
        nest.axis("k", a_rows if is_transposed else a_columns, k)
        corner = dict.fromkeys("mnk", IntImm(0))
        ranges = nest.ranges(self.ranges)
        accesses = (Load(store.buffer, store.indices), product.a, product.b)
        registers = []
        for access in accesses:
            layout = self.layouts[access.buffer]
            indices = tuple(nest.substituted(index, corner) for index in access.indices)
            first = layout.register(indices, ranges)
            registers.append(Load(layout.registers, (first.to_expr(),)))
        name = product.instruction.name
        return nest.around(Evaluate(Call(name, tuple(registers), "int32")))

    def _warpgroup_product(self, loops: list[For], body: Stmt) -> Stmt:
        instruction = wgmma_of(loops[0])
        assert self.lane is not None
        if self.ring is not None:
            raise LoweringError("a kernel computes one product of warpgroups, not two")
        consumer = None if self.warps is None else self.warps.var
        around = Surroundings(self.ranges, self.lane, consumer)
        product = warpgroup_product(instruction, loops, body, around)
        layout = self.layouts[product.sums.buffer]
        corner = {loop.var: IntImm(0) for loop in loops}
        indices = tuple(substitute(index, corner) for index in product.sums.indices)
        first = Load(layout.registers, (layout.register(indices, self.ranges).to_expr(),))
        num_consumers = 1 if self.warps is None else static_int(self.warps.extent)
        stages = dict(loops[0].annotations).get(STAGES, 2)
        assert isinstance(stages, int)
        self.ring = OperandRing(product, first, self.lane, consumer, num_consumers, stages)
        statement = self.ring.consume
        for condition in product.conditions:
            statement = If(condition, statement)
        return statement

    def _form(self, index: Expr) -> Affine:
        return normal(index, self.ranges)


def _is_guarded_store(stmt: Stmt) -> bool:
    while isinstance(stmt, If) and stmt.otherwise is None:
        stmt = stmt.then
    return isinstance(stmt, Store)


def _store_of(stmt: Stmt) -> Store:
    while isinstance(stmt, If):
        stmt = stmt.then
    assert isinstance(stmt, Store)
    return stmt
