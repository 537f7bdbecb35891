"""`online_softmax`: a softmax and its weighted sum over blocks, and each requirement refused.

The oracle is NumPy in float64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from compiler.ir.core.nodes import Block, BlockRealize
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.verify.verify import verify
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV, LoopRV
from compiler.schedule.tree.tree import blocks
from tests.unit.compiler.schedule.schedule_asserts import refused, scheduled

Values = npt.NDArray[np.float64]

ROWS = """
@T.prim_func
def main(
    S: T.Buffer((ROWS, KEYS), "TYPE"), V: T.Buffer((KEYS, WIDTH), "TYPE"),
    O: T.Buffer((ROWS, WIDTH), "TYPE")
):
    M = T.sblock_alloc_buffer((ROWS,), "TYPE")
    P = T.sblock_alloc_buffer((ROWS, KEYS), "TYPE")
    L = T.sblock_alloc_buffer((ROWS,), "TYPE")
    W = T.sblock_alloc_buffer((ROWS, KEYS), "WEIGHTS")
    for i, j in T.grid(ROWS, KEYS):
        with T.sblock("M"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                M[vi] = START
            M[vi] = T.max(M[vi], S[vi, vj])
    for i, j in T.grid(ROWS, KEYS):
        with T.sblock("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            P[vi, vj] = T.exp(S[vi, vj] - M[vi])
    for i, j in T.grid(ROWS, KEYS):
        with T.sblock("L"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                L[vi] = T.TYPE(0)
            L[vi] = L[vi] + P[vi, vj]
    for i, j in T.grid(ROWS, KEYS):
        with T.sblock("W"):
            vi, vj = T.axis.remap("SS", [i, j])
            W[vi, vj] = T.cast(P[vi, vj] / L[vi], "WEIGHTS")
    for i, c, j in T.grid(ROWS, WIDTH, KEYS):
        with T.sblock("O"):
            vi, vc, vj = T.axis.remap("SSR", [i, c, j])
            with T.init():
                O[vi, vc] = T.TYPE(0)
            O[vi, vc] = O[vi, vc] + T.cast(W[vi, vj], "TYPE") * V[vj, vc]
"""
"""Each row of `O` is the mean of the rows of `V`, weighted by the softmax of a row of `S`."""

LEAST = 'T.min_value("TYPE")'
MINUS_INF = 'T.TYPE("-inf")'


def text(
    rows: int = 6,
    keys: int = 20,
    width: int = 3,
    *,
    dtype: str = "float32",
    weights: str | None = None,
    start: str = LEAST,
) -> str:
    script = ROWS.replace("START", start).replace("WEIGHTS", weights or dtype)
    for name, value in (("ROWS", rows), ("KEYS", keys), ("WIDTH", width), ("TYPE", dtype)):
        script = script.replace(name, str(value))
    return script


def blocked(schedule: Schedule, *, rows: int = 4, keys: int = 8) -> LoopRV:
    """Cut the rows and the keys of a weighted sum; return the loop over blocks of keys."""
    i, c, j = schedule.get_loops("O")
    i_0, i_1 = schedule.split(i, [None, rows])
    j_0, j_1 = schedule.split(j, [None, keys])
    schedule.reorder(i_0, j_0, i_1, c, j_1)
    return j_0


def block_at(schedule: Schedule, handle: BlockRV) -> Block:
    realize = schedule.get(handle)
    assert isinstance(realize, BlockRealize)
    return realize.block


def attended(scores: Values, values: Values) -> Values:
    """Return the weighted mean by NumPy, in float64."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True) @ values)


def results(schedule: Schedule, scores: Values, values: Values) -> Values:
    """Return what the program computes; NumPy warns of infinities that cancel as intended."""
    verify(schedule.func)
    dtype = schedule.func.buffers[0].dtype
    inputs = {"S": scores.astype(dtype), "V": values.astype(dtype)}
    return evaluate(schedule.func, inputs)["O"].astype(np.float64)


def drawn(rows: int, keys: int, width: int, scale: float = 1.0) -> tuple[Values, Values]:
    rng = np.random.default_rng(rows * keys)
    return rng.standard_normal((rows, keys)) * scale, rng.standard_normal((keys, width))


@pytest.mark.parametrize(
    ("keys", "block"), [(1, 1), (1, 8), (7, 1), (7, 8), (7, 7), (20, 8), (20, 100), (33, 16)]
)
def test_blocks_of_keys_give_the_softmax(keys: int, block: int) -> None:
    schedule = scheduled(text(3, keys, 2, dtype="float64"))
    schedule.online_softmax("O", blocked(schedule, rows=2, keys=block))
    scores, values = drawn(3, keys, 2)
    np.testing.assert_allclose(
        results(schedule, scores, values), attended(scores, values), rtol=1e-12
    )


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e2, 1e4])
def test_large_scores_do_not_overflow(scale: float) -> None:
    schedule = scheduled(text())
    schedule.online_softmax("O", blocked(schedule))
    scores, values = drawn(6, 20, 3, scale)
    scores = scores.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(
        results(schedule, scores, values), attended(scores, values), atol=1e-5
    )


@pytest.mark.parametrize("start", [LEAST, MINUS_INF])
def test_blocks_that_are_masked_whole_count_nothing(start: str) -> None:
    schedule = scheduled(text(start=start))
    schedule.online_softmax("O", blocked(schedule))
    scores, values = drawn(6, 20, 3)
    scores[:, :8] = -np.inf  # the first block of all rows, and the last one of some
    scores[2:4, 16:] = -np.inf
    scores[5, 1:] = -np.inf
    scores[5, 19] = -1e4
    np.testing.assert_allclose(
        results(schedule, scores, values), attended(scores, values), rtol=1e-5
    )


def test_a_row_that_is_masked_whole_stays_undefined() -> None:
    schedule = scheduled(text(start=MINUS_INF))
    schedule.online_softmax("O", blocked(schedule))
    scores, values = drawn(6, 20, 3)
    scores[1] = -np.inf
    with np.errstate(invalid="ignore"):
        got = results(schedule, scores, values)
    assert np.isnan(got[1]).all()
    assert np.isfinite(np.delete(got, 1, axis=0)).all()


def test_weights_of_another_type_are_rounded_before_the_division() -> None:
    schedule = scheduled(text(weights="float16"))
    schedule.online_softmax("O", blocked(schedule))
    scores, values = drawn(6, 20, 3)
    np.testing.assert_allclose(
        results(schedule, scores, values), attended(scores, values), atol=5e-3
    )


def test_scores_are_computed_in_the_loop() -> None:
    schedule = scheduled(text())
    scores = schedule.cache_read("M", 0, "global", ["M", "P"])
    j_0 = blocked(schedule)
    schedule.online_softmax("O", j_0)
    schedule.compute_at(scores, j_0)
    assert len(schedule.get_loops(scores)) == 4
    inputs = drawn(6, 20, 3)
    np.testing.assert_allclose(results(schedule, *inputs), attended(*inputs), atol=1e-5)


def test_the_new_blocks_are_returned_in_their_order() -> None:
    schedule = scheduled(text())
    new = schedule.online_softmax("O", blocked(schedule))
    names = [block_at(schedule, block).name for block in new]
    assert names == [
        "O_init", "M_init", "L_init", "M_tile", "P_factor", "L_tile", "O_scale", "O_divide",
    ]  # fmt: skip
    assert [realize.block.name for realize in blocks(schedule.func)][1:] == [
        "O_init", "M_init", "L_init", "M_tile", "P_factor", "M", "P", "L_tile", "L", "W",
        "O_scale", "O_update", "O_divide",
    ]  # fmt: skip


def test_running_values_are_not_moved() -> None:
    """Powers belong to the maximum of their iteration, and factors to the one before."""
    schedule = scheduled(text())
    j_0 = blocked(schedule)
    new = schedule.online_softmax("O", j_0)
    loops = schedule.get_loops(schedule.get_block("O_update"))
    for block in ("P", new[4]):
        with pytest.raises(ScheduleError, match=r"finished|writes M after"):
            schedule.compute_at(block, loops[2])
    for change in (schedule.parallel, schedule.vectorize):
        with pytest.raises(ScheduleError):
            change(j_0)


def test_a_trace_repeats_it() -> None:
    schedule = scheduled(text())
    schedule.online_softmax("O", blocked(schedule))
    other = scheduled(text())
    schedule.trace.apply_to_schedule(other)
    assert other.func.script() == schedule.func.script()


# --- refusals -----------------------------------------------------------------------------------


OTHERS = [
    ('T.cast(W[vi, vj], "float32") * V[vj, vc]', "(W[vi, vj] + V[vj, vc])", "add up products", "O"),
    ("P[vi, vj] / L[vi]", "P[vi, vj] * L[vi]", "does not divide powers", "W"),
    ("T.exp(S", "T.exp2(S", "is not the exponential", "P"),
    ("T.exp(S[vi, vj] - M[vi])", "T.exp(M[vi] - S[vi, vj])", "no single block computes", "P"),
    ("T.exp(S", "T.exp(T.float32(2) * S", "does not reduce the scores", "M"),
    ("T.max(M[vi]", "T.min(M[vi]", "does not reduce floats by max", "M"),
    ("L[vi] + P[vi, vj]", "L[vi] + S[vi, vj]", "does not add up P", "L"),
    ("L[vi] + P[vi, vj]", "L[vi] + P[5 - vi, vj]", "does not reduce P along its rows", "L"),
    ("- M[vi])", "- M[5 - vi])", "does not access P and M at its row", "P"),
]


@pytest.mark.parametrize(("old", "new", "reason", "at"), OTHERS)
def test_other_chains_are_refused(old: str, new: str, reason: str, at: str) -> None:
    script = text()
    assert old in script
    script = script.replace(old, new)
    if "min(M" in new:
        script = script.replace("min_value", "max_value")
    schedule = scheduled(script)
    loop = blocked(schedule)
    with refused(schedule, reason, at=f'T.sblock("{at}")'):
        schedule.online_softmax("O", loop)


def test_a_loop_around_another_block_is_refused() -> None:
    schedule = scheduled(text())
    blocked(schedule)
    with refused(schedule, "is not around block O", at="for i in"):
        schedule.online_softmax("O", schedule.get_loops("M")[0])


def test_a_loop_of_rows_is_refused() -> None:
    schedule = scheduled(text())
    blocked(schedule)
    with refused(schedule, "does not take the next elements", at="for i_0"):
        schedule.online_softmax("O", schedule.get_loops("O")[0])


def test_a_loop_inside_of_the_sum_is_refused() -> None:
    schedule = scheduled(text())
    blocked(schedule)
    with refused(schedule, "does not take the next elements", at="for j_1"):
        schedule.online_softmax("O", schedule.get_loops("O")[4])


def test_keys_that_are_not_in_sequence_are_refused() -> None:
    schedule = scheduled(text())
    i, c, j = schedule.get_loops("O")
    j_0, j_1 = schedule.split(j, [None, 4])
    schedule.reorder(j_1, i, c, j_0)
    with refused(schedule, "does not take the next elements", at="for j_1"):
        schedule.online_softmax("O", j_1)


def test_a_parallel_loop_is_refused() -> None:
    schedule = scheduled(text())
    loop = blocked(schedule)
    schedule.unroll(loop)
    with refused(schedule, "only a serial one keeps running sums", at="for j_0"):
        schedule.online_softmax("O", loop)


def test_a_second_reader_of_the_powers_is_refused() -> None:
    schedule = scheduled(text())
    schedule.cache_write("P", 0, "global", ["L"])
    loop = blocked(schedule)
    with refused(schedule, "block", at="T.sblock"):
        schedule.online_softmax("O", loop)


def test_an_output_is_refused() -> None:
    script = text().replace('    M = T.sblock_alloc_buffer((6,), "float32")\n', "")
    script = script.replace("    O: T.Buffer", '    M: T.Buffer((6,), "float32"), O: T.Buffer')
    schedule = scheduled(script)
    loop = blocked(schedule)
    with refused(schedule, "is an output block, as it writes M", at='T.sblock("M")'):
        schedule.online_softmax("O", loop)


def test_a_sum_of_a_part_of_the_row_is_refused() -> None:
    script = text().replace("T.grid(6, 3, 20)", "T.grid(6, 3, 16)")
    schedule = scheduled(script)
    loop = blocked(schedule)
    with refused(schedule, "rows of another length than the softmax", at='T.sblock("O")'):
        schedule.online_softmax("O", loop)
