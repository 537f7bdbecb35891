"""The rule for products of a vector and a matrix that comes from memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.ir.analysis.constant_params import constant_params
from compiler.passes.cpu.reduce_in_lanes import KEY
from compiler.schedule.error import ScheduleError
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from tuner.space.analysis.block_facts import BlockFacts, TensorAccess
from tuner.space.rules.cpu.cache_sets import fits_sets
from tuner.space.rules.cpu.constant_rows import constant_row_forks
from tuner.space.rules.cpu.packed.packed_operands import packed_operand
from tuner.space.rules.cpu.padded_tiles import padded_sizes
from tuner.space.rules.epilogue import elementwise_consumer
from tuner.space.rules.sketch_builder import SketchBuilder, Tiling

BLOCKS = (1, 2, 4, 8, 16, 32)
NUM_BLOCKS = 4
"""Options for the blocks of columns of each core, and how many of them a sketch has. Runs of a row
should be long, for prefetching, and the output of a block stay in the second-level cache. Chosen.
"""
VECTORS = (4, 2, 8, 1)
"""Options for the vectors of columns in a step. Chosen: four hide the latency of additions."""
MIN_VECTORS = 32
"""Vectors of a row: shorter rows fit register tiles nearly whole, and are read one after another
anyway. Chosen.
"""
STEPS = (8, 4, 16, 2, 12, 6, 3)
"""Options for the rows that are read at once: an element of the output is loaded and stored once
for so many of the matrix. Chosen.
"""
ROWS = (4, 8, 2, 6)
"""Options for the dot products that are computed at once. Chosen."""
MAX_STREAM_ROWS = 8
"""Vectors that a matrix is streamed for: with more, multiply-adds take longer than memory. Chosen.
"""
MIN_STREAM_SIZE = 8
"""Size of a matrix that is streamed for several vectors, in second-level caches. On a Zen 3, three
of 4 MiB, eight such caches, took 0.84, 1.4 and 1.5 of the time of register tiles.
"""
MAX_ALONE_ROWS = 4
"""Vectors for which register tiles are no alternative. On a Zen 3, 3 x 4096 x 4096 and
2 x 50257 x 768 took 0.8 and 0.3 of their time; 6 x 1024 x 4096 took 0.94, and 1.26 on two cores.
"""
MAX_UNPACKED_ROWS = 6
"""Vectors for which copying a matrix into panels takes longer than streaming it. On a Zen 3,
4 x 4096 x 4096 and 6 x 1024 x 4096 took 5.4 and 3.1 ms; with panels they took 17.3 and 5.6.
"""
MAX_GROUP = 8
"""Vectors that share the loads of rows: more of them fill the registers. Chosen."""
MIN_GROUP = 4
"""The least of several groups: smaller ones load too much for each multiply-add. Chosen."""
MAX_VECTORS = 32
"""With more vectors, packing the matrix takes little beside the products. On a Zen 4, products of
16, 24 and 32 vectors without it ran at 1.51, 1.51 and 1.07 times the speed.
"""
_BLOCK, _STEPS, _COLUMNS, _INNER, _UNROLLED, _VECTOR = 0, 2, 3, 4, 5, 6


@dataclass(frozen=True, slots=True)
class _Stream:
    """The axes of a streamed matrix: of its columns, of the sum, and of the vectors if several."""

    column: int
    step: int
    vector: int | None = None


@dataclass(frozen=True, slots=True)
class _Dots:
    """The axes of dot products: of the rows, of the sum, and of the vectors if several.

    `columns` are the vectors if they lie in columns.
    """

    row: int
    step: int
    vector: int | None = None
    columns: TensorAccess | None = None


class MatrixVector:
    """Streams a matrix of contiguous rows, a few whole rows or long parts of them at a time.

        for j, k in ...:               for j0 in ...:  # parallel
            C[j] += A[k] * B[k, j]  ->     for k0, j1 in ...:
                                               for k1 in ...:  # unrolled
                                                   for j2 in ...:  # vectorized
                                                       C[j] += A[k] * B[k, j]

    Each element of the matrix is used once, so its bandwidth bounds the time. Small tiles would
    jump between rows before the hardware prefetches them. The rule leaves matrices that fit the
    second-level cache to register tiles. A few vectors share the loads of a matrix: on a Zen 3,
    3 x 4096 x 4096 takes 4.6 ms, and took 5.9 in register tiles and 23 in panels.

    A matrix whose rows run along the sum, as frameworks store weights, is read in dot products of
    some rows at once, also if it fits that cache: each is summed in lanes. A few vectors share the
    loads of a row, and its conversion to another type; more vectors do so in groups. So is the left
    operand of a product with a few columns, which are copied into rows.
    """

    def apply(self, draft: SketchBuilder) -> list[SketchBuilder]:
        """Schedule each product of this form; those of several vectors have other sketches, too."""
        others = []
        for name, facts in draft.block_facts().items():
            if name in draft.scheduled:
                continue
            stream, dots = _find_stream(facts, draft), _find_dots(facts, draft)
            fork = draft.fork("dots" if stream is None else "streamed")
            try:
                if stream is not None:
                    _schedule_stream(fork, facts, stream)
                elif dots is not None:
                    _schedule_dots(fork, facts, dots)
                else:
                    continue
            except ScheduleError:
                continue  # the program has other schedules
            if _has_alternatives(facts, stream, dots):
                others.append(draft)
            if stream is None:
                for panels in constant_row_forks(draft, {name: facts}):
                    others += self.apply(panels)
            draft = fork
        return [draft, *others]


def _has_alternatives(facts: BlockFacts, stream: _Stream | None, dots: _Dots | None) -> bool:
    """Return whether register tiles may be better."""
    if stream is not None:
        return _num_vectors(facts, stream) > MAX_ALONE_ROWS
    return dots is not None and dots.vector is not None


def dots_forks(draft: SketchBuilder, facts: BlockFacts) -> list[SketchBuilder]:
    """Return the draft of a product with few columns, in dot products of rows; else none.

    2048 x 3 x 64 takes 0.6 of the time of register tiles, whose vectors would hold three columns,
    and 500 x 2 x 128 a third of it (one core of a Zen 4).
    """
    dots = _find_dots(facts, draft)
    if dots is None or dots.vector is None:
        return []
    fork = draft.fork("dots")
    try:
        _schedule_dots(fork, facts, dots)
    except ScheduleError:
        return []  # the program has other schedules
    return [fork]


def is_streamed_best(draft: SketchBuilder, facts: BlockFacts) -> bool:
    """Return whether a matrix should be read where it is, not copied into panels."""
    stream = _find_stream(facts, draft)
    if stream is None:
        return False
    constants = {buffer.name for buffer in constant_params(draft.func)}
    is_constant = facts.reads[0].buffer in constants
    return _num_vectors(facts, stream) <= MAX_UNPACKED_ROWS and not is_constant


def _num_vectors(facts: BlockFacts, axes: _Stream) -> int:
    return 1 if axes.vector is None else facts.axes[axes.vector].extent


def _find_stream(facts: BlockFacts, draft: SketchBuilder) -> _Stream | None:
    """Return the axes of a product of one vector, or a few, with a matrix of contiguous rows."""
    long = [index for index, axis in enumerate(facts.axes) if axis.extent > 1]
    steps = [index for index in long if facts.axes[index].is_reduction]
    spatial = [index for index in long if not facts.axes[index].is_reduction]
    is_simple = facts.is_affine and not facts.is_conditional and facts.is_multiply_add
    if not is_simple or len(facts.reads) != 2 or len(steps) != 1:
        return None
    match [index for index in spatial if index != facts.vector_axis]:
        case [] if spatial:
            stream = _Stream(spatial[0], steps[0])
        case [row] if len(spatial) == 2 and facts.axes[row].extent <= MAX_STREAM_ROWS:
            stream = _Stream(spatial[1 - spatial.index(row)], steps[0], row)
        case _:
            return None
    return stream if _is_streamed(facts, stream, draft) else None


def _is_streamed(facts: BlockFacts, axes: _Stream, draft: SketchBuilder) -> bool:
    """Return whether a matrix with long rows comes from memory, and each element is read once."""
    matrix, vectors = facts.reads
    if axes.column != facts.vector_axis or vectors.strides[axes.column]:
        return False
    if matrix.strides[axes.column] != 1:
        return False
    if not matrix.strides[axes.step] or (axes.vector is not None and matrix.strides[axes.vector]):
        return False
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    is_long = facts.axes[axes.column].extent >= MIN_VECTORS * lanes
    least = draft.cpu.l2_bytes * (1 if axes.vector is None else MIN_STREAM_SIZE)
    return is_long and matrix.size_bytes > least


def _find_dots(facts: BlockFacts, draft: SketchBuilder) -> _Dots | None:
    """Return the axes of dot products of the rows of a matrix with one vector, or a few."""
    long = [index for index, axis in enumerate(facts.axes) if axis.extent > 1]
    spatial = [index for index in long if not facts.axes[index].is_reduction]
    steps = [index for index in long if facts.axes[index].is_reduction]
    is_simple = facts.is_affine and not facts.is_conditional and facts.is_multiply_add
    if not is_simple or len(facts.reads) != 2 or len(steps) != 1:
        return None
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    if facts.axes[steps[0]].extent < lanes:
        return None
    match spatial:
        case [row]:
            dots = _dots(facts, row, steps[0], None)
            return dots if facts.lane_axis == steps[0] else None
        case [vector, row]:
            return _dots(facts, row, steps[0], vector) or _dots(facts, vector, steps[0], row)
        case _:
            return None


def _dots(facts: BlockFacts, row: int, step: int, vector: int | None) -> _Dots | None:
    """Return dot products with these axes, if the rows of a matrix are contiguous."""
    matrix, vectors = sorted(facts.reads, key=lambda read: read.strides[row] == 0)
    if matrix.strides[step] != 1 or not matrix.strides[row] or vectors.strides[row]:
        return None
    are_rows = vectors.strides[step] == 1
    if vector is None:
        return _Dots(row, step) if are_rows else None
    extent = facts.axes[vector].extent
    are_few = _groups(extent) and (row > vector or extent <= MAX_GROUP)
    are_disjoint = matrix.strides[row] >= facts.axes[step].extent
    if not are_few or matrix.strides[vector] or not are_disjoint:
        return None
    if are_rows:
        return _Dots(row, step, vector)
    are_columns = vectors.strides[vector] == 1 and len(vectors.shape) == 2 and row < vector
    return _Dots(row, step, vector, vectors) if are_columns else None


def _groups(num_vectors: int) -> list[int]:
    """Return the options for the vectors of a group; none if no even groups are suitable."""
    if num_vectors <= MAX_GROUP:
        return [num_vectors]
    sizes = [n for n in range(MAX_GROUP, MIN_GROUP - 1, -1) if num_vectors % n == 0]
    return sizes if num_vectors <= MAX_VECTORS else []


def _schedule_dots(draft: SketchBuilder, facts: BlockFacts, axes: _Dots) -> None:
    """Sum several rows at once in lanes, so that their chains of additions overlap."""
    schedule = draft.schedule
    row, step, vector = axes.row, axes.step, axes.vector
    if axes.columns is not None:
        copy = packed_operand(draft, facts.name, axes.columns, lambda k, j: (j, k))
        draft.scheduled |= {copy} if copy else set()
    lanes = max(1, draft.cpu.vector_bits // (8 * facts.write.item_bytes))
    loops = draft.loops(facts.name)
    groups = [1] if vector is None else _groups(facts.axes[vector].extent)
    # Sums, a vector of each operand, and one that is converted.
    limit = (draft.cpu.num_vector_registers - 3) // groups[-1]
    rows = [n for n in ROWS if n <= limit] or [1]
    count, row_column = draft.cut(
        facts.axes[row].extent, padded_sizes(facts.axes[row].extent, rows)
    )
    extent = facts.axes[step].extent
    width, lane_column = draft.cut(extent, [n * lanes for n in (1, 2) if n * lanes <= extent])
    outer, inner = schedule.split(loops[row], [None, count])
    around, shared, columns = _group_vectors(draft, facts, loops, vector)
    units = [loop for index, loop in enumerate(loops) if index not in (row, step, vector)]
    schedule.reorder(*units, outer, *around, loops[step], *shared, inner)
    for loop in (*shared, inner):
        schedule.unroll(loop)
    schedule.annotate(loops[step], KEY, [width, 2])
    draft.parallelize([*units, outer])
    init = schedule.decompose_reduction(schedule.get_block(facts.name), loops[step])
    for loop in draft.loops(init)[-1 - len(shared) :]:
        schedule.unroll(loop)
    columns[row] = {_BLOCK: row_column, _VECTOR: row_column + 1}
    columns[step] = {_INNER: lane_column, _VECTOR: lane_column + 1}
    rest = {} if vector is None else {vector: _COLUMNS if around else _VECTOR}
    draft.note(facts, columns, rest, step)
    draft.scheduled |= {facts.name, draft.block_name(init)}


def _group_vectors(
    draft: SketchBuilder, facts: BlockFacts, loops: Sequence[LoopRV], vector: int | None
) -> tuple[list[LoopRV], list[LoopRV], dict[int, dict[int, int]]]:
    """Return the loops over groups of vectors and over those of one, and the columns of the size.

    Rows of the matrix stay in the first-level cache from one group to the next.
    """
    if vector is None:
        return [], [], {}
    extent = facts.axes[vector].extent
    groups = _groups(extent)
    if groups == [extent]:
        return [], [loops[vector]], {}
    size, column = draft.choose(groups)
    outer, inner = draft.schedule.split(loops[vector], [None, size])
    return [outer], [inner], {vector: {_VECTOR: column}}


def _schedule_stream(draft: SketchBuilder, facts: BlockFacts, axes: _Stream) -> None:
    schedule, cpu = draft.schedule, draft.cpu
    column, step, vector = axes.column, axes.step, axes.vector
    lanes = max(1, cpu.vector_bits // (8 * facts.write.item_bytes))
    width, length = facts.axes[column].extent, facts.axes[step].extent
    num_vectors = _num_vectors(facts, axes)
    loops = draft.loops(facts.name)
    consumer = elementwise_consumer(draft, facts)
    blocks, block_column = draft.choose(_blocks(facts, width, lanes, num_vectors, draft))
    # Sums, a vector of the matrix, and an element of each vector in all lanes.
    most = max(1, (cpu.num_vector_registers - 2) // num_vectors)
    sizes = [lanes * n for n in VECTORS if n <= most]
    size, size_column = draft.choose(padded_sizes(width, sizes))
    row_bytes = width * facts.reads[0].item_bytes
    steps = [n for n in STEPS if fits_sets(n + 1, row_bytes)]
    rows, step_column = draft.cut(length, padded_sizes(length, steps))
    j0, j1, j2 = schedule.split(loops[column], [blocks, None, size])
    k0, k1 = schedule.split(loops[step], [None, rows])
    shared = [] if vector is None else [loops[vector]]
    units = [loop for index, loop in enumerate(loops) if index not in (column, step, vector)]
    schedule.reorder(*units, j0, k0, j1, k1, *shared, j2)
    if consumer is not None:
        block = schedule.get_block(consumer)
        schedule.reverse_compute_at(block, j0, preserve_unit_loops=True)
        _vectorize(draft, block, size)
        draft.scheduled.add(consumer)
    for loop in (k1, *shared):
        schedule.unroll(loop)
    schedule.vectorize(j2)
    outer = draft.parallelize([*units, j0])
    draft.tilings.append(Tiling(facts.name, outer - 1, outer))
    columns = {
        column: {_BLOCK: block_column, _VECTOR: size_column},
        step: {_STEPS: step_column, _UNROLLED: step_column + 1},
    }
    rest = {column: _COLUMNS} if vector is None else {column: _COLUMNS, vector: _UNROLLED}
    draft.note(facts, columns, rest, column)
    draft.scheduled.add(facts.name)


def _blocks(
    facts: BlockFacts, width: int, lanes: int, num_vectors: int, draft: SketchBuilder
) -> list[int]:
    """Return the options for the number of blocks of columns; each core has equally many.

    Several vectors have the fewest: in 39 schedules of 3 x 4096 x 4096 on a Zen 3, the shortest
    time was 4.6 ms with one block, and 5.9, 6.5 and 10.3 with two, four and eight.
    """
    counts = [draft.cpu.num_cores * n for n in BLOCKS]
    row_bytes = num_vectors * width * facts.write.item_bytes
    near = [n for n in counts if row_bytes <= n * draft.cpu.l2_bytes // 2]
    long = [n for n in near if n * max(VECTORS) * lanes <= width]
    return long[: NUM_BLOCKS if num_vectors == 1 else 2] or near[:1] or counts[-1:]


def _vectorize(draft: SketchBuilder, consumer: BlockRV, size: ExprRV) -> None:
    """Compute the consumer of a finished block of columns in vectors of the same length."""
    _, inner = draft.schedule.split(draft.loops(consumer)[-1], [None, size])
    draft.schedule.vectorize(inner)
