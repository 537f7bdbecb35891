"""The rule that packs the operands of convolutions: vectors of output channels, blocked images."""

from __future__ import annotations

from collections.abc import Sequence

from compiler import te
from compiler.backends.cpu.codegen.operations.dot_instructions import FOUR, PAIR, DotGroup
from compiler.ir.core.dtypes import bits
from compiler.passes.common.tile_buffers import KEY
from compiler.passes.common.widen_buffers import KEY as WIDE_KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.primitives.sampling.sample import divisors
from compiler.schedule.trace.handle import BlockRV, LoopRV
from compiler.target.cpu import CpuTarget
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.operand_roles import CHANNEL_BLOCK, OperandRoles, dimension, find_roles
from tuner.space.rules.cpu.copy_tiles import schedule_copy
from tuner.space.rules.cpu.packed.channel_groups import ChannelGroups, find_groups, split_groups
from tuner.space.rules.cpu.packed.packed_operands import Layout, packed_operand, split_last
from tuner.space.rules.cpu.packed.packed_products import MAX_UNROLLED_GROUPS
from tuner.space.rules.cpu.packed.window_groups import window_groups
from tuner.space.rules.cpu.padded_tiles import has_no_tile, padded_tiles
from tuner.space.rules.cpu.step_groups import step_group
from tuner.space.rules.cpu.tile_registers.window_tiles import window_tile_forks
from tuner.space.rules.epilogue import epilogue_of
from tuner.space.rules.sketch_builder import SketchBuilder, Tiling
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

MAX_DIRECT_POINTS = 1 << 24
"""Larger convolutions have no unpacked sketch, if whole vectors divide their output channels, or
those of a group of at least `CHANNEL_BLOCK` channels: packing costs a small share of their time, so
trials are better spent on how to pack. The best unpacked schedule of 64 x 56 x 56, 5 x 5, in two
groups takes 1.6 times as long (one core of a Zen 4).
"""
MAX_SMALL_POINTS = 1 << 18
"""Larger convolutions in dot products of four bytes have no unpacked sketch, either: the best of
those had 0.4 (three channels, 3 x 3) and 1.0 (96 x 14 x 14 to 576, 1 x 1) of the speed of the best
others on a Zen 4, and most of them half of that.
"""
ROWS_SHARE = 2
"""Unrolled rows along one axis are at most one part in so many of the vector registers: 8 of AVX2;
two such axes fill them. Chosen.
"""
MIN_ROWS = 3
"""If no number of pixels from here to the maximum divides a row of them, its last tile is shorter:
with smaller tiles, multiply-adds wait for each other. Chosen.
"""
MAX_UNROLLED_STEPS = 8
"""Channels unrolled in a step, perhaps with the row of a window: fewer loop instructions against
longer code. Chosen.
"""
MAX_UNROLLED_ROW = 8
"""Elements of a row of a window that may be unrolled: common windows are up to 7 wide. Chosen."""
_OUTER, _MIDDLE, _BLOCKS, _STEPS, _UNROLLED, _TILE = 0, 1, 2, 4, 5, 6


class PackedWindows:
    """Multiplies images by weights in layouts of their own (Georganas et al., SC 2018).

    The weights are packed as `[f/16, c/16, y, x, 16c, 16f]`, with output channels contiguous. The
    image is packed as `[c/16, y, x, 16c]`, with the input channels of a pixel contiguous. A block
    that pads or produces an operand writes this layout directly. A register tile is some pixels
    times 16 output channels. Each step loads a vector of weights, and broadcasts an element of each
    pixel; the stride does not matter. A finished tile is transposed to the layout of the output.

        for f0, y0, x0, f1, y1, x1 in ...:
            for c0, ry, (rx, c1) in ...:  # these two are one loop
                for c2, y2, x2 in ...:  # unrolled
                    for f in range(16):  # vectorized
                        T[y2, x2, f] += image[c0, y + ry, x + rx, c1, c2] * weights[...]
            C[...] = T[...]

    If the CPU has dot products of the operands' types, weights hold groups of neighbouring input
    channels, `[f/16, c/16, y, x, 16c/4, 16f, 4c]`, as the instructions take them. Images of few
    channels have groups of neighbours in the rows of windows: see `window_groups`.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Fork for the first convolution with an operand to pack."""
        for name, facts in draft.block_facts().items():
            if name in draft.scheduled or not facts.is_reduction:
                continue
            if tiles := window_tile_forks(draft, facts):
                return tiles  # whole tiles multiply many times as much in a cycle as vectors do
            roles = find_roles(facts, draft.cpu)
            groups = None if facts.is_affine else find_groups(draft, facts)
            if roles is not None or groups is not None:
                forks = _forks(draft, name, roles, groups)
                is_wide = groups is None or groups.num_inputs >= CHANNEL_BLOCK
                if any(_is_large(fork.nests[-1], draft.cpu, is_wide=is_wide) for fork in forks):
                    return forks
                return [*forks, draft]
        return [draft]


