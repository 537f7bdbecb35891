"""`skip_masked`: requirements, and equal results."""

from __future__ import annotations

import pytest

from compiler import ops
from compiler.ir.core.nodes import For, If
from compiler.ir.core.visit import walk_stmts
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import LoopRV
from tests.unit.compiler.schedule.schedule_asserts import computes_the_same, refused, scheduled

SUMS = """
@T.prim_func
def main(A: T.Buffer((12, 12), "float32"), C: T.Buffer((12,), "float32")):
    for i in range(12):
        with T.sblock("start"):
            vi = T.axis.spatial(12, i)
            C[vi] = T.float32(0)
    for i_0 in {outer}:
        for k_0 in {blocks}:
            for i_1, k_1 in T.grid(4, 4):
                with T.sblock("C"):
                    vi = T.axis.spatial(12, i_0 * 4 + i_1)
                    vk = T.axis.reduce(12, k_0 * 4 + k_1)
                    C[vi] = {update}
"""
MASKED = "C[vi] + T.if_then_else(vk <= vi, A[vi, vk], T.float32(0))"


def sums(update: str = MASKED, outer: str = "range(3)", blocks: str = "range(3)") -> Schedule:
    return scheduled(SUMS.format(update=update, outer=outer, blocks=blocks))


def blocks_of(sch: Schedule) -> LoopRV:
    return sch.get_loops("C")[1]


def condition_of(sch: Schedule, loop: LoopRV) -> str:
    """Return the condition around the body of a loop, as text."""
    found = sch.get(loop)
    assert isinstance(found, For)
    assert isinstance(found.body, If)
    (line,) = (each for each in str(sch.func).splitlines() if each.strip().startswith("if "))
    return line.strip()


def test_blocks_that_begin_after_the_last_row_are_skipped() -> None:
    sch = sums()
    before, loop = sch.func, blocks_of(sch)
    sch.skip_masked(loop)
    assert condition_of(sch, loop) == "if k_0 * 4 - i_0 * 4 - 3 <= 0:"
    computes_the_same(before, sch.func)


LENGTHS = """
@T.prim_func
def main(n: T.Buffer((3,), "int32"), A: T.Buffer((3, 12), "float32"), C: T.Buffer((3,), "float32")):
    last = T.sblock_alloc_buffer((3,), "int32")
    for i in range(3):
        with T.sblock("start"):
            vi = T.axis.spatial(3, i)
            C[vi] = T.float32(0)
    for i in range(3):
        with T.sblock("last"):
            vi = T.axis.spatial(3, i)
            last[vi] = n[vi] - 1
    for i, k_0, k_1 in T.grid(3, 3, 4):
        with T.sblock("C"):
            vi = T.axis.spatial(3, i)
            vk = T.axis.reduce(12, k_0 * 4 + k_1)
            C[vi] = C[vi] + T.if_then_else(vk <= {last}, A[vi, vk], T.float32(0))
"""


def test_blocks_after_the_length_of_a_row_are_skipped() -> None:
    sch = scheduled(LENGTHS.format(last="n[vi] - 1"))
    before, loop = sch.func, blocks_of(sch)
    sch.skip_masked(loop)
    assert condition_of(sch, loop) == "if k_0 * 4 - n[i] + 1 <= 0:"
    computes_the_same(before, sch.func)
    sch = scheduled(LENGTHS.format(last="last[vi]"))
    with refused(sch, "no block under loop k_0 selects by a comparison <=", at="for k_0"):
        sch.skip_masked(blocks_of(sch))


def test_a_mask_may_compare_by_less_than() -> None:
    sch = sums(MASKED.replace("vk <= vi", "vk < vi"))
    before, loop = sch.func, blocks_of(sch)
    sch.skip_masked(loop)
    assert condition_of(sch, loop) == "if k_0 * 4 - i_0 * 4 - 2 <= 0:"
    computes_the_same(before, sch.func)


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        ("C[vi] + A[vi, vk]", "no block under loop k_0 selects by a comparison <= or < of sums"),
        (
            MASKED.replace("vk <= vi", "vk // 3 <= vi"),
            "no block under loop k_0 selects by a comparison <= or < of sums",
        ),
        (
            MASKED.replace("vk <= vi", 'T.Cast("float32", vk) < T.float32(5)'),
            "no block under loop k_0 selects by a comparison <= or < of sums",
        ),
        (
            MASKED.replace("T.float32(0)", "T.float32(1)"),
            "an iteration of loop k_0 without elements may change C",
        ),
        (
            MASKED.replace("C[vi] +", "T.float32(2) * C[vi] +"),
            "an iteration of loop k_0 without elements may change C",
        ),
    ],
    ids=["no mask", "a quotient", "floats", "adds one", "scales"],
)
def test_iterations_that_may_change_something_are_kept(update: str, reason: str) -> None:
    sch = sums(update)
    with refused(sch, reason, at="for k_0"):
        sch.skip_masked(blocks_of(sch))


def test_loops_that_threads_or_the_compiler_repeat_are_left_alone() -> None:
    sch = sums(outer='T.thread_binding(3, thread="threadIdx.x")')
    with refused(sch, "threads of loop i_0 would skip different iterations", at="for k_0"):
        sch.skip_masked(blocks_of(sch))
    sch = sums()
    sch.unroll(blocks_of(sch))
    with refused(sch, "loop k_0 is unrolled, not serial", at="for k_0"):
        sch.skip_masked(blocks_of(sch))


def causal(*, is_decomposed: bool) -> tuple[Schedule, LoopRV]:
    """Return an attention with blocks of keys, and the loop over these."""
    sch = Schedule(ops.attention(1, 1, 12, 12, 4, causal=True))
    b, h, i, c, k = sch.get_loops("out")
    i_0, i_1 = sch.split(i, [None, 4])
    k_0, k_1 = sch.split(k, [None, 4])
    sch.reorder(b, h, i_0, k_0, i_1, c, k_1)
    _, _, _, largest, _, total, *_ = sch.online_softmax("out", k_0)
    for block in ("scores", "products"):
        sch.compute_at(block, k_0)
    if is_decomposed:
        for reduction in (largest, total, sch.get_block("products")):
            sch.decompose_reduction(reduction, sch.get_loops(reduction)[-2])
    return sch, k_0


def test_a_causal_attention_computes_no_later_keys() -> None:
    sch, loop = causal(is_decomposed=True)
    before = sch.func
    sch.skip_masked(loop)
    assert condition_of(sch, loop) == "if k_0 * 4 - i_0 * 4 - 3 <= 0:"
    computes_the_same(before, sch.func)
    assert any(isinstance(node, If) for node in walk_stmts(sch.func.body))


def test_blocks_with_an_init_of_their_own_are_understood() -> None:
    sch, loop = causal(is_decomposed=False)
    sch.skip_masked(loop)
    assert condition_of(sch, loop).startswith("if k_0 * 4")
