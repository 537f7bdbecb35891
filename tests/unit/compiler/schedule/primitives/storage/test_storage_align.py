"""`storage_align`: notes, and what lowering makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compiler.driver import build
from compiler.ir.core.nodes import BlockRealize
from compiler.passes.common.align_buffers import aligned, alignments_of
from compiler.schedule.schedule import Schedule
from tests.unit.compiler.schedule.schedule_asserts import (
    elementwise,
    refused,
)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((1, 0, 4, 0), "block B has no write 1; it has 0: B"),
        ((0, 2, 4, 0), "B has 2 dimension(s): there is no axis 2"),
        ((0, -3, 4, 0), "B has 2 dimension(s): there is no axis -3"),
        ((0, 0, 0, 0), "factor 0 is not positive"),
    ],
)
def test_storage_align_refuses_what_is_no_alignment(
    arguments: tuple[int, int, int, int], reason: str
) -> None:
    sch = Schedule(elementwise())
    with refused(sch, reason, at='"B"'):
        sch.storage_align("B", *arguments)


def test_storage_align_refuses_parameters_notes_of_another_form_and_no_integers() -> None:
    sch = Schedule(elementwise())
    reason = "C is not allocated by a block: it is a parameter, or a view"
    with refused(sch, reason, at='"C"'):
        sch.storage_align("C", 0, 0, 4, 0)
    wrong: Any = "4"
    with refused(sch, "factor is '4': expected an integer", at="def main"):
        sch.storage_align("B", 0, 0, wrong, 0)
    sch.annotate("B", "buffer_dim_align", "much")
    with refused(sch, "is not a list of buffer, axis, factor and offset", at='"B"'):
        sch.storage_align("B", 0, 0, 4, 0)


def test_an_alignment_is_noted_once_for_each_axis() -> None:
    sch = Schedule(elementwise())
    sch.storage_align("B", 0, -2, 32, 1)
    sch.storage_align("B", 0, 1, 8, 0)
    sch.storage_align("B", 0, 0, 16, 3)
    realize = sch.get(sch.get_sblock("B"))
    assert isinstance(realize, BlockRealize)
    assert dict(realize.block.annotations)["buffer_dim_align"] == ((0, 0, 16, 3), (0, 1, 8, 0))


def test_lowering_honours_alignments_and_computes_the_same() -> None:
    sch = Schedule(elementwise())
    sch.storage_align("B", 0, 0, 32, 1)
    ((_, alignment),) = alignments_of(sch.func.body).items()
    assert aligned((16, 16), alignment) == (16, 33)
    array, result = np.ones((16, 16), "float32"), np.zeros((16, 16), "float32")
    build(sch)(array, result)
    np.testing.assert_array_equal(result, array * 2 + 1)


def test_alignments_of_outer_axes_count_the_inner_ones() -> None:
    assert aligned((4, 5, 6), {0: (16, 0)}) == (4, 8, 6)
    assert aligned((4, 5, 6), {0: (16, 0), 1: (8, 4)}) == (4, 8, 12)
    # No length of 6 * n is odd: nothing is padded.
    assert aligned((4, 5, 6), {0: (16, 1)}) == (4, 5, 6)
    assert aligned((4, 5), {1: (16, 0)}) == (4, 5)
