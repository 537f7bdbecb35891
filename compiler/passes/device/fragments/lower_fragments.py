"""Lower the fragments of warps: to registers of each lane, and instructions of all lanes.

    for i, j in 16, 8:                     for e in 4:
        C[i, j] = acc[i, j]         ->         C[lane // 4 + e // 2 * 8,
                                                 lane % 4 * 2 + e % 2] = acc[e]

A nest over the elements of a fragment becomes a loop over the elements that a lane holds. A nest
with the note of an instruction becomes that instruction, and a copy from shared memory becomes
`ldmatrix` where the rows are contiguous. The calls take the addresses of their loads:

    mma.m16n8k16.bf16.f32(acc[0], a[0], b[0])
    ldmatrix.x4(a[0], A_shared[lane % 16, Ramp(lane // 16 * 8, 1, 8)])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.simplify import normal, simplify
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    Call,
    Compare,
    Evaluate,
    Expr,
    For,
    If,
    IntImm,
    Load,
    LoopKind,
    Stmt,
    Store,
    Var,
    static_int,
)
from compiler.ir.core.scopes import ACCUMULATOR, is_fragment_scope
from compiler.ir.core.visit import map_expr, map_stmt, substitute, walk
from compiler.passes.common.error import LoweringError
from compiler.passes.device.fragments.layout import (
    FragmentLayout,
    is_wgmma,
    layouts_of,
    product_of,
    touches_fragments,
    wgmma_of,
)
from compiler.passes.device.fragments.load_operands import load_operand
from compiler.passes.device.fragments.operand_ring import CONSUMERS, STAGES, OperandRing
from compiler.passes.device.fragments.tile_nest import TileNest, linear, number, perfect_nest
from compiler.passes.device.fragments.warpgroup_product import Surroundings, warpgroup_product
from compiler.target.tensor_cores import DEVICE_INSTRUCTION, FragmentMap


def lower_fragments(stmt: Stmt) -> Stmt:
    """Lower the fragments of all kernels of a program, whose loops over axes are outermost.

    Raises:
        LoweringError: If a nest over a fragment is not one over whole tiles.
    """
    if isinstance(stmt, For) and stmt.thread is not None:
        if not touches_fragments(stmt):
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
        if is_fragment_scope(store.buffer.scope) and store.buffer.scope != ACCUMULATOR:
            layout = self.layouts[store.buffer]
            return load_operand(layout, loops, body, self.lane, self.ranges)
        return self._elements(loops, body, store)

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

    # --- elements -------------------------------------------------------------------------------

    def _elements(self, loops: list[For], body: Stmt, store: Store) -> Stmt:
        """Let each lane run a body for the elements that it holds."""
        accesses = [
            node
            for node in walk(body)
            if isinstance(node, Load | Store) and is_fragment_scope(node.buffer.scope)
        ]
        operand = next((a for a in accesses if a.buffer.scope != ACCUMULATOR), None)
        if operand is not None:
            raise LoweringError(
                f"{operand.buffer.name} is an operand of tensor cores: only instructions read it"
            )
        primary = accesses[0]
        held = self.layouts[primary.buffer].map
        rows, columns = (self._form(index) for index in primary.indices[-2:])
        for form, size in ((rows, held.rows), (columns, held.columns)):
            loops, body = self._whole_tiles(loops, body, form, size)
        nest = TileNest(list(loops))
        nest.axis("row", rows, held.rows)
        nest.axis("column", columns, held.columns)
        element_loops = [
            For(Var(f"e{n}"), IntImm(extent), body) for n, (extent, _) in enumerate(held.element)
        ]
        position = self._position(held, element_loops)
        ranges = nest.ranges(self.ranges)
        ranges |= {loop.var: static_int(loop.extent) for loop in element_loops}
        at_element = _AtElement(self.layouts, nest, position, _element(element_loops), ranges)
        for access in accesses:
            self._check_same_tile(access, primary)
        new = at_element.stmt(body)
        is_vector = store.buffer not in self.layouts
        for depth, loop in enumerate(element_loops):
            kind: LoopKind = "vectorized" if depth == 0 and is_vector else "unrolled"
            new = For(loop.var, loop.extent, new, kind)
        return nest.around(new)

    def _whole_tiles(
        self, loops: list[For], body: Stmt, form: Affine, size: int
    ) -> tuple[list[For], Stmt]:
        """Let a loop over a part of the last tile run over all of it, with a condition in its body.

        The elements of a tile are spread over all lanes, and fragments have whole tiles only.
        """
        inside = [loop for loop in loops if form.coefficient(loop.var) % size]
        if len(inside) != 1 or form.coefficient(inside[0].var) != 1:
            return loops, body
        (loop,), extent = inside, static_int(inside[0].extent)
        whole = -(-extent // size) * size
        if whole == extent:
            return loops, body
        self.ranges[loop.var] = whole
        new = replace(loop, extent=IntImm(whole))
        condition = Compare("<", loop.var, IntImm(extent))
        return [new if each is loop else each for each in loops], If(condition, body)

    def _position(self, held: FragmentMap, element_loops: list[For]) -> dict[str, Expr]:
        """Return the position in a tile of the lane's current element."""
        assert self.lane is not None
        position: dict[str, Expr] = {}
        for axis, name in enumerate(("row", "column")):
            of_lane = number(self.lane, [(extent, step[axis]) for extent, step in held.lane])
            of_element = (
                (loop.var, step[axis])
                for loop, (_, step) in zip(element_loops, held.element, strict=True)
            )
            position[name] = linear((of_lane, 1), *of_element)
        return position

    def _check_same_tile(self, access: Load | Store, primary: Load | Store) -> None:
        """Refuse an access whose element is held by another lane than that of the first one."""
        held = self.layouts[primary.buffer].map
        for index, other, size in zip(
            access.indices[-2:], primary.indices[-2:], (held.rows, held.columns), strict=True
        ):
            difference = self._form(index) - self._form(other)
            if any(part % size for part in (difference.const, *(c for _, c in difference.terms))):
                raise LoweringError(
                    f"elements of {access.buffer.name} and {primary.buffer.name} that are used "
                    "together are in different lanes"
                )

    def _form(self, index: Expr) -> Affine:
        return normal(index, self.ranges)


