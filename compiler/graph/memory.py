"""Place the values between kernels in one arena, by best fit in the order of decreasing size.

While the arena is larger than its lower bound, the placement is repeated with a value that lies
beyond the bound placed first ("squeaky wheel" optimization, Joslin and Clements, 1999).

Values whose lifetimes do not overlap share memory. Views and parts of joins have no memory of their
own: they are at an offset in that of their root. A result that a kernel can write straight into the
caller's array is not in the arena. A result may take the memory of an operand that no later step
reads, if the kernel of the step works in place: `overwrite`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
        in_place: The operand whose memory a result takes; both are roots.
        saved_bytes: How much larger the arena is without results in place.
    """

    partition: Partition
    offsets: Mapping[TensorValue, int]
    outputs: Mapping[TensorValue, int]
    copies: tuple[tuple[Operand, int], ...]
    lifetimes: Mapping[TensorValue, Lifetime]
    arena_bytes: int
    lower_bound_bytes: int
    in_place: Mapping[TensorValue, TensorValue] = field(default_factory=dict)
    saved_bytes: int = 0

    def storage(self, operand: Operand) -> Storage:
        """Return the memory of an operand."""
        return storage_of(operand, self.partition)

    def dying_operands(self, step: int) -> Iterator[tuple[Operand, TensorValue]]:
        """Yield the operands of a step whose memory a result may take, each with such a result.

        No later step reads any byte of the operand's root, the step reads it by this operand alone,
        and the result is a root of the same size in the arena.
        """
        group = self.partition.groups[step]
        roots = [self.storage(operand).root for operand in group.inputs]
        for result in group.outputs:
            for operand, root in zip(group.inputs, roots, strict=True):
                if (
                    result in self.lifetimes
                    and isinstance(root, TensorValue)
                    and root in self.lifetimes
                    and self.lifetimes[root].last == step
                    and roots.count(root) == 1
                    and _size(result) == _size(operand) == _size(root)
                ):
                    yield operand, result

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


def overwrite(memory: MemoryPlan, operands: Mapping[TensorValue, TensorValue]) -> MemoryPlan:
    """Return a plan in which results take the memory of operands.

    Args:
        memory: A plan without results in place.
        operands: The root of an operand for each result, in the order of steps; see
            `MemoryPlan.dying_operands`. No operand is named twice.

    Returns:
        The plan, or `memory` if the arena would not become smaller.
    """
    owners: dict[TensorValue, TensorValue] = {}
    for result, operand in operands.items():
        owners[result] = owners.get(operand, operand)
    shared: dict[TensorValue, Lifetime] = {}
    for root, lifetime in memory.lifetimes.items():
        owner = owners.get(root, root)
        earlier = shared.get(owner, lifetime)
        shared[owner] = Lifetime(
            min(earlier.first, lifetime.first),
            max(earlier.last, lifetime.last),
            lifetime.size_bytes,
        )
    lower_bound = _lower_bound(list(shared.values()))
    if lower_bound >= memory.arena_bytes:
        return memory
    offsets = place_values(shared, lower_bound)
    size = _arena_bytes(offsets, shared)
    if size >= memory.arena_bytes:
        return memory
    return replace(
        memory,
        offsets={root: offsets[owners.get(root, root)] for root in memory.lifetimes},
        arena_bytes=size,
        lower_bound_bytes=lower_bound,
        in_place=dict(operands),
        saved_bytes=memory.arena_bytes - size,
    )


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
