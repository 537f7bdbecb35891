"""Schedule a copy to another layout: in vectors, or in tiles transposed in registers."""

from __future__ import annotations

from compiler.ir.core.nodes import For, IntImm
from compiler.schedule.trace.handle import LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.operand_roles import dimension
from tuner.space.rules.sketch_builder import SketchBuilder


def schedule_copy(
    draft: SketchBuilder,
    facts: BlockFacts,
    depth: int = 0,
    *,
    fills_first: bool = True,
    joins_rows: bool = True,
) -> None:
    """Schedule a spatial block whose axes are the dimensions of its output, without choices.

        for i, j, v in ...:             for i, j0, v0 in ...:  # parallel
            B[i, j, v] = A[i, v, j]  ->     for v1 in range(8):  # unrolled
                                                for j1 in range(8):  # vectorized
                                                    B[...] = A[...]

    Tiles are transposed in registers, unless both sides are contiguous along the same axis.

    Args:
        facts: The facts of the block before it was moved under the loops of another one.
        depth: The number of loops of another block around it.
        fills_first: Whether the constant of a padding is filled in first. Copies of constants are
            made ahead of a run only by a single block.
        joins_rows: Whether rows that follow each other on both sides may be one.
    """
    schedule = draft.schedule
    block = schedule.get_block(facts.name)
    written = _contiguous(facts, facts.write.strides)
    read = _contiguous(facts, facts.reads[0].strides)
    shared = _fill_first(draft, facts) if facts.is_conditional and fills_first else None
    loops = draft.loops(block)[depth:]
    if read is None or written is None or read == written:
        around = loops[:-1]
        schedule.vectorize(loops[-1])
    else:
        around = _transpose(draft, facts, loops, (read, written), joins_rows=joins_rows)
    around = around[:shared]
    if around and not depth:
        draft.parallelize(around)
    draft.scheduled.add(facts.name)


def _contiguous(facts: BlockFacts, strides: tuple[int, ...]) -> int | None:
    """Return the innermost axis of more than one element along which memory is contiguous."""
    axes = [i for i, axis in enumerate(facts.axes) if axis.extent > 1 and strides[i] == 1]
    return max(axes, default=None)


def _fill_first(draft: SketchBuilder, facts: BlockFacts) -> int | None:
    """Fill in the constant of a padding before its interior is copied.

    Returns:
        The number of loops around both; None if the padding stays unchanged.
    """
    schedule = draft.schedule
    read = facts.reads[0]
    sizes = [(i, axis.extent, dimension(read, i)) for i, axis in enumerate(facts.axes)]
    padded = [i for i, extent, dim in sizes if dim is not None and read.shape[dim] != extent]
    if not padded:
        return None
    first = padded[0]
    block = schedule.get_block(facts.name)
    loop = draft.loops(block)[first]
    if not schedule.can_decompose_padding(block, loop):
        return None
    constant = schedule.decompose_padding(block, loop)
    schedule.vectorize(draft.loops(constant)[-1])
    draft.scheduled.add(draft.block_name(constant))
    return first


def _transpose(
    draft: SketchBuilder,
    facts: BlockFacts,
    loops: list[LoopRV],
    axes: tuple[int, int],
    *,
    joins_rows: bool,
) -> list[LoopRV]:
    """Tile the axes along which memory is read and written; return the remaining outer loops."""
    schedule = draft.schedule
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    read, written = axes
    first = min(axes)
    row, column = loops[read], loops[written]
    if joins_rows and 0 < read < written and _runs_on(facts, read - 1, read):
        first -= 1
        row = schedule.fuse(loops[first], row)
    outer_loops = [loop for index, loop in enumerate(loops) if index > first and index not in axes]
    tile: list[LoopRV] = []
    for loop in (column, row):
        realized = schedule.get(loop)
        assert isinstance(realized, For), "a loop's handle stands for a loop"
        inner = loop
        if isinstance(realized.extent, IntImm) and realized.extent.value % lanes == 0:
            outer, inner = schedule.split(loop, [None, lanes])
            outer_loops.append(outer)
        tile.append(inner)
    schedule.reorder(*outer_loops, *tile)
    schedule.unroll(tile[0])
    schedule.vectorize(tile[1])
    return loops[:first]


def _runs_on(facts: BlockFacts, outer: int, inner: int) -> bool:
    """Return whether both sides are contiguous along `outer` and `inner` together."""
    extent = facts.axes[inner].extent
    sides = (facts.write.strides, facts.reads[0].strides)
    if facts.is_conditional:
        return False
    return facts.axes[outer].extent > 1 and all(s[outer] == s[inner] * extent for s in sides)