@dataclass(frozen=True)
class _AtElement:
    """Rewrites a body for the element of a tile that a lane holds."""

    layouts: Mapping[Buffer, FragmentLayout]
    nest: TileNest
    position: Mapping[str, Expr]
    element: Expr
    ranges: Mapping[Var, int]

    def stmt(self, stmt: Stmt) -> Stmt:
        """Return a statement for the current element."""
        if isinstance(stmt, Store) and stmt.buffer in self.layouts:
            return Store(*self._register(stmt), self.expr(stmt.value))
        return map_stmt(stmt, self.stmt, self.expr)

    def expr(self, expr: Expr) -> Expr:
        """Return an expression for the current element."""
        return simplify(self._rewritten(expr), self.ranges)

    def _rewritten(self, expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer in self.layouts:
            return Load(*self._register(expr))
        if isinstance(expr, Var):
            return self.nest.substituted(expr, self.position)
        return map_expr(expr, self._rewritten)

    def _register(self, access: Load | Store) -> tuple[Buffer, tuple[Expr, ...]]:
        layout = self.layouts[access.buffer]
        corner = {"row": IntImm(0), "column": IntImm(0)}
        indices = tuple(self.nest.substituted(index, corner) for index in access.indices)
        first = layout.register(indices, self.ranges).to_expr()
        return layout.registers, (simplify(linear((first, 1), (self.element, 1)), self.ranges),)


def _element(element_loops: list[For]) -> Expr:
    """Return the number of an element by the loops over its digits, the lowest first."""
    terms: list[tuple[Expr, int]] = []
    weight = 1
    for loop in element_loops:
        terms.append((loop.var, weight))
        weight *= static_int(loop.extent)
    return linear(*terms)


def _is_guarded_store(stmt: Stmt) -> bool:
    while isinstance(stmt, If) and stmt.otherwise is None:
        stmt = stmt.then
    return isinstance(stmt, Store)


def _store_of(stmt: Stmt) -> Store:
    while isinstance(stmt, If):
        stmt = stmt.then
    assert isinstance(stmt, Store)
    return stmt
