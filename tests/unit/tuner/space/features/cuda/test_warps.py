"""Requests of warps, against sets of sectors and of words."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.space.features.cuda.warps import (
    by_distinct_rows,
    lane_digits,
    num_sectors,
    num_wavefronts,
)
from tuner.space.tables.knob import Ints


def wavefronts(addresses: list[int], width: int) -> int:
    """Count the words of the busiest bank, part by part of a warp."""
    words = max(width // 4, 1)
    lanes = 32 // words
    total = 0
    for start in range(0, 32, lanes):
        touched = {a // 4 + n for a in addresses[start : start + lanes] for n in range(words)}
        total += max(sum(word % 32 == bank for word in touched) for bank in range(32))
    return total


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_wavefronts_are_the_words_of_the_busiest_bank(width: int) -> None:
    rng = np.random.default_rng(width)
    strides = rng.integers(0, 70, (1, 40))
    addresses = np.arange(32)[:, None] * strides * width
    addresses = np.hstack([addresses, rng.integers(0, 99, (32, 40)) * width])
    found = num_wavefronts(addresses, np.full(80, width))
    assert found.tolist() == [wavefronts(column, width) for column in addresses.T.tolist()]


def test_widths_may_differ_within_a_batch() -> None:
    addresses = np.repeat(np.arange(32)[:, None] * 16, 3, axis=1)
    assert num_wavefronts(addresses, np.array([16, 4, 16])).tolist() == [4, 4, 4]
    addresses = np.repeat(np.arange(32)[:, None] * 128, 2, axis=1)
    assert num_wavefronts(addresses, np.array([4, 16])).tolist() == [32, 32]


def test_sectors_are_pieces_of_32_bytes() -> None:
    rng = np.random.default_rng(0)
    addresses = rng.integers(0, 4096, (32, 50)) * 4
    found = num_sectors(addresses)
    assert found.tolist() == [len({a // 32 for a in column}) for column in addresses.T.tolist()]


def test_lanes_are_numbered_along_the_last_axis_first() -> None:
    digits = lane_digits(np.array([[4, 2], [16, 3]]))
    assert digits[:, :, 0].T.tolist() == [[n // 16, n % 16] for n in range(32)]
    # Two rows of three threads: other lanes do not exist.
    assert digits[:, :6, 1].T.tolist() == [[n // 3, n % 3] for n in range(6)]
    assert not digits[:, 6:, 1].any()


def test_equal_rows_are_computed_once() -> None:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, 200) for _ in range(4)]
    sizes = []

    def compute(distinct: list[Ints]) -> Ints:
        sizes.append(len(distinct[0]))
        total: Ints = distinct[0] + 10 * distinct[1] + 100 * distinct[2] + 1000 * distinct[3]
        return total

    found = by_distinct_rows(columns, compute)
    assert found.tolist() == compute(columns).tolist()
    assert sizes == [len(set(zip(*(c.tolist() for c in columns), strict=True))), 200]
