"""Memory accesses of a warp, by enumeration of its 32 lanes, for batches of candidates.

A request of a warp to global memory moves the 32-byte sectors that its lanes touch. A request to
shared memory takes one cycle, a wavefront, for each word of the bank with the most different words;
accesses of 8 and 16 bytes are served in 2 and 4 parts of the warp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compiler.target.gpus import WARP_SIZE
from tuner.space.tables.knob import Ints

SECTOR_BYTES = 32
NUM_BANKS = 32
WORD_BYTES = 4


def lane_digits(extents: Ints, arrangement: Sequence[tuple[int, int]] = ()) -> Ints:
    """Return the position along each axis of each lane of the first warp, by axis, lane, candidate.

    Threads are numbered along the last axis first. Lanes beyond the last thread are at position 0.

    Args:
        extents: The threads along each axis, by axis and candidate.
        arrangement: How lanes lie along axes, if it is another order; see `TiledNest.lanes`.
    """
    if arrangement:
        return _arranged(extents.shape, arrangement)
    lanes = np.arange(WARP_SIZE)[:, None]
    rest = np.where(lanes < np.prod(extents, axis=0), lanes, 0)
    digits = np.empty((len(extents), *rest.shape), np.int64)
    for axis in reversed(range(len(extents))):
        rest, digits[axis] = np.divmod(rest, extents[axis])
    return digits


def _arranged(shape: tuple[int, ...], arrangement: Sequence[tuple[int, int]]) -> Ints:
    rest = np.arange(WARP_SIZE)
    digits = np.zeros((shape[0], WARP_SIZE, *shape[1:]), np.int64)
    units = [1] * shape[0]
    for axis, count in reversed(arrangement):
        rest, digit = np.divmod(rest, count)
        digits[axis] += units[axis] * digit[:, None]
        units[axis] *= count
    return digits


def num_sectors(addresses: Ints) -> Ints:
    """Return the number of sectors that a request touches; no lane's access crosses one.

    Args:
        addresses: The first byte of each lane, by lane and candidate.
    """
    return _num_distinct(addresses // SECTOR_BYTES)


def num_wavefronts(addresses: Ints, width: Ints) -> Ints:
    """Return the number of wavefronts of a request to shared memory.

    Args:
        addresses: The first byte of each lane, by lane and candidate; multiples of the width.
        width: The bytes of each lane's access: 1 to 16.
    """
    wavefronts = np.zeros(addresses.shape[1], np.int64)
    for unit in np.unique(np.maximum(width, WORD_BYTES)):
        columns = np.flatnonzero(np.maximum(width, WORD_BYTES) == unit)
        num_parts = unit // WORD_BYTES
        num_lanes = WARP_SIZE // num_parts
        parts = (addresses[:, columns] // unit).reshape(num_parts, num_lanes, -1)
        by_lane = parts.transpose(1, 0, 2).reshape(num_lanes, -1)
        busiest = _most_in_a_bank(by_lane, NUM_BANKS // num_parts)
        wavefronts[columns] = busiest.reshape(num_parts, -1).sum(axis=0)
    return wavefronts


def _most_in_a_bank(words: Ints, num_banks: int) -> Ints:
    """Return, by candidate, the different words of the bank with the most of them."""
    banks = words % num_banks
    # Sorted by banks, and by words within a bank.
    order = np.sort(banks * (words.max(initial=0) + 1) + words, axis=0)
    bank = order // (words.max(initial=0) + 1)
    is_new = np.ones(order.shape, np.bool_)
    is_new[1:] = order[1:] != order[:-1]
    count = np.cumsum(is_new, axis=0)
    starts = np.ones(order.shape, np.bool_)
    starts[1:] = bank[1:] != bank[:-1]
    # The number of words before the bank of each entry: that at the bank's first entry.
    before = np.maximum.accumulate(np.where(starts, count - 1, 0), axis=0)
    most: Ints = (count - before).max(axis=0)
    return most


def _num_distinct(numbers: Ints) -> Ints:
    order = np.sort(numbers, axis=0)
    distinct: Ints = 1 + (order[1:] != order[:-1]).sum(axis=0)
    return distinct


def by_distinct_rows(columns: Sequence[Ints], compute: Callable[[list[Ints]], Ints]) -> Ints:
    """Return the results of a computation by candidate, computed once for equal rows.

    Most candidates of a batch differ in numbers that do not matter to a warp.

    Args:
        columns: The numbers on which the result depends, each by candidate.
        compute: Returns the results of given columns.
    """
    order = np.lexsort(columns)
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = False
    for column in columns:
        is_new[1:] |= column[order[1:]] != column[order[:-1]]
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(is_new) - 1
    first = order[is_new]
    return compute([column[first] for column in columns])[group]
