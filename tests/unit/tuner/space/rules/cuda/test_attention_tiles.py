"""Chains of products in one kernel: attention."""

from __future__ import annotations

import pytest

from compiler import ops, te
from compiler.ir.core.program import PrimFunc
from tests.contracts.schedule_rule import ScheduleRuleContract
from tests.unit.tuner.space.gpu_spaces import H200, assert_computes, draw, emulate, first, names
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cuda.attention_tiles import AttentionTiles
from tuner.space.rules.rule import ScheduleRule
from tuner.space.rules.sketch_builder import SketchBuilder


def two_products() -> PrimFunc:
    """Return `(A @ B) @ C`."""
    a, b = te.placeholder((12, 10), name="A"), te.placeholder((10, 16), name="B")
    c = te.placeholder((16, 24), name="C")
    k, r = te.reduce_axis((0, 10), name="k"), te.reduce_axis((0, 16), name="r")
    first = te.compute((12, 16), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="first")
    second = te.compute((12, 24), lambda i, j: te.sum(first[i, r] * c[r, j], axis=r), name="second")
    return te.create_prim_func([a, b, c, second])


@pytest.mark.parametrize(
    "func",
    [
        ops.attention(1, 2, 10, 21, 64),
        ops.attention(1, 1, 9, 12, 128),
        ops.attention(2, 1, 11, 11, 12, causal=True),
        two_products(),
    ],
    ids=["64 wide", "128 wide", "causal", "two products"],
)
def test_random_schedules_compute_the_program(func: PrimFunc) -> None:
    assert names(func) == ["attention_tiles"]
    assert_computes(func, draw(func, "attention_tiles", 1))


def test_one_kernel_reads_each_operand_and_writes_each_result_once() -> None:
    func = ops.attention(1, 1, 32, 64, 64)  # one tile of rows, and one of keys
    (report,) = emulate(func, first(func, "attention_tiles"))
    assert report.sector_ratio == 1
    assert report.global_bytes == report.bytes_read + report.bytes_written == 4 * 64 * (64 + 128)
    # What conflicts are stores of keys, which are transposed on the way.
    conflicts = [a for a in report.accesses if a.memory == "shared" and a.ratio > 1]
    assert report.bank_conflicts < 1.1
    assert all(a.instruction.startswith("st.") for a in conflicts)


@pytest.mark.parametrize("keys", [8, 8192], ids=["no chain", "rows too long"])
def test_other_programs_are_left_alone(keys: int) -> None:
    func = ops.softmax(4, keys) if keys == 8 else ops.attention(1, 1, 64, keys, 64)
    draft = SketchBuilder.begin(func, H200)
    AutoInline().apply(draft)
    assert AttentionTiles().apply(draft) == [draft]


class TestOnAChain(ScheduleRuleContract):
    target = H200

    @pytest.fixture
    def rule(self) -> ScheduleRule:
        return AttentionTiles()

    @pytest.fixture
    def earlier(self) -> list[ScheduleRule]:
        return []

    @pytest.fixture
    def func(self) -> PrimFunc:
        return two_products()
