"""Paddings that are made ahead, or tile by tile."""

from __future__ import annotations

from compiler import ops
from tests.unit.tuner.space.spaces import names


def test_padding_is_done_ahead_or_tilewise() -> None:
    assert names(ops.conv2d(1, 4, 8, 8, 6, 3, 1, 1)) == [
        "direct/ahead",
        "direct/tilewise",
        "cached/ahead",
        "cached/tilewise",
    ]
