"""Place the shared buffers of a kernel in the shared memory of a block.

    S = alloc((256,), scope="shared")       S at 0, T at 1024; both are alive in the loop
    T = alloc((256,), scope="shared")   ->  R at 0: nothing reads S any more
    for k in 8: S[tx] = ...; T[tx] = S[31 - tx]
    R = alloc((32,), scope="shared")

A buffer is alive from its first access to the end of the statement with its last one: no barrier
divides a statement. If it is allocated outside of a loop, it is alive in the whole loop or not at
all. Placement is greedy: large buffers first, each at the lowest position that no buffer alive at
the same time covers. Between uses of two buffers on the same bytes threads need a barrier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from compiler.ir.core.dtypes import bits
from compiler.ir.core.nodes import (
    Allocate,
    Buffer,
    For,
    Load,
    Stmt,
    Store,
    static_shape,
)
from compiler.ir.core.scopes import is_shared_scope
from compiler.ir.core.visit import children, is_stmt, statements_in, walk, walk_stmts

# Asynchronous and tensor copies need up to 128 bytes; a cache line of a GPU has as many.
ALIGNMENT = 128
_VECTOR_BYTES = 16


@dataclass(slots=True)
class LiveInterval:
    """The first and the last step of a program at which a buffer is alive."""

    first: int
    last: int

    def meets(self, other: LiveInterval) -> bool:
        """Return whether both buffers are alive at some step."""
        return self.first <= other.last and other.first <= self.last


def size_bytes(buffer: Buffer) -> int:
    """Return the size of a buffer in memory."""
    return prod(static_shape(buffer)) * max(bits(buffer.dtype) // 8, 1)


def place_shared(stmt: Stmt) -> dict[Buffer, int]:
    """Return the offsets in bytes of the shared buffers that the kernels of a program allocate."""
    if isinstance(stmt, For) and stmt.thread is not None:
        return _place(_intervals(stmt))
    offsets: dict[Buffer, int] = {}
    for child in children(stmt):
        if is_stmt(child):
            offsets.update(place_shared(child))  # type: ignore[arg-type] # it is a statement
    return offsets


def _place(alive: Mapping[Buffer, LiveInterval]) -> dict[Buffer, int]:
    sizes = [size_bytes(buffer) for buffer in alive]
    return dict(zip(alive, place_intervals(sizes, list(alive.values())), strict=True))


def place_intervals(sizes: Sequence[int], alive: Sequence[LiveInterval]) -> list[int]:
    """Return the offsets in bytes of buffers, by their sizes and when they are alive."""
    offsets: dict[int, int] = {}
    for number in sorted(range(len(sizes)), key=lambda n: (-sizes[n], alive[n].first)):
        taken = sorted(
            (offsets[other], offsets[other] + sizes[other])
            for other in offsets
            if alive[other].meets(alive[number])
        )
        offset = 0
        for begin, end in taken:
            if offset + sizes[number] <= begin:
                break
            offset = max(offset, -(-end // ALIGNMENT) * ALIGNMENT)
        offsets[number] = offset
    return [offsets[number] for number in range(len(sizes))]


def shared_size(offsets: Mapping[Buffer, int]) -> int:
    """Return the size in bytes of the shared memory of a kernel with some offsets of buffers.

    It is whole vectors: NVRTC may load the end of an aligned buffer with one vector instruction.
    """
    return whole_vectors(offset + size_bytes(buffer) for buffer, offset in offsets.items())


def whole_vectors(ends: Iterable[int]) -> int:
    """Return the bytes of the vectors up to the last one of some ends of buffers."""
    return -(-max(ends, default=0) // _VECTOR_BYTES) * _VECTOR_BYTES


def overlapping(offsets: Mapping[Buffer, int]) -> dict[Buffer, set[Buffer]]:
    """Return, for each shared buffer, the others that lie on the same bytes."""
    ends = {buffer: offset + size_bytes(buffer) for buffer, offset in offsets.items()}
    return {
        buffer: {
            other
            for other in offsets
            if other != buffer and offsets[other] < ends[buffer] and offsets[buffer] < ends[other]
        }
        for buffer in offsets
    }


def _intervals(stmt: Stmt) -> dict[Buffer, LiveInterval]:
    """Return when each shared buffer is alive, in steps of a walk over the program."""
    liveness = _Liveness()
    liveness.visit(stmt)
    return liveness.alive


def _loaded(stmt: Stmt) -> list[Buffer]:
    """Return the buffers that the expressions of a statement load."""
    return [
        node.buffer
        for child in children(stmt)
        if not is_stmt(child)
        for node in walk(child)
        if isinstance(node, Load)
    ]


@dataclass(slots=True)
class _Liveness:
    alive: dict[Buffer, LiveInterval] = field(default_factory=dict)
    step: int = 0

    def visit(self, stmt: Stmt) -> None:
        self.step += 1
        begin = self.step
        touched = _loaded(stmt)
        self._touch(touched)
        for child in statements_in(stmt):
            self.visit(child)
        if isinstance(stmt, Store):
            touched.append(stmt.buffer)
        self._touch(touched)  # what a statement loads is alive until its end
        if isinstance(stmt, For):
            self._extend(stmt, begin)

    def _touch(self, buffers: Sequence[Buffer]) -> None:
        for buffer in buffers:
            if is_shared_scope(buffer.scope):
                self.alive.setdefault(buffer, LiveInterval(self.step, self.step)).last = self.step

    def _extend(self, loop: For, begin: int) -> None:
        """Keep what a loop touches alive in all of its iterations."""
        inside = {n.buffer for n in walk_stmts(loop) if isinstance(n, Allocate)}
        for buffer, interval in self.alive.items():
            if buffer not in inside and interval.last >= begin:
                interval.first, interval.last = min(interval.first, begin), self.step
