"""Which decisions make the same program, against scheduled programs and the code made of them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from compiler import ops
from compiler.driver import emit
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import BlockRealize, For, IntImm, Seq, Stmt
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import substitute
from compiler.target.target import Target
from tuner.candidate import Candidate
from tuner.space.design_space import Point, SketchSpace, distinct
from tuner.space.generate import design_space
from tuner.space.tables.canonical_decisions import canonical
from tuner.space.tables.knob import Ints, TileKnob
from tuner.space.tables.loop_slots import LoopSlot
from tuner.task import Task

ONE_CORE = Target("cpu -mcpu=x86-64-v3 -num-cores=1")
TWO_CORES = Target("cpu -mcpu=x86-64-v3 -num-cores=2")


def code(func: PrimFunc, target: Target, candidate: Candidate) -> str:
    """Return the code of a candidate, its registers and labels numbered in their order."""
    text = emit(candidate.trace.apply_to(func).func, target).text
    names: dict[str, str] = {}
    return re.sub(
        r"%[\w.]+|^[a-z]+\d+:",
        lambda found: names.setdefault(found[0].strip("%:"), f"%n{len(names)}"),
        text,
        flags=re.MULTILINE,
    )


def loops(func: PrimFunc, candidate: Candidate) -> str:
    """Return a hash of a scheduled program without the loops that turn once."""
    scheduled = candidate.trace.apply_to(func).func
    root = replace(scheduled.root, body=_without_single_turns(scheduled.root.body))
    return structural_hash(replace(scheduled, body=replace(scheduled.body, block=root)))


def _without_single_turns(stmt: Stmt) -> Stmt:
    match stmt:
        case For(var, IntImm(1), body) if not stmt.annotations:
            return _without_single_turns(substitute(body, {var: IntImm(0)}))
        case For(body=body):
            return replace(stmt, body=_without_single_turns(body))
        case Seq(stmts):
            return Seq(tuple(_without_single_turns(child) for child in stmts))
        case BlockRealize(values, predicate, block):
            inner = replace(block, body=_without_single_turns(block.body))
            return BlockRealize(tuple(simplify(v) for v in values), simplify(predicate), inner)
        case _:
            return stmt


def space_of(spec: str, target: Target) -> tuple[PrimFunc, SketchSpace]:
    func = ops.from_spec(spec)
    return func, design_space(Task(func, target))


def repeated(space: SketchSpace, sketch: int, num: int) -> Ints:
    """Return rows that do not stand for themselves."""
    drawn = distinct(space.sketches[sketch].draw(64 * num, np.random.default_rng(0)))
    others = (space.canonical(sketch, drawn) != drawn).any(axis=1)
    found: Ints = drawn[others][:num]
    return found


@pytest.mark.parametrize("target", [ONE_CORE, TWO_CORES], ids=["one core", "two cores"])
@pytest.mark.parametrize("spec", ["matmul:8,8,16", "conv2d:1,2,4,4,8,3,1,1", "transpose:16,24"])
def test_what_stands_for_a_row_is_the_same_program(spec: str, target: Target) -> None:
    func, space = space_of(spec, target)
    seen = 0
    for index, sketch in enumerate(space.sketches):
        rows = repeated(space, index, 2)
        for row, other in zip(rows, space.canonical(index, rows), strict=True):
            seen += 1
            one, same = sketch.candidate(row), sketch.candidate(other)
            assert loops(func, one) == loops(func, same)
            assert space.point(one) == space.point(same) == Point(index, tuple(other.tolist()))
    assert seen or spec.startswith("transpose")


@pytest.mark.parametrize(
    ("spec", "target"),
    [
        ("matmul:8,8,128", ONE_CORE),
        ("matmul:7,13,11", ONE_CORE),
        ("matmul_bias_relu:8,16,8", ONE_CORE),
        ("conv2d:1,2,4,4,8,3", ONE_CORE),
        ("max_pool2d:1,4,8,8,2,2", TWO_CORES),
        ("softmax:16,64", ONE_CORE),
        ("transpose:16,24", TWO_CORES),
    ],
)
def test_no_two_points_are_the_same_program(spec: str, target: Target) -> None:
    """Within a sketch and across sketches, among a dozen points of each."""
    func, space = space_of(spec, target)
    codes: Counter[str] = Counter()
    for index, sketch in enumerate(space.sketches):
        rows = space.draw(index, 12, np.random.default_rng(0))
        codes.update(code(func, target, sketch.candidate(row)) for row in rows)
    assert codes
    assert codes.most_common(1)[0][1] == 1


def test_a_loop_that_turns_once_may_be_anywhere() -> None:
    _, space = space_of("matmul:16,16,16", ONE_CORE)
    index = next(i for i, sketch in enumerate(space.sketches) if sketch.name == "direct")
    sketch = space.sketches[index]

    def canonical(*decisions: tuple[int, ...]) -> list[tuple[int, ...] | int]:
        choices = [k.choice(d) for k, d in zip(sketch.knobs, decisions, strict=True)]
        (row,) = space.canonical(index, np.array([choices], np.int64))
        return [k.decision(int(c)) for k, c in zip(sketch.knobs, row, strict=True)]

    # i0 becomes i1, past j0 that turns once; k0 becomes k1, past i2 and j2 that do.
    found = canonical((4, 1, 1, 4), (1, 2, 1, 8), (16, 1, 1))
    assert found == [(1, 4, 1, 4), (1, 2, 1, 8), (1, 16, 1)]
    # i0 may not: j0 is inside of it, and stays outside of i1. Nor may k0: i2 is between.
    kept = (4, 1, 2, 2), (2, 2, 1, 4), (16, 1, 1)
    assert canonical(*kept) == list(kept)


def test_rows_are_kept_as_those_that_stand_for_them() -> None:
    _, space = space_of("matmul:32,32,32", ONE_CORE)
    index = next(i for i, sketch in enumerate(space.sketches) if sketch.name == "direct")
    drawn = space.sketches[index].draw(4000, np.random.default_rng(0))
    kept = space.keep(index, drawn)
    assert 0 < len(distinct(kept)) < len(distinct(drawn))
    assert (space.canonical(index, kept) == kept).all()
    assert space.sketches[index].is_representative(kept).all()


def test_draws_are_even_over_the_points_of_a_sketch() -> None:
    """Each of n points is drawn with the same chance: chi-square over many small draws."""
    _, space = space_of("matmul:8,8,8", ONE_CORE)
    index = next(i for i, sketch in enumerate(space.sketches) if sketch.name == "direct")
    points = space.enumerate(index)
    rng = np.random.default_rng(0)
    counts: Counter[tuple[int, ...]] = Counter()
    for _ in range(40 * len(points)):
        counts[tuple(space.draw(index, 1, rng)[0].tolist())] += 1
    found = np.array([counts[tuple(row.tolist())] for row in points])
    statistic = float(((found - 40) ** 2 / 40).sum())
    # The mean of chi-square is its degrees of freedom, its variance twice that.
    assert abs(statistic - len(points)) < 5 * np.sqrt(2 * len(points))


@pytest.mark.parametrize(
    ("factors", "moved"),
    [
        ((4, 1, 2), (1, 4, 2)),
        ((4, 2, 1), (1, 4, 2)),
        ((1, 4, 2), (1, 4, 2)),
        ((8, 1, 1), (1, 1, 8)),
        ((2, 2, 2), (2, 2, 2)),
    ],
)
def test_loops_of_the_worked_example_move_inwards(
    factors: tuple[int, ...], moved: tuple[int, ...]
) -> None:
    knob = TileKnob(8, 3, 8)
    zone = tuple(LoopSlot(column, knob=0) for column in range(3))
    choice = knob.choice(factors)
    assert choice is not None
    rows = np.array([[choice]], np.int64)
    canonical_rows = canonical((zone,), (knob,), rows, knob.options[rows[:, 0]])
    assert tuple(knob.options[canonical_rows[0, 0]].tolist()) == moved
