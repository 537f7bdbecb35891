"""Schedules of tensor expressions: their stages, and their errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import te

N = 12
A = te.placeholder((N, N), name="A")
k = te.reduce_axis((0, N), "k")
B = te.compute((N, N), lambda i, j: A[i, j] + 1.0, name="B")
C = te.compute((N,), lambda i: te.sum(B[i, k], axis=k), name="C")
D = te.compute((N,), lambda i: C[i] * 2.0, name="D")


def test_a_schedule_is_built_shown_and_tuned_further(capsys: pytest.CaptureFixture[str]) -> None:
    s = te.create_schedule(D.op)
    s[B].compute_inline()
    outer, _ = s[D].split(D.op.axis[0], factor=4)
    s[C].compute_at(s[D], outer)
    sch = s.to_schedule([A, D], name="rows")
    assert sch.func.name == "rows"
    sch.parallel(sch.get_loops("D")[0])
    s.show()
    assert "def main(" in capsys.readouterr().out
    assert lw.structural_equal(s.trace.apply_to(te.create_prim_func([A, D])).func, s.func)
    for kernel in (lw.build(s, [A, D]), lw.build(s), lw.build(sch)):
        a, d = np.ones((N, N), "float32"), np.zeros(N, "float32")
        kernel(a, d)
        np.testing.assert_array_equal(d, 4.0 * N)
    assert lw.build(s, [A, D], "llvm", name="rows")["rows"] is not None


def test_a_stage_may_change_after_the_schedule_was_lowered() -> None:
    s = te.create_schedule(D.op)
    first = s.to_schedule([A, D])
    s[D].split(D.op.axis[0], factor=5)
    second = s.to_schedule([A, D])
    assert [len(sch.get_loops("D")) for sch in (first, second)] == [1, 2]


def test_stages_of_inserted_tensors_come_in_the_order_of_their_use() -> None:
    s = te.create_schedule(D.op)
    CC = s.cache_write(C, "local")
    BB = s.cache_read(B, "shared", [CC])
    assert isinstance(CC, te.InsertedTensor)
    partial = s.rfactor(CC, s[CC].split(k, factor=3)[1], factor_axis=-1)
    assert isinstance(partial, te.InsertedTensor)
    names = [stage.name for stage in s.stages]
    assert names == ["A", "B", "B_shared", "C_local_rf", "C_local", "C", "D"]
    assert s[C].reads == [CC]
    assert s[partial].reads == [BB]
    assert [axis.name for axis in partial.op.axis] == ["i", "k_1"]
    assert s.to_schedule([A, D]).get_sblock("C_rf").of == "C_rf"


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "another tensor": (
        lambda s: s[te.placeholder((3,), name="X")],
        r"^s\[X\]: there is no such stage; there are: A, B, C, D$",
    ),
    "a number": (lambda s: s[3], "there is no such stage"),
    "a reader that does not read": (
        lambda s: s.cache_read(A, "shared", [C]),
        r"s\.cache_read\(A\): C does not read A, but B",
    ),
    "no reader": (lambda s: s.cache_read(A, "shared", []), "expected the tensors that read"),
    "a copy of an input": (lambda s: s.cache_write(A, "local"), "that te.compute made"),
    "a copy after a split": (
        lambda s: (s[C].split(k, factor=2), s.cache_write(C, "local")),
        "the loops of C were changed before: cache_write comes first",
    ),
    "partial results over no reduction": (
        lambda s: s.rfactor(C, C.op.axis[0]),
        r"s\.rfactor\(C, i\): i is no axis of a reduction",
    ),
    "partial results after a split": (
        lambda s: (s[C].split(C.op.axis[0], factor=2), s.rfactor(C, k)),
        "other loops of C were changed before: rfactor comes first",
    ),
    "a dimension that does not exist": (
        lambda s: s.rfactor(C, k, factor_axis=2),
        "factor_axis 2 is not between -2 and 1",
    ),
    "a dimension that is no number": (
        lambda s: s.rfactor(C, k, factor_axis="1"),
        "factor_axis '1' is not between -2 and 1",
    ),
    "copies of nothing": (
        lambda s: s.cache_write([], "local"),
        "expected a tensor, or all outputs of one operation",
    ),
    "a parameter that is no tensor": (
        lambda s: s.to_schedule([A, B, 5]),
        r"s\.to_schedule: a parameter is a tensor or a symbolic variable, not 5",
    ),
    "an output that is no parameter": (
        lambda s: s.to_schedule([A]),
        r"s\.to_schedule: the output D is not among the parameters",
    ),
    "an input that is computed nowhere": (
        lambda s: (s[A].compute_inline(), s.to_schedule([A, D])),
        r"s\[A\]\.compute_inline: an input is not computed",
    ),
    "a stage that comes before": (
        lambda s: (s[D].compute_at(s[B], B.op.axis[0]), s.to_schedule([A, D])),
        r"s\[D\]\.compute_at\(s\[B\], i\): B is computed before D",
    ),
    "a stage without loops": (
        lambda s: (_at_inlined(s), s.to_schedule([A, D])),
        r"s\[A_local\]\.compute_at\(s\[B\], i\): B is computed inline: it has no loops",
    ),
    "a loop that was split later": (
        lambda s: (s[D].parallel(D.op.axis[0]), s[D].split(D.op.axis[0], 2), s.to_schedule([A, D])),
        r"s\[D\]\.parallel: i was split or fused; the loops are: i_0, i_1",
    ),
    "as many threads as there are not": (
        lambda s: (s[D].bind(D.op.axis[0], te.thread_axis((0, 8), "threadIdx.x")), s.func),
        "i has 12 iterations, and threadIdx.x has 8 threads",
    ),
}


def _at_inlined(s: Any) -> bool:
    s[s.cache_read(A, "local", [B])].compute_at(s[B], B.op.axis[0])
    s[B].compute_inline()
    return True


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_with_its_place(name: str) -> None:
    step, message = REFUSED[name]
    with pytest.raises(te.StageError, match=message):
        step(te.create_schedule(D.op))


def test_what_is_not_legal_shows_the_program_and_the_step() -> None:
    s = te.create_schedule(D.op)
    s[C].vectorize(k)
    with pytest.raises(lw.ScheduleError) as caught:
        s.to_schedule([A, D])
    assert str(caught.value).startswith("s[C].vectorize(k): vectorize: loop k")
    assert ">" in str(caught.value)
    s = te.create_schedule(D.op)
    s[D].compute_inline()
    with pytest.raises(lw.ScheduleError, match=r"^s\[D\]\.compute_inline: compute_inline: "):
        s.to_schedule([A, D])


@pytest.mark.parametrize("ops", [A.op, A, "C", [], [C.op, 3]])
def test_what_is_no_operation_has_no_schedule(ops: object) -> None:
    with pytest.raises(te.StageError, match=r"te\.create_schedule: "):
        te.create_schedule(ops)  # type: ignore[arg-type]


def test_several_outputs_have_one_schedule() -> None:
    s = te.create_schedule([C.op, D.op])
    assert [op.name for op in s.outputs] == ["C", "D"]
    s[B].compute_at(s[C], C.op.axis[0])
    kernel = lw.build(s, [A, C, D])
    a, c, d = np.ones((N, N), "float32"), np.zeros(N, "float32"), np.zeros(N, "float32")
    kernel(a, c, d)
    np.testing.assert_array_equal((c, d), ([2.0 * N] * N, [4.0 * N] * N))


def test_a_symbolic_program_is_split_with_a_guard() -> None:
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    Y = te.compute((n,), lambda i: X[i] * 2.0, name="Y")
    s = te.create_schedule(Y.op)
    s[Y].split(Y.op.axis[0], factor=32)
    text = lw.lower(s, [X, Y], simple_mode=True).script()
    assert "for i_0, i_1 in T.grid((n + 31) // 32, 32):" in text
    assert "if i_0 * 32 + i_1 < n:" in text
