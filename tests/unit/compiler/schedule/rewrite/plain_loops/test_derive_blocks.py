"""Programs of plain loops get blocks when they are scheduled, and compute the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal, structural_hash
from compiler.ir.core.nodes import BlockRealize
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle.oracle import compare
from compiler.schedule.error import ScheduleError
from compiler.schedule.rewrite.plain_loops.derive_blocks import derive_blocks
from compiler.schedule.rewrite.plain_loops.statements import UnderivableError
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.script import parse
from tests.tutorials.loops import LINEAR_RELU_BLOCKS, LINEAR_RELU_LOOPS

PARAMS = ", ".join(
    f'{name}: T.Buffer({shape}, "float32")'
    for name, shape in {"A": (6, 8), "B": (6,), "C": (6, 8)}.items()
)


def program(body: str) -> PrimFunc:
    lines = (f"    {line}" for line in body.strip("\n").splitlines())
    return parse("\n".join(["@T.prim_func", f"def main({PARAMS}):", *lines]))


DERIVED = {
    "a sum": (
        "for i in range(6):\n    B[i] = T.float32(0)\n    for k in range(8):\n"
        "        B[i] = B[i] + A[i, k]",
        {"B": "SP RE"},
    ),
    "a sum that begins in a loop of its own": (
        "for j in range(6):\n    B[j] = T.float32(1)\n"
        "for i, k in T.grid(6, 8):\n    B[i] = T.max(A[i, k], B[i])",
        {"B": "SP RE"},
    ),
    "a sum that goes on from what is there": (
        "for i, k in T.grid(6, 8):\n    B[i] = B[i] + A[i, k]",
        {"B": "SP RE"},
    ),
    "a value that is replaced twice": (
        "for i in range(6):\n    B[i] = A[i, 0]\n    B[i] = B[i] * B[i]\n    B[i] = B[i] + A[i, 1]",
        {"B": "SP", "B_before": "SP", "B_before_1": "SP"},
    ),
    "a scalar in a loop": (
        "s = T.alloc_buffer((1,))\nfor i in range(6):\n    s[0] = T.float32(0)\n"
        "    for k in range(8):\n        s[0] = s[0] + A[i, k]\n    B[i] = s[0] * T.float32(2)",
        {"s": "SP RE", "B": "SP"},
    ),
    "a condition": (
        "for i, k in T.grid(6, 8):\n    C[i, k] = A[i, k]\n"
        "for i, k in T.grid(6, 8):\n    if k < i:\n        C[i, k] = T.float32(7)",
        {"C": "SP SP", "C_1": "SP SP"},
    ),
    "a recurrence": (
        "B[0] = A[0, 0]\nfor i in range(5):\n    B[i + 1] = B[i] + A[i, 1]",
        {"B": "", "B_1": "SC"},
    ),
    "the last of several values": (
        "for i, k in T.grid(6, 8):\n    B[i] = A[i, k]",
        {"B": "SP OP"},
    ),
    "a sum that starts in its first iteration": (
        "for i, k in T.grid(6, 8):\n    if k == 0:\n        B[i] = T.float32(1)\n"
        "    B[i] = B[i] + A[i, k]",
        {"B": "SP RE"},
    ),
    "a sum that starts in the first of two loops": (
        "for i, k_0, k_1 in T.grid(6, 3, 3):\n    if k_0 * 3 + k_1 < 8:\n"
        "        if k_0 * 3 + k_1 == 0:\n            B[i] = T.float32(0)\n"
        "        B[i] = B[i] + A[i, k_0 * 3 + k_1]",
        {"B": "SP RE RE"},
    ),
    "a sum that is started in every iteration": (
        "for i, k in T.grid(6, 8):\n    B[i] = T.float32(1)\n    B[i] = B[i] + A[i, k]",
        {"B": "SP OP", "B_1": "SP OP"},
    ),
    "an update that is not commutative": (
        "for i, k in T.grid(6, 8):\n    B[i] = B[i] * T.float32(2) + A[i, k]",
        {"B": "SP RE"},
    ),
    "the largest value, by a condition": (
        "for i, k in T.grid(6, 8):\n    if A[i, k] > B[i]:\n        B[i] = A[i, k]",
        {"B": "SP RE"},
    ),
    "extents that depend on loops": (
        "for i in range(6):\n    for k in range(i + 1):\n        C[i, k] = A[i, k]",
        {"C": "SP SP"},
    ),
    "elements that depend on each other": (
        "for i in range(5):\n    B[i] = A[i, 0]\n    B[i + 1] = B[i] + A[i, 1]",
        {"B": "SP", "B_1": "SC"},
    ),
    "a value that the next iteration reads": (
        "for i in range(5):\n    B[i] = A[i, 0]\n    C[i + 1, 0] = B[i] + C[i, 0]",
        {"B": "SP", "C": "SC"},
    ),
    "a value of an iteration before": (
        "for i in range(6):\n    C[i, 0] = A[i, 0]\n    if i > 0:\n        B[i] = C[i - 1, 0]",
        {"C": "SP", "B": "SP"},
    ),
    "a value of a later iteration": (
        "for i in range(5):\n    C[i, 0] = A[i, 0]\n    B[i] = C[i + 1, 0]",
        {"C": "SP", "B": "SP"},
    ),
    "a condition around loops": (
        "for i in range(6):\n    if i < 3:\n        B[i] = T.float32(0)\n"
        "        for k in range(8):\n            B[i] = B[i] + A[i, k]",
        {"B": "SP RE"},
    ),
    "a named value around a loop": (
        "for i in range(6):\n    j: T.int32 = 5 - i\n    for k in range(8):\n"
        "        C[j, k] = A[i, k]",
        {"C": "SP SP"},
    ),
    "an allocation in a loop": (
        "for i in range(6):\n    with T.allocate((1,)) as s:\n        s[0] = T.float32(0)\n"
        "        for k in range(8):\n            s[0] = s[0] + A[i, k]\n"
        "        B[i] = s[0] * T.float32(2)",
        {"s": "SP RE", "B": "SP"},
    ),
    "a parallel loop": (
        "for i in T.parallel(6):\n    for k in range(8):\n        C[i, k] = A[i, k] + T.float32(1)",
        {"C": "SP SP"},
    ),
}

REFUSED = {
    "threads": (
        'for i in T.thread_binding(6, thread="threadIdx.x"):\n    B[i] = A[i, 0]',
        "loop i is bound to threadIdx.x",
    ),
    "a condition that may change": (
        "for i in range(6):\n    if B[i] > T.float32(0):\n        for k in range(8):\n"
        "            B[k % 6] = A[i, k]",
        "a condition around loops reads B, which the program writes",
    ),
    "more statements than are compared": (
        "\n".join(f"B[{n % 6}] = A[0, {n % 8}]" for n in range(65)),
        "it has 65 statements: expected 1 to 64",
    ),
}


def kinds(func: PrimFunc) -> dict[str, str]:
    blocks = [s.block for s in walk_stmts(func.body) if isinstance(s, BlockRealize)]
    return {
        block.name: " ".join(iterator.kind[:2].upper() for iterator in block.iter_vars)
        for block in blocks
        if block.name != "root"
    }


@pytest.mark.parametrize("name", DERIVED)
def test_blocks_are_derived_and_compute_the_same(name: str) -> None:
    body, expected = DERIVED[name]
    func = program(body)
    derived = derive_blocks(func)
    assert kinds(derived) == expected
    inputs = random_inputs(func, 0)
    for output in ("B", "C"):
        inputs.setdefault(output, np.zeros(6 if output == "B" else (6, 8), np.float32))
    before, after = evaluate(func, inputs), evaluate(derived, inputs)
    for output in ("B", "C"):
        np.testing.assert_array_equal(after[output], before[output])


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_blocks_are_derived_of_is_refused_with_the_reason(name: str) -> None:
    body, reason = REFUSED[name]
    func = program(body)
    with pytest.raises(UnderivableError) as caught:
        derive_blocks(func)
    assert caught.value.reason == reason
    with pytest.raises(
        ScheduleError, match=f"main has no blocks, and none can be derived: {reason}"
    ):
        Schedule(func)


def test_the_empty_trace_applies_to_any_program() -> None:
    func = program(REFUSED["threads"][0])
    schedule = Trace().apply_to(func)
    assert schedule.func is func
    with pytest.raises(ScheduleError, match='there is no block "B"'):
        schedule.get_sblock("B")


def test_a_program_with_blocks_stays() -> None:
    func = program(
        'for i in range(6):\n    with T.block("B"):\n'
        "        v = T.axis.spatial(6, i)\n        B[v] = A[v, 0]"
    )
    assert derive_blocks(func) is func


def test_the_loops_of_the_lecture_become_its_blocks() -> None:
    loops, blocks = parse(LINEAR_RELU_LOOPS), parse(LINEAR_RELU_BLOCKS)
    derived = Schedule(loops).func
    names = LINEAR_RELU_BLOCKS.replace('T.block("linear")', 'T.block("out_sum")')
    same = parse(names.replace('T.block("relu")', 'T.block("out")'))
    assert structural_equal(derived.with_attr("tir.noalias", True), same)
    target = "cpu -mcpu=x86-64-v3 -num-cores=2"
    spaces = [lw.design_space(func, target) for func in (loops, blocks)]
    assert spaces[0].num_schedules == spaces[1].num_schedules > 1


def test_a_trace_replays_on_what_was_submitted() -> None:
    func = program(DERIVED["a sum"][0])
    before = structural_hash(func)
    sch = Schedule(func)
    i, _ = sch.get_loops(sch.get_sblock("B"))
    sch.parallel(sch.split(i, [2, 3])[0])
    assert structural_hash(func) == before
    trace = Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    again = trace.apply_to(func).func
    assert structural_equal(again, sch.func)
    inputs = random_inputs(func, 0)
    assert compare(func, evaluate(again, inputs), {"B": evaluate(func, inputs)["B"]}) < 1e-6
