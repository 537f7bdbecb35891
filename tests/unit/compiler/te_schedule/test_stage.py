"""Steps of stages that fit are kept; those that do not are refused, and change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compiler.ir.core.nodes import IntImm
from compiler.te_schedule.inserted import axis_name
from loopwright import te

A = te.placeholder((12, 10), name="A")
k = te.reduce_axis((0, 10), "k")
B = te.compute((12, 10), lambda i, j: A[i, j] + 1.0, name="B")
C = te.compute((12,), lambda i: te.sum(B[i, k], axis=k), name="C")


def schedule() -> te.TensorSchedule:
    return te.create_schedule(C.op)


def loops(stage: te.Stage) -> list[str]:
    return [axis_name(axis) for axis in stage.leaf_iter_vars]


def test_a_stage_begins_with_the_axes_of_its_operation() -> None:
    s = schedule()
    assert [stage.name for stage in s.stages] == ["A", "B", "C"]
    assert s[C].op is C.op
    assert s[C.op] is s[C]
    assert (s[C].axis, s[C].reduce_axis) == (C.op.axis, C.op.reduce_axis)
    assert loops(s[C]) == ["i", "k"]
    assert loops(s[A]) == []
    assert s[C].op.axis[0].extent == IntImm(12)


def test_loops_are_split_fused_and_reordered() -> None:
    stage = schedule()[B]
    xo, yo, xi, yi = stage.tile(B.op.axis[0], B.op.axis[1], 4, te.const(5, "int32"))
    assert loops(stage) == ["i_0", "j_0", "i_1", "j_1"]
    stage.fuse(xo, yo)
    assert loops(stage) == ["i_0_j_0_fused", "i_1", "j_1"]
    stage.reorder(yi, xi)
    assert loops(stage) == ["i_0_j_0_fused", "j_1", "i_1"]


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "a loop of another stage": (
        lambda s: s[C].split(B.op.axis[1], factor=2),
        r"^s\[C\]\.split: j is no loop of this stage; the loops are: i, k$",
    ),
    "a loop that was split": (
        lambda s: (s[C].split(k, factor=2), s[C].unroll(k)),
        r"^s\[C\]\.unroll: k was split or fused; the loops are: i, k_0, k_1$",
    ),
    "no loop at all": (lambda s: s[C].parallel("i"), "'i' is no loop; the loops are: i, k$"),
    "both sizes": (lambda s: s[C].split(k, factor=2, nparts=2), "either factor or nparts"),
    "no size": (lambda s: s[C].split(k), "either factor or nparts"),
    "no number": (lambda s: s[C].split(k, factor=0), "factor 0 is no positive integer"),
    "a half": (lambda s: s[C].split(k, factor=1.5), "factor 1.5 is no positive integer"),
    "a wrong tile": (
        lambda s: s[B].tile(B.op.axis[0], B.op.axis[1], 4, -1),
        "factor -1 is no positive integer",
    ),
    "loops that are not nested": (
        lambda s: s[B].fuse(B.op.axis[1], B.op.axis[0]),
        "j, i do not follow one another; the loops are: i, j",
    ),
    "nothing to fuse": (lambda s: s[B].fuse(), "expected two loops or more, of i, j"),
    "loops of two kinds": (lambda s: s[C].fuse(C.op.axis[0], k), "are not fused"),
    "a loop given twice": (lambda s: s[B].reorder(B.op.axis[0], B.op.axis[0]), "given twice"),
    "no threads": (
        lambda s: s[B].bind(B.op.axis[0], "threadIdx.x"),
        r"'threadIdx.x' is no axis of threads: expected te.thread_axis\(\.\.\.\)",
    ),
    "no such threads": (
        lambda s: te.thread_axis("threadIdx.w"),
        "te.thread_axis: there is no axis 'threadIdx.w'; there are: blockIdx.x",
    ),
    "no number of threads": (
        lambda s: te.thread_axis((1, 8), "threadIdx.x"),
        "is no range of threads: expected a number",
    ),
    "another pragma": (
        lambda s: s[B].pragma(B.op.axis[0], "import_c", "int f();"),
        "there is no pragma 'import_c'; there are: auto_unroll_max_step",
    ),
    "no intrinsic": (lambda s: s[B].tensorize(B.op.axis[0], 8), "8 is no intrinsic"),
    "no stage": (lambda s: s[B].compute_at(C, C.op.axis[0]), r"is no stage: expected s\[C\]"),
    "its own loop": (lambda s: s[B].compute_at(s[B], B.op.axis[0]), "a loop of its own"),
    "no loop of that stage": (
        lambda s: s[B].compute_at(s[C], B.op.axis[0]),
        r"s\[C\]\.compute_at: i is no loop of this stage; the loops are: i, k",
    ),
    "no memory": (lambda s: s[B].set_scope(None), "None is no memory"),
    "no dimension": (lambda s: s[C].storage_align(k, 8, 1), "is no dimension of C"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_step_that_does_not_fit_is_refused(name: str) -> None:
    step, message = REFUSED[name]
    s = schedule()
    with pytest.raises(te.StageError, match=message) as caught:
        step(s)
    assert caught.value.code in ("invalid_argument", "loop_kind", "not_found", "structure")
    assert all(stage.location == "root" and not stage.marks for stage in s.stages)
    # A legal first step of a case stays, and the schedule can still be lowered.
    assert s.to_schedule([A, C]).func.name == "main"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("recorder", "did you mean 'reorder'"),
        ("set_store_predicate", "instead: not needed: of threads that reduce together, one stores"),
        ("double_buffer", r"instead: s\.to_schedule"),
    ],
)
def test_a_step_that_does_not_exist_has_a_hint(name: str, hint: str) -> None:
    with pytest.raises(AttributeError, match=hint):
        getattr(schedule()[C], name)


def test_a_scalar_has_a_loop_if_one_is_asked_for() -> None:
    r = te.reduce_axis((0, 10), "r")
    total = te.compute((), lambda: te.sum(A[0, r], axis=r), name="total")
    doubled = te.compute((), lambda: total() * 2.0, name="doubled")
    s: Any = te.create_schedule(doubled.op)
    s[total].compute_at(s[doubled], s[doubled].fuse())
    sch = s.to_schedule([A, doubled])
    assert len(sch.get_loops("doubled")) == 1
    assert len(sch.get_loops("total")) == 2
