"""Let each lane run a nest over the elements of a fragment for those that it holds.

for i, j in 16, 8:                     for e in 4:
C[i, j] = acc[i, j]         ->         C[lane // 4 + e // 2 * 8,
lane % 4 * 2 + e % 2] = acc[e]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import (
    Buffer,
    Compare,
    For,
    If,
    IntImm,
    LoopKind,
    Stmt,
    Store,
    Var,
    static_int,
)
from compiler.passes.common.error import LoweringError
from compiler.passes.device.fragments.held_elements import (
    AXES,
    ElementDigit,
    HeldElement,
    fragment_accesses,
)
from compiler.passes.device.fragments.layout import FragmentLayout
from compiler.passes.device.fragments.row_reduction import reduced_rows
from compiler.passes.device.fragments.tile_nest import TileNest


@dataclass
class ElementNests:
    """Lowers nests whose body is one store, perhaps under conditions.

    Attributes:
        layouts: The registers of all fragments.
        lane: The number of the lane.
        ranges: The extents of all variables; those of the nests are added.
    """

    layouts: Mapping[Buffer, FragmentLayout]
    lane: Var
    ranges: dict[Var, int]

    def lower(self, loops: list[For], body: Stmt, store: Store) -> Stmt:
        """Lower a nest.

        Raises:
            LoweringError: If it does not run over whole tiles, or lanes hold different elements.
        """
        accesses = fragment_accesses(body, self.layouts)
        # Tiles have more axes than their rows.
        primary = max(accesses, key=lambda access: len(self.layouts[access.buffer].axes))
        held, target = self.layouts[primary.buffer], self.layouts.get(store.buffer)
        along = [normal(primary.indices[axis], self.ranges) for axis in held.axes]
        sizes = (held.map.rows, held.map.columns)
        for form, size in zip(along, sizes, strict=False):
            loops, body = self._whole_tiles(loops, body, form, size)
        nest = TileNest(list(loops))
        for name, form, size in zip(AXES, along, sizes, strict=False):
            nest.axis(name, form, size)
        if target is None and len(held.axes) < len(AXES):
            raise LoweringError(
                f"{store.buffer.name} would be stored by all lanes that hold a row of "
                f"{primary.buffer.name}: store elements of tiles, or keep it in a fragment, too"
            )
        element_loops = [
            For(Var(f"e{n}"), IntImm(extent), body)
            for n, (extent, _) in enumerate(held.map.element)
        ]
        digits = tuple(
            ElementDigit(loop.var, extent, step)
            for loop, (extent, step) in zip(element_loops, held.map.element, strict=True)
        )
        ranges = nest.ranges(self.ranges)
        ranges |= {loop.var: static_int(loop.extent) for loop in element_loops}
        element = HeldElement(self.layouts, held, digits, nest, self.lane, ranges)

        def around(new: Stmt) -> Stmt:
            for depth, loop in enumerate(element_loops):
                kind: LoopKind = "vectorized" if depth == 0 and target is None else "unrolled"
                new = For(loop.var, loop.extent, new, kind)
            return nest.around(new)

        if target is not None and len(target.axes) < len(held.axes):
            return reduced_rows(element, target, body, store, around)
        return around(element.stmt(body))

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
