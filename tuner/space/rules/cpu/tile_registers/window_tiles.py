"""Sketches of convolutions in the tile registers of a CPU (AMX); see `matrix_tiles`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from compiler import te
from compiler.backends.cpu.codegen.emitters.matrix_tiles import (
    MAX_TILES,
    ROW_BYTES,
    ROWS,
    multiplies_tiles,
)
from compiler.passes.common.tile_buffers import KEY as LAYOUT_KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts
from tuner.space.analysis.operand_roles import dimension
from tuner.space.analysis.product_roles import SlidingProduct, find_window_product
from tuner.space.rules.cpu.copy_tiles import schedule_copy
from tuner.space.rules.cpu.packed.packed_operands import packed_operand
from tuner.space.rules.cpu.step_groups import inline_producer
from tuner.space.rules.cpu.tile_registers.gathered_windows import gathered_forks, pixel_forks
from tuner.space.rules.cpu.tile_registers.tile_product import (
    INNER,
    PANELS,
    ROW_BLOCK,
    VECTOR,
    TileProduct,
    equal_blocks,
)
from tuner.space.rules.sketch_builder import SketchBuilder

MAX_CHANNEL_WASTE = 2
"""Limit of the padded channels, as a multiple of the channels. Chosen."""
MAX_GATHERED_CHANNELS = 4
"""Windows of images of up to so many channels, such as photographs, are gathered. Chosen."""
MIN_GATHERED_BYTES = 40
"""Smaller windows leave much of a tile empty: 3 x 3 of three bytes took 151 us in NHWC, and 101 in
dot products; of 3 x 7 x 7 bytes 297 instead of 477 (Emerald Rapids).
"""
MIN_LINE = 4
"""Shorter lines leave most of a tile empty: 256 x 3 x 3 of bfloat16 with windows of 3 x 3 took as
long as with vectors, 256 x 4 x 4 a quarter, or 0.8 of bytes (Emerald Rapids).
"""
MAX_LINE = 128
"""Limit of the pixels of a line whose sums are stored together: those of 32 channels are 16 KiB, a
third of the first-level cache. Chosen.
"""
MAX_WEIGHTS_SHARE = 0.5
"""Limit of the weights that each core reads for every line, as a share of the second-level cache;
the rest is for images. Chosen.
"""


def find_window_tiles(draft: SketchBuilder, facts: BlockFacts) -> SlidingProduct | None:
    """Return the convolution that a block is, if tile registers multiply its types."""
    window = find_window_product(facts)
    if window is None:
        return None
    dtypes, product = draft.dtypes(), window.product
    accesses = (product.left.read, product.right.read, facts.write)
    if not multiplies_tiles(draft.cpu, *(dtypes[access.buffer] for access in accesses)):
        return None
    channels, depth = facts.axes[product.step].extent, ROW_BYTES // product.left.read.item_bytes
    is_wide = -(-channels // depth) * depth <= MAX_CHANNEL_WASTE * channels
    is_point = window.is_pointwise(facts)
    is_long = is_point or facts.axes[product.row].extent >= MIN_LINE
    has_rows = window.num_pixels(facts) >= ROWS
    is_suited = is_wide or _is_gathered(facts, window)
    return window if is_suited and is_long and has_rows else None


def _is_gathered(facts: BlockFacts, window: SlidingProduct) -> bool:
    """Return whether the windows of an image of few channels are gathered."""
    product = window.product
    channels = facts.axes[product.step].extent
    size = channels * prod(facts.axes[axis].extent for axis in window.axes)
    is_large = size * product.left.read.item_bytes >= MIN_GATHERED_BYTES
    return channels <= MAX_GATHERED_CHANNELS and is_large and not window.is_pointwise(facts)


def window_tile_forks(draft: SketchBuilder, facts: BlockFacts) -> list[SketchBuilder]:
    """Return drafts of a convolution by tile registers, if the CPU has them for its types.

    The rows of a tile are neighbouring pixels of a line, its columns output channels:

    for f0, y0 in ...:  # parallel
        for f1, x0 in ...:
            T[...] = 0
            for c0, ry, rx in ...:  # matrix_tiles; these three are one loop
                for c1, c2, y1, x1 in ...:
                    for f2 in ...:  # vectorized, without tile registers
                        T[...] += A'[c0, y + ry, x + rx, c1, c2] * W'[f1, ry, rx, c0, c1, f2, c2]
        an elementwise consumer of T[...]

    `A'` is the padded image in blocks of channels, with room for pixels beyond the end of a line
    that a last tile reads. Two lines of up to 16 pixels are multiplied together.

    Pixels of windows of one pixel are rows of a matrix, which is multiplied as any other one. So
    are the windows of an image of few channels, which are gathered.
    """
    window = find_window_tiles(draft, facts)
    if window is None:
        return []
    try:
        if _is_gathered(facts, window):
            return gathered_forks(draft, facts, window)
        if window.is_pointwise(facts):
            return pixel_forks(draft, facts, window)
        return [_windows(draft, facts)]
    except ScheduleError:
        return []  # the program has other schedules


def _maker(draft: SketchBuilder, buffer: str) -> BlockFacts | None:
    """Return the facts of the block that computes a buffer."""
    return next((f for f in draft.block_facts().values() if f.write.buffer == buffer), None)


def _windows(draft: SketchBuilder, facts: BlockFacts) -> SketchBuilder:
    fork = draft.fork("window_tiles", "matrix_tiles")
    padded_facts, window = _pad_channels(fork, facts)
    _WindowTiles(fork, padded_facts, window, is_padded=padded_facts is not facts).run()
    return fork


def _pad_channels(draft: SketchBuilder, facts: BlockFacts) -> tuple[BlockFacts, SlidingProduct]:
    """Pad the channels with zeros to whole rows of tiles; return the facts of what it is then."""
    window = find_window_product(facts)
    assert window is not None, "the block is a convolution"
    image, step = window.product.left.read, window.product.step
    depth = ROW_BYTES // image.item_bytes
    if facts.axes[step].extent % depth == 0:
        return facts, window
    sizes = [depth if axis == step else 1 for axis in range(len(facts.axes))]
    draft.schedule.pad_einsum(draft.schedule.get_block(facts.name), sizes)
    maker = _maker(draft, image.buffer)
    if maker is not None and draft.is_intermediate(maker.name):
        inline_producer(draft, image.buffer)
    padded_facts = draft.block_facts()[facts.name]
    padded = find_window_product(padded_facts)
    assert padded is not None, "padding keeps the indices of a convolution"
    return padded_facts, padded


class _WindowTiles(TileProduct):
    """Schedules one convolution in one draft."""

    def __init__(
        self, draft: SketchBuilder, facts: BlockFacts, window: SlidingProduct, *, is_padded: bool
    ) -> None:
        super().__init__(draft, facts, window.product, is_padded=is_padded)
        self._window = window
        self._room: dict[int, int] = {}

    def run(self) -> None:
        """Schedule the block, its copies, and its consumer."""
        draft, product, schedule = self._draft, self._product, self._draft.schedule
        block = schedule.get_block(self._facts.name)
        loops = draft.loops(block)
        (i0, i1, i2), height = self._pixels(loops[product.row])
        (j0, j1, j2), width = self._panels(loops[product.column])
        k0, k1, k2 = schedule.split(
            loops[product.step], [None, self._depth // self._group, self._group]
        )
        lines = self._lines(loops)
        inner = (*product.tiled, *self._window.axes)
        batch = [loop for axis, loop in enumerate(loops) if axis not in inner]
        windows = [loops[axis] for axis in self._window.axes]
        outer = [*batch, j0] if self._shares_rows() and draft.cpu.num_cores > 1 else [j0, *batch]
        schedule.reorder(*outer, i0, j1, i1, k0, *windows, k1, k2, *lines, i2, j2)
        steps = schedule.fuse(k0, *windows)
        room, line = self._room[product.row], self._window.line
        is_whole = MAX_TILES * ROWS < room <= MAX_LINE
        sizes = {product.row: room if is_whole else height, product.column: width}
        if lines and line is not None:
            sizes = {line: MAX_TILES, **sizes}
        self._store_sums(block, j1 if is_whole else i1, sizes)
        self._pack(block, product.right, None, width, self._group)
        self._block_image(block)
        schedule.vectorize(j2)
        draft.parallelize(batch if self._shares_rows() else [j0])
        rest = {product.row: ROW_BLOCK, product.column: PANELS, product.step: INNER}
        self._end(block, (steps, steps), (product.right, product.left), rest)

    def _shares_rows(self) -> bool:
        """Return whether threads share the lines, since each of their caches holds all weights."""
        has_lines = any(self._facts.axes[axis].extent > 1 for axis in self._window.pixels[:-1])
        l2_bytes = self._draft.cpu.l2_bytes
        return has_lines and self._product.right.read.size_bytes <= MAX_WEIGHTS_SHARE * l2_bytes

    def _pixels(self, loop: LoopRV) -> tuple[list[LoopRV], ExprRV]:
        """Split the loop over a line into blocks of tiles; return the size of a tile, too."""
        draft, row = self._draft, self._product.row
        size = self._sizes(self._facts.axes[row].extent)[0]
        num_tiles = -(-self._facts.axes[row].extent // size)
        self._room[row] = num_tiles * size
        counts = [num_tiles] if self._room[row] <= MAX_LINE else equal_blocks(num_tiles)
        count, first = draft.choose(counts)
        height, last = draft.choose([size])
        self._columns[row] = {PANELS: first, VECTOR: last}
        return list(draft.schedule.split(loop, [None, count, height])), height

    def _lines(self, loops: list[LoopRV]) -> list[LoopRV]:
        """Split the loop over lines if each of them has one tile; return the inner loop."""
        line = self._window.line
        if line is None or self._room[self._product.row] > ROWS:
            return []
        loops[line], inner = self._draft.schedule.split(loops[line], [None, MAX_TILES])
        self._room[line] = -(-self._facts.axes[line].extent // MAX_TILES) * MAX_TILES
        return [inner]

    def _block_image(self, block: BlockRV) -> None:
        """Store the image in blocks of channels, with room for what the last tiles read."""
        draft, left = self._draft, self._product.left
        read, depth, channel = left.read, self._depth, left.along

        def layout(*i: te.Value) -> tuple[te.Value, ...]:
            others = [index for dim, index in enumerate(i) if dim != channel]
            return (i[channel] // depth, *others, i[channel] % depth)

        copy = packed_operand(draft, self._facts.name, read, layout)
        assert copy is not None, "a new layout has a block that writes it"
        facts = draft.block_facts()[copy]
        source = facts.reads[0]
        sizes = [
            (dimension(source, axis), facts.axes[axis].extent) for axis in range(len(read.shape))
        ]
        has_border = any(dim is not None and source.shape[dim] != size for dim, size in sizes)
        # Zeros beyond the last channel alone lie between those of a tile that is transposed.
        schedule_copy(draft, facts, fills_first=has_border, joins_rows=False)
        dims = [dim for dim in range(len(read.shape)) if dim != channel]
        tile: list[int] = []
        for dim, size in self._image_sizes().items():
            tile += [1 + dims.index(dim), size]
        handle = draft.schedule.get_block(copy)
        draft.schedule.annotate(handle, LAYOUT_KEY, [0, *tile, len(read.shape), depth])

    def _image_sizes(self) -> Mapping[int, int]:
        """Return the sizes of the dimensions of the image that tiles move along."""
        read, axes = self._product.left.read, self._facts.axes
        sizes = {}
        for dim, row in enumerate(read.coefficients):
            if any(row[axis] for axis in self._room):
                extents = [self._room.get(a, axis.extent) for a, axis in enumerate(axes)]
                last = sum(c * (extent - 1) for c, extent in zip(row, extents, strict=True))
                sizes[dim] = max(last + 1, read.shape[dim])
        return sizes
