"""The rule for products over images, whose consecutive pixels are the columns of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod

from compiler import te
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.analysis.operand_roles import find_roles
from tuner.space.rules.cpu.tile_registers.window_tiles import find_window_tiles
from tuner.space.rules.epilogue import elementwise_consumer, epilogue_of
from tuner.space.rules.sketch_builder import SketchBuilder, Tiling
from tuner.space.tables.nest import NUM_LEVELS, TiledNest

VECTORS = 2
"""Vectors of columns in a tile. With one, each multiply-add would load a weight: on an Emerald
Rapids, packed products of 28 x 28 pixels are 1.2 to 1.3 times as fast.
"""
MAX_ROWS = 8
"""Unrolled rows of a tile: with its vectors of columns they fill the 16 vector registers of AVX2.
"""
MAX_UNROLLED_STEPS = 8
"""Steps of the sum in an unrolled body: fewer loop instructions against longer code. Chosen."""
MAX_PANELS = 4
"""The panels of a round fill at most one part in so many of the second-level cache. The rest is for
weights and output. Chosen.
"""
ROUNDS = 4
"""The minimum number of rounds of panels for each of several cores, so that cores end at about the
same time. Chosen.
"""
MAX_DIRECT_POINTS = 1 << 24
"""Larger products have no unpacked sketch: packing costs a small share of their time, so trials are
better spent on how to pack. Chosen.
"""
MIN_STEPS = 8
"""A shorter sum ends before packing pays. Chosen."""
PIXELS = "pixels"
"""The tag of sketches in which the pixels of images are one axis."""
_OUTER, _MIDDLE, _STEPS, _UNROLLED, _TILE = 0, 1, 4, 5, 6


@dataclass(frozen=True)
class _Product:
    """The axes of `out[i, y, x] += weights[i, k] * image[k, y, x]`, and its image.

    `columns` are contiguous in the image and in the output. They index `dims` of the image, and
    `step` indexes `step_dim`. `tile` is 0 if no tile of two vectors divides the columns.
    """

    image: TensorAccess
    row: int
    step: int
    columns: tuple[int, ...]
    dims: tuple[int, ...]
    step_dim: int
    tile: int


class FlatColumns:
    """Multiplies a matrix by an image whose pixels are contiguous across rows, in panels.

        for p0 in ...:  # parallel
            P[p, k, 16] = image[k, y, x]        # 16 pixels, in the order of use
            for i0, p1, k0 in ...:
                for k1, i1 in ...:  # unrolled
                    for p2 in range(16):  # vectorized
                        T[i1, p2] += weights[i, k] * P[p, k, p2]
                C[i, y, x] = T[i1, p2]

    A convolution with a 1 x 1 window is such a product. Weights are read in their own layout, and
    the output is written contiguously. So nothing is transposed, even if vectors do not divide a
    row.

    If pairs of vectors do not divide all pixels, such as 7 x 7, the pixels become one axis, and a
    later rule multiplies two matrices. The image is then copied into its panels.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Fork for the first product of this form."""
        for name, facts in draft.block_facts().items():
            product = None if name in draft.scheduled else _find(facts, draft)
            if product is None or find_window_tiles(draft, facts) is not None:
                continue
            try:
                flat = _forked(draft, facts, product)
            except ScheduleError:
                return [draft]  # the program has other schedules
            is_large = product.tile > 0 and facts.points > MAX_DIRECT_POINTS
            return [flat] if is_large and not _is_packable(facts, draft) else [flat, draft]
        return [draft]


def _forked(draft: SketchBuilder, facts: BlockFacts, product: _Product) -> SketchBuilder:
    if product.tile:
        fork = draft.fork("flat", "packed_right")
        _schedule(fork, facts, product)
    else:
        fork = draft.fork(PIXELS, PIXELS)
        _join_pixels(fork, facts, product)
    return fork


def _find(facts: BlockFacts, draft: SketchBuilder) -> _Product | None:
    steps = [i for i, a in enumerate(facts.axes) if a.is_reduction and a.extent > 1]
    if not facts.is_affine or len(facts.reads) != 2 or facts.flops_per_point != 2:
        return None
    if len(steps) != 1 or facts.axes[steps[0]].extent < MIN_STEPS:
        return None
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    for image, weights in (facts.reads, facts.reads[::-1]):
        columns = _columns(facts, image, weights)
        rows = [
            i
            for i, a in enumerate(facts.axes)
            if not a.is_reduction and a.extent > 1 and weights.strides[i] and not image.strides[i]
        ]
        num_columns = prod(facts.axes[i].extent for i in columns)
        tile = 0 if num_columns % (VECTORS * lanes) else VECTORS * lanes
        if not columns or len(rows) != 1 or (not tile and len(columns) == 1):
            continue
        if tile and facts.axes[columns[-1]].extent % tile == 0:
            columns = columns[-1:]  # no panel crosses from row to row
        dims = [_dimension(facts, image, axis) for axis in (*columns, steps[0])]
        image_dims = tuple(dim for dim in dims if dim is not None)
        if len(image_dims) == len(dims):
            return _Product(
                image, rows[0], steps[0], columns, image_dims[:-1], image_dims[-1], tile
            )
    return None


def _is_packable(facts: BlockFacts, draft: SketchBuilder) -> bool:
    """Return whether the rule for packed windows has a sketch of the block, too."""
    return find_roles(facts, draft.cpu) is not None


def _columns(facts: BlockFacts, image: TensorAccess, weights: TensorAccess) -> tuple[int, ...]:
    """Return the innermost two axes, if image and output are contiguous along them."""
    columns: list[int] = []
    expected = 1
    for index in range(len(facts.axes) - 1, -1, -1):
        axis = facts.axes[index]
        if axis.is_reduction or axis.extent == 1:
            continue
        strides = (image.strides[index], facts.write.strides[index])
        if weights.strides[index] or strides != (expected, expected):
            break
        columns.insert(0, index)
        expected *= axis.extent
        if len(columns) == 2:
            return tuple(columns)
    return ()


def _dimension(facts: BlockFacts, access: TensorAccess, axis: int) -> int | None:
    """Return the dimension that an axis alone indexes; axes of one element do not count."""
    for dim, row in enumerate(access.coefficients):
        moving = [i for i, c in enumerate(row) if c and facts.axes[i].extent > 1]
        if moving == [axis] and row[axis] == 1:
            return dim
    return None


def _join_pixels(draft: SketchBuilder, facts: BlockFacts, product: _Product) -> None:
    """Make the pixels one axis, in copies of the image and of the result; schedule nothing."""
    schedule = draft.schedule
    block = schedule.get_block(facts.name)
    copy = schedule.cache_read(block, product.image.buffer, "global")
    pixels = _Joined(product.image.shape, product.dims)
    schedule.transform_layout(copy, ("write", 0), pixels)
    schedule.transform_block_layout(copy, pixels)
    schedule.vectorize(draft.loops(copy)[-1])
    draft.scheduled.add(draft.block_name(copy))
    consumer = elementwise_consumer(draft, facts)
    result = schedule.get_block(consumer) if consumer else schedule.cache_write(block, 0, "global")
    dims = [_dimension(facts, facts.write, axis) for axis in product.columns]
    joined = _Joined(facts.write.shape, tuple(dim for dim in dims if dim is not None))
    schedule.transform_layout(block, ("write", 0), joined)
    schedule.transform_block_layout(result, joined)
    extents = tuple(axis.extent for axis in facts.axes)
    windows = {i for i, axis in enumerate(facts.axes) if axis.is_reduction and axis.extent == 1}
    schedule.transform_block_layout(block, _Joined(extents, product.columns, windows))


@dataclass(frozen=True)
class _Joined:
    """A layout in which consecutive indices are one, and some of a single value are omitted."""

    extents: tuple[int, ...]
    joined: tuple[int, ...]
    omitted: AbstractSet[int] = frozenset()

    def __call__(self, *i: te.Value) -> tuple[te.Value, ...]:
        first, last = self.joined[0], self.joined[-1]
        index = i[first]
        for dim in range(first + 1, last + 1):
            index = index * self.extents[dim] + i[dim]
        others = [n for n in range(len(i)) if n not in self.omitted]
        before = [i[n] for n in others if n < first]
        return (*before, index, *(i[n] for n in others if n > last))


def _schedule(draft: SketchBuilder, facts: BlockFacts, product: _Product) -> None:
    schedule = draft.schedule
    block = schedule.get_block(facts.name)
    copy = schedule.cache_read(block, product.image.buffer, "global")
    panels = _Layout(product.image.shape, product.dims, product.step_dim, product.tile)
    schedule.transform_layout(copy, ("write", 0), panels)
    schedule.transform_block_layout(copy, panels)
    epilogue = epilogue_of(draft, facts, "local")
    # The output in tiles: its dimensions are those that the columns and other axes index.
    dims = [_dimension(facts, facts.write, axis) for axis in product.columns]
    output_dims = tuple(dim for dim in dims if dim is not None)
    tiles = _Layout(facts.write.shape, output_dims, None, product.tile)
    schedule.transform_layout(block, ("write", 0), tiles)
    schedule.transform_block_layout(epilogue, tiles)
    extents = tuple(axis.extent for axis in facts.axes)
    schedule.transform_block_layout(block, _Layout(extents, product.columns, None, product.tile))
    axes = range(len(facts.axes))
    others = [axis for axis in axes if axis not in product.columns]
    first = sum(axis < product.columns[0] for axis in others)
    names = (*others[:first], product.columns[0], None, *others[first:])
    rank = len(facts.write.shape) - len(output_dims) + 2
    _tile(draft, facts.name, names, product, _Blocks(block, copy, epilogue, rank))


@dataclass(frozen=True)
class _Blocks:
    """The block of sums, the copy of its image, and the epilogue with `rank` axes."""

    sums: BlockRV
    copy: BlockRV
    epilogue: BlockRV
    rank: int


@dataclass(frozen=True)
class _Layout:
    """A layout that flattens some indices and cuts them into tiles, the innermost dimension.

    Attributes:
        extents: The extents of all indices.
        flat: The flattened indices, which are consecutive.
        before: The index that moves directly before the tile; None if none moves.
        tile: The extent of a tile.
    """

    extents: tuple[int, ...]
    flat: tuple[int, ...]
    before: int | None
    tile: int

    def __call__(self, *i: te.Value) -> tuple[te.Value, ...]:
        flat_index = i[self.flat[0]]
        for dim in self.flat[1:]:
            flat_index = flat_index * self.extents[dim] + i[dim]
        other_indices = [v for d, v in enumerate(i) if d not in self.flat and d != self.before]
        first = self.flat[0] - sum(d == self.before for d in range(self.flat[0]))
        middle = [] if self.before is None else [i[self.before]]
        inner = [flat_index // self.tile, *middle, flat_index % self.tile]
        return (*other_indices[:first], *inner, *other_indices[first:])


def _tile(
    draft: SketchBuilder, name: str, names: Sequence[int | None], product: _Product, blocks: _Blocks
) -> None:
    """Tile the block.

    `names` are its original axes. The first flattened axis stands for panels, None for the pixels
    of a panel.
    """
    schedule = draft.schedule
    facts = draft.block_facts()[name]
    levels: dict[int, list[LoopRV]] = {n: [] for n in (_OUTER, _MIDDLE, _STEPS, _UNROLLED, _TILE)}
    columns: list[tuple[int | None, ...]] = []
    remainder_levels: list[int | None] = []
    loops = draft.loops(blocks.sums)
    cores = draft.target.num_cores
    panels = facts.axes[list(names).index(None) - 1].extent
    # A round's panels stay in the second-level cache beside the weights.
    panel_bytes = _panel_bytes(facts, product)
    max_panels = max(1, min(panels, draft.cpu.l2_bytes // MAX_PANELS // panel_bytes))
    if cores > 1:
        # With one round for each core, the faster core would be idle.
        max_panels = max(1, min(max_panels, panels // (ROUNDS * cores)))
    for old, axis, loop in zip(names, facts.axes, loops, strict=True):
        used = _levels(old, axis.is_reduction, product)
        parts: Sequence[LoopRV] = [loop]
        axis_columns: dict[int, int] = {}
        if len(used) > 1 and axis.extent > 1:
            limits = {_TILE: MAX_ROWS, _UNROLLED: MAX_UNROLLED_STEPS, _MIDDLE: max_panels}
            limit = limits[used[-1]]
            factors, first = draft.tile(loop, axis.extent, len(used), limit)
            parts = schedule.split(loop, factors)
            axis_columns = {level: first + number for number, level in enumerate(used)}
        for level, part_loop in zip(used, parts, strict=False):
            levels[level].append(part_loop)
        columns.append(tuple(axis_columns.get(level) for level in range(NUM_LEVELS)))
        remainder_levels.append(None if axis_columns else used[0])
    schedule.reorder(*(loop for level in levels.values() for loop in level))
    _place(draft, blocks, levels)
    outer = draft.parallelize(levels[_OUTER])
    draft.tilings.append(Tiling(name, outer - 1, outer + len(levels[_MIDDLE])))
    draft.nests.append(
        TiledNest(facts, tuple(columns), tuple(remainder_levels), list(names).index(None))
    )
    draft.scheduled.add(name)


def _panel_bytes(facts: BlockFacts, product: _Product) -> int:
    steps = max(axis.extent for axis in facts.axes if axis.is_reduction)
    return steps * product.tile * product.image.item_bytes


def _levels(axis: int | None, is_reduction: bool, product: _Product) -> tuple[int, ...]:
    if axis is None:
        return (_TILE,)
    if is_reduction:
        return (_STEPS, _UNROLLED) if axis == product.step else (_STEPS,)
    if axis == product.row:
        return (_MIDDLE, _TILE)
    return (_OUTER, _MIDDLE) if axis == product.columns[0] else (_OUTER,)


def _place(draft: SketchBuilder, blocks: _Blocks, levels: dict[int, list[LoopRV]]) -> None:
    """Pack the panels of one round of the outer loops; run the epilogue on finished tiles."""
    schedule = draft.schedule
    schedule.reverse_compute_at(blocks.epilogue, levels[_MIDDLE][-1], preserve_unit_loops=True)
    schedule.compute_at(blocks.copy, levels[_OUTER][-1], preserve_unit_loops=True)
    schedule.vectorize(draft.loops(blocks.copy)[-1])
    for loop in levels[_UNROLLED]:
        schedule.unroll(loop)
    for loops in (levels[_TILE], draft.loops(blocks.epilogue)[-blocks.rank :]):
        for loop in loops[:-1]:
            schedule.unroll(loop)
        schedule.vectorize(loops[-1])
    draft.scheduled.add(draft.block_name(blocks.copy))
