"""A slow oracle of memory requests: the addresses of a kernel's first block.

It uses no tables and no features: it evaluates the indices of the lowered program for all threads
and all iterations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import (
    Buffer,
    Expr,
    For,
    Load,
    Stmt,
    Store,
    Var,
    static_int,
    static_shape,
)
from compiler.ir.core.visit import statements_in, walk
from compiler.passes.device.kernel import DeviceKernel
from tests.unit.tuner.space.features.exact_features import evaluate
from tuner.space.tables.knob import Ints

NUM_LANES = 32


@dataclass(frozen=True)
class Requests:
    """The requests of one access.

    Attributes:
        addresses: The first byte of each lane, by request and lane; threads that do not exist
            repeat others of their warp.
        width: The bytes of each lane.
    """

    addresses: Ints
    width: int

    def __len__(self) -> int:
        return len(self.addresses)

    @property
    def num_sectors(self) -> int:
        """Return the sectors of all requests."""
        return sum(len(set(lanes)) for lanes in (self.addresses // 32).tolist())

    @property
    def first_wavefronts(self) -> int:
        """Return the wavefronts of the first request: its parts move at most 128 bytes each."""
        words = max(self.width // 4, 1)
        total = 0
        for part in np.split(self.addresses[0], words):
            banks: dict[int, set[int]] = defaultdict(set)
            for address in part.tolist():
                for word in range(address // 4, address // 4 + words):
                    banks[word % 32].add(word)
            total += max(len(touched) for touched in banks.values())
        return total


def requests_of(kernel: DeviceKernel) -> dict[tuple[str, str], Requests]:
    """Return the requests of the first block, by "load" or "store" and the buffer's name."""
    return {
        (kind, buffer.name): _requests(kernel, buffer, indices, loops)
        for kind, buffer, indices, loops in _accesses(kernel.body, ())
        if buffer.scope != "local"
    }


_Access = tuple[str, Buffer, tuple[Expr, ...], tuple[For, ...]]


def _accesses(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[_Access]:
    if isinstance(stmt, For):
        loops = (*loops, stmt)
    if isinstance(stmt, Store):
        for node in walk(stmt.value):
            if isinstance(node, Load):
                yield "load", node.buffer, node.indices, loops
        yield "store", stmt.buffer, stmt.indices, loops
    for inner in statements_in(stmt):
        yield from _accesses(inner, loops)


def _requests(
    kernel: DeviceKernel, buffer: Buffer, indices: tuple[Expr, ...], loops: tuple[For, ...]
) -> Requests:
    width, height, depth = kernel.block
    threads = np.arange(width * height * depth)
    threads = np.resize(threads, (-(-len(threads) // NUM_LANES), NUM_LANES))
    by_axis = {"x": threads % width, "y": threads // width % height}
    values: dict[Var, Ints] = {
        axis.var: by_axis[axis.thread[-1]] if axis.thread.startswith("threadIdx") else np.asarray(0)
        for axis in kernel.axes
    }
    vectors = [loop for loop in loops if loop.kind == "vectorized"]
    serial = [loop for loop in loops if loop.kind != "vectorized"]
    for number, loop in enumerate(serial):
        iterations = np.arange(static_int(loop.extent))
        values[loop.var] = iterations.reshape(-1, *[1] * (len(serial) - number + 1))
    lanes = {**values, **{loop.var: np.asarray(0) for loop in vectors}}
    shape = (*(static_int(loop.extent) for loop in serial), *threads.shape)
    first = _addresses(buffer, indices, lanes, shape)
    item = size_bytes(buffer.dtype)
    for loop in vectors:
        second = _addresses(buffer, indices, {**lanes, loop.var: np.asarray(1)}, shape)
        if (second - first == item).all():
            item *= static_int(loop.extent)
    return Requests(first.reshape(-1, NUM_LANES), item)


def _addresses(
    buffer: Buffer, indices: tuple[Expr, ...], values: dict[Var, Ints], shape: tuple[int, ...]
) -> Ints:
    sizes = static_shape(buffer)
    strides = [prod(sizes[d + 1 :]) for d in range(len(sizes))]
    terms = [evaluate(i, values) * s for i, s in zip(indices, strides, strict=True)]
    return np.broadcast_to(sum(terms, np.asarray(0)) * size_bytes(buffer.dtype), shape)
