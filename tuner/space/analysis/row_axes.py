"""Find the axes of a program's blocks that run over the same rows: a union-find along buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuner.space.analysis.block_facts import BlockFacts, TensorAccess

AxisOf = tuple[str, int]
"""A block by its name, and one of its axes by its index."""


@dataclass(frozen=True)
class RowAxes:
    """The rows of a program that ends in `sink`.

    `of[name]` holds, for each block with rows, the axes that run over them, in the order of the
    sink's. All other axes of such a block belong to one row.
    """

    sink: str
    of: dict[str, tuple[int, ...]]


def row_axes(blocks: Sequence[BlockFacts]) -> RowAxes:
    """Find the axes that all blocks have in common, and none of them reduces over.

    Args:
        blocks: In program order; the last one makes the output.
    """
    classes = _Classes()
    by_buffer = {block.write.buffer: block for block in blocks}
    for block in blocks:
        for index, axis in enumerate(block.axes):
            if axis.is_reduction:
                classes.bar((block.name, index))
        for read in block.reads:
            producer = by_buffer.get(read.buffer)
            if producer is not None:
                _link(classes, producer, block, read)
    sink = blocks[-1]
    rows = [i for i in range(len(sink.axes)) if classes.is_open((sink.name, i))]
    placed = [b for b in blocks if any(_find(classes, b, sink, row) is not None for row in rows)]
    rows = [row for row in rows if all(_find(classes, b, sink, row) is not None for b in placed)]
    axes_by_block = {b.name: tuple(_find(classes, b, sink, row) for row in rows) for b in placed}
    return RowAxes(
        sink.name,
        {name: tuple(a for a in axes if a is not None) for name, axes in axes_by_block.items()},
    )


def _link(
    classes: _Classes, producer: BlockFacts, consumer: BlockFacts, read: TensorAccess
) -> None:
    """Join the axes that write and read the same index; exclude those with other reads."""
    for written_row, read_row in zip(producer.write.coefficients, read.coefficients, strict=True):
        written_axes = [i for i, coefficient in enumerate(written_row) if coefficient]
        read_axes = [i for i, coefficient in enumerate(read_row) if coefficient]
        is_same = (
            len(written_axes) == len(read_axes) == 1
            and written_row[written_axes[0]] == read_row[read_axes[0]] == 1
            and producer.axes[written_axes[0]].extent == consumer.axes[read_axes[0]].extent
        )
        if is_same and read.is_affine:
            classes.join((producer.name, written_axes[0]), (consumer.name, read_axes[0]))
        else:
            for axis in written_axes:
                classes.bar((producer.name, axis))


def _find(classes: _Classes, block: BlockFacts, sink: BlockFacts, row: int) -> int | None:
    """Return the axis of a block that runs over a row axis of the sink, None without one."""
    for index in range(len(block.axes)):
        if classes.root((block.name, index)) == classes.root((sink.name, row)):
            return index
    return None


class _Classes:
    """Disjoint sets of axes; a barred set holds no rows."""

    def __init__(self) -> None:
        self._parents: dict[AxisOf, AxisOf] = {}
        self._barred: set[AxisOf] = set()

    def root(self, axis: AxisOf) -> AxisOf:
        while axis in self._parents:
            axis = self._parents[axis]
        return axis

    def join(self, axis: AxisOf, other_axis: AxisOf) -> None:
        first, second = self.root(axis), self.root(other_axis)
        if first != second:
            self._parents[first] = second
            if first in self._barred:
                self._barred.add(second)

    def bar(self, axis: AxisOf) -> None:
        self._barred.add(self.root(axis))

    def is_open(self, axis: AxisOf) -> bool:
        return self.root(axis) not in self._barred