def _is_large(nest: TiledNest, cpu: CpuTarget, *, is_wide: bool) -> bool:
    """Return whether a convolution needs no unpacked sketch.

    Args:
        is_wide: Whether groups, if any, have many channels.
    """
    points = nest.facts.points
    assert nest.vector_axis is not None, "output channels are vectors"
    is_whole = nest.facts.axes[nest.vector_axis].extent * 32 >= cpu.vector_bits
    has_groups = nest.dot.size == FOUR
    is_large = is_whole and is_wide and points > MAX_DIRECT_POINTS
    return is_large or (has_groups and points > MAX_SMALL_POINTS)


def _forks(
    draft: SketchBuilder, name: str, roles: OperandRoles | None, groups: ChannelGroups | None
) -> list[SketchBuilder]:
    packed = draft.fork("blocked", "packed")
    epilogue: BlockRV | None = None
    try:
        if groups is not None:
            facts = packed.block_facts()[name]
            epilogue = epilogue_of(packed, facts, "global")
            split_groups(packed, facts, groups, epilogue)
            facts = packed.block_facts()[name]
            roles = find_roles(facts, packed.cpu)
        if roles is None:
            return []
        roles = window_groups(packed, name, roles) or roles
        _pack(packed, name, roles, epilogue)
    except ScheduleError:
        return []  # the program has other schedules
    return [packed]


def _pack(draft: SketchBuilder, name: str, roles: OperandRoles, epilogue: BlockRV | None) -> None:
    facts = draft.block_facts()[name]
    schedule = draft.schedule
    block = schedule.get_block(name)
    dot = _channel_group(draft, facts, roles)
    weights = _packed(draft, name, roles, roles.weights, dot.size)
    image = _packed(draft, name, roles, roles.image, dot.size)
    epilogue = epilogue or epilogue_of(draft, facts, "global")
    output = dimension(facts.write, roles.vector)
    assert output is not None, "the vector axis is a dimension of the output"
    layout = split_last(output, roles.vector_tile)
    schedule.transform_layout(block, ("write", 0), layout)
    schedule.transform_block_layout(epilogue, layout)
    schedule.transform_block_layout(block, _iterators(facts, roles))
    if image is not None:
        schedule_copy(draft, draft.block_facts()[image])
    vector = sum(not axis.is_reduction for axis in facts.axes)
    loops = _tile(draft, name, epilogue, vector, dot, is_blocked=roles.channel_tile > 1)
    if weights is not None:
        _pack_weights(draft, weights, loops)


def _channel_group(draft: SketchBuilder, facts: BlockFacts, roles: OperandRoles) -> DotGroup:
    """Return the channels that the CPU multiplies and adds at once, if they divide a block."""
    dot = step_group(draft, facts, roles.image, roles.weights)
    return dot if roles.channel_tile % dot.size == 0 else DotGroup()


