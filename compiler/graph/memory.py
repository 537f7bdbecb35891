"""Place the values between kernels in one arena, by best fit in the order of decreasing size.

While the arena is larger than its lower bound, the placement is repeated with a value that lies
beyond the bound placed first ("squeaky wheel" optimization, Joslin and Clements, 1999).

Values whose lifetimes do not overlap share memory. Views and parts of joins have no memory of their
own: they are at an offset in that of their root. A result that a kernel can write straight into the
caller's array is not in the arena.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler.graph.fusion.group import Partition
from compiler.graph.nodes import Operand, TensorValue

ALIGNMENT = 64
"""The alignment of arrays in the arena, in bytes: a cache line, and the widest vector."""
MAX_PAIRS = 1 << 22
"""Pairs of values that repeated placements visit: about two seconds. Chosen: nine real models need
at most one repetition.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """The memory of an operand: a part of that of its root.

    Attributes:
        root: An input of the graph, a constant, or a result of a kernel or of a join.
        offset: Where the operand begins, in bytes.
    """

    root: Operand
    offset: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Lifetime:
    """From the step that writes a root first to the step that reads it last, both included."""

    first: int
    last: int
    size_bytes: int

    def overlaps(self, other: Lifetime) -> bool:
        """Return whether there is a step at which both are live."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True, eq=False)
class MemoryPlan:
    """Where each value is.

    Attributes:
        partition: The groups; each is a step, followed by the copies.
        offsets: The offset of each root in the arena, in bytes.
        outputs: The roots that are results of the graph, with their position among these.
        copies: Other results of the graph, copied at the end: the operand, and the position.
        lifetimes: When each root of the arena is live.
        arena_bytes: The size of the arena.
        lower_bound_bytes: The largest number of bytes that are live at one step.
    """

    partition: Partition
    offsets: Mapping[TensorValue, int]
    outputs: Mapping[TensorValue, int]
    copies: tuple[tuple[Operand, int], ...]
    lifetimes: Mapping[TensorValue, Lifetime]
    arena_bytes: int
    lower_bound_bytes: int

    def storage(self, operand: Operand) -> Storage:
        """Return the memory of an operand."""
        return storage_of(operand, self.partition)

    def dead_ranges(self, step: int) -> list[tuple[int, int]]:
        """Return the bytes of the arena that hold no value after a step, as begin and end."""
        live = sorted(
            (self.offsets[root], self.offsets[root] + lifetime.size_bytes)
            for root, lifetime in self.lifetimes.items()
            if lifetime.first <= step < lifetime.last
        )
        ranges, end = [], 0
        for low, high in [*live, (self.arena_bytes, self.arena_bytes)]:
            if low > end:
                ranges.append((end, low))
            end = max(end, high)
        return ranges


def plan_memory(partition: Partition) -> MemoryPlan:
    """Return where each value of a partitioned graph is."""
    outputs, copies = _results(partition)
    lifetimes = _lifetimes(partition, outputs, copies)
    lower_bound = _lower_bound(list(lifetimes.values()))
    offsets = place_values(lifetimes, lower_bound)
    size = _arena_bytes(offsets, lifetimes)
    return MemoryPlan(partition, offsets, outputs, copies, lifetimes, size, lower_bound)


def storage_of(operand: Operand, partition: Partition) -> Storage:
    """Return the memory of an operand."""
    offset = 0
    while isinstance(operand, TensorValue):
        if operand in partition.views:
            view = partition.views[operand]
            operand, offset = view.operand, offset + view.offset
        elif operand in partition.parts:
            operand, begin = partition.parts[operand]
            offset += begin
        else:
            break
    return Storage(operand, offset)


def _results(
    partition: Partition,
) -> tuple[dict[TensorValue, int], tuple[tuple[Operand, int], ...]]:
    """Return the roots that kernels write as results, and the results that need a copy."""
    whole = _whole_roots(partition)
    outputs: dict[TensorValue, int] = {}
    copies: list[tuple[Operand, int]] = []
    for position, operand in enumerate(partition.graph.outputs):
        root = storage_of(operand, partition).root
        if isinstance(root, TensorValue) and root in whole and root not in outputs:
            outputs[root] = position
        elif operand.type.size_bytes:
            copies.append((operand, position))
    return outputs, tuple(copies)


def _whole_roots(partition: Partition) -> set[TensorValue]:
    """Return the results of kernels of which no part is a value of its own."""
    roots = {value for group in partition.groups for value in group.outputs}
    roots -= partition.parts.keys()
    storages = ((value, storage_of(value, partition).root) for value in partition.views)
    return roots - {root for value, root in storages if _size(value) != _size(root)}


def _size(operand: Operand) -> int:
    return operand.type.size_bytes


def _lifetimes(
    partition: Partition,
    outputs: Mapping[TensorValue, int],
    copies: Sequence[tuple[Operand, int]],
) -> dict[TensorValue, Lifetime]:
    firsts: dict[TensorValue, int] = {}
    lasts: dict[TensorValue, int] = defaultdict(int)
    for step, group in enumerate(partition.groups):
        for value in group.outputs:
            root = storage_of(value, partition).root
            assert isinstance(root, TensorValue)
            firsts.setdefault(root, step)
            lasts[root] = step
        for operand in group.inputs:
            _read(operand, step, partition, lasts)
    for number, (operand, _) in enumerate(copies):
        _read(operand, len(partition.groups) + number, partition, lasts)
    return {
        root: Lifetime(first, lasts[root], _aligned(_size(root)))
        for root, first in firsts.items()
        if root not in outputs
    }


def _read(operand: Operand, step: int, partition: Partition, lasts: dict[TensorValue, int]) -> None:
    root = storage_of(operand, partition).root
    if isinstance(root, TensorValue):
        lasts[root] = max(lasts[root], step)


def place_values(
    lifetimes: Mapping[TensorValue, Lifetime], lower_bound_bytes: int
) -> dict[TensorValue, int]:
    """Return an offset for each root: no two that are live at one step overlap.

    Args:
        lifetimes: The roots.
        lower_bound_bytes: A size of the arena at which to stop: none is smaller.
    """
    order = sorted(lifetimes, key=lambda root: (-lifetimes[root].size_bytes, lifetimes[root].first))
    best = offsets = _best_fit(order, lifetimes)
    for _ in range(MAX_PAIRS // max(1, len(order) ** 2)):
        beyond = [
            root for root in order if offsets[root] + lifetimes[root].size_bytes > lower_bound_bytes
        ]
        if not beyond:
            return offsets
        order = [beyond[0], *(root for root in order if root is not beyond[0])]
        offsets = _best_fit(order, lifetimes)
        best = min(best, offsets, key=lambda each: _arena_bytes(each, lifetimes))
    return best


def _arena_bytes(
    offsets: Mapping[TensorValue, int], lifetimes: Mapping[TensorValue, Lifetime]
) -> int:
    ends = (offset + lifetimes[root].size_bytes for root, offset in offsets.items())
    return max(ends, default=0)


def _best_fit(
    order: Sequence[TensorValue], lifetimes: Mapping[TensorValue, Lifetime]
) -> dict[TensorValue, int]:
    """Return an offset for each root: the smallest gap that it fits in, or else the end."""
    offsets: dict[TensorValue, int] = {}
    for root in order:
        lifetime = lifetimes[root]
        busy = sorted(
            (offset, offset + lifetimes[other].size_bytes)
            for other, offset in offsets.items()
            if lifetimes[other].overlaps(lifetime)
        )
        offsets[root] = _smallest_gap(busy, lifetime.size_bytes)
    return offsets


def _smallest_gap(busy: Sequence[tuple[int, int]], size_bytes: int) -> int:
    best: tuple[int, int] | None = None
    end = 0
    for low, high in busy:
        gap = low - end
        if gap >= size_bytes and (best is None or gap < best[0]):
            best = gap, end
        end = max(end, high)
    return end if best is None else best[1]


def _lower_bound(lifetimes: Sequence[Lifetime]) -> int:
    changes: dict[int, int] = defaultdict(int)
    for lifetime in lifetimes:
        changes[lifetime.first] += lifetime.size_bytes
        changes[lifetime.last + 1] -= lifetime.size_bytes
    live = peak = 0
    for step in sorted(changes):
        live += changes[step]
        peak = max(peak, live)
    return peak


def _aligned(size_bytes: int) -> int:
    return -(-size_bytes // ALIGNMENT) * ALIGNMENT
