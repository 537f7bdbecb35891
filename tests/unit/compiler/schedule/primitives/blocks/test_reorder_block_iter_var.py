"""`reorder_block_iter_var`: the order of a block's iterators."""

from __future__ import annotations

import pytest

from tests.unit.compiler.schedule.primitives.programs import ROWS
from tests.unit.compiler.schedule.schedule_asserts import (
    becomes,
    refused,
    scheduled,
)


def test_reorder_block_iter_var_reorders_iterators() -> None:
    sch = scheduled(ROWS)
    sch.reorder_block_iter_var("C", [1, 0])
    becomes(
        sch,
        ROWS.replace('vi, vk = T.axis.remap("SR", [i, k])', 'vk, vi = T.axis.remap("RS", [k, i])'),
    )


@pytest.mark.parametrize("order", [[], [0], [0, 0], [0, 1, 2], [0, 2], [-1, 0]])
def test_reorder_block_iter_var_refuses_what_is_no_order(order: list[int]) -> None:
    sch = scheduled(ROWS)
    with refused(sch, f"{order} is not an order of the 2 iterators of block C", at='"C"'):
        sch.reorder_block_iter_var("C", order)