def _packed(
    draft: SketchBuilder, name: str, roles: OperandRoles, access: TensorAccess, group: int
) -> str | None:
    """Change the layout of an operand; return the block that writes the new layout, if any."""
    schedule, is_weights = draft.schedule, access is roles.weights
    # Pairs are products of 16-bit integers: each element is converted once, in the copy.
    is_widened = group == PAIR and bits(draft.dtypes()[access.buffer]) == 8
    layout = _blocked(access, roles)
    if layout is None and ((is_weights and group > 1) or is_widened):
        layout = _unchanged
    copy = packed_operand(draft, name, access, layout)
    if copy is not None and is_weights and group > 1:
        last = len(draft.block_facts()[copy].write.shape) - 1
        tile = [last, roles.vector_tile, last - 1, group]
        schedule.annotate(schedule.get_block(copy), KEY, [0, *tile])
    if copy is not None and is_widened:
        schedule.annotate(schedule.get_block(copy), WIDE_KEY, [0, 16])
    return copy


def _unchanged(*i: te.Value) -> tuple[te.Value, ...]:
    """Return the layout of an array as it is."""
    return i


def _pack_weights(draft: SketchBuilder, name: str, loops: Sequence[LoopRV]) -> None:
    """Pack the weights of one round of the outermost loop, during which they stay in the cache."""
    schedule = draft.schedule
    facts = draft.block_facts()[name]
    if draft.target.num_cores == 1:
        schedule.compute_at(schedule.get_block(name), loops[0], preserve_unit_loops=True)
        schedule_copy(draft, facts, depth=1, fills_first=False)
    else:
        schedule_copy(draft, facts, fills_first=False)


def _blocked(access: TensorAccess, roles: OperandRoles) -> Layout | None:
    """Return the layout of an operand; None if it needs no change."""
    channel = dimension(access, roles.channel)
    vector = dimension(access, roles.vector)
    if channel is None:
        return None  # rows of windows overlap
    tile, last = roles.channel_tile, len(access.shape) - 1
    if vector is None:
        stays = tile == 1 or channel == last
        return None if stays else split_last(channel, tile)

    shape = access.shape
    if (channel, vector) == (last - 1, last) and shape[-2:] == (tile, roles.vector_tile):
        return None

    def layout(*i: te.Value) -> tuple[te.Value, ...]:
        other_indices = [index for dim, index in enumerate(i) if dim not in (vector, channel)]
        around = (i[vector] // roles.vector_tile, i[channel] // tile)
        return (*around, *other_indices, i[channel] % tile, i[vector] % roles.vector_tile)

    return layout


def _iterators(facts: BlockFacts, roles: OperandRoles) -> Layout:
    """Return the iterators of the block: output blocks first, then pixels, then vectors."""

    def layout(*i: te.Value) -> tuple[te.Value, ...]:
        spatial: list[te.Value] = []
        steps: list[te.Value] = []
        for index, axis in enumerate(facts.axes):
            if index not in (roles.vector, roles.channel):
                (steps if axis.is_reduction else spatial).append(i[index])
        vector, channel = i[roles.vector], i[roles.channel]
        places = (vector // roles.vector_tile, *spatial, vector % roles.vector_tile)
        return (*places, channel // roles.channel_tile, *steps, channel % roles.channel_tile)

    return layout


def _tile(
    draft: SketchBuilder,
    name: str,
    epilogue: BlockRV,
    vector: int,
    dot: DotGroup,
    *,
    is_blocked: bool,
) -> list[LoopRV]:
    """Tile the block with the iterators of `_iterators`; return its outermost loops.

    Args:
        vector: The vectorized axis.
        dot: The channels that the CPU multiplies and adds at once.
        is_blocked: Whether the last axis holds the channels of a block.
    """
    schedule = draft.schedule
    facts = draft.block_facts()[name]
    block = schedule.get_block(name)
    most_rows = _most_rows(draft, facts.axes[vector].extent)
    levels: list[list[LoopRV]] = [[] for _ in range(NUM_LEVELS)]
    columns: list[tuple[int | None, ...]] = []
    remainder_levels: list[int | None] = []
    for used, axis, loop in zip(
        _levels(facts, vector), facts.axes, draft.loops(block), strict=True
    ):
        parts = [loop]
        axis_columns: dict[int, int] = {}
        if _TILE in used and len(used) > 1 and has_no_tile(axis.extent, MIN_ROWS, most_rows):
            inner, inner_columns = padded_tiles(draft, axis.extent, range(most_rows, 0, -1))
            parts = schedule.split(loop, [None, *inner])
            axis_columns = dict(zip((_MIDDLE, _TILE), inner_columns, strict=True))
        elif len(used) > 1 and axis.extent > 1:
            limits = {_MIDDLE: axis.extent, _TILE: most_rows, _UNROLLED: MAX_UNROLLED_ROW}
            is_channel = axis is facts.axes[-1]
            limit = _most_channels(dot.size) if is_channel else limits[used[-1]]
            factors, first = draft.tile(loop, axis.extent, len(used), limit)
            parts = schedule.split(loop, factors)
            axis_columns = {level: first + number for number, level in enumerate(used)}
            if is_channel:
                _exclude_parts(draft, axis_columns[_UNROLLED], axis.extent, dot.size)
        for level, part_loop in zip(used, parts, strict=False):
            levels[level].append(part_loop)
        columns.append(tuple(axis_columns.get(level) for level in range(NUM_LEVELS)))
        remainder_levels.append(None if used[0] in axis_columns else used[0])
    if dot.size == 1:
        # Neighbouring windows read the same pixels: unroll single channels while registers suffice.
        levels[_UNROLLED].reverse()
    schedule.reorder(*(loop for level in levels for loop in level))
    if is_blocked and len(levels[_STEPS]) > 1:
        # The channels of a block and those of the next pixel are contiguous.
        schedule.fuse(*levels[_STEPS][-2:])
    around = (levels[_MIDDLE] or levels[_OUTER])[-1]
    schedule.reverse_compute_at(epilogue, around, preserve_unit_loops=True)
    _expand(draft, draft.loops(epilogue)[-len(levels[_TILE]) :])
    for loop in levels[_UNROLLED]:
        schedule.unroll(loop)
    _expand(draft, levels[_TILE])
    outer = draft.parallelize(levels[_OUTER])
    draft.tilings.append(Tiling(name, outer - 1, outer + len(levels[_MIDDLE])))
    draft.nests.append(TiledNest(facts, tuple(columns), tuple(remainder_levels), vector, dot=dot))
    draft.scheduled.add(name)
    return levels[_OUTER]


def _most_rows(draft: SketchBuilder, num_lanes: int) -> int:
    """Return the maximum of unrolled rows along one axis, of vectors of so many elements.

    A single vector whose multiply-adds load the pixels needs one more register, beside the sums.
    """
    cpu = draft.cpu
    if cpu.folds_broadcasts and num_lanes * 32 <= cpu.vector_bits:
        return cpu.num_vector_registers - 2
    return cpu.num_vector_registers // ROWS_SHARE


def _most_channels(group: int) -> int:
    return MAX_UNROLLED_STEPS if group == 1 else MAX_UNROLLED_GROUPS * group


def _exclude_parts(draft: SketchBuilder, column: int, extent: int, group: int) -> None:
    """Exclude decisions that unroll parts of groups."""
    for size in divisors(extent):
        if size <= _most_channels(group) and size % group:
            draft.exclude(column, size)


def _expand(draft: SketchBuilder, loops: Sequence[LoopRV]) -> None:
    for loop in loops[:-1]:
        draft.schedule.unroll(loop)
    draft.schedule.vectorize(loops[-1])


def _levels(facts: BlockFacts, vector: int) -> list[tuple[int, ...]]:
    """Return the levels of the loops of each axis, blocks of output channels first.

    The reduction axes follow the vector axis: channel blocks first, and channels in a block last.
    These channels may be unrolled, and so may the row of a window before them.
    """
    count = len(facts.axes)
    unrolled = [i for i in range(vector + 2, count) if facts.axes[i].extent > 1][-2:]
    # More output channels in a tile would load more weights, the larger operand.
    weights = next(read for read in facts.reads if read.strides[vector])
    levels: list[tuple[int, ...]] = [
        (_OUTER, _MIDDLE) if weights.strides[index] else (_OUTER, _MIDDLE, _TILE)
        for index in range(vector)
    ]
    levels += [(_TILE,), (_BLOCKS,)]
    levels += [
        (_STEPS, _UNROLLED) if i in unrolled else (_STEPS,) for i in range(vector + 2, count)
    ]
    return levels
